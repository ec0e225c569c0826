"""Purges names from a table's files.

It removes names from rows, writes the blocklist, and deletes the files that may still have the
names: those that only older snapshots need, and leftovers that no snapshot names.
"""

import contextlib
import json
from collections.abc import Iterator, Mapping
from typing import Protocol

import polars as pl

from ...policy.components.declaration import Flushed
from ...policy.components.kinds import folders, kind_of
from ...policy.components.schema import BLOCKLIST, empty
from ...web.base.errors import UserError
from ...web.base.safe_json import json_object
from ...web.urls.row_keys import host_key
from ..indexing.run_receipts import is_intent, is_mark, note_lost
from ..rows.small_components import BLOCKLIST_COMPONENT
from ..snapshots.manifest import load_manifest
from ..snapshots.operations import Operation
from ..storage.files import (
    LARGEST_BYTES,
    list_files,
    new_name,
    overwrite_bytes,
    read_bytes,
    remove_file,
)
from ..storage.parquet_files import collect, scan
from ..storage.places import Found, Place, below
from ..table.edits import CountedEdit, NameEdit, is_touched, rewrite
from ..table.table_snapshots import TableSnapshots
from ..table.web_table import WebTable
from ..tablets.resolve import write_bases
from ..tablets.written import Written
from .retention import is_cleaned, named_files, own_files


class BlocklistChange(Protocol):
    """Returns the BLOCKLIST rows after a change, in key order, from those before and the time, ms."""

    def __call__(self, rows: pl.DataFrame, now: int, /) -> pl.DataFrame: ...


def update_blocklist(operation: Operation, change: BlocklistChange) -> Written:
    """Reads the blocklist, changes it, and writes the new list."""
    table, files = operation.table, operation.files(BLOCKLIST_COMPONENT)
    rows = collect(scan([table / f.path for f in files], BLOCKLIST)) if files else empty(BLOCKLIST)
    after = change(rows, operation.now)
    added = len(after) - len(rows)
    if not added:
        return Written()
    written = write_bases(table, BLOCKLIST_COMPONENT, [after])
    counts = {"blocked": added} if added > 0 else {"unblocked": -added}
    return Written(BLOCKLIST_COMPONENT, written, tuple(f.path for f in files), counts)


def unnamed_files(table: TableSnapshots, named: set[str], changed_before: float) -> Iterator[Found]:
    """Yields the lists and data files that are in no snapshot, and that no operation is writing.

    Args:
        table: The table.
        named: Paths from ``named_files``.
        changed_before: Time of the store's clock, s. Files that were written later are
            skipped, because an operation may be about to commit them.
    """
    for folder in (*folders(), "changes", "exports", "manifest/lists"):
        for file in own_files(table, folder):
            inside = below(table, file.path)
            if inside not in named and file.changed < changed_before and "/leases/" not in inside:
                yield file


def delete_purged(table: WebTable, since: int, purge: NameEdit) -> dict[str, int]:
    """Deletes files that only older snapshots need, and files that may contain purged names.

    Manifests stay, because they have no URLs, only numbers and names of files. Flushed
    pages of an open batch also stay, without purged rows.

    Args:
        table: The table.
        since: Number of the snapshot that the purge has made.
        purge: Removes the purged names.

    Returns:
        Numbers of deleted ``files`` and ``bytes``.
    """
    root = table.files
    table.settled_snapshot()  # files of changes are needed until they are applied
    components = load_manifest(table, since).components
    purge_time = table.written_at(since, {component.list for component in components.values()})
    changed_before = root.limit_after(purge_time)
    manifests = [load_manifest(table, number) for number in table.snapshots() if number >= since]
    named = named_files(table, manifests)
    waiting = {name for name, batch in manifests[-1].batches.items() if batch.phase == "generated"}
    gone = []
    for file in unnamed_files(table, named, changed_before):
        if not is_mark(file.path) and not _is_spared(root, file.path, waiting, purge):
            if is_intent(file.path):
                note_lost(file.path)
            table.erase(file.path, since)
            gone.append(remove_file(file.path))
    for file in own_files(table, "seeds"):
        data = read_bytes(file.path, LARGEST_BYTES)
        lines = pl.Series(data.decode("utf-8", "replace").lower().splitlines())
        if len(lines) and lines.str.contains(purge.pattern).any():
            gone.append(remove_file(file.path))
    if is_cleaned(table, "batches"):
        forget_in_leases(root / "batches", purge)
    return {"files": len(gone), "bytes": sum(gone)}


def _is_spared(root: Place, path: Place, waiting: set[str], purge: NameEdit) -> bool:
    """Returns whether a leftover file is of an open batch, so that a fetch will adopt it."""
    parts = below(root, path).split("/")
    # A running fetch may be about to commit documents.
    flushed = len(parts) == 4 and parts[1] in waiting and kind_of(parts[2]).flushed is not None
    if not flushed or path.name.startswith("."):
        return False
    component = "/".join(parts[:3])
    if not is_touched(path, component, purge):
        return True
    if kind_of(parts[2]).flushed is Flushed.ADOPTED:  # under a new name of the same attempt
        head, _, number = path.stem.rpartition("-")
        new = path.with_name(f"{head}{new_name('')[:4]}-{number}.parquet")
        rewrite(path, new, CountedEdit(purge, component))
    return False


def forget_in_leases(folder: Place, purge: NameEdit) -> None:
    """Removes purged hosts from the lease files of attempts in a folder."""
    for file in list_files(folder):
        if file.path.suffix != ".beat":
            continue
        with contextlib.suppress(ValueError, KeyError, TypeError, UserError):  # the file is damaged
            record = json_object(read_bytes(file.path))
            hosts: Mapping[str, object] = record["hosts"]
            keys = pl.Series([host_key(host) for host in hosts], dtype=pl.String)
            gone = purge.blocklist.blocks_hosts(keys).to_list()
            if any(gone):
                remaining_hosts = {
                    h: v for (h, v), bad in zip(hosts.items(), gone, strict=True) if not bad
                }
                overwrite_bytes(
                    file.path, json.dumps({**record, "hosts": remaining_hosts}).encode()
                )
