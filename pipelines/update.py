"""updatedb: writes the results of a batch into the table.

::

    batch.pages and batch.documents ─ events, links summed per file ─ route to tablets
        ─ status machine, schedule, scoring ─▶ state', batch.outcome; batch closed
    batch.host_findings ─ route ─ merge ─▶ hosts'
"""

import dataclasses
import functools
from collections.abc import Iterator, Mapping
from typing import Any

import apache_beam as beam
import polars as pl
import pyarrow as pa

from ..io.batches.batches import batch_component
from ..io.parsing.plugins import scorings_of
from ..io.rows.blocklist import read_blocklist
from ..io.rows.hosts import read_seeds_hosts, seed_files
from ..io.snapshots.operations import Operation
from ..io.snapshots.table_clock import oldest_open
from ..io.storage.parquet_files import collect, scan
from ..io.tablets.file_lists import DataFile
from ..io.tablets.resolve import Resolved, Resolver
from ..io.tablets.tablets import rows_of_large_hosts, tablets
from ..io.tablets.written import Written
from ..policy.blocklist import drop_blocked
from ..policy.links import COLUMNS_OF_PAGES, DOCUMENT_COLUMNS, BatchOrigin, LinkOptions, changes_of
from ..policy.schema import CHANGES, DOCUMENTS, HOSTS, PAGES, empty
from ..policy.scoring.scorings import Scorings
from ..policy.status import Surroundings, UpdateOptions, update_state
from ..transforms.apply_changes import RESOLVE, ApplyChanges, Target
from ..transforms.chunks import Chunk, to_chunks
from ..transforms.operations import Begin, Commit, ForEach, Ticket
from ..web.base.progress import PROGRESS
from .command_line.command import TABLE, Invocation
from .inject import merge_resolver
from .launch.job import BatchOptions, run_job

ARGUMENTS = (TABLE,)
_COUNTS = "counts"
LINKED = ("key", "order", "inlink_score", "inlink_distance")


@dataclasses.dataclass(frozen=True)
class UpdateTableOptions(UpdateOptions, LinkOptions):
    """Options of updating, without those of launching."""


@dataclasses.dataclass(frozen=True)
class Options(UpdateTableOptions, BatchOptions):
    """Options of updatedb."""


@dataclasses.dataclass(frozen=True)
class FilePair:
    """A file of pages, and the file of their documents, if any."""

    operation: Operation
    pages: DataFile
    documents: DataFile | None


@dataclasses.dataclass(frozen=True)
class FindingsFile:
    """A file of findings about hosts."""

    operation: Operation
    file: DataFile


def run(invocation: Invocation) -> int:
    return run_job(invocation, build, "update")


def build(
    tickets: beam.PCollection[Ticket], options: UpdateTableOptions
) -> beam.PCollection[Ticket]:
    """Updates the table from a batch; the returned ticket is for the next job."""
    operations = tickets | "Begin" >> Begin("update", needs="parsed")
    changes = operations | "Files" >> ForEach(
        _items, _changes, (options,), tuple[str, Chunk],
        outputs=(_COUNTS,), step="Files", receipts=_COUNTS, at_once=True,
    )  # fmt: skip
    resolver = functools.partial(_status_resolver, options=options)
    targets = {
        "state": Target(CHANGES, resolver, {"outcome": "batches/{batch}/outcome"}),
        "hosts": Target(HOSTS, merge_resolver),
    }
    written = (operations, changes["main"]) | ApplyChanges(targets)
    return (operations, written, changes[_COUNTS]) | Commit(
        reads=("state", "hosts", "blocklist", "batches/{batch}/pages", "batches/{batch}/documents"),
        phase="updated",
        whole=("Files", RESOLVE),
    )


def _items(operation: Operation) -> Iterator[FilePair | FindingsFile]:
    batch = str(operation.batch)
    parsed = operation.files(batch_component(batch, "documents"))
    documents = {(file.partition, file.order): file for file in parsed}
    pages = operation.files(batch_component(batch, "pages"))
    PROGRESS.start("update", total=sum(file.rows for file in pages))
    for file in pages:
        yield FilePair(operation, file, documents.get((file.partition, file.order)))
    for file in operation.files(batch_component(batch, "host_findings")):
        yield FindingsFile(operation, file)


def _changes(item: FilePair | FindingsFile, options: UpdateTableOptions) -> Iterator[Any]:
    root = item.operation.root
    blocklist = read_blocklist(item.operation)
    if isinstance(item, FindingsFile):
        hosts = collect(scan([root / item.file.path], HOSTS))
        hosts = hosts.filter(~blocklist.blocks_hosts(hosts.get_column("key")))
        yield from (("hosts", chunk) for chunk in to_chunks(hosts, HOSTS))
        return
    pages = collect(scan([root / item.pages.path], PAGES).select(COLUMNS_OF_PAGES))
    document = item.documents.path if item.documents else None
    parsed = scan([root / document], DOCUMENTS) if document else empty(DOCUMENTS).lazy()
    scorings = scorings_of(options)
    needed = dict.fromkeys((*DOCUMENT_COLUMNS, *scorings.document_columns))
    documents = collect(parsed.select(*needed))
    order, batch = item.pages.order, str(item.operation.batch)
    origin = BatchOrigin(order, batch, item.pages.path, document)
    seeds = read_seeds_hosts(root, seed_files(item.operation))
    known = _known_rows(item.operation, pages.get_column("key"), scorings)
    rows, counts = changes_of(pages, documents, origin, seeds, options, scorings, known)
    rows, dropped = drop_blocked(rows, blocklist)
    PROGRESS.add(len(pages))
    yield beam.pvalue.TaggedOutput(_COUNTS, Written(counts=counts | dropped))
    linked = pl.col("fetch_status").is_null()
    schema = pa.schema([*CHANGES, *(column.field for column in scorings.own)])
    yield from (("state", chunk) for chunk in to_chunks(rows.filter(~linked), schema))
    # Only one of sixty changes is an event, so links are shuffled without the columns of events.
    names = (*LINKED, *(column.name for column in scorings.passed))
    yield from (("state", chunk) for chunk in to_chunks(rows.filter(linked).select(names)))


def _known_rows(operation: Operation, keys: pl.Series, scorings: Scorings) -> pl.DataFrame | None:
    """Returns the rows of pages, if a scoring needs them."""
    if not scorings.row_columns:
        return None
    known = tablets(operation.files("state"))
    return operation.root.find("state", known, keys, ("key", *scorings.row_columns))


@functools.lru_cache(maxsize=2)
def _rows_of_hosts(operation: Operation) -> Mapping[str, int]:
    return rows_of_large_hosts(operation.files("state"))


def _status_resolver(operation: Operation, options: UpdateTableOptions) -> Resolver:
    known = _rows_of_hosts(operation) if options.max_per_host >= 0 else None
    table = Surroundings(known, oldest_open(operation.manifest(), operation.now))
    scorings, now = scorings_of(options), operation.now

    def resolve(rows: pl.DataFrame, changes: pl.DataFrame) -> Resolved:
        kept, outcome, counts = update_state(rows, changes, now, options, table, scorings)
        return Resolved(kept, {"outcome": outcome} if len(outcome) else {}, counts)

    return resolve
