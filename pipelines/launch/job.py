"""The launch shared by the commands that change a table."""

import contextlib
import dataclasses
import logging
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import apache_beam as beam

from ...io.snapshots.manifest import Manifest, newest_manifest
from ...io.snapshots.operations import Operation, find_commit, new_id, pinned_operation
from ...io.storage.file_errors import NoTable
from ...io.table.opening import open_table
from ...transforms.tickets import Ticket, versions
from ...web.base.errors import NothingToDo
from ...web.base.json_logs import set_logged_operation
from ...web.base.option_checks import Launch, check_setup
from ...web.base.progress import PROGRESS
from ..base.command import DONE, NOTHING_TO_DO, Invocation, configuration
from ..base.live import live_view
from ..running.arrival import snapshot_to_find
from ..running.beam_internals import quick_building
from ..running.job_here import Build
from ..running.one_worker import Placed, Sized, Stages, build_placed
from ..running.placement import Workers, first_begin, workers_for
from ..running.runner import make_pipeline, phases_shown, run_over_batches, run_pipeline, waits
from .clock_warnings import warn_of_clocks
from .earlier_jobs import missing_rules_line
from .heartbeat import beating_heart, refusal_left
from .job_reports import job_record, report
from .launch import launch_args, preflight, workers_elsewhere
from .machine_use import with_engines

_LOG = logging.getLogger(__name__)
_BEGIN_TABLES = ("inject", "sitemap", "copy", "freegen", "mergedb", "import_warc",
                 "import_nutch")  # fmt: skip
# Flink starts a worker for each task of a step, with an element or without. The last option counts.
_ONE_TASK = ("--parallelism=1",)
# What Dataflow gives the launcher of a template, which stages a job and does not submit it.
_STAGED = "--template_location"


def check_launch(
    invocation: Invocation, *, begins_table: bool, local: bool = False, dry: bool = False
) -> None:
    """Checks a job before anything is started or written, and warns of wrong clocks.

    A job that is refused leaves its reason in the table, see ``refusal_left``.

    Args:
        invocation: The command.
        begins_table: Whether the job may create the table.
        local: Whether all seeds are local files, so that no server must know who crawls it. The
            clients refuse servers of others all the same.
        dry: Whether the job changes nothing, so that it leaves nothing either.

    Raises:
        UserError: The job cannot run.
    """
    with contextlib.nullcontext() if dry else refusal_left(invocation):
        _check_launch(invocation, begins_table, local)


def _check_launch(invocation: Invocation, begins_table: bool, local: bool) -> None:
    address, options = str(invocation.table), invocation.options
    preflight(address, options, invocation.beam_args)
    try:
        newest_manifest(address)  # that of a newer version is refused
    except NoTable:
        if not begins_table:
            raise
    with configuration():
        check_setup(options, Launch(address, local))
    warn_of_clocks(address, options)


def prepare(
    ticket: Ticket, build: Build, options: Any, beam_args: Sequence[str], job: str = "crawl"
) -> beam.Pipeline:
    """Builds the pipeline of a ticket; a cluster shows it under the job's name.

    On a cluster, a job that has nothing to do runs in this process, and each part that has little to do
    on one worker. A job that is staged for a template is submitted in any case, since its launcher waits
    for it, and all of it is for all workers.
    """
    options = with_engines(options, beam_args)
    sized = build if isinstance(build, Sized) else Sized(build)
    build = sized.build
    if not workers_elsewhere(beam_args):
        return _prepare_here(ticket, build, options, [*launch_args(options, beam_args), *beam_args])
    if any(arg.startswith(_STAGED) for arg in beam_args):
        placed: Sequence[Placed] = [Placed(build, Workers.ALL)]
    elif isinstance(build, Stages):
        placed = build.place(ticket, options)
    else:
        placed = _place(ticket, sized, options)
    if placed:
        return _prepare_elsewhere(ticket, placed, options, beam_args, job)
    return _prepare_here(ticket, build, options, [])


def _place(ticket: Ticket, sized: Sized, options: Any) -> Sequence[Placed]:
    """Returns a job with its workers; nothing if it has nothing to do."""
    begin = first_begin(_prepare_here(ticket, sized.build, options, []))
    workers = workers_for(ticket, begin, options, sized.rows)
    if workers is Workers.NONE or not sized.has_work(ticket.address, workers is Workers.ONE):
        return []
    return [Placed(sized.build, workers)]


def _prepare_here(
    ticket: Ticket, build: Build, options: Any, beam_args: Sequence[str]
) -> beam.Pipeline:
    pipeline = make_pipeline(beam_args)
    with quick_building():
        build(pipeline | "Ticket" >> beam.Create([ticket]).with_output_types(Ticket), options)
    return pipeline


def _prepare_elsewhere(
    ticket: Ticket, placed: Sequence[Placed], options: Any, beam_args: Sequence[str], job: str
) -> beam.Pipeline:
    address = open_table(ticket.address).worker_address()
    ticket = dataclasses.replace(ticket, address=address, versions=versions())
    args = [f"--job_name={job_name(job, ticket.operation)}", *launch_args(options, beam_args)]
    alone = all(part.workers is Workers.ONE for part in placed)
    has_tasks = any(arg.partition("=")[0] == "--parallelism" for arg in beam_args)
    pipeline = make_pipeline([*args, *beam_args, *(_ONE_TASK if alone and has_tasks else ())])
    with quick_building():
        build_placed(pipeline, placed, options, (ticket, snapshot_to_find(ticket.address)))
    return pipeline


def job_name(job: str, operation: str) -> str:
    """Returns the name of a job on a cluster, in the characters that Dataflow allows.

    >>> job_name("fetch", "next-1795253105-c7b1e588")
    'nutbeam-fetch-next-1795253105-c7b1e588'
    """
    words = re.sub(r"[^a-z0-9]+", "-", f"nutbeam-{job}-{operation}".lower())
    return words[:60].strip("-")


@contextlib.contextmanager
def _no_empty_folder(address: str) -> Iterator[None]:
    """Removes a new table's folder if the job fails before it has written a file there."""
    new = open_table(address).files.missing_folders()
    try:
        yield
    except Exception:
        with contextlib.suppress(OSError):  # it is not empty, or belongs to another user
            for folder in new:
                folder.rmdir()
        raise


def run_job(
    invocation: Invocation,
    build: Build,
    job: str,
    batch: str | None = None,
    earlier_builds: Callable[[Ticket], Iterable[Build]] | None = None,
    after: Callable[[str, Manifest, Any], None] | None = None,
    over_batches: bool = True,
) -> int:
    """Runs one job on ``batch`` or on the batch in its options, and reports its counts.

    Args:
        invocation: The command.
        build: Builds the pipeline.
        job: Name of the job.
        batch: Id of the batch; None takes that of the options.
        earlier_builds: Yields builds of pipelines that run before, in turn. They commit nothing.
        after: Gets the table's address, the snapshot that the job has made, and the options, after
            the report: to warn of what it finds there, or to refuse it.
        over_batches: Whether to run it again if another job has done its work on the batch; else
            the conflict is raised.
    """
    options = invocation.options
    batch = batch or getattr(options, "batch", "") or None
    ticket = Ticket(str(invocation.table), options.operation or new_id(), batch)
    set_logged_operation(ticket.operation)
    check_launch(invocation, begins_table=job in _BEGIN_TABLES)
    lacking = missing_rules_line(invocation)
    try:
        with (
            _no_empty_folder(ticket.address),
            beating_heart(invocation, ticket.operation) as heart,
            live_view(invocation.progress),
        ):
            for earlier_build in earlier_builds(ticket) if earlier_builds else ():
                run_pipeline(prepare(ticket, earlier_build, options, invocation.beam_args, job))
            pipeline = prepare(ticket, build, options, invocation.beam_args, job)
            with phases_shown(pipeline, ticket.address, ticket.operation):
                (run_over_batches if over_batches else run_pipeline)(pipeline)
            PROGRESS.finish()
            operation, manifest = _committed(ticket, job) if waits(pipeline) else (None, None)
            idle = manifest is not None and _had_no_work(invocation.command, manifest)
            code = heart.ends_with(NOTHING_TO_DO if idle else DONE, "")
    except NothingToDo:
        if invocation.format == "json":
            report(invocation, {"job": job, "counts": {}, "changed": False}, NOTHING_TO_DO)
        raise
    if not waits(pipeline):
        return report(invocation, {"job": job, "operation": ticket.operation, "submitted": True})
    if manifest is None:
        batch = operation.batch if operation else None
        done = {"job": job} | ({"batch": batch} if batch else {})
        return report(invocation, {**done, "counts": {}, "changed": False, "done_before": True})
    if lacking and code == DONE:
        _LOG.warning("%s", lacking)
    report(invocation, job_record(manifest, ticket.address), code)
    if after:
        after(ticket.address, manifest, options)
    return code


def _committed(ticket: Ticket, job: str) -> tuple[Operation | None, Manifest | None]:
    """Returns the operation of a job that has ended, and the snapshot that it has made."""
    operation = pinned_operation(ticket.address, f"{ticket.operation}.{job}")
    return operation, find_commit(operation) if operation else None


def run_each_batch(
    invocation: Invocation,
    batches: Sequence[str],
    build: Build,
    job: str,
    after: Callable[[str, Manifest, Any], None] | None = None,
) -> int:
    """Runs one job on some batches, one after the other, as ``run_job``; returns the highest exit code.

    Each run has an operation of its own: the id of the command's operation with a number.
    """
    codes = []
    for number, batch in enumerate(batches, 1):
        operation = invocation.options.operation
        options = dataclasses.replace(
            invocation.options, operation=f"{operation}-{number}" if operation else "", batch=batch
        )
        own = dataclasses.replace(invocation, options=options)
        codes.append(run_job(own, build, job, after=after))
    return max(codes)


def _had_no_work(command: str, manifest: Manifest) -> bool:
    """Returns whether nothing waited for a job that needs no batch: no due URL, no change.

    The other such jobs look at the whole table each time. This is their work, even if they change
    nothing. After an index without changes ``next`` goes on with a new batch.
    """
    if manifest.job in ("generate", "freegen", "import_warc"):
        return manifest.batch not in manifest.batches
    return manifest.job == "index" and command != "next" and not manifest.counts
