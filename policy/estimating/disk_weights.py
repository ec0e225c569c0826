"""Adds up what the files of a table weigh, and what retention frees and when."""

from typing import NamedTuple, TypeAlias

import polars as pl

from ..schedules.schedule import DAY_MS

# Rows with ``what``, ``bytes`` and ``needed_until`` (ms; null: the newest snapshot needs the file).
FileRows: TypeAlias = pl.DataFrame


class ComponentWeight(NamedTuple):
    """What a component weighs on disk.

    Attributes:
        what: Its name for users.
        files: Number of its files.
        current: Size of the files of the newest snapshot, bytes.
        waiting: Size of the files that only older snapshots or dead jobs have, bytes.
    """

    what: str
    files: int
    current: int
    waiting: int


class DayWeight(NamedTuple):
    """What compact can delete from a time on, beside what it can delete earlier.

    Attributes:
        time: The time, ms: now, or the end of a day from now.
        bytes: Size of the files.
    """

    time: int
    bytes: int


def weigh_components(files: FileRows) -> list[ComponentWeight]:
    """Returns the weight of each component, the heaviest first.

    >>> files = pl.DataFrame({"what": ["state", "state"], "bytes": [5, 7], "needed_until": [None, 0]})
    >>> weigh_components(files)
    [ComponentWeight(what='state', files=2, current=5, waiting=7)]
    """
    is_current = pl.col("needed_until").is_null()
    rows = files.group_by("what").agg(
        pl.len().alias("files"),
        pl.col("bytes").filter(is_current).sum().alias("current"),
        pl.col("bytes").filter(~is_current).sum().alias("waiting"),
    )
    order = (pl.col("current") + pl.col("waiting"), pl.col("what"))
    return [ComponentWeight(*row) for row in rows.sort(order, descending=[True, False]).rows()]


def freed_by_day(files: FileRows, retention_ms: int, now: int) -> list[DayWeight]:
    """Returns what compact can delete now, and by the end of each later day, counted from now.

    Args:
        files: The files.
        retention_ms: How long files are kept after they were needed.
        now: The time, ms.

    >>> files = pl.DataFrame({"what": ["a"] * 3, "bytes": [5, 7, 9], "needed_until": [None, 0, DAY_MS]})
    >>> freed_by_day(files, DAY_MS, DAY_MS + 1)
    [DayWeight(time=86400001, bytes=7), DayWeight(time=172800001, bytes=9)]
    """
    freed = pl.col("needed_until") + retention_ms
    days_left = ((freed - now).clip(0) / DAY_MS).ceil().cast(pl.Int64)
    rows = (
        files.drop_nulls("needed_until")
        .group_by((now + DAY_MS * days_left).alias("time"))
        .agg(pl.col("bytes").sum())
    )
    return [DayWeight(*row) for row in rows.sort("time").rows() if row[1]]
