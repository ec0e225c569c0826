"""Commits what a fetch or a parse wrote, less what was purged while it ran.

Both write files of their batch alone. So a purge that is committed meanwhile need not cost them
hours of work: what it bars is taken out of their files before they are committed.
"""

import dataclasses
from collections.abc import Iterable

from ...policy.bars import REASON
from ...policy.kinds import kind_of
from ..rows.bars import COMPONENT as BARS
from ..rows.bars import read_bars
from ..snapshots.commit import check_batch, check_there, commit_once
from ..snapshots.manifest import Batch, Manifest, purged_since
from ..snapshots.operations import Operation, committed, note_loss
from ..storage.errors import ConflictError
from ..table.edits import edit_file
from ..tablets.file_lists import DataFile
from ..tablets.written import Written, sum_counts
from .purge import Purge


def commit_over_purges(
    operation: Operation, written: Iterable[Written], reads: frozenset[str], batch: Batch | None
) -> Manifest:
    """Makes the next snapshot, once; see ``written.commit``.

    Args:
        operation: What was pinned.
        written: All that its workers did.
        reads: Components that it has read; a purge alone may have changed them.
        batch: What is known of the operation's batch from now on.

    Raises:
        ConflictError: Something else has changed what it has read, or a purge
            has deleted files that it has written.
    """
    written, reads = list(written), reads | {BARS}
    newest, left = operation, written
    while True:
        try:
            return commit_once(newest, left, reads, batch)
        except ConflictError:
            if not purged_since(operation.root, newest.snapshot):
                note_loss(operation)
                raise
        done = committed(operation)
        if done is not None:
            return done
        newest = _behind_purges(operation, written, reads)
        left = _without_barred(newest, written)


def _behind_purges(
    operation: Operation, written: list[Written], reads: frozenset[str]
) -> Operation:
    """Returns the operation as if it had read the newest snapshot, if nothing but purges came between."""
    newest = dataclasses.replace(operation, snapshot=operation.root.settled_snapshot())
    try:
        check_there(operation, written)
        check_batch(operation, newest.manifest())
        for component in reads - {BARS}:
            if _origins(operation, component) != _origins(newest, component):
                raise ConflictError(
                    f"{operation.job}: {component} was changed in the meantime; nothing was "
                    "written: run it again"
                )
    except ConflictError:
        note_loss(operation)
        raise
    return newest


def _origins(operation: Operation, component: str) -> set[str]:
    """Returns the files of a component, by the names that they had before a purge wrote them again."""
    return {file.formerly or file.path for file in operation.files(component)}


def _without_barred(operation: Operation, written: list[Written]) -> list[Written]:
    """Returns what was written without rows that are barred in the snapshot that is read."""
    purge = Purge(read_bars(operation))
    return [_clean(operation, part, purge) for part in written]


def _clean(operation: Operation, part: Written, purge: Purge) -> Written:
    if not kind_of(part.component).flushed:
        return part
    root, counts = operation.root.files, [part.counts]
    files: list[DataFile] = []
    for file in part.files:
        (left,) = [*edit_file(root, part.component, file, purge)] or [Written()]
        files += left.files or (file,)
        counts.append(_dropped(left))
    return dataclasses.replace(part, files=tuple(files), counts=sum_counts(counts))


def _dropped(left: Written) -> dict[str, int]:
    number = sum(n for name, n in left.counts.items() if name.startswith("rows/"))
    return {f"dropped/{REASON}": number} if number else {}
