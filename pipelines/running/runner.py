"""Runs a pipeline, by default in this process, and over conflicts.

``--runner=DirectRunner`` and ``FnApiRunner`` mean nutbeam's own runner (``fused_runner.py``), with worker
processes Beam's FnApiRunner: Beam's DirectRunner may download another runner.
"""

import contextlib
import logging
import time
from collections.abc import Callable, Sequence

import apache_beam as beam
import numpy as np
import polars as pl
from apache_beam.options.pipeline_options import DirectOptions, StandardOptions
from apache_beam.runners.runner import PipelineResult, PipelineRunner, PipelineState

from ...io.snapshots.lineage import purged_since
from ...io.snapshots.manifest import Manifest, load_manifest
from ...io.snapshots.operations import pinned_operation
from ...io.storage.file_errors import BatchMovedOn, ConflictError, PurgedMeanwhile
from ...io.table.opening import open_table
from ...web.base.errors import JobFailed, UsageError, one_line
from .beam_internals import (
    beam_options,
    keep_paths_safe,
    may_change,
    new_pipeline,
    silence_runners,
    worker_program,
)
from .job_failures import causes, user_error
from .relay import relayed_phases

# Runners where a job continues without the command that submitted it.
_WITH_JOB_SERVER = ("portable", "flink", "spark")
_CLUSTERS = (*_WITH_JOB_SERVER, "dataflow")
_FAILED = (PipelineState.FAILED, PipelineState.CANCELLED)
_ENDED = (*_FAILED, PipelineState.DONE)
_LOOK_S = 2.0
IN_PROCESS = ("", "direct", "directrunner", "fnapi", "fnapirunner")


def in_process_runner(*, workers: bool) -> PipelineRunner | str:
    """Returns the runner for one machine: nutbeam's, or for a version not in ``TRIED`` Beam's, by name.

    Args:
        workers: Whether it has worker processes.
    """
    if may_change():
        if workers:
            from .quiet_workers import QuietWorkers

            return QuietWorkers()
        from .fused_runner import FusedRunner

        return FusedRunner()
    runner_names = getattr(StandardOptions, "KNOWN_RUNNER_NAMES", ())
    return "FnApiRunner" if "FnApiRunner" in runner_names else "DirectRunner"


def make_pipeline(beam_args: Sequence[str]) -> beam.Pipeline:
    """Returns an empty pipeline for the runner and options in ``beam_args``.

    Raises:
        UsageError: There is no such runner, or an option for it is missing.
    """
    # polars loads numpy when it meets the first array, and must not do so in two threads at once.
    pl.Series(np.empty(0))
    options = beam_options(beam_args)
    runner = (options.view_as(StandardOptions).runner or "").lower().rpartition(".")[2]
    try:
        if runner in IN_PROCESS:
            workers = options.view_as(DirectOptions).direct_running_mode == "multi_processing"
            return new_pipeline(options, in_process_runner(workers=workers))
        silence_runners()
        keep_paths_safe(options)
        return new_pipeline(options)
    except (ValueError, RuntimeError, ImportError) as error:
        raise UsageError(one_line(error)) from error


def run_pipeline(pipeline: beam.Pipeline) -> PipelineResult:
    """Runs a pipeline to its end, or only submits it with ``--no_wait_until_finish``.

    A job that is only submitted is looked at for ``_LOOK_S``, because a job server takes it before it
    reads its options.

    Raises:
        UserError: A worker has raised it, with its own message and exit code.
        JobFailed: The job failed for another reason; the message is the innermost cause.
    """
    standard = pipeline.options.view_as(StandardOptions)
    runner = standard.runner
    try:
        # The test's round trip through the runner API costs time in every round of a crawl.
        result = pipeline.run(test_runner_api=False)
        if waits(pipeline) or _fails_at_once(result, runner):
            result.wait_until_finish()
    except KeyboardInterrupt as error:
        raise _interrupt_error(runner) from error
    except Exception as error:
        if any(isinstance(cause, KeyboardInterrupt) for cause in causes(error)):
            raise _interrupt_error(runner) from error  # Beam has converted the interrupt
        raise user_error(error, worker_program(pipeline.options)) from error
    finally:
        standard.runner = runner  # PortableRunner removes it, but each round runs this pipeline
    if result.state in _FAILED:
        raise JobFailed(f"the job ended as {result.state.lower()}")
    return result


def _fails_at_once(result: PipelineResult, runner: str | None) -> bool:
    """Returns whether a job server ends a job as failed soon after it was submitted."""
    if not (runner or "").lower().startswith(_WITH_JOB_SERVER):
        return False
    deadline = time.monotonic() + _LOOK_S
    while result.state not in _ENDED:
        if time.monotonic() > deadline:
            return False
        time.sleep(0.1)
    return result.state in _FAILED


def _interrupt_error(runner: str | None) -> KeyboardInterrupt:
    words = ["a job that was submitted goes on: cancel it where it runs"]
    return KeyboardInterrupt(*(words if (runner or "").lower().startswith(_CLUSTERS) else []))


def only_submits(beam_args: Sequence[str]) -> bool:
    """Returns whether the command only submits jobs, which continue after it has ended."""
    return bool(beam_options(beam_args).view_as(StandardOptions).no_wait_until_finish)


def works_here(pipeline: beam.Pipeline) -> bool:
    """Returns whether the work of a pipeline is done in this process, which counts it then."""
    standard = pipeline.options.view_as(StandardOptions)
    runner = (standard.runner or "").lower().rpartition(".")[2]
    processes = pipeline.options.view_as(DirectOptions).direct_running_mode
    return runner in IN_PROCESS and processes != "multi_processing"


def phases_shown(
    pipeline: beam.Pipeline, address: str, launched: str
) -> contextlib.AbstractContextManager[None]:
    """Shows the phases of a pipeline in the block that runs it, if their work is done elsewhere."""
    if works_here(pipeline) or not waits(pipeline):
        return contextlib.nullcontext()
    return relayed_phases(address, launched)


def waits(pipeline: beam.Pipeline) -> bool:
    """Returns whether ``run_pipeline`` waits for the end of a pipeline."""
    return not pipeline.options.view_as(StandardOptions).no_wait_until_finish


_LOG = logging.getLogger("nutbeam")


def run_over_conflicts(pipeline: beam.Pipeline, address: str, launched: str) -> None:
    """Runs a pipeline; repeats it if a phase has failed because of a purge or of another crawl.

    The failed phase has changed nothing. It starts again on the changed table, and is skipped if
    the other crawl has done its work.

    Args:
        pipeline: The pipeline.
        address: Address of the table.
        launched: Id of the launch, to recognize commits of others.
    """
    table = open_table(address)
    while True:
        seen = table.latest_snapshot()
        try:
            with phases_shown(pipeline, address, launched):
                run_pipeline(pipeline)
            return
        except (ConflictError, PurgedMeanwhile) as error:
            if purged_since(table, seen):
                other = "a purge"
            elif _others_since(address, launched, seen):
                other = "another crawl or job"
            else:
                raise
            _LOG.warning("%s has committed first, the phase is run again: %s", other, error)


def run_over_batches(pipeline: beam.Pipeline) -> None:
    """Runs the pipeline of one job; runs it again if another job has done its work on the batch.

    This ends, because the second run finds the batch past its phase, and has nothing to do.
    """
    while True:
        try:
            run_pipeline(pipeline)
            return
        except BatchMovedOn as error:
            _LOG.warning("%s; looking again", error)


def look_again(work: Callable[[], int], address: str) -> int:
    """Does the next work of a table; looks again if another job has committed first.

    Args:
        work: Finds the next work, does it, and returns the exit code.
        address: Address of the table.
    """
    table = open_table(address)
    while True:
        seen = table.latest_snapshot()
        try:
            return work()
        except (ConflictError, PurgedMeanwhile) as error:
            if table.latest_snapshot() == seen:
                raise
            _LOG.warning("%s; looking again for the next phase", error)


def _others_since(address: str, launched: str, seen: int) -> bool:
    """Returns whether other launches have made snapshots after snapshot ``seen``."""
    number = open_table(address).latest_snapshot() - seen
    return number > len(manifests_of_launch(address, launched, seen))


def manifests_of_launch(address: str, launched: str, seen: int) -> list[Manifest]:
    """Returns the manifests of a launch's snapshots after snapshot ``seen``."""
    return [m for m in _manifests_since(address, seen) if m.operation.startswith(f"{launched}.")]


def manifests_of_others(address: str, launched: str) -> list[Manifest]:
    """Returns the manifests of the snapshots that others have made since a crawl was launched."""
    pinned = pinned_operation(address, f"{launched}.crawl")
    manifests = _manifests_since(address, pinned.snapshot) if pinned else []
    return [m for m in manifests if not m.operation.startswith(f"{launched}.")]


def _manifests_since(address: str, seen: int) -> list[Manifest]:
    table = open_table(address)
    numbers = [number for number in table.snapshots() if number > seen]
    return [load_manifest(table, number) for number in numbers]
