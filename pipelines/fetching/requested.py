"""The set of pages that a partition's fetch requests: its fetch list, and followed links."""

import functools
import threading

import polars as pl

from ...web.base.progress import PROGRESS
from ...web.engine.tasks import Task
from ...web.urls.key_columns import host_keys
from ...web.urls.row_keys import from_key, host_key_of


class RequestedPages:
    """The pages that a partition's fetch requests, each once; safe to use in any thread.

    A host that is not in the partition's fetch list may belong to another worker, so no
    request is sent to it.

    Args:
        rows: FETCHLIST rows of the partition.
        have: PAGES rows of earlier attempts: ``key``, ``depth``.
    """

    def __init__(self, rows: pl.DataFrame, have: pl.DataFrame) -> None:
        self._keys = rows.get_column("key")
        self._have = frozenset(have.get_column("key"))
        self._waits = _waits(rows)
        self._depths = dict(have.filter(pl.col("depth") > 0).select("key", "depth").iter_rows())
        self._met: set[str] = set()
        self._lock = threading.Lock()
        if len(have):  # these are not in the fetch list
            PROGRESS.expect_more(len(have.join(rows, on="key", how="anti")))

    @functools.cached_property
    def _fetch_list_keys(self) -> frozenset[str]:
        return frozenset(self._keys)

    @functools.cached_property
    def hosts(self) -> frozenset[str]:
        """The hosts of the fetch list, reversed."""
        return frozenset(host_keys(self._keys).unique())

    def meet(self, key: str) -> bool:
        """Marks a page as met; returns whether it is new and not in the fetch list."""
        with self._lock:
            if key in self._fetch_list_keys or key in self._met:
                return False
            self._met.add(key)
            return True

    def was_met(self, key: str) -> bool:
        """Returns whether a page was met before, or is in the fetch list."""
        return key in self._fetch_list_keys or key in self._met

    def has(self, key: str) -> bool:
        """Returns whether an earlier attempt has a page."""
        return key in self._have

    def depth(self, key: str) -> int:
        """Returns how many links this fetch has followed to reach a page."""
        return self._depths.get(key, 0)

    def wait(self, key: str) -> tuple[float | None, str | None]:
        """Returns (delay, address) of a page's host in the fetch list."""
        return self._waits.get(host_key_of(key), (None, None))

    def follow(self, key: str, score: float, distance: int, hops: int = 0, depth: int = 0) -> Task:
        """Returns the task for a page that is not in the fetch list, and counts it as expected."""
        if depth:
            self._depths[key] = depth
        PROGRESS.expect_more(1)
        delay, address = self.wait(key)
        return Task(
            from_key(key), key, score, distance,
            hops=hops, depth=depth, delay=delay, address=address,
        )  # fmt: skip


def _waits(rows: pl.DataFrame) -> dict[str, tuple[float | None, str | None]]:
    """Returns (delay, address) of the hosts (reversed) that have one.

    If the pages of a host differ, the delay of the best page counts.
    """
    host_rows = rows.filter(pl.col("delay").is_not_null() | pl.col("address").is_not_null())
    host_rows = host_rows.with_columns(host=host_keys(host_rows.get_column("key")))
    first = host_rows.sort("score", "key", descending=[True, False]).group_by("host")
    waits = first.agg(pl.col("delay").drop_nulls().first(), pl.col("address").first())
    return {host: (delay, address) for host, delay, address in waits.iter_rows()}
