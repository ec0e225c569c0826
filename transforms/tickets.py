"""Tickets: what starts a job, and the operation that it gets."""

import dataclasses
import functools
import platform
from importlib.metadata import version

from ..io.snapshots.manifest import Manifest, load_manifest
from ..io.snapshots.operations import Operation, begin, new_id, pinned_operation
from ..io.table.opening import open_table
from ..policy.components.vocabulary import PHASES, UPDATED_PHASE
from ..web.base.clock import now_ms
from ..web.base.dataclass import dataclass
from ..web.base.errors import NothingToDo, UserError
from .wiring.phase_logs import log_start

# Commands by the names of their jobs in manifests, where these differ.
COMMANDS_OF_JOBS = {"update": "updatedb"}


@dataclass(frozen=True)
class Ticket:
    """Starts a job inside a pipeline; each job outputs one for the next job.

    Attributes:
        address: The address of the table.
        operation: Id of the launch; a job adds its own name.
        batch: The batch to work on; None means the oldest batch that waits for the job.
        idle: Whether there is nothing to do for this job and the later ones.
        now: The time that counts as now, ms; None means the clock's time.
        versions: Versions of the launcher, see ``versions``; empty means no check.
        round: Number of the round of a crawl, for logs.
        began: Time at which the crawl began, ms.
        until: Time at which the crawl ends, ms: fetches begin no request then; None is no limit.
    """

    address: str
    operation: str
    batch: str | None = None
    idle: bool = False
    now: int | None = None
    versions: tuple[tuple[str, str], ...] = ()
    round: int | None = None
    began: int | None = None
    until: int | None = None


@functools.cache
def versions() -> tuple[tuple[str, str], ...]:
    """Returns the (name, version) pairs that must be equal on launcher and workers."""
    import apache_beam as beam  # late: few need it

    python = ".".join(platform.python_version_tuple()[:2])
    return (("Beam", beam.version.__version__), ("nutbeam", version("nutbeam")), ("Python", python))


def check_versions(ticket: Ticket) -> None:
    """Checks that the launcher has the versions of this worker.

    Raises:
        UserError: The launcher has another version of Beam, nutbeam or Python.
    """
    here = dict(versions() if ticket.versions else ())
    for name, there in ticket.versions:
        if here.get(name) != there:
            raise UserError(
                f"the workers have {name} {here.get(name)!r}, the launcher {there!r}: "
                "install the same version on both"
            )


def begin_job(
    ticket: Ticket,
    job: str,
    needs: str | None,
    allows: tuple[str, ...] = (),
    takes: str | None = None,
    takes_in: str = "",
) -> Operation:
    """Returns the operation of a job: the pinned operation with its id, or a new one.

    Raises:
        UserError: The batch does not exist or has not reached the phase.
    """
    check_versions(ticket)
    name = f"{ticket.operation}.{job}"
    if ticket.idle:
        return Operation(ticket.address, name, job, 0, 0, 0, ticket.batch, idle="nothing")
    if needs == "" and ticket.batch is not None:  # a batch is open: the job must not make one
        return Operation(ticket.address, name, job, 0, 0, 0, ticket.batch, idle="done")
    pinned = pinned_operation(ticket.address, name)
    batch = ticket.batch if pinned is None or ticket.batch is not None else pinned.batch
    if pinned is None and needs == "":
        batch = new_id()
    elif pinned is None and needs and batch is None:
        batch = next_batch(ticket.address, job, needs, takes, takes_in)
    elif pinned is None and needs and ticket.round is None:
        # Nothing is pinned for a batch that a user has named wrong: a purge would wait for it.
        phase_of(newest_of(ticket.address), batch, takes or needs, job)
    operation = begin(ticket.address, job, name, batch, ticket.now, allows)
    if needs and not operation.idle:
        ahead = is_past_phase(operation, needs, takes)
        operation = dataclasses.replace(operation, idle="done" if ahead else "")
    operation = dataclasses.replace(
        operation, round=ticket.round, began=ticket.began, until=ticket.until
    )
    if not operation.idle:
        log_start(operation)
    return operation


def next_batch(
    address: str, job: str, needs: str, takes: str | None = None, takes_in: str = ""
) -> str:
    """Returns the oldest batch that waits for a job.

    Args:
        address: The address of the table.
        job: Name of the job.
        needs: The phase of batches that wait for it.
        takes: An earlier phase, of batches that it takes if they are named.
        takes_in: A component; the batch is an updated one that it has not taken in yet.

    Raises:
        NothingToDo: No batch waits. The message names a batch of the earlier phase, if any.
    """
    manifest = newest_of(address)
    if takes_in:
        if not (waiting_batches := manifest.waiting_for(takes_in)):
            raise NothingToDo(f"nothing to do: all updated batches are in {takes_in}")
        return waiting_batches[0]
    batches = manifest.batches if needs == UPDATED_PHASE else manifest.unfinished
    waiting = [(b.created, name) for name, b in batches.items() if b.phase == needs]
    if not waiting:
        early = [(b.created, name) for name, b in batches.items() if b.phase == takes]
        hint = f"; --batch {min(early)[1]} takes a batch that is only {takes}" if early else ""
        raise NothingToDo(f"nothing to do: no batch is {needs}{hint}")
    return min(waiting)[1]


def newest_of(address: str) -> Manifest:
    """Returns the manifest of the newest snapshot."""
    table = open_table(address)
    return load_manifest(table, table.latest_snapshot())


def is_past_phase(operation: Operation, needs: str, takes: str | None = None) -> bool:
    """Returns whether the batch is already past the phase that a job needs.

    Args:
        operation: The operation.
        needs: The phase.
        takes: An earlier phase that is enough, too.

    Raises:
        UserError: The batch does not exist or has not reached the phase.
    """
    phase = phase_of(operation.manifest(), operation.batch, takes or needs, operation.job)
    return PHASES.index(phase) > PHASES.index(needs)


def phase_of(manifest: Manifest, batch: str | None, needs: str, job: str) -> str:
    """Returns the phase of a batch.

    Raises:
        UserError: The batch does not exist, or has not reached the phase that a job needs.
    """
    if batch not in manifest.batches:
        newest = ", ".join(sorted(manifest.batches)[-3:]) or "none"
        raise UserError(f"no batch {batch!r} in this table; newest batches: {newest}")
    phase = manifest.batches[str(batch)].phase
    if PHASES.index(phase) < PHASES.index(needs):
        command = COMMANDS_OF_JOBS.get(job, job)
        raise UserError(f"batch {batch!r} is {phase}, {command} needs one that is {needs}")
    return phase


def dry_operation(ticket: Ticket, job: str) -> Operation:
    """Returns an operation that reads the newest snapshot, and of which no record is made."""
    check_versions(ticket)
    table = open_table(ticket.address)
    snapshot = table.latest_snapshot()
    newest = load_manifest(table, snapshot)
    now = now_ms(newest.latest_time) if ticket.now is None else ticket.now
    # No real job has this name, so its metrics are not mistaken for changes.
    return Operation(ticket.address, ticket.operation, f"{job}_dry_run", snapshot, now, 0)
