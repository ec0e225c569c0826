"""Operations: each one turns a snapshot into the next snapshot, exactly once.

``begin`` pins the snapshot that an operation reads; ``commit`` makes the next one. Both run inside
the pipeline, on a worker. A retry or a relaunch with the same id reads the same snapshot. If the
id is already in the history, the operation has succeeded.

The record of an operation is ``operations/ID.json``. ``ID.lost`` is added if another commit has
changed the rows that the operation had read. If an operation is pinned again, after a rollback or
such a loss, its record is ``ID@SNAPSHOT.json``.
"""

import contextlib
import dataclasses
import json
import secrets
import zlib
from collections.abc import Iterator, Mapping
from typing import Any, ClassVar

from ...policy.components.vocabulary import FETCHED_PHASE, PARSED_PHASE, PHASES, UPDATED_PHASE
from ...web.base.clock import now_ms
from ...web.base.dataclass import dataclass
from ...web.base.errors import UserError
from ...web.base.safe_json import json_object
from ..disk.record_checks import (
    Check,
    check_count,
    check_fields,
    check_format,
    check_number,
    check_text,
    each,
    each_item,
    unless_none,
)
from ..disk.table_names import checked_part
from ..storage.file_errors import (
    ConflictError,
    SnapshotTooOld,
    first_line,
    repair_advice,
)
from ..storage.files import create_exclusive, list_files, read_bytes, read_if_there
from ..storage.places import Place
from ..storage.processes import is_dead, this_process
from ..table.opening import open_table
from ..table.table_snapshots import TableSnapshots
from .entries import Batch
from .hold import wait_for_purge
from .lineage import first_in_lineage, lineage, undone_by
from .manifest import Manifest, check_kept, check_newest, load_manifest
from .pinned import Pinned

_FORMAT = 1
# Ids of commands that this process has run and that have ended, well or not.
_ENDED_COMMANDS: set[str] = set()
OPERATIONS = "operations"
# Suffix of the file which says that a pinned operation has lost to another commit.
LOST = ".lost"
# Fields of a record, which older records may lack.
_LATER: dict[str, Any] = {"format": 1, "process": None, "allows": []}
_CHECKS: Mapping[str, Check] = {
    **dict.fromkeys(("id", "job"), check_text),
    "snapshot": check_count,
    **dict.fromkeys(("now", "seed"), check_number),
    "batch": unless_none(checked_part),
    "process": unless_none(each_item(check_text, lambda _: None)),
    "allows": each(check_text),
}
_PHASE_AFTER_JOB = {"fetch": FETCHED_PHASE, "parse": PARSED_PHASE, "update": UPDATED_PHASE}
# Upkeep jobs that can commit while other jobs run; see ``Operation.allows``.
UPKEEP = ("compact", "purge")
# Largest number of lost snapshots after the newest, where markers do not record all snapshots.
MOST_AHEAD = 100


def id_of(path: Place) -> str:
    """Returns the id of an operation from the name of its record."""
    return path.stem.partition("@")[0]


@dataclass(frozen=True)
class Operation(Pinned):
    """A pinned operation.

    Attributes:
        address: The address of the table.
        id: Id of the operation, unique in the table.
        job: Name of the job.
        snapshot: Number of the snapshot that it reads.
        now: The time that counts as now, ms.
        seed: Seed of random numbers.
        batch: The batch that it works on or makes, or None.
        idle: Reason why there is no work: ``done`` (committed before) or
            ``nothing`` (the job before left no work); empty if there is work.
        process: The process that pinned it, see ``this_process``; None if unknown.
        round: Number of the round of a crawl, for logs; it is not recorded.
        began: Time at which the crawl began, ms; None outside a crawl. It is not recorded.
        until: Time at which the crawl ends, ms; None is no limit. It is not recorded.
        allows: Upkeep jobs, ``compact`` and ``purge``, that may commit before it does: its own
            commit does not fail then. They wait for other operations, or skip tablets.
        options: Options that its snapshot names; they are not recorded here.
        rules: Rules for links that its snapshot names, see ``recorded_rules``; None if its job
            has none. They are not recorded here.
    """

    address: str
    id: str
    job: str
    snapshot: int
    now: int
    seed: int
    batch: str | None = None
    idle: str = ""
    process: Mapping[str, Any] | None = dataclasses.field(default=None, compare=False)
    round: int | None = dataclasses.field(default=None, compare=False)
    began: int | None = dataclasses.field(default=None, compare=False)
    until: int | None = dataclasses.field(default=None, compare=False)
    allows: tuple[str, ...] = ()
    options: Mapping[str, Any] = dataclasses.field(default_factory=dict, compare=False)
    rules: Mapping[str, Any] | None = dataclasses.field(default=None, compare=False)

    is_unique: ClassVar[bool] = True

    def note_purge(self) -> None:
        """The next attempt is pinned again."""
        note_loss(self)


def new_id(number: int | None = None) -> str:
    """Returns an id for an operation or a batch: epoch seconds, milliseconds, a random part.

    Ids sort in the order in which they were made, also within the same second: readers of
    batches take them by name, the oldest first.

    Args:
        number: Position of the id among those that one run makes: they sort in this order, also
            within the same millisecond.
    """
    seconds, ms = divmod(now_ms(), 1000)
    position = "" if number is None else f"{number:04x}"
    return f"{seconds}-{ms:03x}{position}{secrets.token_hex(4)}"


def begin(
    address: str,
    job: str,
    operation: str,
    batch: str | None = None,
    now: int | None = None,
    allows: tuple[str, ...] = (),
) -> Operation:
    """Pins an operation, or reads its earlier record.

    Args:
        address: The address of the table.
        job: Name of the job.
        operation: Id of the operation.
        batch: The batch that it works on.
        now: The time that counts as now, ms; None means the clock's time.
        allows: See ``Operation``.

    Raises:
        UserError: The id belongs to another job or batch.
    """
    table = open_table(address)
    path, data = _pin(table, operation)
    if data is None and job != "crawl":  # its phases wait, each for itself
        wait_for_purge(table, operation)
    snapshot = table.settled_snapshot()
    newest = load_manifest(table, snapshot)  # a damaged table fails before anything is written
    check_newest(table, snapshot)
    table.prepare_components()
    if data is None:
        if snapshot == 0:
            path.parent.check_exclusive()
        now = now_ms(newest.latest_time) if now is None else now
        seed, process = zlib.crc32(operation.encode()), this_process()
        pinned = Operation(
            address, operation, job, snapshot, now, seed, batch, process=process, allows=allows
        )
        if create_exclusive(path, operation_record(pinned)):
            return pinned
        data = read_bytes(path)
    pinned = operation_of_record(path, data, address)
    if (pinned.job, pinned.batch) != (job, batch):
        raise UserError(
            f"operation {operation!r} is {pinned.job} of batch {pinned.batch!r}, "
            f"not {job} of batch {batch!r}: choose another id"
        )
    return dataclasses.replace(pinned, idle="done" if find_commit(pinned) else "")


def _pin(table: TableSnapshots, operation: str) -> tuple[Place, bytes | None]:
    """Returns the file of an operation's record, and its content (None if not pinned yet).

    A record from before a rollback is not deleted, but it is ignored: the operation is
    pinned again. An operation that has lost to another commit is also pinned again,
    because the rows that it has read have changed.
    """
    *_, (path, data) = _pins(table, operation)
    return path, data


def _pins(table: TableSnapshots, operation: str) -> Iterator[tuple[Place, bytes | None]]:
    """Yields the files of an operation's records, the valid one last; see ``_pin``."""
    path = table / "operations" / f"{operation}.json"
    while (data := read_if_there(path)) is not None:
        yield path, data
        pinned = operation_of_record(path, data, str(table))
        over = undone_by(table, pinned.snapshot, pinned) or _lost_to(path)
        # The loop ends, because numbers grow.
        if over is None or over <= pinned.snapshot or find_commit(pinned) is not None:
            return
        path = table / "operations" / f"{operation}@{over}.json"
    yield path, None


def _lost_to(path: Place) -> int | None:
    """Returns the number of the snapshot that a pinned operation has lost to, or None."""
    data = read_if_there(path.with_suffix(LOST))
    return int(data[:20]) if data and data.isdigit() else None


def note_loss(operation: Operation) -> None:
    """Records that an operation has lost to another commit, so that its id is pinned again."""
    newest = str(operation.table.settled_snapshot()).encode()
    for path, data in _pins(operation.table, operation.id):
        if data is not None and operation_of_record(path, data).snapshot == operation.snapshot:
            create_exclusive(path.with_suffix(LOST), newest)
            return


@contextlib.contextmanager
def losses_noted(operation: Operation) -> Iterator[None]:
    """Calls ``note_loss`` if the block raises a conflict."""
    try:
        yield
    except ConflictError:
        note_loss(operation)
        raise


def find_commit(operation: Operation) -> Manifest | None:
    """Returns the snapshot that the operation made, or None if it is not in the lineage.

    Snapshots that were rolled back are not in the lineage.

    Raises:
        SnapshotTooOld: Unknown, because the snapshots of that time were deleted.
    """
    return first_in_lineage(
        since_pinned(operation), lambda one: one.operation == operation.id, ("commit", operation)
    )


def since_pinned(operation: Operation) -> Iterator[Manifest]:
    """Yields the snapshots made since an operation was pinned, newest first; see ``lineage``.

    Raises:
        SnapshotTooOld: The oldest of them were deleted.
    """
    lost: set[int] = set()
    previous = operation.snapshot
    for manifest in lineage(operation.table, operation.snapshot, operation):
        yield manifest
        lost.update(manifest.lost)
        previous = manifest.snapshot - 1 if manifest.restores is None else manifest.restores
    if previous > operation.snapshot and previous not in lost:
        check_kept(operation.table, previous)


def has_ended(operation: Operation) -> bool:
    """Returns whether an operation has committed, has lost, or is of a dead process or an ended command."""
    if operation.process is not None and is_dead(operation.process):
        return True
    if operation.process == this_process() and _is_of_ended_command(operation):
        return True
    with contextlib.suppress(SnapshotTooOld):
        _, data = _pin(operation.table, operation.id)
        return data is None or find_commit(operation) is not None
    return True


def _is_of_ended_command(operation: Operation) -> bool:
    return any(operation.id.startswith(f"{command}.") for command in _ENDED_COMMANDS)


@contextlib.contextmanager
def command_of_this_process(command: str) -> Iterator[None]:
    """Notes the end of a command, after which its operations commit nothing more.

    A process may run several commands, and live on for days, such as that of a notebook.

    Args:
        command: Id of the command, with which the ids of its operations begin.
    """
    _ENDED_COMMANDS.discard(command)
    try:
        yield
    finally:
        _ENDED_COMMANDS.add(command)


def has_committed(operation: Operation) -> bool:
    """Returns whether an operation has made a snapshot, even if it was rolled back later."""
    table = operation.table
    later = (number for number in table.snapshots() if number > operation.snapshot)
    return any(load_manifest(table, number).operation == operation.id for number in later)


def is_overtaken(pinned: Operation, batches: Mapping[str, Batch]) -> bool:
    """Returns whether the batch has already reached the phase that an operation works for.

    Args:
        pinned: The operation.
        batches: Those of the newest snapshot.
    """
    if pinned.job not in _PHASE_AFTER_JOB or pinned.batch is None:
        return False
    batch = batches.get(pinned.batch)
    return batch is None or PHASES.index(batch.phase) >= PHASES.index(_PHASE_AFTER_JOB[pinned.job])


def pinned_operation(address: str, operation: str) -> Operation | None:
    """Returns the pinned operation with an id, or None."""
    path, data = _pin(open_table(address), operation)
    return operation_of_record(path, data, address) if data is not None else None


def reach(table: TableSnapshots) -> tuple[int, int]:
    """Returns (the newest snapshot known to be made, the newest that an operation can have read).

    In a folder each snapshot has a marker. Elsewhere the record of an operation may be the
    only sign that a newer snapshot existed.
    """
    markers = table.made_snapshots()
    newest = max([table.latest_snapshot(), *markers])
    return newest, newest if markers else newest + MOST_AHEAD


def seen_snapshots(table: TableSnapshots) -> list[int]:
    """Returns the numbers of snapshots that operations have read or made; skips damaged files."""
    numbers, (_, most) = table.made_snapshots(), reach(table)
    for file in list_files(table / "operations"):
        if file.path.suffix == ".json" and not file.path.name.startswith("."):
            with contextlib.suppress(UserError):
                numbers.append(operation_of_record(file.path, read_bytes(file.path)).snapshot)
    return [number for number in numbers if number <= most]


def operation_record(operation: Operation) -> bytes:
    """Returns the record of an operation."""
    record = dataclasses.asdict(operation)
    for name in ("address", "idle", "round", "began", "until", "options", "rules"):
        del record[name]
    return json.dumps(record).encode()


def operation_of_record(path: Place, data: bytes, address: str = "") -> Operation:
    """Returns the operation of a record.

    Raises:
        NewerFormat: A later version of nutbeam wrote the record.
        UserError: The record is damaged.
    """
    try:
        record = _LATER | json_object(data)
        check_format(record, _FORMAT, f"operation file {path}")
        operation = Operation(address=address, **{name: record[name] for name in _CHECKS})
        check_fields(operation, _CHECKS)
        if operation.id != id_of(path):
            raise ValueError(f"it is of operation {operation.id!r}"[:100])
        return dataclasses.replace(operation, allows=tuple(operation.allows))
    except (ValueError, KeyError) as error:
        reason = f"it lacks {error}" if isinstance(error, KeyError) else first_line(error)
        raise UserError(
            f"operation file is damaged: {path}: {reason}{repair_advice(path)}"
        ) from error
