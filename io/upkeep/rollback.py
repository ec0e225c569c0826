"""Lists the changes of each snapshot, and rolls a table back to an older snapshot."""

import contextlib
import dataclasses
from collections.abc import Iterator, Mapping

from ...policy.components.kinds import components_in_tablets, kind_of
from ...web.base.dataclass import dataclass
from ...web.base.errors import UsageError, UserError
from ..snapshots.closed_batches import entries_after
from ..snapshots.lineage import lineage
from ..snapshots.manifest import Manifest, load_manifest, names_that_differ, store_manifest
from ..snapshots.operations import begin, find_commit, losses_noted
from ..snapshots.past_jobs import past_jobs
from ..snapshots.table_clock import clock_notes
from ..storage.file_errors import ConflictError, SnapshotTooOld
from ..storage.files import size_of
from ..storage.places import Folder
from ..table.table_snapshots import TableSnapshots
from ..table.web_table import TableRows, WebTable
from ..tablets.file_lists import Component, DataFile, load_files, totals
from ..tablets.tablets import tablets

# Components that are not rolled back.
STAYING = ("blocklist",)


@dataclass(frozen=True)
class ComponentChange:
    """Files, rows and bytes of a component that a snapshot has added and removed.

    ``exact`` is False if a list of files is missing: then only the differences of the sums are known.
    """

    added: tuple[int, ...]
    removed: tuple[int, ...]
    exact: bool = True


@dataclass(frozen=True)
class ShownSnapshot:
    """A snapshot as the command history shows it.

    Attributes:
        number: Its number.
        manifest: Its manifest; None if it is damaged.
        changes: Its changes, by component.
        error: Reason why the manifest cannot be read, or empty.
        undone: Whether a rollback has undone it.
        expired: Whether the snapshot has expired, so that only what its job counted is known.
    """

    number: int
    manifest: Manifest | None
    changes: Mapping[str, ComponentChange] = dataclasses.field(default_factory=dict)
    error: str = ""
    undone: bool = False
    expired: bool = False


def events(table: WebTable, last: int = 0, *, expired: bool = False) -> Iterator[ShownSnapshot]:
    """Yields the snapshots of a table, oldest first.

    Args:
        table: The table.
        last: Number of the newest snapshots to yield; 0 means all.
        expired: Whether to yield those that have expired, too.
    """
    if expired:
        number = len(table.snapshots())
        earlier = past_jobs(table) if not last or last > number else []
        for job in earlier[number - last if last else 0 :]:
            yield ShownSnapshot(
                job.manifest.snapshot, job.manifest, undone=job.undone, expired=True
            )
    shown = table.snapshots()[-last:]
    try:
        past = {manifest.snapshot for manifest in lineage(table, shown[0] - 1 if shown else 0)}
    except UserError:  # history shows damaged tables, too
        past = set(shown)
    for number in shown:
        try:
            manifest = load_manifest(table, number)
            yield ShownSnapshot(
                number, manifest, _changes(table, manifest), undone=number not in past
            )
        except UserError as error:
            yield ShownSnapshot(number, None, error=str(error))


def _changes(table: WebTable, manifest: Manifest) -> dict[str, ComponentChange]:
    try:
        previous = load_manifest(table, manifest.snapshot - 1)
    except UserError:
        return {}  # no earlier snapshot to compare with
    names, _ = names_that_differ(previous, manifest)
    pairs = {
        name: (previous.components.get(name), manifest.components.get(name))
        for name in sorted(names)
    }
    return {
        name: _change(table, name, old, new) for name, (old, new) in pairs.items() if old != new
    }


def _change(
    table: TableRows, name: str, old: Component | None, new: Component | None
) -> ComponentChange:
    if table.in_files(name):
        with contextlib.suppress(UserError):  # a list is gone
            were, are = _by_path(table, old), _by_path(table, new)
            added = [file for path, file in are.items() if path not in were]
            removed = [file for path, file in were.items() if path not in are]
            return ComponentChange(totals(added), totals(removed))
    # For rows in Bigtable, too, only their number is known.
    a, b = (component.totals if component else (0, 0, 0) for component in (old, new))
    balance = [y - x for x, y in zip(a, b, strict=True)]
    more, less = (tuple(max(0, sign * n) for n in balance) for sign in (1, -1))
    return ComponentChange(more, less, exact=False)


def _by_path(table: Folder, component: Component | None) -> dict[str, DataFile]:
    if component is not None and size_of(table / component.list) is None:
        raise UserError("the list is gone")
    return {file.path: file for file in load_files(table, component)}


def sizes(manifest: Manifest) -> dict[str, tuple[int, ...]]:
    """Returns (files, rows, bytes) by the name that users see, as in ``sql`` and ``export``.

    The components of all batches are summed, and those of all indexes.
    """
    totals_by_name: dict[str, list[tuple[int, ...]]] = {}
    for name, component in manifest.components.items():
        totals_by_name.setdefault(kind_of(name).shown_as, []).append(component.totals)
    return {
        name: tuple(map(sum, zip(*all_totals, strict=True)))
        for name, all_totals in sorted(totals_by_name.items())
    }


def roll_back(address: str, to: int, operation: str, past_purge: bool = False) -> Manifest:
    """Makes a new snapshot whose content is that of an older one. Nothing is deleted.

    Operations that were done in between do not count as done any more. Names on the
    blocklist stay there.

    Args:
        address: The address of the table.
        to: Number of the older snapshot.
        operation: Id of this operation.
        past_purge: Whether to allow that purged rows return.

    Raises:
        UsageError: There is no such snapshot, or a purge was committed in between.
        UserError: Some files of the snapshot are missing or damaged.
        ConflictError: Another operation has committed during the rollback.
    """
    pinned = begin(address, "rollback", operation)
    done = find_commit(pinned)
    if done is not None:
        return done
    table = pinned.table
    _check_number(to, table.snapshots())
    latest = load_manifest(table, table.latest_snapshot())
    with losses_noted(pinned):
        if latest.snapshot != pinned.snapshot:
            raise ConflictError(f"the table was changed by {latest.job} meanwhile: run it again")
        if not past_purge:
            _check_purges(table, to)
        content = load_manifest(table, to)
        table.check_rows_known({**latest.components, **content.components}, "rollback")
        _check_files(table, content)
        staying = {name: latest.components.get(name) for name in STAYING}
        manifest = Manifest(
            snapshot=latest.snapshot + 1,
            operation=operation,
            job="rollback",
            time=pinned.now,
            counts={"to": to},
            components=entries_after(content.components, staying),
            batches=content.batches,
            restores=to,
            lost=latest.lost,
            rules=content.rules,
            **clock_notes(content),
        )
        if not store_manifest(table, manifest, _way_back(table, latest, content)):
            raise ConflictError("another job changed the table: run the command again")
        return manifest


def _check_number(to: int, numbers: list[int]) -> None:
    ends = sorted({*numbers[:1], *numbers[-1:]})
    numbers_text = " to ".join(map(str, ends)) or "none"
    if numbers and 0 < to < numbers[0]:
        raise UsageError(
            f"snapshot {to} was deleted by compact (--snapshot_retention): this table has {numbers_text}"
        )
    if to not in numbers:
        raise UsageError(f"no snapshot {to} in this table, it has {numbers_text}")


def _way_back(table: TableRows, latest: Manifest, older: Manifest) -> dict[str, list[DataFile]]:
    """Returns the files of changes, by component, that restore older rows."""
    back = {}
    try:
        for name in components_in_tablets({**latest.components, **older.components}):
            if name in STAYING:
                continue
            # An earlier rollback may have removed the component.
            component = latest.components.get(name) or older.components.get(name)
            current_tablets = tablets(load_files(table, component))
            back[name] = table.way_back(name, current_tablets, older.snapshot)
        return back
    except SnapshotTooOld as error:
        raise UsageError(
            f"cannot go back to snapshot {older.snapshot}: Bigtable may have removed versions of "
            "rows that this snapshot shows; to keep a table for longer, copy it with nutbeam copy"
        ) from error


def _check_purges(table: TableSnapshots, to: int) -> None:
    for manifest in lineage(table, to):
        if manifest.job == "purge" and not manifest.counts.get("unblocked"):
            raise UsageError(
                f"snapshot {manifest.snapshot} is a purge: a rollback to snapshot {to} would bring "
                "back the data that it removed; to do so, give --past_purge, and purge again "
                "afterwards"
            )


def _check_files(table: TableRows, manifest: Manifest) -> None:
    gone = list(_missing(table, manifest))
    if gone:
        raise UserError(
            f"cannot go back to snapshot {manifest.snapshot}: {len(gone)} of its files are missing "
            f"or incomplete, such as {table / gone[0]}: choose another snapshot, nutbeam history "
            "lists them"
        )


def _missing(table: TableRows, manifest: Manifest) -> Iterator[str]:
    """Yields the files of a snapshot that are missing or have another size."""
    for name, component in manifest.components.items():
        if size_of(table / component.list) is None:
            yield component.list
        elif table.in_files(name):
            files = load_files(table, component)
            yield from (file.path for file in files if size_of(table / file.path) != file.bytes)
