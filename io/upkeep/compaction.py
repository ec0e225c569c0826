"""Compacts tables: rewrites tablets, and drops files of batches that no row needs any more."""

from collections.abc import Container, Iterable, Iterator, Mapping, Sequence

import polars as pl

from ...policy.components.declaration import Kept, Kind
from ...policy.components.kinds import KINDS, SEED_HOSTS, kind_of, kinds_of_batches
from ...policy.components.link_rows import keep_best
from ..batches.batches import batch_component
from ..snapshots.entries import DEDUP
from ..snapshots.manifest import Manifest
from ..snapshots.operations import Operation
from ..storage.parquet_files import collect, scan
from ..storage.table_sizes import table_sizes
from ..tablets.checksums import verify_file, verify_tablets
from ..tablets.file_lists import DataFile
from ..tablets.fold import fold_tablet, stored_schema
from ..tablets.resolve import write_bases
from ..tablets.tablets import Tablet
from ..tablets.written import Written
from .file_shares import LiveRows

# Components that take in batches: the record of a batch has their names then. If a table has such a
# component, compact keeps files of a kind of a batch at least until then.
KEPT_UNTIL = {"outcome": "links"}


def plan_folds(tablets: Sequence[Tablet], *, full: bool = False) -> list[tuple[Tablet, ...]]:
    """Returns groups of tablets to rewrite; each group is rewritten together.

    Args:
        tablets: Tablets of a component in key order.
        full: Whether to rewrite all tablets.

    Returns:
        Groups of very small adjacent tablets, and tablets that have runs or are too large.
    """
    size = table_sizes().tablet_rows
    groups: list[list[Tablet]] = []
    for tablet in tablets:
        rows = sum(one.rows for one in groups[-1]) if groups else 0
        tiny = min(rows, tablet.rows) < size // 4
        if groups and tiny and rows + tablet.rows <= size:
            groups[-1].append(tablet)
        else:
            groups.append([tablet])
    return [
        tuple(group)
        for group in groups
        if full or len(group) > 1 or group[0].runs or group[0].rows > 2 * size
    ]


def fold(
    operation: Operation, component: str, group: Sequence[Tablet], most_inlinks: int = 0
) -> Written:
    """Rewrites adjacent tablets as new bases without runs; the rows stay the same.

    With ``most_inlinks``, the link table keeps that number of inlinks of each page: the best.
    """
    verify_tablets(operation.table, *group)
    root, schema = operation.table.files, stored_schema(operation.table, component, *group)
    frames: Iterator[pl.DataFrame] = (
        rows for tablet in group for rows in fold_tablet(root, schema, tablet)
    )
    limited = component == "links" and most_inlinks > 0
    live: list[int] = []
    if limited:
        frames = keep_best(_count_live(frames, kind_of(component), live), most_inlinks)
    files = write_bases(root, component, frames, schema)
    replaced = tuple(path for tablet in group for path in tablet.paths)
    counts = {"tablets/folded": len(group), "tablets/written": len(files)}
    if limited and (dropped := sum(live) - sum(file.rows for file in files)):
        counts["dropped/inlinks"] = dropped
    return Written(component, files, replaced, counts, tidies=True)


def _count_live(
    frames: Iterable[pl.DataFrame], kind: Kind, live: list[int]
) -> Iterator[pl.DataFrame]:
    """Yields the current rows; adds their numbers to ``live``."""
    for rows in frames:
        counting = rows.filter(kind.counting)
        live.append(len(counting))
        yield counting


def merge_files(operation: Operation) -> Iterator[Written]:
    """Merges the files of hosts of seeds into one, with one row per key."""
    files = operation.files(SEED_HOSTS)
    if len(files) < 2:
        return
    for file in files:
        verify_file(operation.table, file)
    schema = KINDS[SEED_HOSTS].schema
    rows = collect(scan([operation.table / file.path for file in files], schema))
    written = write_bases(operation.table, SEED_HOSTS, [rows.unique("key").sort("key")])
    counts = {f"{SEED_HOSTS}/merged": len(files)}
    yield Written(SEED_HOSTS, written, tuple(file.path for file in files), counts, tidies=True)


def spent_batches(manifest: Manifest, now: int, retention_s: int, keep: int) -> list[str]:
    """Returns the batches whose superseded files may be dropped.

    Args:
        manifest: The snapshot.
        now: Time in ms.
        retention_s: Minimum age of the batches, s.
        keep: Number of the newest batches to keep unchanged.
    """
    ordered = sorted(manifest.batches, key=lambda name: (manifest.batches[name].created, name))
    older = ordered[: max(0, len(ordered) - keep)]
    return [
        name
        for name in older
        if (batch := manifest.batches[name]).phase == "updated"
        and DEDUP in batch.taken_in
        and batch.created <= now - retention_s * 1000
    ]


def superseded_files(
    operation: Operation, batches: Sequence[str], live_rows: LiveRows
) -> Iterator[Written]:
    """Yields the files of batches to drop, as ``Kind.kept`` and ``KEPT_UNTIL`` say.

    Args:
        operation: The operation; its snapshot is read.
        batches: Ids of the batches; see ``spent_batches``.
        live_rows: Numbers of rows that refer to files of these batches.
    """
    kinds = [KINDS[name] for name in kinds_of_batches()]
    waiting = {kind.name: _waiting(operation.manifest(), kind.name) for kind in kinds}
    for batch in batches:
        files = {kind.name: operation.files(batch_component(batch, kind.name)) for kind in kinds}
        for kind in kinds:
            if batch not in waiting[kind.name]:
                paths = tuple(_droppable_files(kind, files, live_rows))
                counts = {f"dropped/{kind.name}": len(paths)}
                if paths:
                    yield Written(batch_component(batch, kind.name), (), paths, counts, tidies=True)


def _waiting(manifest: Manifest, kind: str) -> Container[str]:
    """Returns the batches that a component still has to take in; see ``KEPT_UNTIL``."""
    taker = KEPT_UNTIL.get(kind, "")
    return manifest.waiting_for(taker) if taker in manifest.components else ()


def _droppable_files(
    kind: Kind, files: Mapping[str, Sequence[DataFile]], live_rows: LiveRows
) -> Iterator[str]:
    """Yields the paths of files of a kind that a batch does not need, of its files by kind."""
    if kind.kept is Kept.ALWAYS:
        return
    if kind.kept is Kept.WITH_DOCUMENTS and any(map(live_rows.of, files["documents"])):
        return
    for file in files[kind.name]:
        if kind.kept is not Kept.NAMED or not live_rows.of(file):
            yield file.path
