"""A schedule and a scoring: they get rows of the table as polars frames."""

import polars as pl

from nutbeam.policy.schedules.visits import ScheduleContext
from nutbeam.policy.scoring.scoring import Scoring

DAY_S = 86_400


def daily_front_pages(visits: pl.DataFrame, context: ScheduleContext) -> pl.DataFrame:
    """Fetches front pages every day, and all other pages as often as before."""
    front = pl.col("key").str.ends_with("/")
    interval = pl.when(front).then(DAY_S).otherwise("fetch_interval")
    return visits.with_columns(
        fetch_interval=interval,
        fetch_time=pl.col("event.fetch_time") + interval.cast(pl.Int64) * 1000,
        modified_time=pl.when("modified").then("event.fetch_time").otherwise("modified_time"),
    )


class Shallow(Scoring):
    """Prefers pages that few links lead to from the seeds; leaves scores as they are."""

    name = "shallow"

    def sort_value(self, rows: pl.DataFrame) -> pl.DataFrame:
        """Divides the value by which generate chooses by the distance from the seeds."""
        distance = pl.col("distance").fill_null(0) + 1
        return rows.with_columns(sort_value=pl.col("sort_value") / distance)
