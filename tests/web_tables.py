"""Back ends of the web table, for tests that each must pass; and what a table says, by its readers.

A further back end joins by one line in ``BACK_ENDS``.
"""

import os
import shutil

import polars as pl

from nutbeam.io.batches import batch_files
from nutbeam.io.fold import read_tablets
from nutbeam.io.fsck import left_over
from nutbeam.io.manifest import Pinned, latest_snapshot
from nutbeam.io.parquet_files import collect, scan
from nutbeam.io.places import place_of
from nutbeam.io.tablets import TABLETS, tablets
from nutbeam.policy.schema import COMPONENTS


def newest(table):
    """Returns the number of the newest snapshot of a table."""
    return latest_snapshot(place_of(table))


class InFolder:
    """Tables in folders.

    Attributes:
        versions: For how many commits a reader is safe; None is as long as the retention.
    """

    versions = None

    def __init__(self, tmp_path_factory):
        self._base = tmp_path_factory.mktemp("tables")
        self._made = 0

    def fresh(self):
        """Returns the address of a table that does not exist."""
        self._made += 1
        return str(self._base / f"{self._made}" / "table")

    def copy(self, table):
        """Returns the address of a copy of a table, operations and left-over files included."""
        return str(shutil.copytree(table, self.fresh()))

    def remove(self, table):
        shutil.rmtree(table, ignore_errors=True)

    def age(self, table, days):
        """Makes all that there is so many days older, by the store's clock."""
        for path in place_of(table).rglob("*"):
            if path.is_file():
                then = path.stat().st_mtime - days * 86_400
                os.utime(path, (then, then))

    def left(self, table):
        """Returns the names of what lies about: files in no snapshot, half files, locks."""
        root = place_of(table)
        found = left_over(root)
        named = [str(path.relative_to(root)) for path in root.rglob("*")]
        strange = [n for n in named if n.endswith((".writing", ".claim", "/aside")) or "lock" in n]
        lost = [f"{found.orphans} orphans"] * bool(found.orphans)
        half = [f"{found.temporary} half files"] * bool(found.temporary)
        return lost + half + strange


BACK_ENDS = {"folder": InFolder}


class Snapshot(Pinned):
    """One snapshot of a table, read as an export reads it."""

    def __init__(self, table, snapshot=None):
        self.table = table
        self.snapshot = latest_snapshot(self.root) if snapshot is None else snapshot

    def parts(self, component="state"):
        """Returns what is read at a time."""
        return tablets(self.files(component))

    def read(self, part, component="state"):
        """Returns the rows of a part in key order."""
        with self.reading():
            names = COMPONENTS[component].names
            return read_tablets(self.root, component, [part], names).sort("key")

    def rows(self, component="state"):
        """Returns all rows of a component in key order."""
        frames = [self.read(part, component) for part in self.parts(component)]
        return pl.concat(frames) if frames else None

    def of_batch(self, batch, kind):
        """Returns the rows of a batch's files of one kind in key order, or None."""
        files = batch_files(self.root, self.manifest(), batch, kind)
        with self.reading():
            paths = [self.root / file.path for file in files]
            return collect(scan(paths, COMPONENTS[kind]).sort("key")) if paths else None

    def contents(self):
        """Returns all rows by component, batches included."""
        found = {}
        for name in self.manifest().components:
            kind = name.rpartition("/")[2]
            if name in TABLETS:
                found[name] = self.rows(name)
            elif name != kind:
                found[name] = self.of_batch(name.split("/")[1], kind)
        return found
