"""The work of import_nutch on parts of files: reads records, decides what they become, yields changes."""

from collections.abc import Iterator
from typing import Any

import apache_beam as beam
import polars as pl

from ...io.nutch.dump_reading import read_dump
from ...io.nutch.nutch_sources import (
    SEQUENCE,
    TEXT_FORMS,
    NutchSources,
    parts_of_file,
)
from ...io.nutch.segment_files import SegmentFiles
from ...io.nutch.sequence_reading import read_part
from ...io.rows.small_components import read_blocklist
from ...io.snapshots.operations import Operation
from ...io.tablets.written import Written
from ...policy.batch_tools.merged_rows import hosts_of_seed_rows
from ...policy.components.schema import HOSTS
from ...policy.inlinks.edges import LINK_CHANGES, LINKS_COMPONENT, InvertOptions
from ...policy.nutch.crawldb_rows import NutchRules, state_of_records
from ...policy.nutch.linkdb_rows import hosts_of_hostdb, links_of_linkdb
from ...transforms.elements.chunks import MAX_ROWS, named_chunks
from ...transforms.for_each import REPORTS
from ...web.base.memory import keep_free_blocks
from ...web.base.progress import PROGRESS
from .record_faults import RecordFaults
from .segment_parts import ImportItem, segment_work

NUTCH_PARTS = "Parts"


def import_items(operation: Operation, sources: NutchSources, options: Any) -> Iterator[ImportItem]:
    """Yields the parts of all files."""
    segments = {name: number for number, name in enumerate(sources.segments)}
    files = SegmentFiles(sources)
    PROGRESS.start("import_nutch", unit="records")
    number = 0
    for file in sources.files:
        if files.is_beside(file):
            continue
        size = file.size if file.kind in ("crawl_generate", "crawl_fetch") else options.part_size
        for part in parts_of_file(file, size):
            yield ImportItem(
                operation, number, file, part, segments.get(file.segment), files.beside(file),
                "crawl_fetch" in sources.segments.get(file.segment, ()),
            )  # fmt: skip
            number += 1


def import_work(item: ImportItem, options: Any) -> Iterator[Any]:
    """Yields pairs of a component and a chunk of changes; and ``Written`` with the tag ``REPORTS``."""
    faults = RecordFaults(item.file.address)
    how = NutchRules(options.rules, options.filter_urls, read_blocklist(item.operation))
    with keep_free_blocks():  # inflated blocks and bodies are copied several times
        if item.segment is not None:
            yield from segment_work(item, how, faults)
        else:
            yield from _database_work(item, options, how, faults)
    yield beam.pvalue.TaggedOutput(REPORTS, Written(counts=dict(faults.counts)))


def _database_work(
    item: ImportItem, options: Any, how: NutchRules, faults: RecordFaults
) -> Iterator[Any]:
    anchors = InvertOptions(max_anchor_length=options.max_anchor_length)
    for rows in _records(item, options, faults):
        match item.file.kind:
            case "crawldb":
                state_rows, counts = state_of_records(rows, how)
                yield from named_chunks("state", state_rows)
                yield from named_chunks("hosts", hosts_of_seed_rows(state_rows), HOSTS)
            case "linkdb":
                seen = item.file.changed or item.operation.now
                links, counts = links_of_linkdb(rows, how, anchors, seen)
                yield from named_chunks(LINKS_COMPONENT, links, LINK_CHANGES)
            case _:
                host_rows, counts = hosts_of_hostdb(rows, how)
                yield from named_chunks("hosts", host_rows, HOSTS)
        PROGRESS.add(len(rows))
        yield beam.pvalue.TaggedOutput(REPORTS, Written(counts=dict(counts)))


def _records(item: ImportItem, options: Any, faults: RecordFaults) -> Iterator[pl.DataFrame]:
    """Yields the records of a part of a database."""
    file = item.file
    if file.form == SEQUENCE:
        yield from _together(read_part(file.kind, file.address, item.part, faults.note))
        return
    for first, records in read_dump(file.address, TEXT_FORMS[file.form], options.time_zone):
        for line in records.bad_lines:
            faults.add("bad_record", f"line {first + line + 1}")
        yield records.rows


def _together(frames: Iterator[pl.DataFrame]) -> Iterator[pl.DataFrame]:
    """Yields frames of about ``MAX_ROWS`` rows: each costs milliseconds, however few rows it has."""
    waiting, rows = list[pl.DataFrame](), 0
    for frame in frames:
        waiting.append(frame)
        rows += len(frame)
        if rows >= MAX_ROWS // 2:
            yield pl.concat(waiting)
            waiting, rows = [], 0
    if waiting:
        yield pl.concat(waiting)
