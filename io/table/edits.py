"""Edits rows in files permanently, for a purge, and counts the changes."""

import dataclasses
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple, Protocol

import pyarrow as pa

from ...policy.components.blocklist import Blocklist
from ...policy.components.declaration import columns_to_search
from ...policy.components.kinds import kind_of
from ..storage.files import new_name
from ..storage.parquet_files import ParquetWriter, row_groups, schema_of
from ..storage.places import Place
from ..tablets.checksums import verify_file
from ..tablets.file_lists import DataFile, below
from ..tablets.tablets import Tablet
from ..tablets.written import Written


class Edit(Protocol):
    """Removes or changes rows of a component; returns (rows left, removed, changed)."""

    def __call__(self, table: pa.Table, component: str, /) -> tuple[pa.Table, int, int]: ...


class NameEdit(Edit, Protocol):
    """Removes the rows of names, and names from other rows."""

    @property
    def blocklist(self) -> Blocklist:
        """The names, as hashes."""

    @property
    def pattern(self) -> str:
        """Regular expression of the names in texts."""


class Edited(NamedTuple):
    """The result of editing a component of a snapshot.

    Attributes:
        snapshot: Number of the snapshot.
        tablets: Tablets of the component before the edit.
        written: Edited files, with the paths of the files that they replace.
    """

    snapshot: int
    tablets: Sequence[Tablet]
    written: Sequence[Written]


class CountedEdit:
    """Edits rows of one component; counts removed rows and removed names.

    Attributes:
        rows: Number of removed rows.
        mentions: Number of names removed from other rows.
    """

    def __init__(self, edit: Edit, component: str) -> None:
        self.rows = self.mentions = 0
        self._edit, self._component = edit, component

    def __call__(self, table: pa.Table) -> pa.Table:
        remaining_rows, rows, mentions = self._edit(table, self._component)
        self.rows += rows
        self.mentions += mentions
        return remaining_rows

    def counts(self) -> dict[str, int]:
        """Returns the counts by name."""
        kind = self._component.rpartition("/")[2]
        counts = {f"rows/{kind}": self.rows, f"mentions/{kind}": self.mentions}
        return {name: number for name, number in counts.items() if number}


def is_touched(path: Place, component: str, edit: Edit) -> bool:
    """Returns whether an edit may change a file; reads only the columns that may have names."""
    schema = schema_of(path)
    groups = row_groups(path, schema, columns_to_search(schema, kind_of(component)))
    return any(sum(edit(group, component)[1:]) for group in groups)


def edit_file(root: Place, component: str, file: DataFile, edit: Edit) -> Iterator[Written]:
    """Rewrites a file that is no part of a tablet and no shard, if an edit changes it.

    A file without rows is kept, because each file of pages has a file of documents.
    """
    if is_touched(root / file.path, component, edit):
        verify_file(root, file)
        new = root / component / new_name()
        counted = CountedEdit(edit, component)
        facts = rewrite(root / file.path, new, counted)
        formerly = file.formerly or file.path
        edited = dataclasses.replace(file, path=below(root, new), formerly=formerly, **facts)
        yield Written(component, (edited,), (file.path,), counted.counts())


def rewrite(path: Place, new: Place, edit: Callable[[pa.Table], pa.Table]) -> dict[str, Any]:
    """Writes edited rows to a new file; returns fields of its description."""
    import pyarrow.compute as pc  # late: it takes as long as pyarrow itself

    schema, keys = schema_of(path), list[str]()
    with ParquetWriter(new, schema) as writer:
        for group in row_groups(path, schema):
            rows = edit(group)
            if len(rows):
                writer.write(rows)
                keys += [key.as_py() for key in pc.min_max(rows["key"]).values() if key.is_valid]
        size = writer.close()
    first, last = min(keys, default=None), max(keys, default=None)
    return {"rows": writer.rows, "bytes": size, "crc32": writer.crc32, "first": first, "last": last}
