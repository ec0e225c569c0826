"""The work on a part of an import: reads its records, and writes the pages in them."""

import dataclasses
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

import polars as pl
import pyarrow as pa

from ...io.archives.archive_reading import RECORD_WINDOW_BYTES, open_archive, window_of
from ...io.batches.batches import page_order, write_file
from ...io.batches.page_writer import FLUSH_BYTES, PAGE_ROW_BYTES, page_counts, page_row, page_table
from ...io.rows.small_components import read_blocklist
from ...io.snapshots.operations import Operation
from ...io.storage.place_addresses import place_of
from ...io.tablets.file_lists import DataFile
from ...policy.archives.imported_captures import (
    IDENTICAL,
    IMPORTED,
    PAGE,
    UNCHANGED,
    ImportedRows,
    capture_name,
)
from ...policy.components.blocklist import drop_blocked
from ...web.archive_reading.archived_answers import (
    READ_KINDS,
    BadAnswer,
    BodyLimits,
    archived_response,
    is_unchanged,
    reason_to_skip,
)
from ...web.archive_reading.archived_records import ArchivedRecord, decode_digest, parse_date
from ...web.archive_reading.warc_reading import RecordReader
from ...web.archives.warc_records import REQUEST, REVISIT
from ...web.base.dataclass import dataclass
from ...web.base.memory import keep_free_blocks
from ...web.base.progress import PROGRESS
from ...web.engine.tasks import Result, Task
from ...web.exchange.status import Response, classify
from ...web.rules.url_rules import UrlRules

_GROUP_BYTES = 4 << 20
_SHA1_BYTES = 20
_REQUEST_BYTES = 64 << 10  # in the file, to look for the request of the first answer of a part
_NOT_MODIFIED = 304
# A condition, so that an answer 304 counts as one although its request is not in the archive.
_CONDITION = "\r\nIf-None-Match: *\r\n"


@dataclass(frozen=True)
class ImportRules:
    """How records become pages.

    Attributes:
        rules: Normalizes and filters URLs.
        filters: Whether to filter them.
        limits: Most bytes of bodies.
        keeps_wire: Whether to keep answers as they came, too.
    """

    rules: UrlRules
    filters: bool
    limits: BodyLimits
    keeps_wire: bool


@dataclass(frozen=True)
class ImportPart:
    """A part of a file of an archive, or some of its records.

    Attributes:
        operation: The import.
        number: Number of the part in the import.
        archive: Address of the file.
        start: Where the part begins.
        size: Size of the parts of the file, bytes.
        records: Positions and lengths of the records to read, 0: unknown; none: all of the part.
    """

    operation: Operation
    number: int
    archive: str
    start: int = 0
    size: int = 0
    records: tuple[tuple[int, int], ...] = ()


@dataclass(frozen=True)
class PagesFile:
    """A file of pages that was written, and its counts."""

    file: DataFile
    counts: dict[str, int]


@dataclasses.dataclass(slots=True)
class ReadCapture:
    """A capture that was read.

    Attributes:
        record: Its record, without the block.
        response: The response in it; its URL is that of the record.
    """

    record: ArchivedRecord
    response: Response

    @property
    def kind(self) -> str:
        """One of ``PAGE``, ``IDENTICAL``, ``UNCHANGED``."""
        if self.record.kind == REVISIT:
            return UNCHANGED if is_unchanged(self.record) else IDENTICAL
        return UNCHANGED if self.response.status == _NOT_MODIFIED else PAGE

    @property
    def bytes(self) -> int:
        """Size of its row, about."""
        return len(self.response.body) + len(self.response.wire or b"") + PAGE_ROW_BYTES


def import_part(
    part: ImportPart, rules: ImportRules
) -> Iterator[tuple[PagesFile | None, ImportedRows, Counter[str]]]:
    """Reads the records of a part and writes their pages.

    Yields:
        A file of pages, each URL once, or None; all captures that it was made of; counts.
    """
    writer = PagesWriter(part.operation, part.number, rules)
    reader = _PartReader(part, rules)
    with keep_free_blocks():  # each body is copied several times
        for capture in reader.captures():
            yield from writer.add(capture, part.archive)
        yield from writer.end(part.archive)
    yield None, _no_rows(), reader.counts


class _PartReader:
    """Reads the captures of a part, with the heads of their requests.

    Attributes:
        counts: Records that are no pages, by reason; damage; digests that are wrong.
    """

    def __init__(self, part: ImportPart, rules: ImportRules) -> None:
        self._part, self._rules = part, rules
        self.counts: Counter[str] = Counter()
        self._request: ArchivedRecord | None = None  # which no response has followed yet

    def captures(self) -> Iterator[ReadCapture]:
        """Yields the captures of the part."""
        waiting: ReadCapture | None = None  # for its request, which may follow it
        for record in self._records():
            if record.kind == REQUEST:
                if waiting is not None and _is_pair(record, waiting.record):
                    waiting.response.request = _head_of(record)
                else:
                    self._request = record
                continue
            if waiting is not None:
                yield waiting
            waiting = self._capture(record)
        if waiting is not None:
            yield waiting

    def _records(self) -> Iterator[ArchivedRecord]:
        part, most = self._part, self._rules.limits.most_of_block
        place = place_of(part.archive)
        with open_archive(place) as file:
            single = RecordReader(file, most=most, kinds=READ_KINDS, window=RECORD_WINDOW_BYTES)
            if part.records:
                yield from self._indexed_records(single)
                return
            if part.start:
                self._request = _request_in(single.read_before(part.start, _REQUEST_BYTES))
            reader = RecordReader(
                file, part.start, part.size, most=most, kinds=READ_KINDS, window=window_of(place)
            )
            last = None
            for last in reader:
                self._count(last)
                yield last
            self.counts.update({f"damaged/{name}": n for name, n in reader.damages.items()})
            following = _request_in(reader.read_after_part()) if last is not None else None
            if following is not None:
                yield following

    def _indexed_records(self, reader: RecordReader) -> Iterator[ArchivedRecord]:
        for offset, length in self._part.records:
            record = reader.read_at(offset, window=length or RECORD_WINDOW_BYTES)
            if record is None:
                self.counts["damaged/not_at_offset"] += 1
            else:
                self._count(record)
                yield record

    def _capture(self, record: ArchivedRecord) -> ReadCapture | None:
        reason = reason_to_skip(record, self._part.operation.now)
        if reason is not None:
            self.counts[f"skipped/{reason}"] += 1
            return None
        request, self._request = self._request, None
        head = _head_of(request) if request is not None and _is_pair(request, record) else ""
        response = Response(record.url, started=record.time or 0, request=head)
        if record.block or record.kind != REVISIT:
            try:
                response = archived_response(
                    record, head, self._rules.limits, keeps_wire=self._rules.keeps_wire
                )
            except BadAnswer as error:
                self.counts[f"skipped/{error}"] += 1
                return None
        record.block = b""
        return ReadCapture(record, response)

    def _count(self, record: ArchivedRecord) -> None:
        self.counts["records"] += 1
        for name, is_right in (
            ("block", record.block_is_right), ("payload", record.payload_is_right)
        ):  # fmt: skip
            if is_right is False:
                self.counts[f"wrong_digest/{name}"] += 1


def _request_in(record: ArchivedRecord | None) -> ArchivedRecord | None:
    return record if record is not None and record.kind == REQUEST else None


def _is_pair(request: ArchivedRecord, answer: ArchivedRecord) -> bool:
    """Returns whether a request is that of an answer: one names the other, or the URL is the same."""
    named = {
        record.field("warc-concurrent-to").strip("<>") for record in (request, answer)
    } - {""}  # fmt: skip
    if named & {request.id, answer.id}:
        return True
    return not named and request.url == answer.url


def _head_of(request: ArchivedRecord) -> str:
    return request.block.partition(b"\r\n\r\n")[0].decode("latin-1") + "\r\n\r\n"


class PagesWriter:
    """Writes captures as pages, a file at a time, each URL once in a file.

    Args:
        operation: The import.
        number: A number of its own among the writers of the import: files are ordered by it.
        rules: How captures become pages.
    """

    def __init__(self, operation: Operation, number: int, rules: ImportRules) -> None:
        self._operation, self._number, self._rules = operation, number, rules
        self._captures: list[ReadCapture] = []
        self._bytes = self._files = 0

    def add(
        self, capture: ReadCapture, archive: str
    ) -> Iterator[tuple[PagesFile | None, ImportedRows, Counter[str]]]:
        """Adds a capture; yields what is complete, see ``import_part``."""
        self._captures.append(capture)
        self._bytes += capture.bytes
        if self._bytes > FLUSH_BYTES:
            yield from self.end(archive)

    def end(
        self, archive: str
    ) -> Iterator[tuple[PagesFile | None, ImportedRows, Counter[str]]]:  # fmt: skip
        """Yields what is not complete yet."""
        captures, self._captures, self._bytes = self._captures, [], 0
        if not captures:
            return
        urls = pl.Series("url", [capture.record.url for capture in captures], dtype=pl.String)
        admitted = self._rules.rules.admit(urls, "inject", filters=self._rules.filters)
        reasons = admitted.get_column("reason").drop_nulls().value_counts()
        counts = Counter({f"dropped/{reason}": number for reason, number in reasons.iter_rows()})
        keyed = admitted.select("key").with_row_index("at").drop_nulls("key")
        keyed, blocked = drop_blocked(keyed, read_blocklist(self._operation))
        counts.update(blocked)
        chosen: dict[str, ReadCapture] = {}
        for at, key in keyed.iter_rows():
            capture = captures[at]
            earlier = chosen.get(key)
            if capture.kind == PAGE and (earlier is None or _age(capture) >= _age(earlier)):
                chosen[key] = capture
        file = self.write({key: page.response for key, page in chosen.items()}) if chosen else None
        path = file.file.path if file else None
        names = self._names_of_sources(captures)
        rows = [
            (*_imported_row(key, captures[at], archive), names[at]) for at, key in keyed.iter_rows()
        ]
        imported = pl.DataFrame(rows, schema=pl.Schema(IMPORTED), orient="row")
        flags = [chosen.get(key) is captures[at] for at, key in keyed.iter_rows()]
        written = pl.Series(flags, dtype=pl.Boolean)
        PROGRESS.add(len(captures))
        yield file, imported.with_columns(file=pl.when(written).then(pl.lit(path))), counts

    def _names_of_sources(self, captures: Sequence[ReadCapture]) -> list[str | None]:
        """Returns the name of the capture that each revisit refers to; None if it does not say."""
        fields = [
            (
                c.record.field("warc-refers-to-target-uri").strip("<>") or c.record.url,
                parse_date(c.record.field("warc-refers-to-date")),
            )
            for c in captures
        ]
        if all(time is None for _, time in fields):
            return [None] * len(captures)
        urls = pl.Series([url for url, _ in fields], dtype=pl.String)
        keys = self._rules.rules.admit(urls, "inject", filters=False).get_column("key")
        return [
            None if key is None or time is None else capture_name(key, time)
            for key, (_, time) in zip(keys, fields, strict=True)
        ]

    def write(self, responses: dict[str, Response]) -> PagesFile:
        """Writes a file of pages of responses by row key."""
        rows = [page_row(_result(key, each)) for key, each in responses.items()]
        # How long the server took is not known.
        groups = list(_groups([{**row, "response_ms": None} for row in rows]))
        order = page_order(self._operation.now + self._number, self._files)
        self._files += 1
        file = write_file(
            self._operation.table.files, str(self._operation.batch), "pages", groups, order=order
        )
        return PagesFile(file, page_counts(groups))


def _age(capture: ReadCapture) -> int:
    return capture.record.time or 0


def _groups(rows: Sequence[dict[str, Any]]) -> Iterator[pa.Table]:
    """Yields rows as row groups: each is the work of a parse process."""
    group, size = list[dict[str, Any]](), 0
    for row in rows:
        group.append(row)
        size += len(row["body"] or b"") + len(row.get("wire") or b"") + PAGE_ROW_BYTES
        if size > _GROUP_BYTES:
            yield page_table(group)
            group, size = [], 0
    if group:
        yield page_table(group)


def _result(key: str, response: Response) -> Result:
    """Returns what a fetch of a URL would have resulted in."""
    judged = response
    if response.status == _NOT_MODIFIED:
        judged = dataclasses.replace(response, request=_CONDITION)
    outcome = classify(judged)
    task = Task(response.url, key)
    return Result(
        task, response, outcome.fetch_status, outcome.protocol_status, outcome.message,
        outcome.redirect_target, response.started,
    )  # fmt: skip


def _imported_row(key: str, capture: ReadCapture, archive: str) -> tuple[object, ...]:
    record = capture.record
    return (key, record.time, capture.kind, None, archive, record.offset, record.number,
            _digest_of(record))  # fmt: skip


def _digest_of(record: ArchivedRecord) -> str | None:
    """Returns the payload's digest, the same for each way to write a SHA-1; None if it has none."""
    label = record.field("warc-payload-digest").strip()
    name, _, text = label.partition(":")
    if name.lower().replace("-", "") == "sha1":
        return f"sha1:{decode_digest(text, _SHA1_BYTES).hex()}"
    return label.lower() or None


def _no_rows() -> ImportedRows:
    return pl.DataFrame(schema=pl.Schema(IMPORTED))
