"""Commits a purge beside jobs that commit, too: what they have changed is read again, and only that.

With each try less is left to do, and under a hold (``hold``) no job begins. So a purge needs at most
one try more than jobs were under way.
"""

import contextlib
import dataclasses
import logging
import time
from collections.abc import Iterable, Iterator

import pyarrow as pa

from ...policy.blocklist import Names
from ...policy.kinds import kind_of
from ...web.base.errors import UserError
from ..rows.blocklist import COMPONENT as BLOCKLIST
from ..snapshots.commit import Written, commit_once
from ..snapshots.hold import pause
from ..snapshots.manifest import Manifest
from ..snapshots.operations import Operation, committed, find, has_committed, has_ended, note_loss
from ..storage.errors import ConflictError, SnapshotTooOld
from ..tablets.resolve import Part
from ..tablets.tablets import tablets
from .purge import Piece, pieces, purge_of, purge_piece, set_bars
from .retention import changes_under_way

_LOG = logging.getLogger(__name__)
# Jobs that fail when rows or the blocklist change meanwhile. Fetch and parse do not, see ``over_purges``.
WAITED_FOR = (".generate", ".inject", ".update", ".dedup")
# How often at most: more jobs than that are not under way at once.
TRIES = 20
_KEYS_AT_ONCE = 50_000
_KEYS = pa.schema([pa.field("key", pa.large_string())])


@dataclasses.dataclass(frozen=True)
class Task:
    """What a purge does.

    Attributes:
        names: What is purged.
        lift: Rather, what is blocked no longer; then nothing else is touched.
    """

    names: Names
    lift: bool = False

    def pieces(self, operation: Operation) -> Iterator[Piece]:
        """Yields what there is to do."""
        yield from [Piece(operation, BLOCKLIST)] if self.lift else pieces(operation)

    def __call__(self, piece: Piece) -> Iterator[Written]:
        """Does a piece of it."""
        if self.lift:
            yield set_bars(piece.operation, self.names, lift=True)
        else:
            yield from purge_piece(piece, self.names)


@dataclasses.dataclass(frozen=True)
class Purged:
    """What was purged of a snapshot.

    Attributes:
        operation: The purge, pinned to that snapshot.
        written: What stands for what held it.
    """

    operation: Operation
    written: tuple[Written, ...]


def prepare_purge(operation: Operation, written: Iterable[Written], task: Task) -> Purged:
    """Returns what was purged so far, of the newest snapshot where that can be read.

    After it little is left to do while jobs wait.
    """
    purged = Purged(operation, tuple(written))
    if not operation.idle:
        with contextlib.suppress(SnapshotTooOld):
            return rebase(purged, task)
    return purged


def commit_purge(operation: Operation, purged: Purged, task: Task, wait_s: float) -> Manifest:
    """Makes the next snapshot, once; to be called under a hold.

    Args:
        operation: The purge, as it was pinned.
        purged: What was purged so far.
        task: What the purge does.
        wait_s: How long to wait for jobs under way; then they fail, and must be run again.

    Raises:
        ConflictError: Others have committed before each try.
    """
    until = time.monotonic() + wait_s
    for _ in range(TRIES):
        done = committed(operation)
        if done is not None:
            return done
        wait_for_jobs(operation, until)
        try:
            purged = rebase(purged, task)
            return commit_once(purged.operation, list(purged.written), frozenset({"*"}))
        except (ConflictError, SnapshotTooOld) as error:
            _LOG.info("purge %r begins its commit again: %s", operation.id, error)
    note_loss(operation)
    raise ConflictError(f"purge: others have committed {TRIES} times meanwhile: run it again")


def wait_for_jobs(operation: Operation, until: float) -> None:
    """Waits for the jobs that would fail if the purge committed now, and says for which.

    Args:
        operation: The purge.
        until: Moment on the monotonic clock at which waiting ends.
    """
    names: list[str] = []
    with contextlib.suppress(UserError):  # a damaged record keeps nobody waiting
        names = changes_under_way(operation.root, WAITED_FOR)
    for name in names:
        with contextlib.suppress(UserError):
            job = find(operation.table, name)
            if job is not None and not has_committed(job):
                _wait_for(operation, job, until)


def _wait_for(operation: Operation, job: Operation, until: float) -> None:
    told = False
    while not has_ended(job) and (left := until - time.monotonic()) > 0:
        if not told:
            told = True
            _LOG.warning(
                "purge %r waits for %s %r to commit, for %d s at most",
                operation.id, job.job, job.id, left,
            )  # fmt: skip
        pause()


def rebase(purged: Purged, task: Task) -> Purged:
    """Returns the same for the newest snapshot; reads what is not in the older one."""
    newest = purged.operation.root.settled_snapshot()
    if newest == purged.operation.snapshot:
        return purged
    now = dataclasses.replace(purged.operation, snapshot=newest)
    written: list[Written] = []
    others = () if task.lift else now.manifest().components
    for component in sorted({BLOCKLIST, *others}):
        written += _rebase_component(purged, now, component, task)
    return Purged(now, tuple(written))


def _rebase_component(
    purged: Purged, now: Operation, component: str, task: Task
) -> Iterator[Written]:
    known = [part for part in purged.written if part.component == component]
    was, is_now = (op.manifest().components.get(component) for op in (purged.operation, now))
    if was == is_now:
        yield from known
    elif component == BLOCKLIST:
        yield from task(Piece(now, BLOCKLIST))
    elif kind_of(component).in_tablets:
        yield from _rebase_tablets(purged, now, component, known, task)
    else:
        yield from _rebase_files(purged, now, component, known, task)


def _rebase_tablets(
    purged: Purged, now: Operation, component: str, known: list[Written], task: Task
) -> Iterator[Written]:
    before, after = (tablets(op.files(component)) for op in (purged.operation, now))
    done = [Part(component, part.files, part.replaced, part.counts) for part in known]
    edit, since = purge_of(task.names), purged.operation.snapshot
    for part in now.root.edit_again(component, edit, done, before, since, after):
        yield Written(component, part.files, part.replaced, part.counts)


def _rebase_files(
    purged: Purged, now: Operation, component: str, known: list[Written], task: Task
) -> Iterator[Written]:
    rewritten = {part.replaced: part for part in known}
    seen = {file.path for file in purged.operation.files(component)}
    for file in now.files(component):
        if (file.path,) in rewritten:
            yield rewritten[file.path,]
        elif file.path not in seen:
            yield from task(Piece(now, component, file=file))
