"""Takedown in a table's files: rewritten under new names, and what is left of old ones deleted."""

import dataclasses
import json
import math
from collections.abc import Iterator, Mapping

import polars as pl
import pyarrow as pa

from ...policy.bars import Bars, Names, bars_of
from ...policy.kinds import folders, kind_of
from ...policy.purging import pattern_of, purge_rows
from ...policy.schema import BARS, empty
from ...web.base.errors import UserError
from ...web.urls.row_keys import host_key
from ..rows.bars import COMPONENT
from ..snapshots.manifest import load_manifest
from ..snapshots.operations import Operation
from ..storage.files import Found, list_files, new_name, overwrite_bytes, read_bytes, remove_file
from ..storage.parquet_files import collect, scan
from ..storage.places import Place, below
from ..storage.reach import is_shared
from ..table.edits import is_touched, rewrite
from ..table.web_table import WebTable
from ..tablets.resolve import write_bases
from ..tablets.written import Written
from .retention import named_files


def purge_of(names: Names) -> "Purge":
    """Returns what takes names out of rows."""
    return Purge(bars_of(names.rows(0)), pattern_of(names))


@dataclasses.dataclass(frozen=True)
class Purge:
    """Takes out of rows what is barred or named, and counts.

    Attributes:
        bars: Names, as bars.
        pattern: Names, as a regular expression for texts; without one, nothing is named.
    """

    bars: Bars
    pattern: str = r"[^\s\S]"

    def __call__(self, table: pa.Table, component: str) -> tuple[pa.Table, int, int]:
        return purge_rows(table, self.bars, self.pattern, kind_of(component).of_hosts)


def set_bars(operation: Operation, names: Names, lift: bool = False) -> Written:
    """Writes the list of bars with further names, or without some.

    Args:
        operation: The purge.
        names: Names to add to the list.
        lift: Whether to take them off it instead.
    """
    root, files = operation.root, operation.files(COMPONENT)
    known = collect(scan([root / f.path for f in files], BARS)) if files else empty(BARS)
    rows = names.rows(operation.now)
    if lift:
        after = known.join(rows.select("key"), on="key", how="anti")
    else:
        after = pl.concat([known, rows]).unique("key", keep="first")
    changed = abs(len(after) - len(known))
    if not changed:
        return Written()
    written = write_bases(root, COMPONENT, [after.sort("key")])
    counts = {"unbarred" if lift else "barred": changed}
    return Written(COMPONENT, written, tuple(f.path for f in files), counts)


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
        rewrite(
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
            record = json.loads(read_bytes(found.path))
            hosts: Mapping[str, object] = record["hosts"]
        except (ValueError, KeyError, TypeError, UserError):
            continue
        keys = pl.Series([host_key(host) for host in hosts], dtype=pl.String)
        gone = purge.bars.hosts_hit(keys).to_list()
        if any(gone):
            left = {h: v for (h, v), bad in zip(hosts.items(), gone, strict=True) if not bad}
            overwrite_bytes(found.path, json.dumps({**record, "hosts": left}).encode())
