"""The table's past: what each snapshot changed, and the way back to one."""

import dataclasses
import re
from collections.abc import Iterator, Mapping

from ...policy.kinds import kinds_in_tablets
from ...web.base.errors import UsageError, UserError
from ..rows.bars import COMPONENT as BARS
from ..snapshots.manifest import Manifest, lineage, load_manifest, store_manifest
from ..snapshots.operations import begin, committed, note_loss
from ..snapshots.table_clock import clock_notes
from ..storage.errors import ConflictError, SnapshotTooOld
from ..storage.files import file_version, size_of
from ..table.web_table import WebTable
from ..tablets.file_lists import Component, DataFile, load_files
from ..tablets.tablets import tablets

_BATCH = re.compile(r"batches/[^/]+/")


@dataclasses.dataclass(frozen=True)
class Change:
    """What a snapshot did to a component: files, rows and bytes added and removed.

    ``exact`` is false where a list is gone: then the balance is all that is known.
    """

    added: tuple[int, int, int]
    removed: tuple[int, int, int]
    exact: bool = True


@dataclasses.dataclass(frozen=True)
class Event:
    """One snapshot, as history shows it.

    Attributes:
        manifest: Its manifest; None where that is damaged.
        number: Its number.
        changes: By component.
        error: What is wrong with the manifest, or empty.
        undone: Whether the table has gone back behind it.
    """

    number: int
    manifest: Manifest | None
    changes: Mapping[str, Change] = dataclasses.field(default_factory=dict)
    error: str = ""
    undone: bool = False


def events(root: WebTable, last: int = 0) -> Iterator[Event]:
    """Yields the snapshots of a table, oldest first.

    Args:
        root: The table's folder.
        last: How many, the newest; 0 is all.
    """
    numbers = root.snapshots()
    shown = numbers[-last:] if last else numbers
    try:
        past = {manifest.snapshot for manifest in lineage(root, shown[0] - 1 if shown else 0)}
    except UserError:  # history is for looking at what is damaged, too
        past = set(shown)
    for number in shown:
        try:
            manifest = load_manifest(root, number)
        except UserError as error:
            yield Event(number, None, error=str(error))
            continue
        yield Event(number, manifest, _changes(root, manifest), undone=number not in past)


def _changes(root: WebTable, manifest: Manifest) -> dict[str, Change]:
    try:
        before = load_manifest(root, manifest.snapshot - 1)
    except UserError:
        return {}  # nothing to compare it with
    names = sorted({*before.components, *manifest.components})
    pairs = {name: (before.components.get(name), manifest.components.get(name)) for name in names}
    return {
        # Of what is in no files, it is known how many rows there are, not which were changed.
        name: _change(root, *pair) if root.in_files(name) else _balance(*pair)
        for name, pair in pairs.items()
        if pair[0] != pair[1]
    }


def _balance(old: Component | None, new: Component | None) -> Change:
    a, b = (_total(c) for c in (old, new))
    balance = [y - x for x, y in zip(a, b, strict=True)]
    more, less = ([max(0, sign * n) for n in balance] for sign in (1, -1))
    return Change((more[0], more[1], more[2]), (less[0], less[1], less[2]), exact=False)


def _change(root: WebTable, old: Component | None, new: Component | None) -> Change:
    try:
        were, are = _by_path(root, old), _by_path(root, new)
    except UserError:
        return _balance(old, new)
    added = [file for path, file in are.items() if path not in were]
    removed = [file for path, file in were.items() if path not in are]
    return Change(_sum(added), _sum(removed))


def _by_path(root: WebTable, component: Component | None) -> dict[str, DataFile]:
    if component is not None and not file_version(root / component.list):
        raise UserError("the list is gone")
    return {file.path: file for file in load_files(root, component)}


def _sum(files: list[DataFile]) -> tuple[int, int, int]:
    return len(files), sum(file.live_rows for file in files), sum(file.bytes for file in files)


def _total(component: Component | None) -> tuple[int, int, int]:
    return (component.files, component.rows, component.bytes) if component else (0, 0, 0)


def sizes(manifest: Manifest) -> dict[str, tuple[int, int, int]]:
    """Returns files, rows and bytes by component; those of all batches together by kind."""
    total: dict[str, tuple[int, int, int]] = {}
    for name, component in sorted(manifest.components.items()):
        kind = _BATCH.sub("batches/", name)
        known = total.get(kind, (0, 0, 0))
        more = _total(component)
        total[kind] = (known[0] + more[0], known[1] + more[1], known[2] + more[2])
    return total


def roll_back(table: str, to: int, operation: str, past_purge: bool = False) -> Manifest:
    """Makes a new snapshot whose content is that of an older one. Nothing is deleted.

    Operations that were done in between do not count as done any more. What is
    barred stays barred.

    Args:
        table: The table's address.
        to: Number of the older snapshot.
        operation: Id of this operation.
        past_purge: Whether what was purged since then may come back.

    Raises:
        UsageError: There is no such snapshot; or a purge lies in between.
        UserError: Some of its files are gone or damaged.
        ConflictError: Somebody else has committed meanwhile.
    """
    pinned = begin(table, "rollback", operation)
    done = committed(pinned)
    if done is not None:
        return done
    root = pinned.root
    numbers = root.snapshots()
    if numbers and 0 < to < numbers[0]:
        raise UsageError(
            f"snapshot {to} was deleted by compact (--snapshot_retention): "
            f"this table has {_spans(numbers)}"
        )
    if to not in numbers:
        raise UsageError(f"no snapshot {to} in this table, it has {_spans(numbers)}")
    latest = load_manifest(root, root.latest_snapshot())
    if latest.snapshot != pinned.snapshot:
        note_loss(pinned)
        raise ConflictError(f"the table was changed by {latest.job} meanwhile: run it again")
    if not past_purge:
        _check_purges(root, to)
    content = load_manifest(root, to)
    _check_files(root, content)
    bars = {BARS: latest.components[BARS]} if BARS in latest.components else {}
    made = Manifest(
        snapshot=latest.snapshot + 1,
        operation=operation,
        job="rollback",
        time=pinned.now,
        counts={"to": to},
        components={**{n: c for n, c in content.components.items() if n != BARS}, **bars},
        batches=content.batches,
        restores=to,
        lost=latest.lost,
        **clock_notes(content),
    )
    changes = _way_back(root, latest, to)
    if not store_manifest(root, made, changes):
        note_loss(pinned)
        raise ConflictError("the table was changed meanwhile: run it again")
    return made


def _way_back(root: WebTable, latest: Manifest, to: int) -> dict[str, list[DataFile]]:
    """Returns the files of changes, by component, that make rows what they were."""
    try:
        lists = {name: load_files(root, latest.components.get(name)) for name in kinds_in_tablets()}
        return {name: root.way_back(name, tablets(files), to) for name, files in lists.items()}
    except SnapshotTooOld as error:
        raise UsageError(
            f"cannot go back to snapshot {to}: Bigtable may have removed versions of rows that it "
            "shows; nutbeam copy keeps a table for longer"
        ) from error


def _check_purges(root: WebTable, to: int) -> None:
    for manifest in lineage(root, to):
        if manifest.job == "purge" and not manifest.counts.get("unbarred"):
            raise UsageError(
                f"snapshot {manifest.snapshot} is a purge: what it took out would come back with "
                f"snapshot {to}; --past_purge true allows it, purge it again afterwards"
            )


def _check_files(root: WebTable, manifest: Manifest) -> None:
    gone = [path for path, size in missing(root, manifest)]
    if gone:
        raise UserError(
            f"cannot go back to snapshot {manifest.snapshot}: {len(gone)} of its files are gone "
            f"or not whole, such as {root / gone[0]}: choose another one of nutbeam history"
        )


def missing(root: WebTable, manifest: Manifest) -> Iterator[tuple[str, int | None]]:
    """Yields the files of a snapshot that are not there in their full size: (path, size or None)."""
    for name, component in manifest.components.items():
        if size_of(root / component.list) is None:
            yield component.list, None
            continue
        if not root.in_files(name):
            continue
        for file in load_files(root, component):
            size = size_of(root / file.path)
            if size != file.bytes:
                yield file.path, size


def _spans(numbers: list[int]) -> str:
    """Returns numbers for people.

    >>> _spans([3]), _spans([3, 4, 7]), _spans([])
    ('3', '3 to 7', 'none')
    """
    if not numbers:
        return "none"
    return str(numbers[0]) if len(numbers) == 1 else f"{numbers[0]} to {numbers[-1]}"
