"""Commits a fetch or a parse without the rows that were purged while it ran.

Both jobs only write files of their batch. If a purge is committed while they run, hours of work
are not lost: blocked rows are removed from the new files before these are committed.
"""

import contextlib
import dataclasses
from collections.abc import Callable, Iterable

import pyarrow as pa

from ...policy.components.blocklist import REASON, Blocklist
from ...policy.components.kinds import folders_of, kind_of
from ...web.base.errors import UserError
from ..batches.batches import batch_component
from ..rows.small_components import BLOCKLIST_COMPONENT, read_blocklist
from ..snapshots.commit import CommitTerms, check_batch, check_there, commit_once
from ..snapshots.lineage import purged_since
from ..snapshots.manifest import Manifest, readable_manifests
from ..snapshots.operations import Operation, find_commit, losses_noted, note_loss
from ..storage.file_errors import ConflictError
from ..storage.files import remove_file
from ..storage.places import Place
from ..table.edits import NameEdit, edit_file, is_touched
from ..tablets.file_lists import DataFile, below
from ..tablets.written import Written
from .purge import forget_in_leases
from .retention import named_files, own_files

_DROPPED = f"dropped/{REASON}"
# Returns what removes the names of a blocklist from rows.
EditOf = Callable[[Blocklist], NameEdit]


def commit_over_purges(
    operation: Operation, written: Iterable[Written], terms: CommitTerms, edit_of: EditOf
) -> Manifest:
    """Makes the next snapshot, once; see ``commit``.

    Args:
        operation: The pinned operation.
        written: Reports of its workers.
        terms: What the commit requires and records; a purge may have changed what ``reads`` names.
        edit_of: Makes the edit of rows that the newest blocklist calls for.

    Raises:
        ConflictError: Another job has changed a component of ``terms.reads``, or a purge
            has deleted files that the operation has written.
    """
    written = list(written)
    terms = dataclasses.replace(terms, reads=terms.reads | {BLOCKLIST_COMPONENT})
    newest, remaining_parts = operation, written
    while True:
        try:
            manifest = commit_once(newest, remaining_parts, terms)
        except ConflictError:
            if not purged_since(operation.table, newest.snapshot):
                note_loss(operation)
                raise
        else:
            with contextlib.suppress(UserError):  # the operation has committed
                _remove_leftovers(operation, written, edit_of)
            return manifest
        done = find_commit(operation)
        if done is not None:
            return done
        try:
            newest = _after_purges(operation, written, terms.reads)
            purge = edit_of(read_blocklist(newest))
            remaining_parts = [_without_blocked(operation, part, purge) for part in written]
        except UserError:
            if (done := find_commit(operation)) is not None:  # another attempt was faster
                return done
            raise


def _remove_leftovers(operation: Operation, written: Iterable[Written], edit_of: EditOf) -> None:
    """Removes files of the batch that have purged rows, and that no snapshot names.

    This attempt, or an earlier one of the job, has written them after the purge. Components that the
    operation does not write are left alone: a parse that follows a fetch may be writing them.
    """
    table = operation.table
    now = dataclasses.replace(operation, snapshot=table.settled_snapshot())
    purge = edit_of(read_blocklist(now))
    if not purge.blocklist:
        return

    def without_rows(rows: pa.Table, component: str) -> tuple[pa.Table, int, int]:
        remaining_rows, removed, _ = purge(rows, component)  # a document may mention a purged name
        return remaining_rows, removed, 0

    purged: list[Place] = []
    components = {part.component for part in written}
    for component in (name for name in components if kind_of(name).flushed is not None):
        paths = [file.path for name in folders_of(component) for file in own_files(table, name)]
        live_paths = {file.path for file in now.files(component)}
        leftovers = (
            path
            for path in paths
            if below(table, path) not in live_paths and not path.name.startswith(".")
        )
        purged += [path for path in leftovers if is_touched(path, component, without_rows)]
    if purged:
        named = named_files(table, readable_manifests(table), whole_from=now.snapshot)
        for path in purged:
            if below(table, path) not in named:
                remove_file(path)
    if operation.batch is not None:
        forget_in_leases(table / batch_component(operation.batch, "leases"), purge)


def _after_purges(operation: Operation, written: list[Written], reads: frozenset[str]) -> Operation:
    """Returns the operation with the newest snapshot, if only purges were committed since."""
    newest = dataclasses.replace(operation, snapshot=operation.table.settled_snapshot())
    with losses_noted(operation):
        check_there(operation, written)
        check_batch(operation, newest.manifest())
        for component in reads - {BLOCKLIST_COMPONENT}:
            # Files by their names before a purge rewrote them.
            was, now = (
                {file.formerly or file.path for file in one.files(component)}
                for one in (operation, newest)
            )
            if was != now:
                raise ConflictError(
                    f"{operation.job}: {component} was changed in the meantime; nothing was "
                    "written: run it again"
                )
    return newest


def _without_blocked(operation: Operation, part: Written, purge: NameEdit) -> Written:
    """Returns written files without blocked rows."""
    if kind_of(part.component).flushed is None:
        return part
    counts, files = dict(part.counts), list[DataFile]()
    for file in part.files:
        (edited,) = [*edit_file(operation.table.files, part.component, file, purge)] or [Written()]
        files += edited.files or (file,)
        dropped = sum(n for name, n in edited.counts.items() if name.startswith("rows/"))
        if dropped:
            counts[_DROPPED] = counts.get(_DROPPED, 0) + dropped
    return dataclasses.replace(part, files=tuple(files), counts=counts)
