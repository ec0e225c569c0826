"""Gives revisit records of an import their bodies: from the import, or else from the table."""

import contextlib
import hashlib
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import polars as pl

from ...io.archives.archive_reading import RECORD_WINDOW_BYTES, open_archive
from ...io.batches.batches import batch_component, named_rows, write_file
from ...io.snapshots.operations import Operation
from ...io.storage.parquet_files import collect
from ...io.storage.place_addresses import place_of
from ...io.tablets.written import Written
from ...policy.archives.imported_captures import (
    DROPPED_CAPTURES,
    UNCHANGED,
    DroppedRows,
    RevisitingRows,
)
from ...policy.base.hash_buckets import SLOTS, hash_buckets
from ...policy.components.schema import FETCHLIST, conform_frame
from ...policy.generating.selection import queue_names
from ...web.archive_reading.archived_answers import (
    READ_KINDS,
    BadAnswer,
    archived_response,
    revisited_response,
)
from ...web.archive_reading.archived_records import ArchivedRecord
from ...web.archive_reading.warc_reading import RecordReader
from ...web.exchange.status import Response
from .imported_parts import ImportRules, PagesFile, PagesWriter

UNRESOLVED = "dropped/unresolved_revisit"
_STATE_COLUMNS = tuple(name for name in FETCHLIST.names if name not in ("slot", "delay", "address"))
_PAIR = ("archive", "source_archive")
_FLUSH_BYTES = 32 << 20


class ResolvedRevisits(NamedTuple):
    """What became of revisits.

    Attributes:
        files: Files of pages that were written.
        listed: Files of the fetch list: what the table says about pages that did not change.
        dropped: Rows of other files of pages, which these pages replace.
        counts: Numbers of revisits by outcome.
    """

    files: list[PagesFile]
    listed: list[Written]
    dropped: DroppedRows
    counts: Counter[str]


def resolve_revisits(
    operation: Operation, number: int, revisiting: RevisitingRows, rules: ImportRules
) -> ResolvedRevisits:
    """Writes the pages of revisits.

    Args:
        operation: The import.
        number: A number of its own among the writers of the import.
        revisiting: Rows, each URL once.
        rules: How records become pages.
    """
    writer, counts = PagesWriter(operation, number, rules), Counter[str]()
    table = _TablePages(operation, revisiting)
    files, pages, size = list[PagesFile](), dict[str, Response](), 0
    unchanged, replaced = list[str](), list[tuple[str | None, str]]()
    for row, records in _read_records(revisiting, rules):
        page, outcome = _page_of(row, records, table, rules)
        counts[outcome] += 1
        if page is None:
            continue
        if page.status == 304:
            unchanged.append(row["key"])
        pages[row["key"]] = page
        replaced.append((row["kept_file"], row["key"]))
        size += len(page.body) + len(page.wire or b"")
        if size > _FLUSH_BYTES:
            files.append(writer.write(pages))
            pages, size = {}, 0
    if pages:
        files.append(writer.write(pages))
    dropped = pl.DataFrame(replaced, schema=pl.Schema(DROPPED_CAPTURES), orient="row").drop_nulls(
        "file"
    )
    return ResolvedRevisits(files, list(table.write_list(unchanged)), dropped, counts)


class _Records(NamedTuple):
    """The record of a revisit, and the record with its body; None: it cannot be read."""

    revisit: ArchivedRecord | None
    source: ArchivedRecord | None


def _read_records(
    revisiting: RevisitingRows, rules: ImportRules
) -> Iterator[tuple[Mapping[str, Any], _Records]]:
    """Yields each row with its records."""
    ordered = revisiting.sort(*_PAIR, "source_offset", "offset", "key", nulls_last=True)
    for (archive, source), rows in ordered.group_by(_PAIR, maintain_order=True):
        with _records_of(archive, rules) as revisits, _records_of(source, rules) as sources:
            for row in rows.iter_rows(named=True):
                records = _Records(
                    revisits.read_at(row["offset"], row["number"]),
                    sources and sources.read_at(row["source_offset"], row["source_number"]),
                )
                yield row, records


@contextlib.contextmanager
def _records_of(archive: Any, rules: ImportRules) -> Iterator[Any]:
    """Opens a file to read its records one by one; without a file it is None."""
    if archive is None:
        yield None
        return
    with open_archive(place_of(archive)) as file:
        yield RecordReader(
            file, most=rules.limits.most_of_block, kinds=READ_KINDS, window=RECORD_WINDOW_BYTES
        )


def _page_of(
    row: Mapping[str, Any], records: _Records, table: "_TablePages", rules: ImportRules
) -> tuple[Response | None, str]:
    """Returns the page of a revisit, and what to count; None: its body is nowhere."""
    record, source = records
    if record is None:
        return None, UNRESOLVED
    revisit = Response(record.url, started=row["time"])
    if record.block:
        with contextlib.suppress(BadAnswer):  # the body is what counts
            revisit = archived_response(record, "", rules.limits)
    if source is not None:
        original = archived_response(source, "", rules.limits, keeps_wire=rules.keeps_wire)
        return revisited_response(revisit, original), "revisits/in_archives"
    if row["kind"] == UNCHANGED:
        if row["kept_file"] is None and table.has_page(row["key"]):
            revisit.status = 304
            return revisit, "revisits/unchanged"
        return None, UNRESOLVED
    body = table.body(row, rules)
    if body is None:
        return None, UNRESOLVED
    return revisited_response(revisit, body), "revisits/in_table"


class _TablePages:
    """What the table has of the pages that revisits name.

    Args:
        operation: The import.
        revisiting: The revisits.
    """

    def __init__(self, operation: Operation, revisiting: RevisitingRows) -> None:
        self._operation = operation
        missing = revisiting.filter(pl.col("source_archive").is_null())
        named = missing.get_column("refers").drop_nulls().str.split(" ").list.first()
        keys = pl.concat([missing.get_column("key"), named]).unique()
        self._state = operation.find_rows("state", keys, _STATE_COLUMNS)
        self._keys = frozenset(self._state.drop_nulls("page").get_column("key"))

    def has_page(self, key: str) -> bool:
        """Returns whether the table has a body of a page."""
        return key in self._keys

    def body(self, row: Mapping[str, Any], rules: ImportRules) -> Response | None:
        """Returns the answer in the table with the body that a revisit names; None: it has none."""
        keys = dict.fromkeys((row["key"], (row["refers"] or "").partition(" ")[0]))
        for key in keys:
            page = self._page(key) if self.has_page(key) else None
            if page is not None and _fits(row["digest"], page):
                return page if rules.keeps_wire else _without_wire(page)
        return None

    def _page(self, key: str) -> Response | None:
        rows = self._state.filter(pl.col("key") == key).select("key", "page")
        columns = [
            "body",
            "status_line",
            "headers",
            "http_code",
            "truncated",
            "wire",
            "content_type",
        ]
        table, manifest = self._operation.table.files, self._operation.manifest()
        for _, pages in named_rows(table, manifest, rows, "page"):
            for page in collect(pages.select(columns)).iter_rows(named=True):
                headers = [(h["name"], h["value"]) for h in page["headers"] or ()]
                if page["body"] is not None:
                    return Response(
                        "", "HTTP/1.1", page["http_code"] or 200, "", headers, page["body"],
                        page["truncated"], status_line=page["status_line"] or "", wire=page["wire"],
                    )  # fmt: skip
        return None

    def write_list(self, keys: list[str]) -> Iterator[Written]:
        """Writes rows of the fetch list of pages that did not change, as generate would."""
        if not keys:
            return
        batch = str(self._operation.batch)
        rows = self._state.filter(pl.col("key").is_in(keys)).sort("key")
        slots = hash_buckets(queue_names(batch, rows.get_column("key"), "host"), SLOTS)
        listed = conform_frame(rows.with_columns(slots.cast(pl.UInt16).alias("slot")), FETCHLIST)
        file = write_file(self._operation.table.files, batch, "fetchlist", [listed])
        yield Written(batch_component(batch, "fetchlist"), (file,))


def _fits(digest: str | None, page: Response) -> bool:
    """Returns whether the body of a page has a digest; without one it is that of the named page."""
    if digest is None:
        return True
    bodies = [page.body] if page.truncated is None else []
    bodies += [page.wire] if page.wire is not None else []
    return any(
        digest == f"sha1:{hashlib.sha1(body, usedforsecurity=False).hexdigest()}" for body in bodies
    )


def _without_wire(page: Response) -> Response:
    page.wire = None
    return page
