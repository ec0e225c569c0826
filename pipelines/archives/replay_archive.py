"""What a replay shows: the captures of a table, found by URL and time."""

from collections.abc import Iterator
from typing import NamedTuple

import polars as pl

from ...io.archives.replayed_pages import PageReader, answered_pages, robots_answers
from ...io.snapshots.manifest import Pinned, Snapshot, newest_manifest
from ...policy.archives.capture_index import (
    REPLAYED,
    CaptureIndex,
    ReplayedRows,
    choose_capture,
)
from ...policy.archives.captured_pages import captures_of
from ...web.archives.captures import Capture
from ...web.urls.row_keys import BadUrl, to_key

_ROBOTS_FILE = -1
_NO_ANSWER = 503  # RFC 9309 2.3.1.4: as if all was forbidden


class _PagesFile(NamedTuple):
    """A file of pages: its batch, and its path in the table."""

    batch: str
    path: str


class ReplayArchive:
    """The captures of a table in its newest snapshot.

    Args:
        address: Address of the table.
        time: The time to come near to where a request names none, ms; None: the newest captures.

    Attributes:
        name: Its address, for people.
        index: Its captures.

    Raises:
        UserError: There is no table, or it cannot be read.
    """

    def __init__(self, address: str, time: int | None = None) -> None:
        self.name, self._time = address, time
        pinned = Snapshot(address, newest_manifest(address).snapshot)
        self._pages, self._files = PageReader(pinned), list[_PagesFile]()
        self._robots: list[Capture] = []
        with pinned.reading():
            frames = [*self._page_rows(pinned), self._robots_rows(pinned)]
        self.index = CaptureIndex(pl.concat(frames))

    def find(self, url: str, time: int | None = None) -> Capture | None:
        """Returns the capture of a URL that is nearest to a time, ms; None if there is none.

        Raises:
            UserError: Its file cannot be read, or is gone.
        """
        rows = self.index.captures_of(url)
        row = choose_capture(rows, self._time if time is None else time)
        if row is None:
            return None
        if row["file"] == _ROBOTS_FILE:
            return self._robots[row["row"]]
        file = self._files[row["file"]]
        return next(captures_of(self._pages.read(file.path, row["row"]), file.batch))

    def _page_rows(self, pinned: Pinned) -> Iterator[ReplayedRows]:
        for batch, file, rows in answered_pages(pinned):
            number = len(self._files)
            self._files.append(_PagesFile(batch, file.path))
            yield rows.select(
                "key",
                pl.col("fetch_time").fill_null(0).alias("time"),
                pl.col("http_code").alias("status"),
                pl.col("content_type").alias("mime"),
                pl.lit(number, pl.Int32).alias("file"),
                pl.col("row").cast(pl.Int64),
            )

    def _robots_rows(self, pinned: Pinned) -> ReplayedRows:
        rows: list[tuple[str, int, int, str, int, int]] = []
        for origin, status, text, time in robots_answers(pinned).iter_rows():
            url, code = f"{origin}/robots.txt", status or _NO_ANSWER
            try:
                key = to_key(url)
            except BadUrl:
                continue
            rows.append((key, time, code, "text/plain", _ROBOTS_FILE, len(self._robots)))
            self._robots.append(
                Capture(
                    url,
                    "",
                    time,
                    status=code,
                    status_line=f"HTTP/1.1 {code}",
                    headers=(("Content-Type", "text/plain; charset=utf-8"),),
                    body=(text or "").encode("utf-8", "replace"),
                )
            )
        return pl.DataFrame(rows, schema=pl.Schema(REPLAYED), orient="row")
