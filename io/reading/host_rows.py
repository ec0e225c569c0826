"""Reads the host table as it is: with the numbers of URLs that are not in its rows yet."""

from collections.abc import Iterator

import polars as pl

from ...policy.hosting.host_counts import counted_hosts
from ...policy.schema import HOSTS, empty
from ..rows.hosts import host_changes, pending_counts
from ..snapshots.manifest import Pinned
from ..tablets.tablets import tablets

_HOSTS = "hosts"


def host_frames(pinned: Pinned) -> Iterator[pl.DataFrame]:
    """Yields all rows of the host table in key order, in pieces, with present numbers of URLs."""
    pending = host_changes(pending_counts(pinned))
    known, done = tablets(pinned.files(_HOSTS)), 0
    frames = (rows for tablet in known for rows in pinned.root.scan(_HOSTS, tablet))
    for rows in frames:
        if rows.is_empty():
            continue
        keys = pending.get_column("key")
        end = int(keys.search_sorted(rows.get_column("key")[-1], side="right"))
        yield counted_hosts(rows.select(HOSTS.names), pending[done:end])
        done = end
    if done < len(pending):
        yield counted_hosts(empty(HOSTS), pending[done:])


def find_hosts(pinned: Pinned, keys: pl.Series) -> pl.DataFrame:
    """Returns the rows of some hosts (reversed) in key order, with present numbers of URLs."""
    known = tablets(pinned.files(_HOSTS))
    rows = pinned.root.find(_HOSTS, known, keys).select(HOSTS.names)
    pending = host_changes(pending_counts(pinned))
    return counted_hosts(rows, pending.filter(pl.col("key").is_in(keys.implode())))
