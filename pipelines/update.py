"""updatedb: writes the results of a batch into the table.

::

    batch.pages and batch.documents ─ events, links summed per file ─ by tablet
        ─ status machine, schedule, scoring ─▶ state', batch.outcome; batch closed
    pages that answered 304 ─ by the file of their older document ─ the same
    batch.host_findings ─ by tablet ─ merge ─▶ hosts'
"""

import dataclasses
import functools
from collections import defaultdict
from collections.abc import Iterator, Mapping
from typing import Any

import apache_beam as beam
import polars as pl
import pyarrow as pa

from ..io.batches.batches import batch_component
from ..io.batches.page_changes import FilePair, changes_of_file, changes_of_unchanged
from ..io.batches.removed import without_removed
from ..io.parsing.plugins import SCHEDULES, load_plugins, scorings_of
from ..io.rows.blocklist import read_blocklist
from ..io.rows.domain_merit import domain_room
from ..io.rows.host_settings import read_host_settings
from ..io.rows.hosts import (
    COUNT_PLACES,
    HOST_COUNTS_COMPONENT,
    forgets_pending,
    merge_resolver,
    pending_changes,
    with_host_counts,
)
from ..io.snapshots.manifest import newest_manifest
from ..io.snapshots.operations import Operation
from ..io.snapshots.table_clock import oldest_open
from ..io.storage.parquet_files import collect, scan
from ..io.tablets.file_lists import DataFile
from ..io.tablets.resolve import Resolved, Resolver
from ..io.tablets.tablets import rows_of_large_hosts
from ..io.tablets.written import Written
from ..policy.base.phases import UPDATED_PHASE
from ..policy.components.schema import CHANGES, HOSTS
from ..policy.hosting.interval_bounds import interval_bounds
from ..policy.links import PageChanges
from ..policy.recorded_rules import recorded_rules
from ..policy.schedules.built_in import built_in_schedule
from ..policy.schedules.visits import Schedule
from ..policy.updating.status import Surroundings, update_state
from ..policy.updating.update_table_options import UpdateTableOptions
from ..transforms.apply_changes import RESOLVE, ApplyChanges, Target
from ..transforms.elements.chunks import Chunk, to_chunks
from ..transforms.for_each import ForEach
from ..transforms.for_each_document import ForEachDocument
from ..transforms.operations import Begin, Commit, Ticket, phase_of
from ..transforms.partition import split_by_hash
from ..transforms.wiring.phase_logs import logs_of
from ..web.base.errors import UsageError
from ..web.base.options import option
from ..web.base.progress import PROGRESS
from .base.command import TABLE, Invocation
from .launch.done_before import check_done_alike, done_with
from .launch.job import BatchOptions, run_each_batch, run_job
from .launch.runner import only_submits

ARGUMENTS = (TABLE,)
_COUNTS = "counts"
_UNCHANGED = "unchanged"
_FILES = "Files"
# Pages per part of the work on pages that answered 304. Each part reads an older file of documents at
# most once.
_UNCHANGED_ROWS = 20_000


@dataclasses.dataclass(frozen=True)
class Options(UpdateTableOptions, BatchOptions):
    """Options of updatedb."""

    batch: str = option(
        "",
        "Ids of the batches to apply, in this order, separated by commas. Without it, the oldest "
        "parsed batch is applied. A named batch must have been fetched. If it was not parsed, its "
        "pages add no links and keep their previous text, and the batch cannot be parsed any more.",
        group="updatedb",
    )


@dataclasses.dataclass(frozen=True)
class FindingsFile:
    """A file of findings about hosts."""

    operation: Operation
    file: DataFile


@dataclasses.dataclass(frozen=True)
class PendingCounts:
    """The differences in numbers of URLs that are not in the host table yet."""

    operation: Operation


_Item = FilePair | FindingsFile | PendingCounts


def run(invocation: Invocation) -> int:
    """Updates the table from a batch, or from several, one after the other."""
    batches = [name.strip() for name in invocation.options.batch.split(",")]
    address = str(invocation.table)
    for name in filter(None, batches):
        check_done_alike(address, name, UPDATED_PHASE, invocation.options, UpdateTableOptions)
    if len(batches) == 1:
        return run_job(invocation, build, "update")
    if only_submits(invocation.beam_args):
        given = invocation.options.batch
        raise UsageError(f"--batch must be one id for a job that is only submitted, got {given!r}")
    _check(address, batches, invocation.options.batch)
    return run_each_batch(invocation, batches, build, "update")


def _check(address: str, batches: list[str], given: str) -> None:
    """Checks all batches before the first is applied.

    Raises:
        UserError: A batch is missing, named twice, or not fetched yet.
    """
    if not all(batches):
        raise UsageError(f"--batch must have an id between commas, got {given!r}")
    twice = [name for name in batches if batches.count(name) > 1]
    if twice:
        raise UsageError(f"--batch may name a batch once, got {twice[0]!r} twice")
    manifest = newest_manifest(address)
    for name in batches:
        phase_of(manifest, name, "fetched", "update")


def build(
    tickets: beam.PCollection[Ticket], options: UpdateTableOptions
) -> beam.PCollection[Ticket]:
    """Updates the table from a batch; the returned ticket is for the next job."""
    operations = tickets | "Begin" >> Begin("update", needs="parsed", takes="fetched")
    files = operations | "Files" >> ForEach(
        _items, _changes, (options,), tuple[str, Chunk],
        outputs=(_COUNTS, _UNCHANGED), step=_FILES, reports=_COUNTS, at_once=True,
    )  # fmt: skip
    files[_UNCHANGED].element_type = beam.typehints.Tuple[int, Chunk]
    unchanged = files[_UNCHANGED] | "Unchanged" >> ForEachDocument(
        _changes_of_unchanged, (beam.pvalue.AsSingleton(operations), options), tuple[str, Chunk],
        outputs=(_COUNTS,), at_once=True,
    )  # fmt: skip
    # A built-in schedule reads its files here; a plug-in is loaded where it works.
    schedule = built_in_schedule(options)
    resolver = functools.partial(_status_resolver, options=options, schedule=schedule)
    targets = {
        "state": Target(CHANGES, resolver, {"outcome": "batches/{batch}/outcome", **COUNT_PLACES}),
        "hosts": Target(HOSTS, merge_resolver),
    }
    written = (operations, files["main"], unchanged["main"]) | ApplyChanges(targets)
    return (operations, written, files[_COUNTS], unchanged[_COUNTS]) | Commit(
        reads=("state", "hosts", "blocklist", "batches/{batch}/pages", "batches/{batch}/documents"),
        phase=UPDATED_PHASE,
        whole=(_FILES, RESOLVE),
        options=done_with(UPDATED_PHASE, options, UpdateTableOptions),
        rules=recorded_rules(options),
    )


def _items(operation: Operation) -> Iterator[_Item]:
    batch = str(operation.batch)
    parsed = operation.files(batch_component(batch, "documents"))
    documents = {(file.partition, file.order): file for file in parsed}
    pages = operation.files(batch_component(batch, "pages"))
    listed = defaultdict[int | None, list[str]](list)
    for file in operation.files(batch_component(batch, "fetchlist")):
        listed[file.partition].append(file.path)
    PROGRESS.start("update", total=sum(file.rows for file in pages))
    for file in pages:
        parsed_file = documents.get((file.partition, file.order))
        yield FilePair(operation, file, parsed_file, tuple(listed[file.partition]))
    for file in operation.files(batch_component(batch, "host_findings")):
        yield FindingsFile(operation, file)
    if operation.files(HOST_COUNTS_COMPONENT):
        yield PendingCounts(operation)


def _changes(item: _Item, options: UpdateTableOptions) -> Iterator[Any]:
    if isinstance(item, FilePair):
        yield from _changes_of_pages(item, options)
    elif isinstance(item, FindingsFile):
        found = collect(scan([item.operation.table / item.file.path], HOSTS))
        yield from _of_hosts(item.operation, found)
    else:
        yield beam.pvalue.TaggedOutput(_COUNTS, forgets_pending(item.operation))
        yield from _of_hosts(item.operation, pending_changes(item.operation))


def _changes_of_pages(item: FilePair, options: UpdateTableOptions) -> Iterator[Any]:
    operation, found = item.operation, changes_of_file(item, options)
    PROGRESS.add(item.pages.rows)
    for chunk in to_chunks(found.unchanged):
        parts = split_by_hash(chunk, "document", _parts(operation))
        yield from (beam.pvalue.TaggedOutput(_UNCHANGED, part) for part in parts)
    # Each row that is worked on elsewhere is a part of this step's work.
    reported = Written(counts=found.counts, due={_FILES: len(found.unchanged)})
    yield beam.pvalue.TaggedOutput(_COUNTS, reported)
    yield from _of_state(found.changes, options)
    yield from _of_hosts(operation, found.hosts)


def _changes_of_unchanged(
    number: int, rows: pl.DataFrame, operation: Operation, options: UpdateTableOptions
) -> Iterator[Any]:
    with logs_of(operation), operation.reading():
        found, counts = changes_of_unchanged(operation, rows, number, options)
    yield beam.pvalue.TaggedOutput(_COUNTS, Written(counts=counts, done={_FILES: len(rows)}))
    yield from _of_state(found, options)


def _of_state(found: PageChanges, options: UpdateTableOptions) -> Iterator[tuple[str, Chunk]]:
    schema = pa.schema([*CHANGES, *(column.field for column in scorings_of(options).own)])
    for rows, columns in zip(found, (schema, None, None), strict=True):
        yield from (("state", chunk) for chunk in to_chunks(rows, columns))


def _of_hosts(operation: Operation, hosts: pl.DataFrame) -> Iterator[tuple[str, Chunk]]:
    blocked = read_blocklist(operation).blocks_hosts(hosts.get_column("key"))
    yield from (("hosts", chunk) for chunk in to_chunks(hosts.filter(~blocked), HOSTS))


@functools.lru_cache(maxsize=2)
def _parts(operation: Operation) -> int:
    """Returns among how many parts of the work the pages that answered 304 are divided."""
    files = operation.files(batch_component(str(operation.batch), "pages"))
    return -(-sum(file.rows for file in files) // _UNCHANGED_ROWS)


@functools.lru_cache(maxsize=2)
def _rows_of_hosts(operation: Operation) -> Mapping[str, int]:
    return rows_of_large_hosts(operation.files("state"))


@functools.lru_cache(maxsize=2)
def _rows_of_table(operation: Operation) -> int:
    return sum(file.live_rows for file in operation.files("state"))


def _status_resolver(
    operation: Operation, options: UpdateTableOptions, schedule: Schedule | None
) -> Resolver:
    if schedule is None:
        ((_, schedule),) = load_plugins(SCHEDULES, (options.schedule,))
    table = Surroundings(
        _rows_of_hosts(operation) if options.max_per_host >= 0 else None,
        oldest_open(operation.manifest(), operation.now),
        _rows_of_table(operation),
        schedule,
        interval_bounds(read_host_settings(operation)),
        domain_room(operation, options) if options.by_merit else None,
    )
    scorings, now = scorings_of(options), operation.now

    def resolve(rows: pl.DataFrame, changes: pl.DataFrame) -> Resolved:
        changes, removed = without_removed(operation, rows, changes)
        updated = update_state(rows, changes, now, options, table, scorings)
        outcome = {"outcome": updated.outcome} if len(updated.outcome) else {}
        resolved = Resolved(updated.rows, outcome, updated.counts | removed)
        return with_host_counts(resolved, updated.host_counts)

    return resolve
