"""What a replay shows: the captures of tables and WARC files, found by URL and time."""

import functools
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import polars as pl

from ...io.archives.packaged_archives import (
    ArchiveFile,
    archive_files_in,
    archive_files_of,
    is_archive_name,
    is_package_name,
)
from ...io.archives.replayed_files import find_record, list_records
from ...io.archives.replayed_pages import PageReader, answered_pages, robots_answers
from ...io.snapshots.manifest import newest_manifest
from ...io.snapshots.pinned import Pinned, Snapshot
from ...io.storage.files import names
from ...io.storage.place_addresses import place_of
from ...io.table.opening import open_table
from ...policy.archives.capture_index import (
    REPLAYED,
    CaptureIndex,
    ReplayedRows,
    choose_capture,
)
from ...policy.archives.captured_pages import captures_of
from ...web.archives.captures import Capture
from ...web.base.errors import UserError
from ...web.replay.replayed_records import capture_of_record, source_of_revisit, with_body_of
from ...web.urls.row_keys import BadUrl, parse_url, to_key

_NO_ANSWER = 503  # RFC 9309 2.3.1.4: as if all was forbidden
# Of a revisit of a revisit: as many as one may find in merged archives.
_MOST_REVISITS = 5
# Several records of a member: their numbers are in the low bits of a row.
_NUMBER_BITS = 24
# Returns the capture in a row of a file, and how many more revisits to follow.
_Reader = Callable[[int, int], Capture | None]


class ReplayArchive:
    """The captures of tables, in their newest snapshots, and of WARC files.

    Args:
        words: Addresses of tables, WARC files, packages (WACZ), and folders of them.
        time: The time to come near to where a request names none, ms; None: the newest captures.

    Attributes:
        name: The words, for people.
        index: All captures.
        damages: How much of the files is damaged, by reason.

    Raises:
        UserError: There is no table or file, or it cannot be read.
    """

    def __init__(self, words: Sequence[str], time: int | None = None) -> None:
        self.name, self._time = " ".join(words), time
        self._readers: list[_Reader] = []
        self.damages: Counter[str] = Counter()
        empty = pl.DataFrame(schema=pl.Schema(REPLAYED))
        frames = (frame for word in words for frame in self._rows_of(word))
        self.index = CaptureIndex(pl.concat([empty, *frames]))

    def find(self, url: str, time: int | None = None) -> Capture | None:
        """Returns the capture of a URL that is nearest to a time, ms; None if there is none.

        Raises:
            UserError: Its file cannot be read, or is gone.
        """
        return self._find(url, self._time if time is None else time, _MOST_REVISITS)

    def _find(self, url: str, time: int | None, revisits: int) -> Capture | None:
        row = choose_capture(self.index.captures_of(url), time)
        return None if row is None else self._readers[row["file"]](row["row"], revisits)

    def _rows_of(self, word: str) -> Iterator[ReplayedRows]:
        # A file of another kind is refused by name.
        if is_archive_name(word) or is_package_name(word) or Path(word).is_file():
            yield from map(self._file_rows, archive_files_of(place_of(word)))
            return
        table = open_table(word)
        files = [] if table.latest_snapshot() else archive_files_in(table.files)
        if files:
            yield from map(self._file_rows, files)
            return
        try:
            table.check_place()
        except UserError as error:
            if not names(table.files):
                raise
            more = "and no WARC file or package (WACZ) is directly in it"
            raise type(error)(f"{error}; {more}") from error
        pinned = Snapshot(word, newest_manifest(word).snapshot)
        with pinned.reading():
            yield from self._page_rows(pinned)
            yield self._robots_rows(pinned)

    def _file_rows(self, archive: ArchiveFile) -> ReplayedRows:
        number = len(self._readers)
        rows = [
            (
                one.key,
                one.time,
                one.status,
                one.mime,
                number,
                one.offset << _NUMBER_BITS | one.number,
            )
            for one in list_records(archive, self.damages)
            if one.number < 1 << _NUMBER_BITS
        ]
        self._readers.append(functools.partial(self._read_record, archive))
        return pl.DataFrame(rows, schema=pl.Schema(REPLAYED), orient="row")

    def _read_record(self, archive: ArchiveFile, row: int, revisits: int) -> Capture | None:
        record = find_record(archive, row >> _NUMBER_BITS, row % (1 << _NUMBER_BITS))
        capture = None if record is None else capture_of_record(record)
        source = None if record is None else source_of_revisit(record)
        if capture is None or source is None:
            return capture
        url = parse_url(source.url)
        if url is None or not revisits or (url == capture.url and source.time == capture.time):
            return None
        earlier = self._find(url, source.time, revisits - 1)
        return None if earlier is None else with_body_of(capture, earlier)

    def _page_rows(self, pinned: Pinned) -> Iterator[ReplayedRows]:
        pages = PageReader(pinned)

        def read(path: str, batch: str, row: int, _: int) -> Capture:
            return next(captures_of(pages.read(path, row), batch))

        for batch, file, rows in answered_pages(pinned):
            number = len(self._readers)
            self._readers.append(functools.partial(read, file.path, batch))
            yield rows.select(
                "key",
                pl.col("fetch_time").fill_null(0).alias("time"),
                pl.col("http_code").alias("status"),
                pl.col("content_type").alias("mime"),
                pl.lit(number, pl.Int32).alias("file"),
                pl.col("row").cast(pl.Int64),
            )

    def _robots_rows(self, pinned: Pinned) -> ReplayedRows:
        captures: list[Capture] = []
        rows: list[tuple[str, int, int, str, int, int]] = []
        for origin, status, text, time in robots_answers(pinned).iter_rows():
            url, code = f"{origin}/robots.txt", status or _NO_ANSWER
            try:
                key = to_key(url)
            except BadUrl:
                continue
            rows.append((key, time, code, "text/plain", len(self._readers), len(captures)))
            captures.append(_robots_capture(url, code, text or "", time))
        self._readers.append(lambda row, _: captures[row])
        return pl.DataFrame(rows, schema=pl.Schema(REPLAYED), orient="row")


def _robots_capture(url: str, code: int, text: str, time: int) -> Capture:
    headers = (("Content-Type", "text/plain; charset=utf-8"),)
    body = text.encode("utf-8", "replace")
    line = f"HTTP/1.1 {code}"
    return Capture(url, "", time, status=code, status_line=line, headers=headers, body=body)
