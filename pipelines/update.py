"""updatedb: what a batch did to the table.

::

    batch.pages and batch.documents ─ events, links summed per file ─ route to tablets
        ─ status machine, schedule, scoring ─▶ state', batch.outcome; batch closed
    batch.learnt ─ route ─ merge ─▶ hosts'
"""

import dataclasses
import functools
from collections.abc import Iterator, Mapping
from typing import Any

import apache_beam as beam
import polars as pl

from ..io.batches.batches import place
from ..io.rows.bars import read_bars
from ..io.rows.hosts import read_seeds_hosts, seed_files
from ..io.snapshots.operations import Operation
from ..io.snapshots.table_clock import oldest_open
from ..io.storage.parquet_files import collect, scan
from ..io.tablets.file_lists import DataFile
from ..io.tablets.resolve import Resolved
from ..io.tablets.tablets import rows_of_large_hosts
from ..io.tablets.written import Written
from ..policy.bars import without
from ..policy.links import DOCUMENT_COLUMNS, PAGE_COLUMNS, BatchOrigin, LinkOptions, changes_of
from ..policy.schema import CHANGES, DOCUMENTS, HOSTS, PAGES, empty
from ..policy.status import UpdateOptions, update_state
from ..transforms.apply_changes import RESOLVE, ApplyChanges, Target
from ..transforms.chunks import Chunk, to_chunks
from ..transforms.operations import Begin, Commit, ForEach, Ticket
from ..web.base.progress import PROGRESS
from .command_line.command import TABLE, Invocation
from .inject import merge_resolver
from .launch.job import BatchOptions, run_job

ARGUMENTS = (TABLE,)
COUNTS = "counts"
LINKED = ("key", "order", "inlink_score", "inlink_distance")


@dataclasses.dataclass(frozen=True)
class UpdateTableOptions(UpdateOptions, LinkOptions):
    """What updating needs to know."""


@dataclasses.dataclass(frozen=True)
class Options(UpdateTableOptions, BatchOptions):
    """Options of updatedb."""


@dataclasses.dataclass(frozen=True)
class FilePair:
    """A file of pages, and the documents that were made of it, if any."""

    operation: Operation
    pages: DataFile
    documents: DataFile | None
    hosts: tuple[str, ...]


@dataclasses.dataclass(frozen=True)
class Learnt:
    """A file of what was learnt about hosts."""

    operation: Operation
    file: DataFile


def run(invocation: Invocation) -> int:
    return run_job(invocation, build, "update")


def build(
    tickets: beam.PCollection[Ticket], options: UpdateTableOptions
) -> beam.PCollection[Ticket]:
    """Updates the table from a batch; the ticket that comes out is for the next job."""
    operations = tickets | "Begin" >> Begin("update", needs="parsed")
    changes = operations | "Files" >> ForEach(
        _items, _changes, (options,), tuple[str, Chunk],
        outputs=(COUNTS,), step="Files", receipts=COUNTS, at_once=True,
    )  # fmt: skip
    targets = {
        "state": Target(CHANGES, _StatusResolver(options), {"outcome": "batches/{batch}/outcome"}),
        "hosts": Target(HOSTS, merge_resolver),
    }
    written = (operations, changes["main"]) | ApplyChanges(targets)
    return (operations, written, changes[COUNTS]) | Commit(
        reads=("state", "hosts", "bars", "batches/{batch}/pages", "batches/{batch}/documents"),
        phase="updated",
        whole=("Files", RESOLVE),
    )


def _items(operation: Operation) -> Iterator[FilePair | Learnt]:
    hosts = seed_files(operation)
    batch = str(operation.batch)
    documents = {
        (file.partition, file.order): file for file in operation.files(place(batch, "documents"))
    }
    pages = operation.files(place(batch, "pages"))
    PROGRESS.start("update", total=sum(file.rows for file in pages))
    for file in pages:
        yield FilePair(operation, file, documents.get((file.partition, file.order)), hosts)
    for file in operation.files(place(batch, "learnt")):
        yield Learnt(operation, file)


def _changes(item: FilePair | Learnt, options: UpdateTableOptions) -> Iterator[Any]:
    root = item.operation.root
    bars = read_bars(item.operation)
    if isinstance(item, Learnt):
        hosts = collect(scan([root / item.file.path], HOSTS))
        hosts = hosts.filter(~bars.hosts_hit(hosts.get_column("key")))
        yield from (("hosts", chunk) for chunk in to_chunks(hosts, HOSTS))
        return
    pair = item
    pages = collect(scan([root / pair.pages.path], PAGES).select(PAGE_COLUMNS))
    documents = empty(DOCUMENTS).select(DOCUMENT_COLUMNS)
    if pair.documents is not None:
        documents = collect(scan([root / pair.documents.path], DOCUMENTS).select(DOCUMENT_COLUMNS))
    origin = BatchOrigin(
        order=pair.pages.order,
        batch=str(pair.operation.batch),
        page=pair.pages.path,
        document=pair.documents.path if pair.documents else None,
    )
    seeds = read_seeds_hosts(root, pair.hosts)
    rows, counts = changes_of(pages, documents, origin, seeds, options)
    rows, dropped = without(rows, bars)
    PROGRESS.add(len(pages))
    yield beam.pvalue.TaggedOutput(COUNTS, Written(counts=counts | dropped))
    linked = pl.col("fetch_status").is_null()
    yield from (("state", chunk) for chunk in to_chunks(rows.filter(~linked), CHANGES))
    # Of sixty changes one is an event: the others cross the shuffle without its columns.
    yield from (("state", chunk) for chunk in to_chunks(rows.filter(linked).select(LINKED)))


@functools.lru_cache(maxsize=2)
def _of_hosts(operation: Operation) -> Mapping[str, int]:
    return rows_of_large_hosts(operation.files("state"))


@dataclasses.dataclass(frozen=True)
class _StatusResolver:
    options: UpdateTableOptions

    def __call__(self, operation: Operation) -> Any:
        known = _of_hosts(operation) if self.options.max_per_host >= 0 else None

        since = oldest_open(operation.manifest(), operation.now)

        def resolve(rows: pl.DataFrame, changes: pl.DataFrame) -> Resolved:
            kept, outcome, counts = update_state(
                rows, changes, operation.now, self.options, known, since
            )
            return Resolved(kept, {"outcome": outcome} if len(outcome) else {}, counts)

        return resolve
