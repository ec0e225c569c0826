"""updatedb: writes the results of a batch into the table.

::

    batch.pages and batch.documents ─ events, links summed per file ─ by tablet
        ─ status machine, schedule, scoring ─▶ state', batch.outcome; batch closed
    pages that answered 304 ─ by the file of their older document ─ the same
    batch.host_findings ─ by tablet ─ merge ─▶ hosts'
"""

import functools
from collections import defaultdict
from collections.abc import Iterator

import apache_beam as beam

from ..io.batches.batches import batch_component
from ..io.rows.small_components import HOST_COUNTS_COMPONENT
from ..io.snapshots.manifest import newest_manifest
from ..io.snapshots.operations import Operation
from ..io.updating.page_facts import PageFiles
from ..policy.components.schema import CHANGES, HOSTS
from ..policy.components.vocabulary import UPDATED_PHASE
from ..policy.recorded_rules import recorded_rules
from ..policy.schedules.reschedule import built_in_schedule
from ..policy.updating.update_rules import UpdateTableOptions
from ..transforms.apply_changes import COUNT_PLACES, RESOLVE, ApplyChanges, Target, merge_resolver
from ..transforms.elements.chunks import Chunk
from ..transforms.for_each import ForEach, ForEachDocument
from ..transforms.operations import Begin, Commit
from ..transforms.tickets import Ticket, phase_of
from ..web.base.errors import UsageError
from ..web.base.joined_options import joined_options
from ..web.base.options import option
from ..web.base.progress import PROGRESS
from .base.command import TABLE, Invocation
from .launch.earlier_jobs import check_done_alike, done_with
from .launch.job import run_each_batch, run_job
from .launch.job_options import BatchOptions, CheckedScoringOptions
from .running.runner import only_submits
from .updating.file_changes import (
    COUNTS_TAG,
    FILES_STEP,
    UNCHANGED_ROWS,
    UNCHANGED_TAG,
    BatchItem,
    FindingsFile,
    PendingCounts,
    changes_of_item,
    changes_of_unchanged_pages,
)
from .updating.state_resolver import state_resolver

ARGUMENTS = (TABLE,)


@joined_options
class Options(UpdateTableOptions, CheckedScoringOptions, BatchOptions):
    """Options of updatedb."""

    batch: str = option(
        "",
        "Ids of the batches to apply, in this order, separated by commas. Without it, the oldest "
        "parsed batch is applied. A named batch must have been fetched. If it was not parsed, its "
        "pages add no links and keep their previous text, and the batch cannot be parsed any more.",
        group="updatedb",
    )


def run(invocation: Invocation) -> int:
    """Updates the table from a batch, or from several, one after the other."""
    batches = [name.strip() for name in invocation.options.batch.split(",")]
    address = str(invocation.table)
    _check_names(batches, invocation.options.batch)
    for name in filter(None, batches):
        check_done_alike(address, name, UPDATED_PHASE, invocation.options, UpdateTableOptions)
    if len(batches) == 1:
        return run_job(invocation, build, "update")
    if only_submits(invocation.beam_args):
        given = invocation.options.batch
        raise UsageError(f"--batch must be one id for a job that is only submitted, got {given!r}")
    manifest = newest_manifest(address)
    # All batches are checked before the first is applied.
    for name in batches:
        phase_of(manifest, name, "fetched", "update")
    return run_each_batch(invocation, batches, build, "update")


def _check_names(batches: list[str], given: str) -> None:
    """Checks the names of batches as they were given.

    Raises:
        UsageError: A name is empty beside others, or is there twice.
    """
    if len(batches) > 1 and not all(batches):
        raise UsageError(f"--batch must have an id between commas, got {given!r}")
    twice = [name for name in batches if batches.count(name) > 1]
    if twice:
        raise UsageError(f"--batch may name a batch once, got {twice[0]!r} twice")


def build(
    tickets: beam.PCollection[Ticket], options: UpdateTableOptions
) -> beam.PCollection[Ticket]:
    """Updates the table from a batch; the returned ticket is for the next job."""
    operations = tickets | "Begin" >> Begin("update", needs="parsed", takes="fetched")
    files = operations | "Files" >> ForEach(
        _items, changes_of_item, (options,), tuple[str, Chunk],
        outputs=(COUNTS_TAG, UNCHANGED_TAG), step=FILES_STEP, reports=COUNTS_TAG, at_once=True,
    )  # fmt: skip
    files[UNCHANGED_TAG].element_type = beam.typehints.Tuple[int, Chunk]
    unchanged = files[UNCHANGED_TAG] | "Unchanged" >> ForEachDocument(
        changes_of_unchanged_pages, (beam.pvalue.AsSingleton(operations), options),
        tuple[str, Chunk], outputs=(COUNTS_TAG,), at_once=True,
    )  # fmt: skip
    # A built-in schedule reads its files here; a plug-in is loaded where it works.
    schedule = built_in_schedule(options)
    resolver = functools.partial(state_resolver, options=options, schedule=schedule)
    targets = {
        "state": Target(CHANGES, resolver, {"outcome": "batches/{batch}/outcome", **COUNT_PLACES}),
        "hosts": Target(HOSTS, merge_resolver),
    }
    written = (operations, files["main"], unchanged["main"]) | ApplyChanges(targets)
    return (operations, written, files[COUNTS_TAG], unchanged[COUNTS_TAG]) | Commit(
        reads=("state", "hosts", "blocklist", "batches/{batch}/pages", "batches/{batch}/documents"),
        phase=UPDATED_PHASE,
        whole=(FILES_STEP, RESOLVE),
        options=done_with(UPDATED_PHASE, options, UpdateTableOptions),
        rules=recorded_rules(options),
    )


def _items(operation: Operation) -> Iterator[BatchItem]:
    batch = str(operation.batch)
    parsed = operation.files(batch_component(batch, "documents"))
    documents = {(file.partition, file.order): file for file in parsed}
    pages = operation.files(batch_component(batch, "pages"))
    listed = defaultdict[int | None, list[str]](list)
    for file in operation.files(batch_component(batch, "fetchlist")):
        listed[file.partition].append(file.path)
    number_of_pages = sum(file.rows for file in pages)
    unchanged_parts = -(-number_of_pages // UNCHANGED_ROWS)
    PROGRESS.start("update", total=number_of_pages)
    for file in pages:
        parsed_file = documents.get((file.partition, file.order))
        fetch_lists = tuple(listed[file.partition])
        yield PageFiles(operation, file, parsed_file, fetch_lists, unchanged_parts)
    for file in operation.files(batch_component(batch, "host_findings")):
        yield FindingsFile(operation, file)
    if operation.files(HOST_COUNTS_COMPONENT):
        yield PendingCounts(operation)
