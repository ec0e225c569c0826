"""Deletes expired snapshots and files of a table, in a safe order.

These snapshots are kept: the newest one; those that were the newest at any time
within the retention; and all since the oldest snapshot that a living operation has
pinned. An operation is living if it is younger than the retention, or if it is not
committed and younger than a day. A file is deleted if it is older than the retention
and than all operations that may be under way, and if no kept snapshot names it.
Ages are those of files by the clock of their store, also of manifests: in a copy of a table
all is as young as the copy, and a manifest that names a wrong time deletes nothing early.
Manifests are deleted first, from the oldest on, then the files that only they named.
So if a sweep is interrupted, each snapshot is either complete or gone, and the next
sweep deletes the rest.
"""

import contextlib
import itertools
import math
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path, PurePosixPath
from typing import NamedTuple

from ...policy.components.clocks import COUNT
from ...policy.components.kinds import folders, kind_of
from ...web.base.clock import TOLERANCE_MS
from ...web.base.dataclass import dataclass
from ...web.base.errors import UserError
from ...web.base.options import seconds
from ..disk.regular_files import has_manifests
from ..disk.table_names import is_made_name, is_unguessable_name
from ..indexing.run_receipts import is_intent, is_mark, note_lost
from ..snapshots.entries import Batch
from ..snapshots.lineage import lineage
from ..snapshots.manifest import Manifest, components_of_snapshots, load_manifest
from ..snapshots.operations import (
    LOST,
    OPERATIONS,
    Operation,
    id_of,
    is_overtaken,
    operation_of_record,
)
from ..snapshots.past_jobs import ExpiringJobs
from ..storage.file_errors import NoRoom
from ..storage.files import list_files, read_bytes, remove_file, size_of, store_time
from ..storage.places import Folder, Found, Place
from ..table.table_snapshots import TableSnapshots
from ..table.web_table import WebTable
from ..tablets.file_lists import below, load_files

# Folders with files that are only used while their job runs.
SCRATCH = ("exports", "seeds")
# Leases of fetch attempts, which later attempts read though no manifest names them.
LEASES = "leases"
# Longest time that an operation without a commit may be under way, s.
UNDER_WAY = 86_400
_TOLERANCE_S = TOLERANCE_MS / 1000


@dataclass(frozen=True)
class RetentionOptions:
    """The option of how long data stays that the newest snapshot does not need."""

    GROUP = "compact"

    snapshot_retention: int = seconds(
        604_800,
        "How long a snapshot can be read after it was replaced; then its files are deleted. It "
        "must be longer than any export takes.",
    )


def delete_expired(table: WebTable, retention_s: float) -> dict[str, int]:
    """Deletes expired snapshots and files; may be interrupted and repeated.

    Args:
        table: The table.
        retention_s: Time in s for which a snapshot stays readable after it was replaced.
            It must be longer than any reader needs, because readers are not recorded.

    Returns:
        Counts: ``deleted/snapshots``, ``deleted/files``, ``deleted/bytes``, and
        ``clock``: number of files that were written while this machine's clock was ahead.
    """
    now = store_time(table / "manifest")
    until = now - retention_s
    redated = _redate(table, now)
    operations = _operations(table, now, until)
    oldest = _oldest_kept(table, until, now, operations.pinned)
    expiring_jobs = ExpiringJobs(table, oldest)
    is_kept = _is_kept(expiring_jobs)
    snapshots, freed = table.forget_snapshots(oldest)
    files = 0
    # Delete records of operations last: a relaunch needs them to report that its snapshot is gone.
    for path in itertools.chain(
        _unnamed_files(table, until, operations.since, now, oldest), operations.expired
    ):
        table.erase(path, oldest)
        freed += remove_file(path)
        files += 1
        is_kept = is_kept or _is_kept(expiring_jobs)
    if not is_kept:
        expiring_jobs.keep()
    counts = {
        "deleted/snapshots": snapshots, "deleted/files": files, "deleted/bytes": freed,
        COUNT: redated,
    }  # fmt: skip
    return {name: number for name, number in counts.items() if number}


def _is_kept(expiring_jobs: ExpiringJobs) -> bool:
    """Writes what expiring jobs did; returns whether there was room.

    On a full disk it is written after the first deletions: a kill between them loses lines of
    ``history``, and no data.
    """
    with contextlib.suppress(NoRoom):
        expiring_jobs.keep()
        return True
    return False


def own_files(table: TableSnapshots, folder: str) -> Iterator[Found]:
    """Yields the files of a folder that have names as jobs give them; others are left alone.

    Args:
        table: The table.
        folder: Name of one of its folders.
    """
    for file in list_files(table / folder) if is_cleaned(table, folder) else ():
        if is_made_name(below(table, file.path)):
            yield file


def is_cleaned(table: TableSnapshots, folder: str) -> bool:
    """Returns whether files in a folder may be deleted.

    If the folder is a link, as somebody makes it who moves the folder to another disk, they may
    only be deleted if the newest snapshot names a file that is there, by a name that was made by
    chance: a stranger, who made the link to harm, does not know such names. A folder that has
    manifests is another table.
    """
    top = folder.partition("/")[0]
    if not (table / top).is_symlink():
        return True
    if has_manifests(Path(str(table / top / "manifest"))):  # only folders are links
        return False
    try:
        components = load_manifest(table, table.latest_snapshot()).components.values()
        named = {file.path: file.bytes for one in components for file in load_files(table, one)}
        if top == "manifest":
            named = {one.list: size_of(table / one.list) or -1 for one in components}
        return any(
            path.startswith(f"{top}/")
            and is_unguessable_name(path)
            and size_of(table / path) == size
            for path, size in named.items()
        )
    except UserError:
        return False


def expiring_folders() -> tuple[str, ...]:
    """Returns the folders whose files expire."""
    return ("manifest", *folders(), "changes", *SCRATCH)


def _redate(table: TableSnapshots, now: float) -> int:
    """Sets the time of files from the future to now; returns their number.

    It does nothing if the newest snapshot is from the future, because then the present clock
    is wrong.
    """
    times = table.commit_times()
    if times and times[-1][1] > now + _TOLERANCE_S:
        return 0
    if not table.files.needs_shared_path:
        return 0  # files in a store keep their time
    own = (file for name in (*expiring_folders(), OPERATIONS) for file in own_files(table, name))
    late = [file.path for file in own if file.changed > now + _TOLERANCE_S]
    return sum(path.redate(now) for path in late)


class _Operations(NamedTuple):
    """(files of ended operations, snapshots pinned by others, earliest start of the others)."""

    expired: list[Place]
    pinned: list[int]
    since: float


def _operations(table: TableSnapshots, now: float, until: float) -> _Operations:
    files = {file.path: file.changed for file in own_files(table, OPERATIONS)}
    pins = _operations_of(files)
    begun = {path: files[path] for path in _under_way(table, now, files, pins)}
    alive = {id_of(path) for path, written in files.items() if written > until or path in begun}
    launches = {name[:at] for name in alive for at, sign in enumerate(name) if sign == "."}
    expired, snapshots = [], []
    for path, written in files.items():
        launch, _, job = id_of(path).rpartition(".")
        if id_of(path) in alive or (job == "crawl" and launch in launches):
            snapshots += [pins[path].snapshot] if path in pins else []
        elif written <= now - UNDER_WAY:  # else it may still say that it was done
            expired.append(path)
    return _Operations(expired, snapshots, min(begun.values(), default=math.inf))


def disturbed_by(table: TableSnapshots, job: str) -> list[str]:
    """Returns the operations that may be under way and would fail if a job committed now.

    Args:
        table: The table.
        job: ``compact`` or ``purge``.
    """
    now = store_time(table / "manifest")
    records = own_files(table, OPERATIONS)
    files = {file.path: file.changed for file in records if file.changed > now - UNDER_WAY}
    # An operation that has lost to another commit will not commit.
    pins = _operations_of(path for path in files if path.with_suffix(LOST) not in files)
    pins = {path: pinned for path, pinned in pins.items() if job not in pinned.allows}
    return sorted(id_of(path) for path in _under_way(table, now, files, pins))


def _operations_of(paths: Iterable[Place]) -> dict[Place, Operation]:
    """Returns the operations in records; marks beside the records are left out."""
    records = (path for path in paths if path.suffix == ".json")
    return {path: operation_of_record(path, read_bytes(path)) for path in records}


def _under_way(
    table: TableSnapshots, now: float, files: Mapping[Place, float], pins: Mapping[Place, Operation]
) -> list[Place]:
    manifests = _readable(table)
    past = {manifest.snapshot for manifest in lineage(table)} | {0}
    first = min((manifest.snapshot for manifest in manifests), default=1)
    batches: Mapping[str, Batch] = manifests[-1].batches if manifests else {}
    done: dict[str, list[int]] = {}
    for manifest in manifests:
        done.setdefault(manifest.operation, []).append(manifest.snapshot)

    def is_done(path: Place, pinned: Operation) -> bool:
        # A rolled-back operation does not count as done, unless it will be pinned again.
        commits = (n for n in done.get(id_of(path), ()) if n > pinned.snapshot)
        return any(n in past or pinned.snapshot not in past for n in commits)

    # Retention keeps the snapshot of an operation under way. If it is gone, the operation ended.
    # A crawl commits nothing itself; it is under way as long as its phases are.
    return [
        path
        for path, pinned in pins.items()
        if files[path] > now - UNDER_WAY and max(pinned.snapshot, 1) >= first
        if not is_done(path, pinned)
        if pinned.job != "crawl" and not is_overtaken(pinned, batches)
    ]


def _readable(table: TableSnapshots) -> list[Manifest]:
    """Returns all manifests, oldest first, without those that a repair has noted as lost."""
    numbers = table.snapshots()
    lost = load_manifest(table, numbers[-1]).lost if numbers else ()
    return [load_manifest(table, number) for number in numbers if number not in lost]


def _oldest_kept(table: TableSnapshots, until: float, now: float, pinned: list[int]) -> int:
    commit_times = table.commit_times()
    # With a right clock, no snapshot is later than the next one, or than now.
    times = [*itertools.accumulate((time for _, time in reversed(commit_times)), min, initial=now)]
    snapshots = [(n, time) for (n, _), time in zip(commit_times, times[:0:-1], strict=True)]
    numbers = [number for number, _ in snapshots[-1:]]
    for (number, _), (_, replaced) in itertools.pairwise(snapshots):
        if replaced > until:
            numbers.append(number)
    first = snapshots[0][0] if snapshots else 0  # pinned snapshots before it were deleted earlier
    return max(first, min([*numbers, *pinned], default=0))


def named_files(table: Folder, manifests: Iterable[Manifest], whole_from: int = 0) -> set[str]:
    """Returns the paths, relative to the table, of all lists and data files that snapshots name.

    Args:
        table: The table.
        manifests: Manifests of the snapshots.
        whole_from: Number of a snapshot; from it on, every list must exist.

    Raises:
        UserError: A list is missing or damaged.
    """
    newest_first = sorted(manifests, key=lambda manifest: -manifest.snapshot)
    named = {one.list for manifest in newest_first for one in manifest.closed_lists}
    for manifest, component in components_of_snapshots(table, newest_first, whole_from):
        gone = manifest.snapshot < whole_from and size_of(table / component.list) is None
        if component.list not in named and not gone:
            named.update(file.path for file in load_files(table, component))
        named.add(component.list)
    return named


def _unnamed_files(
    table: TableSnapshots, until: float, since: float, now: float, oldest: int
) -> Iterator[Place]:
    """Yields the old files that no kept snapshot names."""
    # List files before reading the names, so that newly committed files are not in the list.
    files = [(f.path, f.changed) for name in expiring_folders() for f in own_files(table, name)]
    newest = table.latest_snapshot()
    manifests = (manifest for manifest in _readable(table) if manifest.snapshot >= oldest)
    # A purge deletes files that only older snapshots need.
    named = named_files(table, manifests, whole_from=newest)
    newest_manifest = load_manifest(table, newest)
    open_batches = {name: batch.phase for name, batch in newest_manifest.unfinished.items()}
    touched = set()
    for path, written in files:
        place = PurePosixPath(below(table, path))
        scratch = place.parts[0] in SCRATCH  # such a file may be older than its operation
        # A file of the same second as the operation may be its own: S3's times are whole seconds.
        if written >= since or written > (min(until, now - UNDER_WAY) if scratch else until):
            continue
        if str(place) in named or (len(place.parts) == 2 and place.match("manifest/*.json")):
            continue
        if is_mark(path):
            continue
        if is_intent(path):
            note_lost(path)
        if place.parts[0] == "batches" and len(place.parts) > 2:
            phase = "" if path.name.startswith(".") else open_batches.get(place.parts[1], "")
            adopted = place.parts[2] == LEASES or kind_of(place.parts[2]).adopted
            if phase == "generated" and adopted:
                continue
            # Leases record the times of requests, for later fetches from the same hosts.
            if phase and place.parts[2] == LEASES and written > now - UNDER_WAY:
                continue
            touched.add(place.parts[1])
        yield path
    # A killed attempt may leave an empty folder.
    empty = (table / "batches").empty_folders(min(until, since))
    for batch in touched.union(empty if is_cleaned(table, "batches") else ()):
        folder = table / "batches" / batch
        (folder / "aside" if batch in newest_manifest.batches else folder).remove_empty_folders()
