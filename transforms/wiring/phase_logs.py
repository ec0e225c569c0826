"""Logs the start and the end of phases."""

import contextlib
import logging

from ...io.snapshots.manifest import Manifest
from ...io.snapshots.operations import Operation
from ...web.base.json_logs import with_fields, working_on

_LOG = logging.getLogger("nutbeam.phases")


def logs_of(operation: Operation | None) -> contextlib.AbstractContextManager[None]:
    """Adds phase, operation, batch and round to the logs of this thread."""
    if operation is None:
        return contextlib.nullcontext()
    return working_on(
        phase=operation.job, operation=operation.id, batch=operation.batch, round=operation.round
    )


def log_start(operation: Operation) -> None:
    """Logs that a phase begins. A runner that repeats a failed step logs it again."""
    with logs_of(operation):
        fields = with_fields(event="start", snapshot=operation.snapshot)
        _LOG.info("%s begins", _title(operation), extra=fields)


def log_end(operation: Operation, manifest: Manifest) -> None:
    """Logs that a phase has committed, with its counts."""
    counts = dict(manifest.counts)
    text = ", ".join(f"{name} {number:,}" for name, number in counts.items()) or "nothing to do"
    with logs_of(operation):
        fields = with_fields(event="end", snapshot=manifest.snapshot, counts=counts)
        _LOG.info("%s ends: %s", _title(operation), text, extra=fields)


def _title(operation: Operation) -> str:
    """Returns the name of a phase with its round.

    >>> _title(Operation("t", "o.2.fetch", "fetch", 0, 0, 0, "b", round=2))
    'fetch of round 2'
    """
    return operation.job + (f" of round {operation.round}" if operation.round is not None else "")
