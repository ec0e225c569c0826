"""Reads the host table as it is: with the numbers of URLs that are not in its rows yet."""

from collections.abc import Collection, Iterator

import polars as pl

from ...policy.components.host_rows import counted_hosts
from ...policy.components.schema import HOSTS, empty
from ..rows.small_components import pending_changes
from ..snapshots.pinned import Pinned
from ..tablets.tablets import tablets

_HOSTS = "hosts"
# Columns with long texts, which few need.
LARGE = frozenset({"robots_text", "sitemaps"})


def host_frames(pinned: Pinned, without: Collection[str] = frozenset()) -> Iterator[pl.DataFrame]:
    """Yields all rows of the host table in key order, in frames, with present numbers of URLs.

    Args:
        pinned: The table.
        without: Columns that are not read; they are null.
    """
    pending, done = pending_changes(pinned), 0
    for rows in _frames(pinned, without):
        if rows.is_empty():
            continue
        keys = pending.get_column("key")
        end = int(keys.search_sorted(rows.get_column("key")[-1], side="right"))
        yield counted_hosts(rows.select(HOSTS.names), pending[done:end])
        done = end
    if done < len(pending):
        yield counted_hosts(empty(HOSTS), pending[done:])


def _frames(pinned: Pinned, without: Collection[str]) -> Iterator[pl.DataFrame]:
    wide = empty(HOSTS)
    columns = [name for name in HOSTS.names if name not in without]
    for tablet in tablets(pinned.files(_HOSTS)):
        if without:
            rows = pinned.table.read(_HOSTS, [tablet], columns).select(columns)
            yield pl.concat([wide, rows], how="diagonal").sort("key")
        else:
            yield from pinned.table.scan(_HOSTS, tablet)


def find_hosts(
    pinned: Pinned, keys: pl.Series, without: Collection[str] = frozenset()
) -> pl.DataFrame:
    """Returns the rows of some hosts (reversed) in key order, with present numbers of URLs.

    Args:
        pinned: The table.
        keys: The hosts.
        without: Columns that are not read; they are null.
    """
    columns = [name for name in HOSTS.names if name not in without]
    rows = pinned.find_rows(_HOSTS, keys, columns).select(columns)
    pending = pending_changes(pinned).filter(pl.col("key").is_in(keys.implode()))
    return counted_hosts(pl.concat([empty(HOSTS), rows], how="diagonal"), pending)
