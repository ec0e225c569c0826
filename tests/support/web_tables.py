"""Back ends of the web table, for tests that each must pass; and what a table says, by its readers.

A further back end joins by one line in ``BACK_ENDS``.
"""

import io
import json
import os
import shutil
import tarfile

import polars as pl
import pytest
from crawling import cells_of, latest_snapshot

from nutbeam.io.batches.batches import batch_component
from nutbeam.io.snapshots.pinned import Pinned
from nutbeam.io.storage.files import list_files
from nutbeam.io.storage.parquet_files import collect, scan
from nutbeam.io.table.opening import open_table
from nutbeam.io.tablets.tablets import tablets
from nutbeam.io.upkeep.operation_fsck import left_over
from nutbeam.policy.components.kinds import KINDS, kind_of

SETTINGS = b"settings"


def newest(table):
    """Returns the number of the newest snapshot of a table."""
    return latest_snapshot(open_table(table))


class InFolder:
    """Tables in folders.

    Attributes:
        versions: For how many commits a reader is safe; None is as long as the retention.
        commands: That look whether it is whole.
    """

    versions = None
    commands = ("fsck",)

    def __init__(self, tmp_path_factory):
        self._base = tmp_path_factory.mktemp("tables")
        self._made = 0

    def at(self, folder):
        """Returns the address of a table whose files are, or will be, in a folder."""
        return folder

    def fresh(self):
        """Returns the address of a table that has nothing in it."""
        self._made += 1
        return str(self.at(self._base / f"{self._made}" / "table"))

    def copy(self, table):
        """Returns the address of a copy of a table, operations and left-over files included."""
        return str(shutil.copytree(table, self.fresh()))

    def remove(self, address):
        shutil.rmtree(address, ignore_errors=True)

    def age(self, table, days):
        """Makes all files of a table older by a number of days, by the store's clock."""
        for path in open_table(table).files.rglob("*"):
            then = path.stat().st_mtime - days * 86_400
            os.utime(path, (then, then))

    def promised(self, table):
        """Returns the newest snapshot that is committed, even if nobody can read it yet."""
        return newest(table)

    def left(self, table):
        """Returns the names of leftover files: files in no snapshot, half files, locks."""
        root = open_table(table).files
        found = left_over(open_table(table))
        named = [str(path.relative_to(root)) for path in root.rglob("*")]
        strange = [n for n in named if n.endswith((".writing", ".claim", "/aside")) or "lock" in n]
        lost = [f"{found.orphans} orphans"] * bool(found.orphans)
        half = [f"{found.temporary} half files"] * bool(found.temporary)
        return lost + half + strange


def copy_rows(source, target):
    """Copies all cells of a table in Bigtable but its settings: other files are its own."""
    put_cells(target, {name: v for name, v in cells_of(source).items() if name[2] != SETTINGS})


def put_cells(target, cells):
    """Writes cells as ``cells_of`` returns them."""
    from google.cloud.bigtable_v2 import types  # late: Google's libraries take a second

    entries = {}
    for (key, family, column, time), value in cells.items():
        entry = entries.setdefault(key, types.MutateRowsRequest.Entry(row_key=key))
        cell = types.Mutation.SetCell(
            family_name=family, column_qualifier=column, timestamp_micros=time, value=value
        )
        entry.mutations.append(types.Mutation(set_cell=cell))
    table = target.log.table
    request = types.MutateRowsRequest(table_name=table.address.name, entries=list(entries.values()))
    for reply in table.client.mutate_rows(request=request):
        assert all(entry.status.code == 0 for entry in reply.entries)


def pack_table(address, archive):
    """Keeps a table in Bigtable in an archive: its cells, and its files."""
    table = open_table(address)
    cells = [
        (key.hex(), family, column.hex(), time, value.hex())
        for (key, family, column, time), value in cells_of(table).items()
    ]
    with tarfile.open(archive, "w:xz") as packed:
        packed.add(table.files, "files")
        data = json.dumps(cells).encode()
        member = tarfile.TarInfo("cells.json")
        member.size = len(data)
        packed.addfile(member, io.BytesIO(data))


def unpack_table(archive, folder, emulator):
    """Makes a table of what ``pack_table`` has kept, but for the place of its files.

    Returns:
        Its address, and its settings as they were kept.
    """
    with tarfile.open(archive) as packed:
        packed.extractall(folder, filter="data")
    cells = {
        (bytes.fromhex(key), family, bytes.fromhex(column), time): bytes.fromhex(value)
        for key, family, column, time, value in json.loads((folder / "cells.json").read_text())
    }
    address = emulator.make(folder / "files")
    (settings,) = (value for name, value in cells.items() if name[2] == SETTINGS)
    put_cells(open_table(address), {n: v for n, v in cells.items() if n[2] != SETTINGS})
    return address, json.loads(settings)


class InBigtable(InFolder):
    """Tables in Bigtable's emulator; their files are in folders."""

    versions = 4

    def __init__(self, tmp_path_factory, bigtable):
        super().__init__(tmp_path_factory)
        self._bigtable = bigtable

    def at(self, folder):
        return self._bigtable.make(folder)

    def copy(self, table):
        """Copies rows, cell by cell with their versions, and files."""
        other = self.fresh()
        source, target = open_table(table), open_table(other)
        shutil.copytree(source.files, target.files, dirs_exist_ok=True)
        copy_rows(source, target)
        return other

    def promised(self, table):
        return open_table(table).log.head().snapshot

    def left(self, table):
        changes = list_files(open_table(table) / "changes")
        return super().left(table) + [str(found.path) for found in changes]

    def remove(self, address):
        table = open_table(address)
        super().remove(table.files)
        from nutbeam.io.bigtable.admin import drop_table

        drop_table(table.address)


BACK_ENDS = {
    "folder": lambda request, paths: InFolder(paths),
    "bigtable": lambda request, paths: InBigtable(paths, request.getfixturevalue("bigtable")),
}


class Snapshot(Pinned):
    """One snapshot of a table, read as an export reads it."""

    def __init__(self, table, snapshot=None):
        self.address = table
        self.snapshot = newest(table) if snapshot is None else snapshot

    def parts(self, component="state"):
        """Returns what is read at a time."""
        return tablets(self.files(component))

    def read(self, part, component="state"):
        """Returns the rows of a part in key order."""
        with self.reading():
            names = KINDS[component].schema.names
            return self.table.read(component, [part], names).sort("key")

    def rows(self, component="state"):
        """Returns all rows of a component in key order."""
        frames = [self.read(part, component) for part in self.parts(component)]
        return pl.concat(frames) if frames else None

    def of_batch(self, batch, kind):
        """Returns the rows of a batch's files of one kind in key order, or None."""
        files = self.files(batch_component(batch, kind))
        with self.reading():
            paths = [self.table / file.path for file in files]
            return collect(scan(paths, KINDS[kind].schema).sort("key")) if paths else None

    def contents(self):
        """Returns all rows by component, batches included."""
        found = {}
        for name in self.manifest().components:
            kind = name.rpartition("/")[2]
            if kind_of(name).in_tablets:
                found[name] = self.rows(name)
            elif name != kind:
                found[name] = self.of_batch(name.split("/")[1], kind)
        return found


def copied_folder():
    """Returns a fixture that copies the table ``original`` in a folder, for a module's ``table``."""

    @pytest.fixture
    def table(original, tmp_path):
        return shutil.copytree(original, tmp_path / "table")

    return table


def copied_table():
    """Returns a fixture with a copy of the table ``original``, for a module's ``table``.

    The original is on the back end under test.
    """

    @pytest.fixture
    def table(backend, original):
        made = backend.copy(original)
        yield made
        backend.remove(made)

    return table
