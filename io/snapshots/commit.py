"""Commits the next snapshot of a table from the files that an operation's workers wrote.

Each operation makes its snapshot exactly once. If other operations have committed in between,
their changes are kept. The commit fails if they changed data that this operation has read.
"""

import dataclasses
import functools
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from ...policy.components.rule_counts import cap_rule_counts
from ...web.base.clock import TOLERANCE_MS
from ...web.base.dataclass import dataclass
from ..storage.file_errors import BatchMovedOn, ConflictError
from ..storage.files import size_of
from ..tablets.file_lists import Component, DataFile, load_files, store_files, sync_lists
from ..tablets.written import Written, sum_counts
from .closed_batches import entries_after, items_of
from .entries import Batch, batch_of_component
from .lineage import purged_since
from .manifest import Manifest, load_manifest, store_manifest
from .operations import Operation, find_commit, losses_noted, since_pinned
from .table_clock import clock_notes


@dataclass(frozen=True)
class CommitTerms:
    """What a commit requires of the table, and what it records besides files.

    Attributes:
        reads: Components that the operation has read and that must not have changed;
            ``batches`` means the list of open batches, ``*`` means all
            components of the table.
        batch: The new record of the operation's batch.
        others: New records of further batches.
        forgets: Batches whose records are removed if they have no files left.
        past: The snapshot whose notes of clocks are continued; None means the newest
            snapshot of this table.
        takes_in: A name to add to ``Batch.taken_in``, by batch. It is added to the newest record,
            because another operation may have taken in the batch in between.
        not_rolled_back: Whether the table must not have been rolled back since the operation was
            pinned: rows of an older snapshot need files that those of a newer one do not.
    """

    reads: frozenset[str] = frozenset()
    batch: Batch | None = None
    others: Mapping[str, Batch] = dataclasses.field(default_factory=dict)
    forgets: frozenset[str] = frozenset()
    past: Manifest | None = None
    takes_in: Mapping[str, str] = dataclasses.field(default_factory=dict)
    not_rolled_back: bool = False


_NO_TERMS = CommitTerms()


def commit(
    operation: Operation, written: Iterable[Written], terms: CommitTerms = _NO_TERMS
) -> Manifest:
    """Makes the next snapshot, once.

    If other operations have committed in between, their changes are kept. The commit
    fails if they changed data that this operation has read.

    Args:
        operation: The pinned operation.
        written: All files that its workers wrote, and their counts.
        terms: What the commit requires and records.

    Raises:
        ConflictError: A component of ``terms.reads``, or the record of the batch,
            has changed, or ``terms.not_rolled_back`` does not hold; nothing was committed.
    """
    with losses_noted(operation):
        return commit_once(operation, list(written), terms)


def commit_once(operation: Operation, written: list[Written], terms: CommitTerms) -> Manifest:
    """Commits as ``commit`` does, but does not record a conflict: the caller tries again."""
    pinned_manifest = operation.manifest()
    lists: dict[tuple[str, Component | None], Component] = {}
    changes: dict[str, list[DataFile]] = {}
    for part in written:
        changes.setdefault(part.component, []).extend(part.files)
    while True:
        done = find_commit(operation)
        if done is not None:
            return done
        latest = load_manifest(operation.table, operation.table.settled_snapshot())
        if terms.batch is not None:
            check_batch(operation, latest)
        _check_unchanged(operation, pinned_manifest, latest, terms.reads)
        if terms.not_rolled_back:
            _check_not_rolled_back(operation)
        check_there(operation, written)
        other_batches = dict(terms.others)
        if terms.batch is not None and operation.batch is not None:
            other_batches[operation.batch] = terms.batch
        other_batches |= _with_notes(entries_after(latest.batches, other_batches), terms.takes_in)
        following = _following(operation, latest, written, other_batches, lists)
        batches = entries_after(following.batches, _forgotten(following, terms.forgets))
        notes = clock_notes(terms.past or latest)
        following = dataclasses.replace(following, batches=batches, **notes)
        if lists:
            sync_lists(operation.table)
        if store_manifest(operation.table, following, changes):
            return following


def _check_not_rolled_back(operation: Operation) -> None:
    restored = [one.restores for one in since_pinned(operation) if one.restores is not None]
    if restored:
        raise ConflictError(
            f"{operation.job}: the table was rolled back to snapshot {restored[0]} in the meantime; "
            "nothing was written: run it again"
        )


def check_can_commit(operation: Operation, reads: frozenset[str]) -> None:
    """Checks early whether the commit of an operation would fail.

    Args:
        operation: The pinned operation.
        reads: As in ``CommitTerms``.

    Raises:
        ConflictError: A component of ``reads`` has changed.
    """
    with losses_noted(operation):
        if find_commit(operation) is None:
            latest = load_manifest(operation.table, operation.table.settled_snapshot())
            _check_unchanged(operation, operation.manifest(), latest, reads)


def check_batch_waits(operation: Operation) -> None:
    """Checks, after a wait, that no other operation has done the work; see ``check_batch``."""
    with losses_noted(operation):
        check_batch(operation, load_manifest(operation.table, operation.table.latest_snapshot()))


def check_there(operation: Operation, written: list[Written]) -> None:
    """Checks that no purge has deleted the files that an operation has written.

    Raises:
        ConflictError: A purge has deleted one of the files.
    """
    if purged_since(operation.table, operation.snapshot, operation):
        table = operation.table
        for name, file in ((part.component, file) for part in written for file in part.files):
            # The commit must apply files of changes; a missing one would block the table.
            if not table.in_files(name) or size_of(table / file.path) is None:
                raise ConflictError(
                    f"{operation.job}: {file.path} was purged in the meantime; "
                    "nothing was written: run it again"
                )


def _with_notes(batches: Mapping[str, Batch], takes_in: Mapping[str, str]) -> dict[str, Batch]:
    """Returns the batches that are taken in, with the note. A rollback may have removed some."""
    taken = ((name, batches[name]) for name in takes_in if name in batches)
    return {
        name: dataclasses.replace(batch, taken_in=batch.taken_in | {takes_in[name]})
        for name, batch in taken
        if batch.phase == "updated"
    }


def _forgotten(following: Manifest, forgets: frozenset[str]) -> dict[str, None]:
    """Returns the batches to forget that have no files left."""
    used = {batch_of_component(name) for name in following.components} if forgets else set()
    return dict.fromkeys(sorted(forgets - used))


def _following(
    operation: Operation,
    latest: Manifest,
    written: list[Written],
    new_batches: Mapping[str, Batch],
    lists: dict[tuple[str, Component | None], Component],
) -> Manifest:
    changes: dict[str, Component | None] = {}
    for name in sorted({part.component for part in written if part.files or part.replaced}):
        old = latest.components.get(name)
        if (name, old) not in lists:  # else an earlier try wrote the list
            lists[name, old] = _new_list(operation, name, old, written)
        new = lists[name, old]
        changes[name] = new if new.files or not new.content else None
    return Manifest(
        snapshot=latest.snapshot + 1,
        operation=operation.id,
        job=operation.job,
        batch=operation.batch,
        time=operation.now,
        counts=cap_rule_counts(sum_counts(part.counts for part in written)),
        components=entries_after(latest.components, changes),
        batches=_timely(entries_after(latest.batches, new_batches), operation.now),
        lost=latest.lost,
        options=operation.options,
        rules=following_rules(latest.rules, operation.rules),
    )


def following_rules(previous: Mapping[str, Any], rules: Mapping[str, Any] | None) -> dict[str, Any]:
    """Returns the rules for links that a snapshot records.

    Args:
        previous: Those of the snapshot before it.
        rules: ``recorded_rules`` of the job; rules that it does not have stay, null drops one.

    >>> following_rules({"depth": 2, "scope": "host"}, {"scope": None, "exclude": ["x"]})
    {'depth': 2, 'exclude': ['x']}
    """
    merged = {**previous, **(rules or {})}
    return {name: value for name, value in merged.items() if value is not None}


def _timely(batches: Mapping[str, Batch], now: int) -> Mapping[str, Batch]:
    """Sets the time of batches from the future, made with a wrong clock, to now."""
    latest = now + TOLERANCE_MS
    late = items_of(batches, lambda one: one.created > latest)
    timely = {
        name: dataclasses.replace(
            batch, created=now, blocks_until=batch.blocks_until - batch.created + now
        )
        for name, batch in late
        if batch.created > latest
    }
    return entries_after(batches, timely)


def _new_list(
    operation: Operation, name: str, old: Component | None, written: list[Written]
) -> Component:
    old_files = load_files(operation.table, old)
    runs: dict[str, set[str]] = {file.path: set() for file in old_files}
    for file in old_files:
        if file.base is not None:
            runs.setdefault(file.base, set()).add(file.path)

    def is_as_it_was(part: Written) -> bool:
        gone = set(part.replaced)
        return all(path in runs and runs[path] <= gone for path in gone)

    parts = [part for part in written if part.component == name]
    applied = [part for part in parts if not part.tidies or is_as_it_was(part)]
    try:
        files = operation.table.files_after(name, old_files, applied)
    except ConflictError as error:
        raise ConflictError(f"{operation.job}: {error}") from error
    if old is not None and not applied:
        return old
    new_list = store_files(operation.table, name, files, named=False)
    if old is not None and all(part.tidies for part in applied):
        return dataclasses.replace(new_list, content=old.identity)
    return new_list


def _check_unchanged(
    operation: Operation, pinned_manifest: Manifest, latest: Manifest, reads: frozenset[str]
) -> None:
    every = {*pinned_manifest.components, *latest.components} if "*" in reads else set()
    for name in sorted((reads | every) - {"*"}):
        was, now = (_identity(m, name, operation.now) for m in (pinned_manifest, latest))
        if was != now:
            identity = functools.partial(_identity, name=name, now=operation.now)
            other = _changed_by(operation, latest, identity)
            raise ConflictError(
                f"{operation.job}: {name} was changed by {other.job} (operation "
                f"{other.operation!r}) in the meantime; nothing was written: run it again"
            )


def _changed_by(
    operation: Operation, latest: Manifest, value: Callable[[Manifest], object]
) -> Manifest:
    """Returns the snapshot since which a value is as in the latest one."""
    changed = latest
    for manifest in since_pinned(operation):
        if manifest.snapshot <= latest.snapshot:
            if value(manifest) != value(latest):
                break
            changed = manifest
    return changed


def _identity(manifest: Manifest, name: str, now: int) -> object:
    if name == "batches":
        return manifest.open_batches(now)
    return manifest.content_of(name)


def check_batch(operation: Operation, latest: Manifest) -> None:
    """Checks that a batch is in a snapshot in the phase in which its operation was pinned.

    Raises:
        BatchMovedOn: Another operation has changed its phase.
    """
    name = str(operation.batch)
    if _phase(operation.manifest(), name) != _phase(latest, name):
        # Two operations did the same work; only the first one may commit.
        other = _changed_by(operation, latest, functools.partial(_phase, name=name))
        raise BatchMovedOn(
            f"{operation.job}: batch {name!r} is {_phase(latest, name) or 'gone'} in the meantime, "
            f"by {other.job} (operation {other.operation!r}); nothing was written"
        )


def _phase(manifest: Manifest, name: str) -> str | None:
    batch = manifest.batches.get(name)
    return None if batch is None else batch.phase
