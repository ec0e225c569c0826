"""Loads rows of Bigtable into DuckDB: of one pinned snapshot, and only those that a query needs."""

import re
from collections.abc import Iterator
from typing import Any

import pyarrow as pa

from ...io.tablets.tablets import tablets
from ...policy.components.kinds import KINDS, components_of
from ...policy.components.schema import conform
from ..views.reading_job import Reading


class StoredRows:
    """The components of a snapshot that are stored as rows; copies them into DuckDB when needed.

    A table in files has no such component. The rows are a stream of Arrow batches. DuckDB moves rows
    that exceed its memory to its temporary files.

    Args:
        table: Address of the table.
        snapshot: Number of the snapshot.
    """

    def __init__(self, address: str, snapshot: int) -> None:
        self._pinned = Reading(address, "", snapshot)
        table = self._pinned.table
        self._waiting = {name for name, kind in KINDS.items() if not table.in_files(kind.name)}

    @property
    def kinds(self) -> frozenset[str]:
        """The kinds of components that are stored as rows, and were not copied into DuckDB yet."""
        return frozenset(self._waiting)

    def bring(self, connection: Any, query: str) -> None:
        """Copies the rows that a query needs into DuckDB.

        Args:
            connection: The connection, with the empty tables of ``connect``.
            query: The query.

        Raises:
            SnapshotTooOld: The table does not have all rows of the snapshot any more.
        """
        named = _named_tables(connection, query) if self._waiting else set()
        for name in sorted(self._waiting):
            if f"empty_{name}" in named:
                self._insert(connection, name)
                self._waiting.discard(
                    name
                )  # not earlier: after an interruption, it brings all rows

    def _insert(self, connection: Any, name: str) -> None:
        failures: list[Exception] = []
        batches = _with_failures(self._batches(name), failures)
        rows = pa.RecordBatchReader.from_batches(KINDS[name].schema, batches)
        connection.register("arriving", rows)
        try:
            connection.execute(f"INSERT INTO stored.empty_{name} BY NAME SELECT * FROM arriving")
        except _errors_of_duckdb():
            if failures:  # DuckDB's error has only its text, among other words
                raise failures[0] from None
            raise
        finally:
            connection.unregister("arriving")

    def _batches(self, name: str) -> Iterator[pa.RecordBatch]:
        kind, pinned = KINDS[name], self._pinned
        for component in components_of(kind, pinned.manifest().components):
            for tablet in tablets(pinned.files(component)):
                with pinned.reading():
                    for rows in pinned.table.scan(component, tablet):
                        yield from conform(rows, kind.schema).to_batches()


def _with_failures(
    batches: Iterator[pa.RecordBatch], failures: list[Exception]
) -> Iterator[pa.RecordBatch]:
    """Yields batches; keeps the error that ends them."""
    try:
        yield from batches
    except Exception as error:
        failures.append(error)
        raise


def _named_tables(connection: Any, query: str) -> set[str]:
    """Returns the tables below the views that a query names, perhaps more."""
    try:
        return set(connection.get_table_names(query))
    except _errors_of_duckdb():
        # It cannot bind views of files. Those of pages and links also have rows of the state.
        words = set(re.findall(r"\w+", query.lower()))
        kind_names = {name for name, kind in KINDS.items() if kind.shown_as in words}
        return {f"empty_{name}" for name in kind_names | {"state"}}


def _errors_of_duckdb() -> type[Exception]:
    """Returns the class of DuckDB's errors; the module is optional."""
    import duckdb

    return duckdb.Error
