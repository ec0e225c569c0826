"""A schedule of a user: intervals halve after a change, and double without one.

It uses all that a plug-in gets and may set: status and retries from before the visit, options, the
number of pages, and the columns in which it remembers something. ``reference_lively`` is the same for
one row.
"""

import polars as pl

DAY = 86_400


def lively(visits, context):
    """Sets the next fetch of the rows that were visited."""
    fixed, interval = pl.col("fixed_interval"), pl.col("fetch_interval")
    wanted = (
        pl.when("modified")
        .then(interval // 2)
        .when("notmodified")
        .then(interval.cast(pl.Int64) * 2)
        .otherwise(interval)
    )
    wanted = pl.when((pl.col("retries") > 0) | (pl.col("status") == 3)).then(DAY).otherwise(wanted)
    shortest = min(600 * context.pages, context.options.longest)  # each page takes ten minutes
    seconds = pl.coalesce(fixed, wanted.clip(shortest, context.options.longest)).cast(pl.Int64)
    changes = pl.col("change_days").fill_null(0) + pl.col("modified").cast(pl.Float32)
    not_modified = pl.col("event.fetch_status") == 38
    earlier = pl.when(fixed.is_null() & not_modified).then(1800).otherwise(0)
    return visits.with_columns(
        fetch_interval=seconds,
        fetch_time=pl.col("event.fetch_time") + (seconds - earlier) * 1000,
        modified_time=pl.when("modified").then("event.fetch_time").otherwise("modified_time"),
        change_shape=pl.col("change_shape").fill_null(0) + 1,
        change_days=changes,
        metadata=pl.when(changes <= 2).then("metadata"),
    )
