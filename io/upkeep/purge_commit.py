"""Commits a purge while other jobs commit; a new try only reads the changes of these jobs.

Each try has less work than the one before, and no job begins under a hold (``hold``). So the
number of tries is at most the number of jobs under way plus one.
"""

import contextlib
import dataclasses
import itertools
import logging
import time
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from ...policy.components.declaration import RowLayout
from ...policy.components.kinds import kind_of, unknown_components
from ...web.base.errors import UserError
from ..indexing.shard_merging import edit_shard
from ..rows.small_components import BLOCKLIST_COMPONENT
from ..snapshots.commit import CommitTerms, commit_once
from ..snapshots.hold import pause_in_hold
from ..snapshots.manifest import Manifest
from ..snapshots.operations import (
    Operation,
    find_commit,
    has_committed,
    has_ended,
    note_loss,
    pinned_operation,
)
from ..storage.file_errors import ConflictError, SnapshotTooOld
from ..table.edits import Edited, NameEdit, edit_file
from ..table.web_table import WebTable
from ..tablets.tablets import Tablet, tablets_of_component
from ..tablets.written import Written
from .purge import BlocklistChange, update_blocklist
from .retention import disturbed_by

_LOG = logging.getLogger(__name__)
# Largest number of tries: there are always fewer jobs under way.
_TRIES = 20


@dataclasses.dataclass(frozen=True)
class PurgeItem:
    """One item of the work of a purge.

    Attributes:
        operation: The purge.
        component: The component of the tablet.
        tablet: A tablet, or one that stands for a single file; None means the blocklist.
    """

    operation: Operation
    component: str
    tablet: Tablet | None = None


@dataclasses.dataclass(frozen=True)
class PurgeTask:
    """The task of a purge.

    Attributes:
        change_blocklist: Changes the blocklist.
        edit: Removes names from rows; None: only the blocklist is changed.
    """

    change_blocklist: BlocklistChange
    edit: NameEdit | None = None

    def items(self, operation: Operation) -> Iterator[PurgeItem]:
        """Yields the items of the work on a table."""
        yield PurgeItem(operation, BLOCKLIST_COMPONENT)
        for component in self.components(operation):
            if component != BLOCKLIST_COMPONENT:
                component_tablets = tablets_of_component(component, operation.files(component))
                yield from (PurgeItem(operation, component, tablet) for tablet in component_tablets)

    def components(self, operation: Operation) -> Iterable[str]:
        """Returns the components to purge.

        Raises:
            UserError: A component is of a newer version: it is not known what to remove from it.
        """
        components = () if self.edit is None else operation.manifest().components
        if unknown := unknown_components(components):
            raise UserError(
                f"purge: {unknown[0]} belongs to a newer nutbeam; this version does not know what "
                "to remove from it: upgrade nutbeam"
            )
        return components

    def __call__(self, item: PurgeItem) -> Iterator[Written]:
        """Purges an item."""
        if item.tablet is None:
            yield update_blocklist(item.operation, self.change_blocklist)
        elif self.edit is not None:
            yield from _edit(item.operation.table, item.component, item.tablet, self.edit)


def _edit(table: WebTable, component: str, tablet: Tablet, edit: NameEdit) -> Iterator[Written]:
    """Edits a tablet, or the single file that it stands for."""
    kind = kind_of(component)
    if kind.in_tablets:
        return table.edit(component, tablet, edit)
    edit_one = edit_shard if kind.layout is RowLayout.SHARDS else edit_file
    return edit_one(table.files, component, tablet.base, edit)


class PurgedFiles(NamedTuple):
    """Files without the purged names, and the purge operation, pinned to their snapshot."""

    operation: Operation
    written: tuple[Written, ...]


def prepare_purge(operation: Operation, written: Iterable[Written], task: PurgeTask) -> PurgedFiles:
    """Returns purged files of the newest snapshot, if it can be read.

    It is called before the hold, so that jobs wait only for the rest of the work.
    """
    purged = PurgedFiles(operation, tuple(written))
    if not operation.idle:
        with contextlib.suppress(SnapshotTooOld):
            return rebase(purged, task)
    return purged


def commit_purge(
    operation: Operation, purged: PurgedFiles, task: PurgeTask, wait_s: float
) -> Manifest:
    """Makes the next snapshot, once. The caller must have a hold.

    Args:
        operation: The pinned operation of the purge.
        purged: The purged files so far.
        task: The task of the purge.
        wait_s: Longest wait for jobs under way, s. Later jobs fail and must be run again.

    Raises:
        ConflictError: Other operations have committed during each try.
    """
    until, newest = time.monotonic() + wait_s, None
    for _ in range(_TRIES):
        done = find_commit(operation)
        if done is not None:
            return done
        wait_for_jobs(operation, until)
        try:
            purged = rebase(purged, task)
            terms = CommitTerms(reads=frozenset({"*"}))
            return commit_once(purged.operation, list(purged.written), terms)
        except (ConflictError, SnapshotTooOld) as error:
            previous, newest = newest, operation.table.latest_snapshot()
            if newest == previous:  # nobody has committed: the same error would come again
                note_loss(operation)
                raise
            _LOG.info("purge %r begins its commit again: %s", operation.id, error)
    note_loss(operation)
    raise ConflictError(f"purge: others have committed {_TRIES} times meanwhile: run it again")


def wait_for_jobs(operation: Operation, until: float) -> None:
    """Waits for the jobs that would fail if the purge committed now; logs their names.

    Args:
        operation: The purge.
        until: Moment on the monotonic clock at which waiting ends.
    """
    names: list[str] = []
    with contextlib.suppress(UserError):  # a damaged record is no reason to wait
        names = disturbed_by(operation.table, "purge")
    for name in names:
        with contextlib.suppress(UserError):
            job = pinned_operation(operation.address, name)
            if job is not None and not has_committed(job):
                _wait_for(operation, job, until)


def _wait_for(operation: Operation, job: Operation, until: float) -> None:
    logged = False
    while not has_ended(job) and (seconds_left := until - time.monotonic()) > 0:
        if not logged:
            logged = True
            _LOG.warning(
                "purge %r waits for %s %r to commit, for %d s at most",
                operation.id, job.job, job.id, seconds_left,
            )  # fmt: skip
        pause_in_hold()


def rebase(purged: PurgedFiles, task: PurgeTask) -> PurgedFiles:
    """Returns purged files of the newest snapshot; reads only files that are new in it."""
    newest = purged.operation.table.settled_snapshot()
    if newest == purged.operation.snapshot:
        return purged
    now = dataclasses.replace(purged.operation, snapshot=newest)
    written: list[Written] = []
    for component in sorted({BLOCKLIST_COMPONENT, *task.components(now)}):
        written += _rebase_component(purged, now, component, task)
    return PurgedFiles(now, tuple(written))


def _rebase_component(
    purged: PurgedFiles, now: Operation, component: str, task: PurgeTask
) -> Iterable[Written]:
    parts = [part for part in purged.written if part.component == component]
    was, is_now = (op.manifest().components.get(component) for op in (purged.operation, now))
    if was == is_now:
        return parts
    if component == BLOCKLIST_COMPONENT or task.edit is None:
        return task(PurgeItem(now, BLOCKLIST_COMPONENT))
    old_tablets, new_tablets = (
        tablets_of_component(component, op.files(component)) for op in (purged.operation, now)
    )
    if kind_of(component).in_tablets:
        edited = Edited(purged.operation.snapshot, old_tablets, parts)
        return now.table.edit_again(component, task.edit, edited, new_tablets)
    old_paths, new_paths = ({tablet.paths for tablet in t} for t in (old_tablets, new_tablets))
    added = [tablet for tablet in new_tablets if tablet.paths not in old_paths]
    edits = (_edit(now.table, component, tablet, task.edit) for tablet in added)
    return [part for part in parts if part.replaced in new_paths] + [*itertools.chain(*edits)]
