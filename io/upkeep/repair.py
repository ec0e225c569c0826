"""Repairs a table by a new snapshot, made of what is whole. Nothing is deleted or moved."""

import dataclasses
from collections.abc import Iterable, Iterator, Mapping

import polars as pl

from ...policy.kinds import KINDS, kind_of
from ...web.base.clock import now_ms
from ...web.base.errors import UserError
from ..batches.batches import page_order, place
from ..snapshots.manifest import Manifest, load_manifest, store_manifest
from ..snapshots.operations import seen_snapshots
from ..snapshots.table_clock import clock_notes
from ..storage.errors import ConflictError
from ..storage.files import list_files
from ..storage.formats import NewerFormat
from ..storage.parquet_files import collect, scan, schema_of
from ..storage.places import Place, below
from ..table.web_table import WebTable
from ..tablets.file_lists import Component, DataFile, load_files, store_files
from ..tablets.tablet_writer import zone
from ..tablets.tablets import NUMBER, run_schema, tablets
from .fsck import described, list_problem


@dataclasses.dataclass(frozen=True)
class Repair:
    """What a repair did.

    Attributes:
        manifest: The snapshot that it made; None if there was nothing to do.
        base: Number of the snapshot that it is made from.
        rebuilt: Components whose lists were made anew.
        dropped: Files that are no longer part of the table.
        lost: Numbers of the snapshots that cannot be read.
        rows: What became of rows in Bigtable, as COMPONENT/WHAT.
    """

    manifest: Manifest | None
    base: int = 0
    rebuilt: tuple[str, ...] = ()
    dropped: tuple[str, ...] = ()
    lost: tuple[int, ...] = ()
    rows: Mapping[str, int] = dataclasses.field(default_factory=dict)


@dataclasses.dataclass(frozen=True)
class Mended:
    """What a repair brings in that is in no list; all of it in Bigtable.

    Attributes:
        changes: Files of changes, by component.
        dropped: Files that nobody can read and that count no longer.
        counts: What becomes of rows, as COMPONENT/WHAT.
    """

    changes: Mapping[str, list[DataFile]] = dataclasses.field(default_factory=dict)
    dropped: tuple[str, ...] = ()
    counts: Mapping[str, int] = dataclasses.field(default_factory=dict)


NOTHING = Mended()


def repair(root: WebTable, operation: str, drop: Mapping[str, frozenset[str]]) -> Repair:
    """Makes a snapshot of what is whole: the newest for which that can be done.

    A list that is gone is made anew from the files in its folder, if what is
    whole there has just as many files, rows and bytes as the manifest says;
    else the table goes back to an older snapshot.

    Args:
        root: The table.
        operation: Id of this operation.
        drop: Paths of data files to leave out, by component.

    Raises:
        UserError: No snapshot can be repaired; or a newer version is needed.
        ConflictError: Somebody else has committed meanwhile.
    """
    known = root.snapshots()
    top = max([*known, *seen_snapshots(root)], default=0)
    unreadable: list[int] = []
    for number in range(top, 0, -1):
        if known and number < known[0]:
            break
        try:
            manifest = load_manifest(root, number)
        except NewerFormat:
            raise
        except UserError:
            unreadable.append(number)
            continue
        lists = _lists(root, manifest)
        if lists is not None:
            return commit_repair(
                root, operation, range(top + 1, top + 2), manifest, lists, drop, unreadable
            )
    raise UserError(f"no snapshot of {root} can be repaired: restore manifest/ from a copy")


def _lists(root: WebTable, manifest: Manifest) -> dict[str, list[DataFile]] | None:
    """Returns new lists for the components whose own are broken; None if that cannot be."""
    made: dict[str, list[DataFile]] = {}
    for name, component in manifest.components.items():
        if not list_problem(root, component):
            continue
        files = rebuilt(root, manifest, name, component)
        if files is None:
            return None
        made[name] = files
    return made


def commit_repair(
    root: WebTable,
    operation: str,
    numbers: range,
    base: Manifest,
    lists: dict[str, list[DataFile]],
    drop: Mapping[str, frozenset[str]],
    unreadable: Iterable[int] = (),
    mended: Mended = NOTHING,
) -> Repair:
    """Makes the snapshot after all others.

    Args:
        root: The table.
        operation: Id of this operation.
        numbers: Of the snapshots to make, all alike; before the last are numbers that
            somebody has seen.
        base: The snapshot whose content it has.
        lists: New lists, by component.
        drop: Paths of data files to leave out, by component.
        unreadable: Numbers of snapshots behind ``base`` that are lost.
        mended: What it brings in besides.
    """
    known, top = root.snapshots(), numbers[-1] - 1
    # Older ones, which nobody reads so far.
    older = range(base.snapshot - 1, known[0] - 1, -1)
    lost = tuple(sorted({*base.lost, *unreadable, *(n for n in older if _is_lost(root, n))}))
    dropped = list(mended.dropped)
    for name, paths in drop.items():
        component = base.components.get(name)
        if component is None:
            continue
        files = lists[name] if name in lists else load_files(root, component)
        paths = with_runs(name, files, paths)
        left = [file for file in files if file.path not in paths]
        dropped += [file.path for file in files if file.path in paths]
        if len(left) < len(files):
            lists[name] = left
    if base.snapshot == top and not lists and lost == base.lost and mended == NOTHING:
        return Repair(None)
    components = {
        **base.components,
        **{name: store_files(root, name, files) for name, files in lists.items()},
    }
    counts = {"rebuilt": len(lists), "dropped": len(dropped), "lost": len(lost)}
    made = dataclasses.replace(
        base,
        operation=operation,
        job="fsck",
        batch=None,
        time=now_ms(base.latest_time),
        **clock_notes(base),
        counts=counts | dict(mended.counts),
        components=components,
        restores=base.snapshot if base.snapshot < top else None,
        lost=lost,
    )
    for number in numbers:
        made = dataclasses.replace(made, snapshot=number)
        if not store_manifest(root, made, mended.changes if number > top else {}):
            raise ConflictError("the table was changed meanwhile: run it again")
    names = tuple(name for name in lists if name not in drop)
    return Repair(made, base.snapshot, names, tuple(dropped), lost, mended.counts)


def _is_lost(root: WebTable, number: int) -> bool:
    try:
        load_manifest(root, number)
    except UserError:
        return True
    return False


def with_runs(component: str, files: list[DataFile], paths: frozenset[str]) -> frozenset[str]:
    """Returns files that are left out, and those that are worth nothing without them.

    Runs go with their base, and with older runs: they count the rows from there.
    """
    more: set[str] = set()
    for tablet in tablets(files) if kind_of(component).in_tablets else ():
        broken = [number for number, path in enumerate(tablet.paths) if path in paths]
        more.update(tablet.paths[min(broken) :] if broken else ())
    return paths | more


def rebuilt(
    root: WebTable, manifest: Manifest, name: str, component: Component
) -> list[DataFile] | None:
    """Returns a component's live files without its list; None if they cannot be told for sure."""
    others = _described_elsewhere(root, name, component)
    found: list[tuple[float, DataFile]] = []
    runs: list[Place] = []  # of which no list says on what they are
    for file in list_files(root / name):
        if file.path.suffix != ".parquet" or file.path.name.startswith("."):
            continue
        path = below(root, file.path)
        try:
            if path not in others and NUMBER in schema_of(file.path).names:
                runs.append(file.path)
                continue
            known = others.get(path) or _described(root, manifest, name, file.path)
        except UserError:
            continue  # not whole
        if known is None:
            return None
        found.append((file.changed, known))
    found.sort(key=lambda pair: pair[0], reverse=True)
    files = [file for _, file in found]
    new = [file for file in files if file.path not in others]
    bases = list(_newest([file for file in files if file.base is None]))
    try:
        layered = [
            layers(root, name, manifest, bases, [f for f in files if f.base], runs, alone)
            for alone in (False, True)
        ]
    except UserError:
        return None  # one of the files is not whole
    for chosen in (files, bases, new, *layered):
        totals = (len(chosen), sum(f.live_rows for f in chosen), sum(f.bytes for f in chosen))
        if totals == (component.files, component.rows, component.bytes):
            return chosen
    return None


def layers(
    root: WebTable,
    name: str,
    manifest: Manifest,
    bases: list[DataFile],
    known: list[DataFile],
    runs: list[Place],
    alone: bool,
) -> list[DataFile]:
    """Returns bases with the runs on them; of new runs their rows tell on which base they are.

    Args:
        root: The table's folder.
        name: The component.
        manifest: The snapshot whose list is gone.
        bases: Its bases.
        known: Runs that lists of other snapshots describe.
        runs: Further ones, at most one on each base.
        alone: Whether a new run stands for the older ones of its base, too.
    """
    under: dict[str, list[DataFile]] = {base.path: [base] for base in bases}
    for run in sorted(known, key=lambda run: run.order):
        if run.base in under:
            under[run.base].append(run)
    new: dict[str, Place] = {}
    for path in runs:
        rows = collect(scan([path], run_schema(name)).select("key", NUMBER))
        for base in bases:
            if base.path not in new and _lies_on(root, name, base, rows):
                new[base.path] = path
                break
    for base in bases:
        if base.path in new:
            path, older = new[base.path], under[base.path]
            under[base.path] = older = older[:1] if alone else older
            rows = collect(scan([path], run_schema(name)))
            fresh = int((rows.get_column(NUMBER) >= sum(f.live_rows for f in older)).sum())
            made = dataclasses.replace(
                described(root, name, path), base=base.path, order=manifest.snapshot, fresh=fresh
            )
            older.append(_with_zone(root, name, made))
    return [file for files in under.values() for file in files]


def _lies_on(root: WebTable, name: str, base: DataFile, rows: pl.DataFrame) -> bool:
    """Returns whether a run replaces rows of just these keys; one that only adds rows tells nothing."""
    changed = rows.filter(pl.col(NUMBER) < base.rows)
    keys = collect(scan([root / base.path], KINDS[name].schema).select("key")).get_column("key")
    right = keys.gather(changed.get_column(NUMBER))
    return bool(len(changed)) and right.equals(changed.get_column("key"))


def _described_elsewhere(root: WebTable, name: str, component: Component) -> dict[str, DataFile]:
    """Returns what the lists of other snapshots say about a component's files, by path."""
    found: dict[str, DataFile] = {}
    seen = {component.list}
    for number in root.snapshots():
        try:
            other = load_manifest(root, number).components.get(name)
            if other is not None and other.list not in seen:
                seen.add(other.list)
                found |= {file.path: file for file in load_files(root, other)}
        except UserError:
            continue
    return found


def _newest(files: list[DataFile]) -> Iterator[DataFile]:
    """Yields those of files in order of age, newest first, whose keys no newer one has."""
    taken: list[tuple[str, str]] = []
    for file in files:
        low, high = file.first or "", file.last or ""
        if all(high < first or last < low for first, last in taken):
            taken.append((low, high))
            yield file


def _described(root: WebTable, manifest: Manifest, name: str, path: Place) -> DataFile | None:
    """Returns a file's description by its content and its name; None if these do not say enough."""
    file = described(root, name, path)
    kind = name.rpartition("/")[2]
    if kind_of(name).in_tablets:
        return _with_zone(root, name, file)
    if kind in ("pages", "learnt"):
        words = path.stem.split("-")
        if len(words) != 4 or not words[0][1:].isdigit():
            return None
        order = page_order(int(words[1]), int(words[3])) if kind == "pages" else 0
        return dataclasses.replace(file, partition=int(words[0][1:]), order=order)
    batch = manifest.batches.get(name.split("/")[1]) if "/" in name else None
    if kind == "fetchlist":
        return file if batch is not None and batch.partitions == 1 else None
    if kind == "documents":
        return _paired(root, manifest, name, file)
    return file


def _with_zone(root: WebTable, name: str, file: DataFile) -> DataFile:
    if name != "state" or not file.rows:
        return file
    columns = ("key", "fetch_time", "score", "status")
    rows = collect(scan([root / file.path], KINDS[name].schema).select(columns))
    known = zone(rows)
    names = ("min_fetch_time", "max_fetch_time", "max_score", "statuses")
    return dataclasses.replace(file, **{name: known[name] for name in names})  # type: ignore[arg-type]


def _paired(root: WebTable, manifest: Manifest, name: str, file: DataFile) -> DataFile | None:
    """Gives a file of documents the place of the file of pages that they were made from."""
    pages = manifest.components.get(place(name.split("/")[1], "pages"))
    try:
        files = load_files(root, pages)
        for known in files:
            keys = scan([root / known.path], KINDS["pages"].schema).select("key")
            # One without rows tells nothing: its pages must be the only ones.
            alone = file.first is None and len(files) == 1
            if alone or len(collect(keys.filter(pl.col("key") == file.first))):
                return dataclasses.replace(file, partition=known.partition, order=known.order)
    except UserError:
        return None
    return None
