"""Edits of rows for good: what a purge takes out, and how often."""

from typing import Protocol

import pyarrow as pa

from ...policy.purging import BODIES
from ..storage.parquet_files import row_groups, schema_of
from ..storage.places import Place


class Edit(Protocol):
    """Takes rows of a component out, or changes them; returns (rows left, taken out, changed)."""

    def __call__(self, table: pa.Table, component: str, /) -> tuple[pa.Table, int, int]: ...


class EditCounts:
    """Counts rows that are taken out, and mentions of a name that are taken out of others."""

    def __init__(self, component: str) -> None:
        self.rows = self.mentions = 0
        self._kind = component.rpartition("/")[2]

    def add(self, rows: int, mentions: int) -> None:
        """Adds what an edit of some rows has returned."""
        self.rows += rows
        self.mentions += mentions

    def named(self) -> dict[str, int]:
        """Returns the counts by name."""
        counts = {f"rows/{self._kind}": self.rows, f"mentions/{self._kind}": self.mentions}
        return {name: number for name, number in counts.items() if number}


def is_touched(path: Place, component: str, edit: Edit) -> bool:
    """Returns whether an edit takes something out of a file, or changes it; bodies are left unread."""
    schema = schema_of(path)
    columns = [name for name in schema.names if name not in BODIES]
    groups = row_groups(path, schema, columns)
    return any(sum(edit(group, component)[1:]) for group in groups)
