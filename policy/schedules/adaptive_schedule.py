"""Nutch's adaptive schedule: intervals shrink after a change, and else grow (nutch.md 2.5)."""

import dataclasses

import polars as pl

from .host_intervals import HostIntervals
from .visits import FETCH_TIME, ScheduleContext, content_time, java_round, next_fetch, server_time


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
    modified_time = content_time(pl.coalesce(server_time(), FETCH_TIME))
    visits = visits.with_columns(modified_time=modified_time)
    if not options.sync_delta:
        return visits.with_columns(**next_fetch(interval.clip(shortest, longest)))
    changed = pl.col("modified_time")
    age = pl.when(changed > 0).then((FETCH_TIME - changed).clip(0)).fill_null(0)
    interval = pl.max_horizontal(interval, age / 1000).clip(shortest, longest)
    offset = sync_offset(age, interval, shortest, options.sync_delta_rate)
    return visits.with_columns(**next_fetch(interval, FETCH_TIME - offset))


def sync_offset(age: pl.Expr, interval: pl.Expr, shortest: pl.Expr, rate: float) -> pl.Expr:
    """Returns how much earlier than after its interval a page is fetched, ms.

    It is a share of the time since the last change, of at most one interval. The next fetch is
    never sooner than the shortest interval after this one. Nutch takes the share of any age, so a
    page that never changes would be due ever sooner, up to the time when it divides whole numbers
    and gets 0; before 1.22 the next fetch was in the past.

    Args:
        age: Time between the last change and the fetch, ms, not below 0.
        interval: Interval of the page within its bounds, s.
        shortest: Shortest interval of the page, s.
        rate: The share, from 0 to 1.

    >>> day, week = pl.lit(86_400), pl.lit(7 * 86_400)
    >>> [pl.select(sync_offset(day * 1000 * age, week, day, 0.5)).item() / 86_400_000
    ...  for age in (2, 7, 300)]
    [1.0, 3.5, 3.5]
    """
    whole = java_round(interval * 1000)
    offset = java_round(pl.min_horizontal(age, whole) * rate)
    return pl.min_horizontal(offset, whole - java_round(shortest * 1000))
