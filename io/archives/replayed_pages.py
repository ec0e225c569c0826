"""Reads from a table what a replay needs: a list of all answers, single answers, robots.txt."""

from collections.abc import Iterator

import polars as pl
import pyarrow as pa

from ...policy.components.schema import DROPPED_BODY, HOSTS, PAGES
from ...web.base.mappings import SizeCache
from ...web.exchange.status import FETCH_SUCCESS
from ..batches.batches import batch_component
from ..snapshots.pinned import Pinned
from ..storage.parquet_files import collect, row_group_with, scan
from ..tablets.file_lists import DataFile
from .archive_sources import batches_with_pages, read_host_rows

_LISTED = ("key", "fetch_time", "http_code", "content_type")
_ROBOTS = ("robots_origin", "robots_status", "robots_text", "robots_time")
_CACHED_BYTES = 64 << 20


def answered_pages(pinned: Pinned) -> Iterator[tuple[str, DataFile, pl.DataFrame]]:
    """Yields (batch, file of pages, its rows with an answer); bodies are not read.

    The rows have ``row``, their number in the file, and key, time, HTTP's code and content type.
    """
    for batch in batches_with_pages(pinned.manifest()):
        for file in pinned.files(batch_component(batch, "pages")):
            answered = pl.col("http_code").is_not_null() | (pl.col("fetch_status") == FETCH_SUCCESS)
            answered &= pl.col("truncated").ne_missing(DROPPED_BODY)
            rows = scan([pinned.table / file.path], PAGES, row_index="row").filter(answered)
            yield batch, file, collect(rows.select("row", *_LISTED))


def robots_answers(pinned: Pinned) -> pl.DataFrame:
    """Returns origin, status, text and time of each robots.txt that the table knows, oldest first."""
    requested = pl.col("robots_origin").is_not_null() & pl.col("robots_time").is_not_null()
    frames = [read_host_rows(pinned, requested, _ROBOTS)]
    for name in pinned.manifest().components:
        if name.endswith("/host_findings"):
            paths = [pinned.table / file.path for file in pinned.files(name)]
            frames.append(collect(scan(paths, HOSTS).filter(requested).select(_ROBOTS)))
    return pl.concat(frames).unique(maintain_order=True).sort("robots_time", "robots_origin")


class PageReader:
    """Reads single rows of files of pages; safe for threads.

    Args:
        pinned: The snapshot that has the files.
    """

    def __init__(self, pinned: Pinned) -> None:
        self._pinned = pinned
        self._groups: SizeCache[tuple[str, int], tuple[pa.Table, int]] = SizeCache(
            _CACHED_BYTES, lambda group: int(group[0].nbytes)
        )
        self._last: dict[str, int] = {}  # first row of the group that was read last, by file

    def read(self, path: str, row: int) -> pa.Table:
        """Returns a row of ``PAGES``.

        Raises:
            UserError: The file is damaged, or a purge or ``compact`` has removed it.
        """
        group = self._groups.get((path, self._last.get(path, -1)))
        if group is None or not group[1] <= row < group[1] + len(group[0]):
            with self._pinned.reading():
                group = row_group_with(self._pinned.table / path, PAGES, row)
            self._groups.put((path, group[1]), group)
            self._last[path] = group[1]
        return group[0].slice(row - group[1], 1)
