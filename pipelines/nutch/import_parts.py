"""The work of import_nutch on parts of files: reads records, decides what they become, yields changes."""

import dataclasses
import logging
from collections import Counter
from collections.abc import Iterator
from typing import Any

import apache_beam as beam
import polars as pl

from ...io.nutch.dump_reading import read_dump
from ...io.nutch.nutch_sources import SEQUENCE, TEXT_FORMS, NutchFile, NutchSources, parts_of_file
from ...io.nutch.sequence_reading import read_datums
from ...io.rows.small_components import read_blocklist
from ...io.snapshots.operations import Operation
from ...io.tablets.written import Written
from ...policy.batch_tools.merged_rows import hosts_of_seed_rows
from ...policy.components.schema import HOSTS, STATE
from ...policy.inlinks.edges import LINK_CHANGES, InvertOptions
from ...policy.nutch.crawldb_rows import NutchRules, state_of_records
from ...policy.nutch.linkdb_rows import hosts_of_hostdb, links_of_linkdb
from ...transforms.elements.chunks import named_chunks
from ...transforms.for_each import REPORTS
from ...transforms.invert_links import LINKS_COMPONENT
from ...web.base.progress import PROGRESS
from ...web.hadoop.hadoop_faults import HadoopFault

NUTCH_PARTS = "Parts"
_LOG = logging.getLogger("nutbeam.import_nutch")
_SHOWN_FAULTS = 3  # of a part of a file; all are counted


@dataclasses.dataclass(frozen=True)
class ImportItem:
    """A part of a file of Nutch.

    Attributes:
        operation: The import.
        file: The file.
        start: Where the part begins, bytes.
        end: Where it ends; None: with the file.
        segment: Number of the segment of the file; None: it is in none.
    """

    operation: Operation
    file: NutchFile
    start: int = 0
    end: int | None = None
    segment: int | None = None


def import_items(operation: Operation, sources: NutchSources, options: Any) -> Iterator[ImportItem]:
    """Yields the parts of all files."""
    segments = {name: number for number, name in enumerate(sources.segments)}
    items = [
        ImportItem(operation, file, start, end, segments.get(file.segment))
        for file in sources.files
        for start, end in parts_of_file(file, options.part_size)
    ]
    PROGRESS.start("import_nutch", total=len(items), unit="parts")
    yield from items


class _Faults:
    """Counts damaged records, and shows the first ones."""

    def __init__(self, file: NutchFile) -> None:
        self._file = file
        self.counts = Counter[str]()

    def add(self, reason: str, place: str, detail: str = "") -> None:
        """Notes a fault; ``place`` is such as ``line 7``."""
        self.counts[f"damaged/{reason}"] += 1
        if sum(self.counts.values()) <= _SHOWN_FAULTS:
            after = f": {detail}" if detail else ""
            _LOG.warning("%s, %s: %s%s", self._file.address, place, reason.replace("_", " "), after)

    def note(self, fault: HadoopFault) -> None:
        """Notes a damaged part of a SequenceFile."""
        self.add(fault.reason, f"byte {fault.position}", fault.detail)


def import_work(item: ImportItem, options: Any) -> Iterator[Any]:
    """Yields pairs of a component and a chunk of changes; and ``Written`` with the tag ``REPORTS``."""
    faults = _Faults(item.file)
    how = NutchRules(options.rules, options.filter_urls, read_blocklist(item.operation))
    anchors = InvertOptions(max_anchor_length=options.max_anchor_length)
    for rows in _records(item, options, faults):
        match item.file.kind:
            case "crawldb":
                state_rows, counts = state_of_records(rows, how)
                yield from named_chunks("state", state_rows, STATE)
                yield from named_chunks("hosts", hosts_of_seed_rows(state_rows), HOSTS)
            case "linkdb":
                seen = item.file.changed or item.operation.now
                links, counts = links_of_linkdb(rows, how, anchors, seen)
                yield from named_chunks(LINKS_COMPONENT, links, LINK_CHANGES)
            case _:
                host_rows, counts = hosts_of_hostdb(rows, how)
                yield from named_chunks("hosts", host_rows, HOSTS)
        yield beam.pvalue.TaggedOutput(REPORTS, Written(counts=dict(counts)))
    PROGRESS.add()
    yield beam.pvalue.TaggedOutput(REPORTS, Written(counts=dict(faults.counts)))


def _records(item: ImportItem, options: Any, faults: _Faults) -> Iterator[pl.DataFrame]:
    """Yields the records of a part of a database."""
    if item.file.form == SEQUENCE:
        read = {"crawldb": read_datums}[item.file.kind]
        yield from read(item.file.address, item.start, item.end, faults.note)
        return
    form = TEXT_FORMS[item.file.form]
    for first, parsed in read_dump(item.file.address, form, options.time_zone):
        for line in parsed.bad_lines:
            faults.add("bad_record", f"line {first + line + 1}")
        yield parsed.rows
