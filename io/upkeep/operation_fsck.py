"""Checks the records of operations, repairs them, and counts what operations have left.

With a damaged record, compact and each launch of its operation fail. A repair restores the record
from the history if the operation was committed; otherwise it can only remove the record.
"""

import contextlib
import math
import zlib
from collections.abc import Iterator

from ...web.base.clock import now_ms
from ...web.base.dataclass import dataclass
from ...web.base.errors import UserError
from ..disk.record_checks import NewerFormat
from ..snapshots.heartbeats import heartbeat_files
from ..snapshots.hold import HOLD
from ..snapshots.manifest import (
    Manifest,
    components_of_snapshots,
    load_manifest,
    readable_manifests,
)
from ..snapshots.operations import (
    LOST,
    OPERATIONS,
    Operation,
    id_of,
    operation_of_record,
    operation_record,
    reach,
)
from ..storage.files import list_files, overwrite_bytes, read_bytes, remove_file, store_time
from ..storage.places import Folder, Found, Place
from ..table.table_snapshots import TableSnapshots
from ..table.web_table import WebTable
from ..tablets.file_lists import below, load_files
from .fsck import Problem, bare_message
from .purge import unnamed_files
from .retention import UNDER_WAY

OPERATION_PROBLEM = "operation"
# Jobs that work on a batch of another job.
_ON_BATCHES = ("fetch", "parse", "update")


@dataclass(frozen=True)
class RepairedRecord:
    """A file that a repair has ``restored`` or ``removed``."""

    path: str
    done: str

    def __str__(self) -> str:
        after = ": the same id begins again" if self.done == "removed" else " from the history"
        return f"{self.path}: {self.done}{after}"


def check_operations(table: TableSnapshots) -> list[Problem]:
    """Finds bad records of operations.

    A record is bad if it is damaged, has a newer format, or names a missing snapshot or batch.
    """
    records = list(record_files(table))
    limits = reach(table)  # read after the records: operations pinned just now are not checked
    problems = list(_no_files(table))
    for file in records:
        try:
            text, newer = _problem(table, file.path, limits), False
        except UserError as error:
            text, newer = bare_message(error, file.path), isinstance(error, NewerFormat)
        if text:
            problems.append(Problem(OPERATION_PROBLEM, below(table, file.path), text, newer=newer))
    return problems


def record_files(table: Folder) -> Iterator[Found]:
    """Yields the files of records, and the marks of operations that lost to another commit."""
    for file in list_files(table / OPERATIONS):
        direct = file.path.parent == table / OPERATIONS and not file.path.name.startswith(".")
        if direct and file.path.suffix in (".json", LOST):
            yield file


def _no_files(table: Folder) -> Iterator[Problem]:
    """Finds folders, links and other things with the name of a record."""
    for path, kind in (table / OPERATIONS).odd_entries():
        record = path.suffix in (".json", LOST) and not path.name.startswith(".")
        if record or path == table / HOLD:
            text = f"is {kind}, not a record: remove it"
            yield Problem(OPERATION_PROBLEM, below(table, path), text)


def _problem(table: TableSnapshots, path: Place, limits: tuple[int, int]) -> str:
    data = read_bytes(path)
    if path.suffix == LOST:
        if not data.isdigit() or len(data) > 20:
            return "is damaged: it should be the number of a snapshot"
        return _ahead(int(data[:20]), *limits)
    pinned = operation_of_record(path, data)
    batch, snapshot = pinned.batch, pinned.snapshot
    job = id_of(path).rpartition(".")[2]
    if pinned.job != job:
        return f"names job {pinned.job[:50]!r}, its id ends in {job!r}"
    on_batch = pinned.job in _ON_BATCHES and batch is not None
    if on_batch and snapshot in (0, *table.snapshots()):
        with contextlib.suppress(UserError):  # check_manifests reports a damaged manifest
            if batch not in load_manifest(table, snapshot).batches:
                return f"names batch {batch!r}, which snapshot {snapshot} does not have"
        return ""
    return _ahead(snapshot, *limits)


def _ahead(snapshot: int, newest: int, most: int) -> str:
    """Returns the problem of a snapshot number that is too large, or empty; see ``reach``."""
    if snapshot <= most:
        return ""
    return f"names snapshot {str(snapshot)[:20]}, the newest one is {newest}"


def repair_operations(
    table: TableSnapshots, problems: list[Problem], drop: bool
) -> list[RepairedRecord]:
    """Restores damaged records from the history, or removes them.

    A record that is younger than a day may belong to an operation under way. It is only
    removed with ``drop``.

    Args:
        table: The table.
        problems: Problems of records, from ``check_operations``.
        drop: Whether to remove young records, too.
    """
    records = {below(table, file.path): file for file in record_files(table)}
    history, now = [*readable_manifests(table)][::-1], store_time(table / OPERATIONS)
    done = []
    for problem in problems:
        file = records.get(problem.path)
        if file is None or problem.newer:
            continue
        operation = _from_history(history, file.path) if file.path.suffix != LOST else None
        if operation is not None:
            overwrite_bytes(file.path, operation_record(operation))
            done.append(RepairedRecord(problem.path, "restored"))
        elif drop or file.path.suffix == LOST or file.changed < now - UNDER_WAY:
            remove_file(file.path)
            remove_file(file.path.with_suffix(LOST))
            done.append(RepairedRecord(problem.path, "removed"))
    return done


def _from_history(history: list[Manifest], path: Place) -> Operation | None:
    """Returns the operation of a record, or an equivalent one; None if it made no snapshot."""
    name, _, restart = path.stem.partition("@")
    launch, _, job = name.rpartition(".")
    after = int(restart) if restart.isdigit() else 0
    crawls = job == "crawl"  # only the phases of a crawl make snapshots
    for manifest in history:
        of_phase = crawls and manifest.operation.startswith(f"{launch}.")
        if manifest.snapshot > after and (manifest.operation == name or of_phase):
            job, batch = (job, None) if crawls else (manifest.job, manifest.batch)
            seed = zlib.crc32(name.encode())
            return Operation("", name, job, manifest.snapshot - 1, manifest.time, seed, batch)
    return None


@dataclass(frozen=True)
class Leftovers:
    """Harmless leftovers in a table.

    Attributes:
        orphans: Number of files that no snapshot names: of jobs that died or did not commit yet.
        orphan_bytes: Size of these files.
        temporary: Number of files that were never completed.
        leases: Number of claims of fetch attempts, held or not.
        unfinished: Operations that began more than a day ago and never committed.
    """

    orphans: int = 0
    orphan_bytes: int = 0
    temporary: int = 0
    leases: int = 0
    unfinished: tuple[str, ...] = ()


def left_over(table: WebTable) -> Leftovers:
    """Counts leftover files; lists operations that began over a day ago and never committed."""
    named = table.needed_files()
    for component in {
        c for _, c in components_of_snapshots(table, readable_manifests(table), math.inf)
    }:
        named.add(component.list)
        with contextlib.suppress(UserError):  # the list is damaged
            named |= {file.path for file in load_files(table, component)}
    named_records = (*record_files(table), *heartbeat_files(table))
    records = {table / HOLD, *(file.path for file in named_records)}
    others = [file for file in list_files(table / OPERATIONS) if file.path not in records]
    files = [*unnamed_files(table, named, math.inf), *others]
    orphans = [one.bytes for one in files if not one.path.name.startswith(".")]
    claims = [one for one in list_files(table / "batches") if one.path.suffix == ".claim"]
    temporary, unfinished = len(files) - len(orphans), tuple(_unfinished_operations(table))
    return Leftovers(len(orphans), sum(orphans), temporary, len(claims), unfinished)


def _unfinished_operations(table: TableSnapshots) -> Iterator[str]:
    manifests = list(readable_manifests(table))
    done = {manifest.operation for manifest in manifests}
    first = min((manifest.snapshot for manifest in manifests), default=0)
    records = {file.path for file in record_files(table)}
    now = now_ms(max((manifest.latest_time for manifest in manifests), default=0))
    for path in sorted(records):
        if path.suffix == LOST or path.with_suffix(LOST) in records:
            continue
        with contextlib.suppress(UserError):
            pinned = operation_of_record(path, read_bytes(path))
            if pinned.now > now - UNDER_WAY * 1000:
                continue
            # Operations before the first snapshot in the history have an unknown end.
            if pinned.snapshot >= first - 1 and pinned.job != "crawl" and pinned.id not in done:
                yield pinned.id
