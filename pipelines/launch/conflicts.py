"""Runs the pipeline of a crawl over conflicts with other jobs, and finds what it has made."""

import logging

import apache_beam as beam

from ...io.snapshots.manifest import Manifest, load_manifest, purged_since
from ...io.storage.errors import ConflictError, PurgedMeanwhile
from ...io.table.opening import open_table
from .runner import run_pipeline

_LOG = logging.getLogger("nutbeam")


def run_over_conflicts(pipeline: beam.Pipeline, table: str, launched: str) -> None:
    """Runs a pipeline; repeats it if a phase has failed because of a purge or of another crawl.

    The failed phase has changed nothing. It starts again on the changed table, and is skipped if
    the other crawl has done its work.

    Args:
        pipeline: The pipeline.
        table: Address of the table.
        launched: Id of the launch, to recognize commits of others.
    """
    root = open_table(table)
    while True:
        seen = root.latest_snapshot()
        try:
            run_pipeline(pipeline)
            return
        except (ConflictError, PurgedMeanwhile) as error:
            if purged_since(root, seen):
                other = "a purge"
            elif _others_since(table, launched, seen):
                other = "another crawl or job"
            else:
                raise
            _LOG.warning("%s has committed first, the phase is run again: %s", other, error)


def _others_since(table: str, launched: str, seen: int) -> bool:
    """Returns whether other launches have made snapshots after snapshot ``seen``."""
    made = open_table(table).latest_snapshot() - seen
    return made > len(made_by(table, launched, seen))


def made_by(table: str, launched: str, seen: int) -> list[Manifest]:
    """Returns the manifests of a launch's snapshots after snapshot ``seen``."""
    root = open_table(table)
    numbers = range(seen + 1, root.latest_snapshot() + 1)
    manifests = [load_manifest(root, number) for number in numbers]
    return [m for m in manifests if m.operation.startswith(f"{launched}.")]
