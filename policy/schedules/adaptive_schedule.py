"""Nutch's adaptive schedule: intervals shrink after a change, and else grow (nutch.md 2.5)."""

import dataclasses

import polars as pl

from .host_intervals import HostIntervals
from .visits import FETCHED, ScheduleContext, content_time, next_fetch, server_time


@dataclasses.dataclass(frozen=True)
class AdaptiveSchedule:
    """The schedule ``adaptive``.

    Attributes:
        hosts: Shortest and longest intervals of some hosts.
    """

    hosts: HostIntervals

    def __call__(self, visits: pl.DataFrame, context: ScheduleContext) -> pl.DataFrame:
        """Sets intervals by the rates of the options; see ``visits``."""
        options = context.options
        return adapt(
            visits, context, self.hosts, pl.lit(options.inc_rate), pl.lit(options.dec_rate)
        )


def adapt(
    visits: pl.DataFrame,
    context: ScheduleContext,
    hosts: HostIntervals,
    inc_rate: pl.Expr,
    dec_rate: pl.Expr,
) -> pl.DataFrame:
    """Sets intervals by the given rates.

    Args:
        visits: See ``visits``.
        context: Options.
        hosts: Shortest and longest intervals of some hosts.
        inc_rate: By which share the interval of an unchanged page grows.
        dec_rate: By which share the interval of a changed page shrinks.
    """
    options = context.options
    old = pl.col("fetch_interval").cast(pl.Float64)
    interval = (
        pl.when("modified")
        .then(old * (1 - dec_rate))
        .when("notmodified")
        .then(old * (1 + inc_rate))
        .otherwise(old)
    )
    shortest, longest = hosts.bounds(visits, options.shortest, options.longest)
    modified_time = content_time(pl.coalesce(server_time(), FETCHED))
    visits = visits.with_columns(modified_time=modified_time)
    offset = pl.lit(0)
    if options.sync_delta:
        changed = pl.col("modified_time")
        delta = pl.when(changed > 0).then((FETCHED - changed).clip(0)).fill_null(0)
        interval = pl.max_horizontal(interval, delta / 1000)
        offset = _offset(delta, longest, options.sync_delta_rate)
    due = next_fetch(interval.clip(shortest, longest), FETCHED - offset)
    return visits.with_columns(**due)


def _offset(delta: pl.Expr, longest: pl.Expr, rate: float) -> pl.Expr:
    """Returns how far the reference time is before the fetch, ms: a share of the last change's age.

    Above the longest interval it is that share of the longest interval. Nutch divides whole
    numbers there, and gets 0; before 1.22 the next fetch was in the past.
    """
    offset, most = delta * rate, longest * 1000
    offset = pl.when(offset > most).then(most * rate).otherwise(offset)
    return (offset + 0.5).floor().cast(pl.Int64)  # a half is rounded up, as in Java
