"""Takedown in a table's files: rewritten under new names, and what is left of old ones deleted."""

import dataclasses
import json
import math
from collections.abc import Iterator, Mapping
from typing import Any

import polars as pl
import pyarrow as pa

from ...policy.blocklist import Blocklist, Names, blocklist_of
from ...policy.kinds import folders, kind_of
from ...policy.purging import pattern_of, purge_rows
from ...policy.schema import BLOCKLIST, to_frame
from ...web.base.errors import UserError
from ...web.base.safe_json import json_object
from ...web.urls.row_keys import host_key
from ..batches.batches import key_range
from ..rows.blocklist import COMPONENT
from ..snapshots.commit import Written
from ..snapshots.manifest import load_manifest
from ..snapshots.operations import Operation
from ..storage.files import Found, list_files, new_name, overwrite_bytes, read_bytes, remove_file
from ..storage.parquet_files import ParquetWriter, collect, row_groups, scan, schema_of
from ..storage.places import Place, below
from ..storage.reach import is_shared
from ..table.edits import EditCounts, is_touched
from ..table.web_table import WebTable
from ..tablets.checksums import check_file
from ..tablets.file_lists import DataFile
from ..tablets.tablet_writer import TabletWriter
from ..tablets.tablets import Tablet, tablets
from .retention import named_files


@dataclasses.dataclass(frozen=True)
class Piece:
    """What is purged at a time: a tablet, a file of a batch, or the blocklist.

    Attributes:
        operation: The purge.
        component: Where it belongs.
        tablet: A tablet, or None.
        file: A file of a batch, or None.
    """

    operation: Operation
    component: str
    tablet: Tablet | None = None
    file: DataFile | None = None


def pieces(operation: Operation) -> Iterator[Piece]:
    """Yields all that a table holds, to be purged."""
    yield Piece(operation, COMPONENT)
    for component in operation.manifest().components:
        if component != COMPONENT:
            yield from pieces_of(operation, component)


def pieces_of(operation: Operation, component: str) -> Iterator[Piece]:
    """Yields what a component other than the blocklist holds."""
    files = operation.files(component)
    if kind_of(component).in_tablets:
        yield from (Piece(operation, component, tablet=tablet) for tablet in tablets(files))
    else:
        yield from (Piece(operation, component, file=file) for file in files)


def purge_piece(piece: Piece, names: Names) -> Iterator[Written]:
    """Writes a piece anew without what is purged, if there is something."""
    root, component, purge = piece.operation.root, piece.component, purge_of(names)
    if piece.tablet is not None:
        for part in root.edit(component, piece.tablet, purge):
            yield Written(part.component, part.files, part.replaced, part.counts)
    elif piece.file is not None:
        yield from purge_file(root.files, component, piece.file, purge)
    else:
        yield set_bars(piece.operation, names)


def purge_of(names: Names) -> "Purge":
    """Returns what takes names out of rows."""
    return Purge(blocklist_of(names.rows(0)), pattern_of(names))


@dataclasses.dataclass(frozen=True)
class Purge:
    """Takes out of rows what is blocked or named, and counts.

    Attributes:
        blocklist: The names, as hashes.
        pattern: Names, as a regular expression for texts; without one, nothing is named.
    """

    blocklist: Blocklist
    pattern: str = r"[^\s\S]"

    def __call__(self, table: pa.Table, component: str) -> tuple[pa.Table, int, int]:
        return purge_rows(table, self.blocklist, self.pattern, kind_of(component).of_hosts)


def purge_file(root: Place, component: str, file: DataFile, purge: "Purge") -> Iterator[Written]:
    """Writes a file of a batch anew without what is purged, if there is something."""
    if not is_touched(root / file.path, component, purge):
        return
    check_file(root, file)
    new = root / component / new_name()
    counted, facts = _rewrite(root / file.path, new, component, purge)
    kept = dataclasses.replace(
        file,
        path=below(root, new),
        rows=file.rows - counted.rows,
        formerly=file.formerly or file.path,
        **facts,
    )
    # One that holds nothing any more is kept: pages and documents come in pairs.
    yield Written(component, (kept,), (file.path,), counted.named())


def _rewrite(
    path: Place, new: Place, component: str, purge: Purge
) -> tuple[EditCounts, dict[str, Any]]:
    schema = schema_of(path)
    counted = EditCounts(component)
    ranges: list[str] = []
    with ParquetWriter(new, schema) as writer:
        for group in row_groups(path, schema):
            rows, *numbers = purge(group, component)
            counted.add(*numbers)
            if len(rows):
                writer.write(rows)
            ranges += [key for key in key_range(rows) if key is not None]
        size = writer.close()
    return counted, {
        "bytes": size,
        "crc32": writer.crc32,
        "first": min(ranges, default=None),
        "last": max(ranges, default=None),
    }


def set_bars(operation: Operation, names: Names, lift: bool = False) -> Written:
    """Writes the blocklist with some names more, or without them.

    Args:
        operation: Which does that.
        names: What is blocked from now on.
        lift: Rather: what is no longer.
    """
    root, files = operation.root, operation.files(COMPONENT)
    known = collect(scan([root / f.path for f in files], BLOCKLIST)) if files else _no_blocklist()
    rows = names.rows(operation.now)
    if lift:
        after = known.join(rows.select("key"), on="key", how="anti")
    else:
        after = pl.concat([known, rows]).unique("key", keep="first")
    changed = abs(len(after) - len(known))
    if not changed:
        return Written()
    writer = TabletWriter(root, COMPONENT, COMPONENT)
    writer.write(after.sort("key"))
    counts = {"unblocked" if lift else "blocked": changed}
    return Written(COMPONENT, tuple(writer.close()), tuple(f.path for f in files), counts)


def _no_blocklist() -> pl.DataFrame:
    return to_frame(BLOCKLIST.empty_table())


# What is deleted.


def unnamed_files(root: Place, named: set[str], before: float) -> Iterator[Found]:
    """Yields the lists and data files that are in no snapshot, and that nobody is writing.

    Args:
        root: The table's folder.
        named: Of ``io.retention.named_files``.
        before: Time of the store's clock, s: files that were written later are
            left alone, for an operation may be about to commit them.
    """
    for folder in (*folders(), "changes", "exports", "manifest/lists"):
        for found in list_files(root / folder):
            inside = below(root, found.path)
            if inside not in named and found.changed < before and "/leases/" not in inside:
                yield found


def sweep(table: WebTable, since: int, names: Names) -> dict[str, int]:
    """Deletes all that snapshots before one need alone, and what may name what is purged.

    Manifests stay: they hold numbers and names of files, no URLs. Flushed pages
    of a batch that is still open stay as well, less what is purged.

    Args:
        table: The table.
        since: Number of the snapshot that the purge has made.
        names: What is purged.

    Returns:
        ``files`` and ``bytes``: what was deleted.
    """
    root = table.files
    table.settled_snapshot()  # files of changes are needed until they are applied
    components = load_manifest(table, since).components
    before = table.written_at(since, {component.list for component in components.values()})
    if is_shared(root):
        # S3 tells whole seconds: what is as old as the purge goes, too, rather than stays unseen.
        before = math.nextafter(before, math.inf)
    kept = [load_manifest(table, number) for number in table.snapshots() if number >= since]
    named = named_files(table, kept)
    waiting = {name for name, batch in kept[-1].batches.items() if batch.phase == "generated"}
    purge = purge_of(names)
    counts = {"files": 0, "bytes": 0}
    for found in unnamed_files(root, named, before):
        if _spared(root, found.path, waiting, purge):
            continue
        table.erase(found.path, since)
        counts["bytes"] += remove_file(found.path)
        counts["files"] += 1
    for found in list_files(root / "seeds"):
        if names_somebody(read_bytes(found.path).decode("utf-8", "replace"), purge):
            counts["bytes"] += remove_file(found.path)
            counts["files"] += 1
    _forget_in_leases(root, purge)
    return counts


def _spared(root: Place, path: Place, waiting: set[str], purge: Purge) -> bool:
    """Tells whether a left-over file is a flushed one of an open batch, which a fetch will adopt."""
    parts = below(root, path).split("/")
    # A fetch that runs may be about to commit documents.
    if len(parts) != 4 or parts[1] not in waiting or not kind_of(parts[2]).flushed:
        return False
    if path.name.startswith("."):
        return False
    component = "/".join(parts[:3])
    if not is_touched(path, component, purge):
        return True
    if parts[2] == "pages":  # under a name of its own, of the same attempt
        head, _, number = path.stem.rpartition("-")
        _rewrite(
            path, path.with_name(f"{head}{new_name('')[:4]}-{number}.parquet"), component, purge
        )
    return False


def names_somebody(text: str, purge: Purge) -> bool:
    """Returns whether a text names what is purged."""
    lines = pl.Series(text.lower().splitlines(), dtype=pl.String)
    return bool(lines.str.contains(purge.pattern).any())


def _forget_in_leases(root: Place, purge: Purge) -> None:
    """Takes hosts that are purged out of what attempts have noted about hosts."""
    for found in list_files(root / "batches"):
        if found.path.suffix != ".beat":
            continue
        try:
            record = json_object(read_bytes(found.path))
            hosts: Mapping[str, object] = record["hosts"]
        except (ValueError, KeyError, TypeError, UserError):
            continue
        keys = pl.Series([host_key(host) for host in hosts], dtype=pl.String)
        gone = purge.blocklist.blocks_hosts(keys).to_list()
        if any(gone):
            left = {h: v for (h, v), bad in zip(hosts.items(), gone, strict=True) if not bad}
            overwrite_bytes(found.path, json.dumps({**record, "hosts": left}).encode())
