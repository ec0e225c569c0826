"""The work of import_nutch on parts of segments: they become files of batches.

::

    content ─ bodies ─────────────────┐
    crawl_fetch ─ results ────────────┼ by URL ─▶ batches/ID/pages, documents
    parse_data, parse_text, crawl_parse┘
    crawl_generate ─────────────────────────────▶ batches/ID/fetchlist
"""

import dataclasses
import functools
import itertools
from collections import Counter
from collections.abc import Iterator
from typing import Any

import apache_beam as beam
import polars as pl

from ...io.batches.batch_writer import page_groups
from ...io.batches.batches import batch_component, page_order, write_file
from ...io.batches.page_writer import FLUSH_BYTES
from ...io.nutch.nutch_sources import NutchFile
from ...io.nutch.ordered_records import OrderedRecords
from ...io.nutch.segment_files import JoinedFiles
from ...io.nutch.sequence_reading import first_url_after, read_part
from ...io.snapshots.operations import Operation
from ...io.tablets.file_lists import DataFile
from ...io.tablets.written import Written
from ...policy.base.hash_buckets import SLOTS, hash_buckets
from ...policy.components.kinds import KINDS
from ...policy.components.schema import conform
from ...policy.nutch.crawldb_rows import NutchRules
from ...policy.nutch.imported_rows import NUTCH_STATE
from ...policy.nutch.segment_documents import (
    ParsedRows,
    documents_of_segment,
    parsed_rows,
    split_by_bodies,
    with_parsed_headers,
    with_signatures,
)
from ...policy.nutch.segment_rows import (
    LIST_PLACE,
    listed_rows,
    page_changes,
    pages_of_segment,
)
from ...transforms.elements.chunks import MAX_ROWS, named_chunks
from ...transforms.for_each import REPORTS
from ...web.base.dataclass import dataclass
from ...web.base.progress import PROGRESS
from ...web.hadoop.segment_values import CONTENTS, PARSE_DATA, PARSE_TEXTS
from ...web.nutch_text.text_records import DATUM
from .imported_segments import batch_of, urls_count
from .record_faults import RecordFaults

_SCHEMAS = {"crawl_fetch": DATUM, "parse_data": PARSE_DATA, "parse_text": PARSE_TEXTS}
_NO_CONTENTS = pl.DataFrame(schema=CONTENTS)
# Pages without contents in one file: their texts may have tens of kilobytes each.
_ROWS = 4096


@dataclass(frozen=True)
class ImportItem:
    """A part of a file of Nutch.

    Attributes:
        operation: The import.
        number: Number of the part in the import.
        file: The file.
        part: Its first byte, and the byte after it; None: it ends with the file.
        segment: Number of the segment of the file; None: it is in none.
        beside: Files with records of the same URLs.
        was_fetched: Whether its segment has files of ``crawl_fetch``.
    """

    operation: Operation
    number: int
    file: NutchFile
    part: tuple[int, int | None]
    segment: int | None = None
    beside: JoinedFiles = dataclasses.field(default_factory=JoinedFiles)
    was_fetched: bool = False

    @property
    def number_of_segment(self) -> int:
        """Number of its segment."""
        assert self.segment is not None
        return self.segment

    @property
    def batch(self) -> str:
        """Id of the batch of its segment."""
        return batch_of(str(self.operation.batch), self.number_of_segment)


def segment_work(item: ImportItem, how: NutchRules, faults: RecordFaults) -> Iterator[Any]:
    """Yields what a part of a segment gives: files of its batch, and changes of the state."""
    if item.file.kind == "crawl_generate":
        yield from _list_work(item, how, faults)
        return
    sequence = itertools.count()
    for fetched, contents, parsed in _results(item, faults):
        contents = with_parsed_headers(contents, parsed, fetched)
        pages, counts = pages_of_segment(fetched, contents, how)
        documents, of_documents = documents_of_segment(pages, parsed, how)
        counts.update(of_documents)
        if item.beside.are_shared:
            del counts["dropped/no_fetch"]  # other files may have their records
        counts[urls_count(item.number_of_segment)] = len(pages)
        PROGRESS.add(len(pages))
        yield beam.pvalue.TaggedOutput(REPORTS, Written(counts=dict(counts)))
        for of_file in split_by_bodies(pages, documents):
            yield from _write_pages(item, next(sequence), *of_file)


def _write_pages(
    item: ImportItem, sequence: int, pages: pl.DataFrame, documents: pl.DataFrame
) -> Iterator[Any]:
    order = page_order(item.operation.now + item.number, sequence)
    files = _write(item, "pages", pages, order), _write(item, "documents", documents, order)
    paths = files[0].path, files[1].path
    changes = page_changes(pages, documents, item.number_of_segment, paths)
    changes = changes.with_columns(batch_id=pl.lit(item.batch))
    yield from named_chunks("state", changes, NUTCH_STATE)
    for kind, file in zip(("pages", "documents"), files, strict=True):
        component = batch_component(item.batch, kind)
        yield beam.pvalue.TaggedOutput(REPORTS, Written(component, (file,)))


def _list_work(item: ImportItem, how: NutchRules, faults: RecordFaults) -> Iterator[Any]:
    records = list(read_part(item.file.kind, item.file.address, item.part, faults.note))
    rows, counts = listed_rows(pl.concat([pl.DataFrame(schema=DATUM), *records]), how, item.batch)
    if not item.was_fetched:
        counts[urls_count(item.number_of_segment)] = len(rows)
    yield beam.pvalue.TaggedOutput(REPORTS, Written(counts=dict(counts)))
    if len(rows):
        slots = hash_buckets(rows.get_column(LIST_PLACE), SLOTS).cast(pl.UInt16)
        listed = rows.with_columns(slots.alias("slot")).sort("key")
        file = _write(item, "fetchlist", listed, item.number)
        component = batch_component(item.batch, "fetchlist")
        yield beam.pvalue.TaggedOutput(REPORTS, Written(component, (file,)))


class _Beside:
    """The records of files that are read beside those of an item, from its first URL on."""

    def __init__(self, item: ImportItem, first: str | None) -> None:
        self._files = item.beside.files
        self._faults = list[RecordFaults]()
        self._records = {
            kind: [self._ordered(file, schema, first) for file in self._files.get(kind, ())]
            for kind, schema in _SCHEMAS.items()
        }

    def _ordered(self, file: NutchFile, schema: pl.Schema, first: str | None) -> OrderedRecords:
        return OrderedRecords(file, schema, first, self._faults_of(file).note)

    def _faults_of(self, file: NutchFile) -> RecordFaults:
        self._faults.append(RecordFaults(file.address))
        return self._faults[-1]

    @property
    def faults(self) -> Counter[str]:
        """Counts of damaged records so far."""
        return sum((faults.counts for faults in self._faults), Counter[str]())

    def take_before(self, kind: str, end: str | None) -> pl.DataFrame:
        """Returns the next records of a kind, before a URL."""
        rows = [records.take_before(end) for records in self._records[kind]]
        return pl.concat([pl.DataFrame(schema=_SCHEMAS[kind]), *rows])

    def parsed_before(self, end: str | None) -> ParsedRows:
        """Returns what the parser wrote of the next URLs."""
        rows = parsed_rows(self.take_before("parse_data", end), self.take_before("parse_text", end))
        if rows.get_column("signature").null_count():  # Nutch's own parser notes all
            rows = with_signatures(rows, self._signed)
        return rows

    @functools.cached_property
    def _signed(self) -> pl.DataFrame:
        """The records of ``crawl_parse``, which are not in the order of their URLs, with signatures."""
        frames = [pl.DataFrame(schema=DATUM)]
        for file in self._files.get("crawl_parse", ()):
            records = read_part(file.kind, file.address, (0, None), self._faults_of(file).note)
            frames += (rows.filter(pl.col("signature").is_not_null()) for rows in records)
        return pl.concat(frames)


def _results(
    item: ImportItem, faults: RecordFaults
) -> Iterator[tuple[pl.DataFrame, pl.DataFrame, ParsedRows]]:
    """Yields records of ``crawl_fetch``, their contents, and what was parsed, some megabytes at a time.

    All files have their URLs in order. So a part of one has the records of the others from its first URL
    to that of the next part.
    """
    is_content = item.file.kind == "content"
    start, end = item.part
    beside = None if start else _Beside(item, None)
    for rows in _pieces(item, faults):
        beside = beside or _Beside(item, str(rows.item(0, "url")))
        after = f"{rows.item(-1, 'url')}\0"  # the next text in order
        fetched, contents = rows, _NO_CONTENTS
        if is_content:
            fetched, contents = beside.take_before("crawl_fetch", after), rows
        yield fetched, contents, beside.parsed_before(after)
    if beside is not None:
        last = None if end is None else first_url_after(item.file.kind, item.file.address, end)
        yield beside.take_before("crawl_fetch", last), _NO_CONTENTS, beside.parsed_before(last)
        faults.counts.update(beside.faults)


def _pieces(item: ImportItem, faults: RecordFaults) -> Iterator[pl.DataFrame]:
    """Yields records of the file of an item, about as many as a file of pages has."""
    waiting, size = list[pl.DataFrame](), 0
    for rows in read_part(item.file.kind, item.file.address, item.part, faults.note):
        if item.file.kind == "crawl_fetch":
            yield from rows.iter_slices(_ROWS if item.beside.files else MAX_ROWS)
        elif len(rows):
            waiting.append(rows)
            size += int(rows.estimated_size())
        if size > FLUSH_BYTES:
            yield pl.concat(waiting)
            waiting, size = [], 0
    if waiting:
        yield pl.concat(waiting)


def _write(item: ImportItem, kind: str, rows: pl.DataFrame, order: int) -> DataFile:
    table = conform(rows, KINDS[kind].schema)
    groups = page_groups(table) if len(table) else [table]
    return write_file(item.operation.table.files, item.batch, kind, groups, order=order)
