"""Keeps the intervals of pages within the bounds that settings of their hosts say."""

from collections.abc import Mapping

import polars as pl

from ...web.urls.key_columns import host_keys
from ..components.host_rows import LONGEST_INTERVAL, HostSettings

Bounds = Mapping[str, tuple[int, int]]


def interval_bounds(settings: Mapping[str, HostSettings]) -> Bounds:
    """Returns (shortest, longest interval in s) by host (reversed), of hosts that have any.

    >>> interval_bounds({"com.a": HostSettings(min_interval=60), "com.b": HostSettings()})
    {'com.a': (60, 2147483647)}
    """
    return {
        host: (own.min_interval or 1, own.max_interval or LONGEST_INTERVAL)
        for host, own in settings.items()
        if own.min_interval is not None or own.max_interval is not None
    }


def within_bounds(visits: pl.DataFrame, bounds: Bounds, longest: int) -> pl.DataFrame:
    """Returns scheduled rows with intervals within the bounds of their hosts, and due accordingly.

    A row with a fixed interval keeps it: it was set for this URL. An interval that a bound changes
    counts from the fetch, even if the schedule has moved the date towards the last change. No page is
    due sooner than its shortest interval after the fetch. The longest interval is not for pages that
    are gone: their intervals grow each time, so that a short one for fresh pages does not repeat
    requests that fail. The shortest is for them, too.

    Args:
        visits: Rows with ``key``, ``visited``, ``gone``, ``fixed_interval``, ``fetch_interval``,
            ``fetch_time`` and ``event.fetch_time``.
        bounds: The bounds.
        longest: The longest interval of all pages, s; it has priority over bounds.
    """
    hosts = host_keys(visits.get_column("key")) if bounds else None
    if hosts is None or not hosts.is_in(list(bounds)).any():
        return visits
    low, high = (
        hosts.replace_strict(
            list(bounds), [min(pair[at], longest) for pair in bounds.values()], default=None,
            return_dtype=pl.Int64,
        )
        for at in (0, 1)
    )  # fmt: skip
    interval = pl.col("fetch_interval").cast(pl.Int64)
    free = pl.col("fixed_interval").is_null() & pl.lit(low).is_not_null()
    within = (
        pl.when(free & pl.col("visited"))
        .then(interval.clip(pl.lit(low), pl.lit(high)))
        .when(free & pl.col("gone"))
        .then(interval.clip(pl.lit(low)))
        .otherwise(interval)
    )
    fetched = pl.col("event.fetch_time")
    soonest = pl.when(free & pl.col("visited")).then(fetched + pl.lit(low) * 1000)
    return visits.with_columns(
        fetch_interval=within.cast(pl.Int32),
        fetch_time=pl.when(within == interval)
        .then(pl.max_horizontal("fetch_time", soonest))
        .otherwise(fetched + within * 1000),
    )
