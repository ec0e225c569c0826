"""next: runs or submits the next phase of a table.

It has no state of its own, so cron or an orchestrator may call it. A call while a phase is
under way uses the same operation id, and an operation is applied only once.
"""

import dataclasses
from typing import Any

from ..io.indexing.index_run import waits_for_index
from ..io.snapshots.entries import DEDUP
from ..io.snapshots.manifest import Manifest, newest_manifest
from ..io.snapshots.rounds import stop_file
from ..io.table.opening import open_table
from ..policy.generating.selection import GenerateOptions
from ..policy.inlinks.edges import LINKS_COMPONENT
from ..web.base.dataclass import dataclass
from ..web.base.options import option, shared_option
from . import dedup, fetch, generate, invertlinks, parse, update
from .base.command import NOTHING_TO_DO, TABLE, Invocation
from .generating.generate_candidates import rows_may_be_due
from .indexing import index as indexing_job
from .launch.job import run_job
from .launch.job_reports import report
from .launch.launch import workers_elsewhere
from .round import RoundOptions
from .running.runner import look_again
from .views.rule_reports import report_one_job

ARGUMENTS = (TABLE,)
FOLLOWING = {"generated": fetch, "fetched": parse, "parsed": update}


@dataclass(frozen=True)
class Options(RoundOptions):
    """Options of next: those of all phases."""

    parse_while_fetching: bool = shared_option(fetch.Options, "parse_while_fetching")
    wait_until_done: bool = option(
        False,
        "Wait until the phase is done. Without it, a phase whose workers are elsewhere is only "
        "submitted.",
    )


def run(invocation: Invocation) -> int:
    return look_again(lambda: _run_phase(invocation), str(invocation.table))


def _run_phase(invocation: Invocation) -> int:
    manifest = newest_manifest(str(invocation.table))
    index = invocation.options.index
    waits = bool(index) and waits_for_index(open_table(str(invocation.table)), manifest, index)
    module, name, batch = next_phase(manifest, links=invocation.options.links, indexing=waits)
    if name == "generate" and not _may_be_due(str(invocation.table), manifest, invocation.options):
        # This reads no rows and writes nothing: a scheduler may call it often.
        return report(invocation, {"job": name, "counts": {}, "changed": False}, NOTHING_TO_DO)
    # Only the options of that job are checked.
    names = {field.name for field in dataclasses.fields(module.Options)}
    values = {n: v for n, v in vars(invocation.options).items() if n in names}
    values["operation"] = invocation.options.operation or operation_id(manifest, name, batch)
    beam_args = list(invocation.beam_args)
    if not invocation.options.wait_until_done and workers_elsewhere(beam_args):
        beam_args.append("--no_wait_until_finish")
    build = dedup.build_of_batch(invocation.options.top_n) if name == "dedup" else module.build
    invocation = dataclasses.replace(
        invocation, options=module.Options(**values), beam_args=beam_args
    )
    after = {
        "index": indexing_job.check_refusals, "fetch": report_one_job, "parse": report_one_job,
    }.get(name)  # fmt: skip
    return run_job(invocation, build, name, batch, after=after, over_batches=False)


def _may_be_due(address: str, manifest: Manifest, options: GenerateOptions) -> bool:
    table = open_table(address)
    # With a stop file open batches are finished, but no new one begins.
    return stop_file(table) is None and rows_may_be_due(table, manifest, options)


def operation_id(manifest: Manifest, job: str, batch: str | None) -> str:
    """Returns the id of a phase: the same for all calls while it is under way.

    Fetch and parse change only their batch, so their id has the batch. Other phases may find
    that the table has changed, and then start again from the newer snapshot; so their id
    has the snapshot.

    >>> operation_id(Manifest(snapshot=7), "fetch", "17-ab"), operation_id(
    ...     Manifest(snapshot=7), "generate", None
    ... )
    ('next-17-ab', 'next-00000007')
    """
    return f"next-{batch}" if job in ("fetch", "parse") else f"next-{manifest.snapshot:08d}"


def next_phase(
    manifest: Manifest, *, links: bool = False, indexing: bool = False
) -> tuple[Any, str, str | None]:
    """Returns (module, job, batch) of the next phase of a table.

    The oldest open batch comes first, then the links of an updated batch if they are wanted, then
    a dedup, then the index if it waits for changes, then a new batch.
    """
    waiting = [(b.created, name) for name, b in manifest.batches.items() if b.phase in FOLLOWING]
    if waiting:
        batch = min(waiting)[1]
        module = FOLLOWING[manifest.batches[batch].phase]
        return module, module.__name__.rpartition(".")[2], batch
    inverting = manifest.waiting_for(LINKS_COMPONENT) if links else []
    if inverting:
        return invertlinks, "invertlinks", inverting[0]
    undone = manifest.waiting_for(DEDUP)
    if undone:
        return dedup, "dedup", undone[0]
    if indexing:
        return indexing_job, "index", None
    return generate, "generate", None
