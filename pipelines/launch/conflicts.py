"""Runs pipelines over conflicts with other jobs, and finds what a crawl has made."""

import logging
from collections.abc import Callable

import apache_beam as beam

from ...io.snapshots.manifest import Manifest, load_manifest, purged_since
from ...io.snapshots.operations import pinned_operation
from ...io.storage.file_errors import BatchMovedOn, ConflictError, PurgedMeanwhile
from ...io.table.opening import open_table
from .runner import run_pipeline

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
