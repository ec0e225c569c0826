"""The work of import_nutch on parts of segments: they become files of batches.

::

    content ─ bodies ────┐
    crawl_fetch ─ results┴ by URL ─▶ batches/ID/pages, documents that are not parsed yet
    crawl_generate ─────────────────▶ batches/ID/fetchlist
"""

import dataclasses
from collections.abc import Iterator
from typing import Any

import apache_beam as beam
import polars as pl

from ...io.batches.batch_writer import page_groups
from ...io.batches.batches import batch_component, page_order, write_file
from ...io.batches.page_writer import FLUSH_BYTES
from ...io.nutch.nutch_sources import NutchFile
from ...io.nutch.sequence_reading import first_url_after, read_part
from ...io.snapshots.operations import Operation
from ...io.tablets.file_lists import DataFile
from ...io.tablets.written import Written
from ...policy.components.kinds import KINDS
from ...policy.components.schema import conform
from ...policy.nutch.crawldb_rows import NutchRules
from ...policy.nutch.imported_rows import NUTCH_STATE
from ...policy.nutch.segment_rows import (
    LIST_PLACE,
    listed_rows,
    page_changes,
    pages_of_segment,
    unparsed_documents,
)
from ...transforms.elements.chunks import named_chunks
from ...transforms.for_each import REPORTS
from ...transforms.partition import SLOTS, hash_buckets
from ...web.base.progress import PROGRESS
from ...web.hadoop.segment_values import CONTENTS
from ...web.nutch_text.text_records import DATUM
from .imported_segments import batch_of, urls_count
from .record_faults import RecordFaults


@dataclasses.dataclass(frozen=True)
class ImportItem:
    """A part of a file of Nutch.

    Attributes:
        operation: The import.
        number: Number of the part in the import.
        file: The file.
        part: Its first byte, and the byte after it; None: it ends with the file.
        segment: Number of the segment of the file; None: it is in none.
        fetched: Of contents: the file of ``crawl_fetch`` with records of the same URLs, if there is one.
        was_fetched: Whether its segment has files of ``crawl_fetch``.
    """

    operation: Operation
    number: int
    file: NutchFile
    part: tuple[int, int | None]
    segment: int | None = None
    fetched: NutchFile | None = None
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
    for sequence, (fetched, contents) in enumerate(_results(item, faults)):
        pages, counts = pages_of_segment(fetched, contents, how)
        counts[urls_count(item.number_of_segment)] = len(pages)
        PROGRESS.add(len(pages))
        yield beam.pvalue.TaggedOutput(REPORTS, Written(counts=dict(counts)))
        if len(pages):
            order = page_order(item.operation.now + item.number, sequence)
            file = _write(item, "pages", pages, order)
            documents = unparsed_documents(pages)
            texts = _write(item, "documents", documents, order)
            changes = page_changes(pages, item.number_of_segment, (file.path, texts.path))
            batch_id = pl.lit(item.batch)
            yield from named_chunks("state", changes.with_columns(batch_id=batch_id), NUTCH_STATE)
            for kind, written in (("pages", file), ("documents", texts)):
                component = batch_component(item.batch, kind)
                yield beam.pvalue.TaggedOutput(REPORTS, Written(component, (written,)))


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


def _results(item: ImportItem, faults: RecordFaults) -> Iterator[tuple[pl.DataFrame, pl.DataFrame]]:
    """Yields records of ``crawl_fetch`` and their contents, some megabytes at a time.

    Both files have their URLs in order. So a part of the contents has the records from its first URL
    to that of the next part; those without contents come last.
    """
    no_contents = pl.DataFrame(schema=CONTENTS)
    if item.file.kind == "crawl_fetch":
        for rows in read_part(item.file.kind, item.file.address, item.part, faults.note):
            yield rows, no_contents
        return
    start, end = item.part
    fetched = _fetched_rows(item, faults)
    if end is not None and (after := first_url_after(item.file.address, end)) is not None:
        fetched = fetched.filter(pl.col("url") < after)
    first: str | None = None
    for contents in _pieces(item, faults):
        if first is None:
            first = str(contents.item(0, "url"))
            fetched = fetched if not start else fetched.filter(pl.col("url") >= first)
        of_contents = pl.col("url").is_in(contents.get_column("url").implode())
        yield fetched.filter(of_contents), contents
        fetched = fetched.filter(~of_contents)
    if len(fetched) and (first is not None or not start):
        yield fetched, no_contents


def _fetched_rows(item: ImportItem, faults: RecordFaults) -> pl.DataFrame:
    """Returns the records of the file of ``crawl_fetch`` that belongs to contents."""
    frames = [pl.DataFrame(schema=DATUM)]
    if item.fetched is not None:
        of_fetched = RecordFaults(item.fetched.address)
        frames += read_part("crawl_fetch", item.fetched.address, (0, None), of_fetched.note)
        if not item.part[0]:  # all parts of the contents read it
            faults.counts.update(of_fetched.counts)
    return pl.concat(frames)


def _pieces(item: ImportItem, faults: RecordFaults) -> Iterator[pl.DataFrame]:
    """Yields contents, about as many as a file of pages has."""
    waiting, size = list[pl.DataFrame](), 0
    for contents in read_part("content", item.file.address, item.part, faults.note):
        if len(contents):
            waiting.append(contents)
            size += int(contents.estimated_size())
        if size > FLUSH_BYTES:
            yield pl.concat(waiting)
            waiting, size = [], 0
    if waiting:
        yield pl.concat(waiting)


def _write(item: ImportItem, kind: str, rows: pl.DataFrame, order: int) -> DataFile:
    table = conform(rows, KINDS[kind].schema)
    groups = page_groups(table) if len(table) else [table]
    return write_file(item.operation.table.files, item.batch, kind, groups, order=order)
