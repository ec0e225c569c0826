"""Nutch's default schedule: the interval of a row stays."""

import polars as pl

from .visits import FETCH_TIME, ScheduleContext, content_time


def default_schedule(visits: pl.DataFrame, context: ScheduleContext) -> pl.DataFrame:
    """Makes pages due when their interval is over; see ``visits``."""
    interval = pl.col("fetch_interval").cast(pl.Int64)
    return visits.with_columns(
        fetch_time=FETCH_TIME + interval * 1000, modified_time=content_time()
    )
