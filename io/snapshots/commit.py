"""What the workers of an operation wrote, and the next snapshot that is made of it.

``commit`` makes it exactly once. Somebody else's commits in between are kept,
unless they changed what the operation has read.
"""

import dataclasses
from collections.abc import Iterable, Mapping
from types import MappingProxyType

from ...policy.rule_counts import capped
from ...policy.schedule import TOLERANCE_MS
from ..storage.errors import ConflictError
from ..storage.files import size_of
from ..tablets.file_lists import Component, DataFile, load_files, store_files
from ..tablets.written import Written, sum_counts
from .manifest import Batch, Manifest, load_manifest, purged_since, store_manifest
from .operations import Operation, committed, note_loss
from .table_clock import clock_notes


def commit(
    operation: Operation,
    written: Iterable[Written],
    *,
    reads: frozenset[str] = frozenset(),
    batch: Batch | None = None,
    others: Mapping[str, Batch] | None = None,
    forgets: frozenset[str] = frozenset(),
    past: Manifest | None = None,
) -> Manifest:
    """Makes the next snapshot, once.

    Somebody else's commits in between are kept, provided that they changed
    nothing that this operation has read.

    Args:
        operation: What was pinned.
        written: All that its workers did.
        reads: Components that it has read and that must not have changed;
            ``batches`` stands for the list of open batches, ``*`` for all
            that the table has.
        batch: What is known of the operation's batch from now on.
        others: What is known of further batches.
        forgets: Batches that are named no longer once they have no files.
        past: The snapshot whose notes of clocks go on; None is the newest of this table.

    Raises:
        ConflictError: A component of ``reads``, or the record of the batch,
            has changed; nothing is changed.
    """
    try:
        return commit_once(operation, list(written), reads, batch, others or {}, forgets, past)
    except ConflictError:
        note_loss(operation)
        raise


def commit_once(
    operation: Operation,
    written: list[Written],
    reads: frozenset[str],
    batch: Batch | None = None,
    others: Mapping[str, Batch] = MappingProxyType({}),
    forgets: frozenset[str] = frozenset(),
    past: Manifest | None = None,
) -> Manifest:
    """Does what ``commit`` does, for who tries again: a conflict is not noted."""
    before = operation.manifest()
    lists: dict[tuple[str, Component | None], Component] = {}
    changes = _by_component(written)
    while True:
        done = committed(operation)
        if done is not None:
            return done
        latest = load_manifest(operation.root, operation.root.settled_snapshot())
        _check_unchanged(operation, before, latest, reads)
        check_there(operation, written)
        if batch is not None:
            check_batch(operation, latest)
        known = dict(others)
        if batch is not None and operation.batch is not None:
            known[operation.batch] = batch
        following = _following(operation, latest, written, known, lists)
        following = dataclasses.replace(following, **clock_notes(past or latest))
        following = _forget(following, forgets)
        if store_manifest(operation.root, following, changes):
            return following


def _by_component(written: Iterable[Written]) -> dict[str, list[DataFile]]:
    found: dict[str, list[DataFile]] = {}
    for part in written:
        found.setdefault(part.component, []).extend(part.files)
    return found


def check_there(operation: Operation, written: list[Written]) -> None:
    """Sees whether a purge that left nothing behind has taken our files, too.

    Raises:
        ConflictError: It has.
    """
    if purged_since(operation.root, operation.snapshot):
        root = operation.root
        for name, file in ((part.component, file) for part in written for file in part.files):
            # What a commit is to apply must not go behind it: that would stop the table.
            if not root.in_files(name) or size_of(root / file.path) is None:
                raise ConflictError(
                    f"{operation.job}: {file.path} was purged in the meantime; "
                    "nothing was written: run it again"
                )


def _following(
    operation: Operation,
    latest: Manifest,
    written: list[Written],
    known: Mapping[str, Batch],
    lists: dict[tuple[str, Component | None], Component],
) -> Manifest:
    components = dict(latest.components)
    for name in sorted({part.component for part in written if part.files or part.replaced}):
        old = components.get(name)
        if (name, old) not in lists:  # not again for each lost race
            lists[name, old] = _new_list(operation, name, old, written)
        components[name] = lists[name, old]
    components = {name: some for name, some in components.items() if some.files or not some.content}
    return Manifest(
        snapshot=latest.snapshot + 1,
        operation=operation.id,
        job=operation.job,
        batch=operation.batch,
        time=operation.now,
        counts=capped(sum_counts(part.counts for part in written)),
        components=components,
        batches=_timely({**latest.batches, **known}, operation.now),
        lost=latest.lost,
    )


def _timely(batches: Mapping[str, Batch], now: int) -> dict[str, Batch]:
    """Gives batches that were made while a clock was ahead the time that counts as now."""
    return {
        name: batch
        if batch.created <= now + TOLERANCE_MS
        else dataclasses.replace(
            batch, created=now, blocks_until=batch.blocks_until - batch.created + now
        )
        for name, batch in batches.items()
    }


def _new_list(
    operation: Operation, name: str, old: Component | None, written: list[Written]
) -> Component:
    parts = [part for part in written if part.component == name]
    before = {file.path: file for file in load_files(operation.root, old)}
    runs: dict[str, set[str]] = {}
    for file in before.values():
        if file.base is not None:
            runs.setdefault(file.base, set()).add(file.path)
    applied = [part for part in parts if not part.tidies or _is_as_it_was(part, before, runs)]
    added = [file for part in applied for file in part.files]
    replaced = {path for part in applied for path in part.replaced}
    try:
        files = operation.root.files_after(name, [*before.values()], added, replaced)
    except ConflictError as error:
        raise ConflictError(f"{operation.job}: {error}") from error
    if old is not None and not applied:
        return old
    made = store_files(operation.root, name, files)
    if old is not None and all(part.tidies for part in applied):
        return dataclasses.replace(made, content=old.identity)
    return made


def _is_as_it_was(
    part: Written, known: Mapping[str, DataFile], runs: Mapping[str, set[str]]
) -> bool:
    gone = set(part.replaced)
    return gone <= known.keys() and all(runs.get(path, set()) <= gone for path in gone)


def _forget(manifest: Manifest, batches: frozenset[str]) -> Manifest:
    used = {name.split("/")[1] for name in manifest.components if name.startswith("batches/")}
    gone = batches - used
    known = {name: batch for name, batch in manifest.batches.items() if name not in gone}
    return dataclasses.replace(manifest, batches=known)


def _check_unchanged(
    operation: Operation, before: Manifest, latest: Manifest, reads: frozenset[str]
) -> None:
    every = {*before.components, *latest.components} if "*" in reads else set()
    for name in sorted((reads | every) - {"*"}):
        if name == "batches":
            same = before.open_batches(operation.now) == latest.open_batches(operation.now)
        else:
            same = _identity(before, name) == _identity(latest, name)
        if not same:
            raise ConflictError(
                f"{operation.job}: {name} was changed by {latest.job} (operation "
                f"{latest.operation!r}) in the meantime; nothing was written: run it again"
            )


def _identity(manifest: Manifest, component: str) -> str | None:
    found = manifest.components.get(component)
    return None if found is None else found.identity


def check_batch(operation: Operation, latest: Manifest) -> None:
    """Sees whether the batch of an operation is as it was when that was pinned.

    Raises:
        ConflictError: Another operation has brought it further.
    """
    name = str(operation.batch)
    if _stage(operation.manifest(), name) != _stage(latest, name):
        # Two operations did the same work: only the first one's counts.
        phase = latest.batches[name].phase if name in latest.batches else "gone"
        raise ConflictError(
            f"{operation.job}: batch {name!r} is {phase} in the meantime, by {latest.job} "
            f"(operation {latest.operation!r}); nothing was written"
        )


def _stage(manifest: Manifest, name: str) -> tuple[str, bool] | None:
    """Returns how far a batch is; its times may be set right meanwhile."""
    batch = manifest.batches.get(name)
    return None if batch is None else (batch.phase, batch.deduped)
