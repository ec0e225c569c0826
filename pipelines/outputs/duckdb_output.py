"""Appends rows to a table in a DuckDB file: rows and the note of their load in one transaction."""

import contextlib
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa

from ...web.base.errors import UsageError, UserError
from .output_tables import Load, TableOutput, load_of_json

_NOTES = "nutbeam_loads"
DUCKDB_ADDRESS = re.compile(r"(?P<path>.+\.duckdb)(:(?P<table>[A-Za-z_][A-Za-z0-9_]*))?")
_UTC = pa.timestamp("ms", "UTC")


class DuckDBOutput(TableOutput):
    """A table in a DuckDB file.

    Args:
        path: The file; it is made if it is not there.
        table: Name of the table.
    """

    def __init__(self, path: Path, table: str) -> None:
        self._path, self._table = path, table

    @property
    def address(self) -> str:
        return f"{self._path}:{self._table}"

    def last_load(self, source: str) -> Load | None:
        if not self._path.exists():
            return None
        with self._connection(read_only=True) as connection:
            return self._note(connection, source)

    def append(self, rows: pa.RecordBatchReader, load: Load) -> int:
        with self._connection() as connection:
            connection.execute("BEGIN")
            connection.execute(
                f"CREATE TABLE IF NOT EXISTS {_NOTES} "
                "(table_name VARCHAR, source VARCHAR, load JSON, PRIMARY KEY (table_name, source))"
            )
            self.check_last(self._note(connection, load.source), load)
            self._make_room(connection, rows.schema)
            connection.register("arriving", without_zones(rows))
            ((number,),) = connection.execute(
                f"INSERT INTO {_quoted(self._table)} BY NAME SELECT * FROM arriving"
            ).fetchall()
            connection.execute(
                f"INSERT OR REPLACE INTO {_NOTES} VALUES (?, ?, ?)",
                [self._table, load.source, load.to_json()],
            )
            connection.execute("COMMIT")
        return int(number)

    def _make_room(self, connection: Any, schema: pa.Schema) -> None:
        """Makes the table, or adds the columns that it lacks."""
        connection.register("wanted", without_zones(schema.empty_table().to_reader()))
        types = {name: kind for name, kind, *_ in connection.execute("DESCRIBE wanted").fetchall()}
        connection.unregister("wanted")
        columns = [f"{_quoted(name)} {kind}" for name, kind in types.items()]
        there = self._columns(connection)
        self.check_columns(there, types, self._has_notes(connection))
        if not there:
            connection.execute(f"CREATE TABLE {_quoted(self._table)} ({', '.join(columns)})")
        for name, column in zip(types, columns, strict=True) if there else ():
            if name not in there:
                connection.execute(f"ALTER TABLE {_quoted(self._table)} ADD COLUMN {column}")

    def _columns(self, connection: Any) -> list[str]:
        rows = connection.execute(
            "SELECT column_name FROM information_schema.columns "
            "WHERE table_schema = 'main' AND table_name = ?",
            [self._table],
        ).fetchall()
        return [name for (name,) in rows]

    def _has_notes(self, connection: Any) -> bool:
        query = f"SELECT count(*) FROM {_NOTES} WHERE table_name = ?"
        return connection.execute(query, [self._table]).fetchall() != [(0,)]

    def _note(self, connection: Any, source: str) -> Load | None:
        if (_NOTES,) not in connection.execute("SHOW TABLES").fetchall():
            return None
        notes = connection.execute(
            f"SELECT load FROM {_NOTES} WHERE table_name = ? AND source = ?", [self._table, source]
        ).fetchall()
        return load_of_json(notes[0][0], self.address) if notes else None

    @contextlib.contextmanager
    def _connection(self, *, read_only: bool = False) -> Iterator[Any]:
        """Opens the file; what is not committed at the end is undone."""
        duckdb = _duckdb()
        try:
            with contextlib.closing(
                duckdb.connect(str(self._path), read_only=read_only)
            ) as connection:
                yield connection
        except duckdb.Error as error:
            text = " ".join(str(error).split())
            if "Could not set lock" in text:
                raise UserError(
                    f"another process has {str(self._path)!r} open: close it there, and run this again"
                ) from error
            raise UserError(f"cannot write to {self.address}: {text}") from error


def duckdb_output_of(text: str, table: str) -> DuckDBOutput | None:
    """Returns the table of an address ``FILE.duckdb`` or ``FILE.duckdb:TABLE``; None if it is none.

    Args:
        text: The address.
        table: Name of the table, if the address has none.

    Raises:
        UsageError: There is no such folder, or DuckDB is not installed.
    """
    match = DUCKDB_ADDRESS.fullmatch(text)
    if match is None:
        return None
    path = Path(match["path"])
    if not path.absolute().parent.is_dir():
        raise UsageError(f"no folder {str(path.absolute().parent)!r} for --output {text!r}")
    if path.is_dir():
        raise UsageError(f"--output must be a file, got the folder {str(path)!r}")
    _duckdb()
    return DuckDBOutput(path, match["table"] or table)


def without_zones(rows: pa.RecordBatchReader) -> pa.RecordBatchReader:
    """Returns rows with times in UTC without a zone, as ``sql`` shows them."""
    plain = pa.timestamp("ms")
    types = {_UTC: plain, pa.large_list(_UTC): pa.large_list(plain)}
    schema = pa.schema(
        [field.with_type(types.get(field.type, field.type)) for field in rows.schema]
    )
    batches = (pa.Table.from_batches([b]).cast(schema).to_batches() for b in rows)
    return pa.RecordBatchReader.from_batches(schema, (b for part in batches for b in part))


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _duckdb() -> Any:
    try:
        import duckdb
    except ModuleNotFoundError as error:
        raise UsageError("a DuckDB file needs DuckDB: pip install 'nutbeam[sql]'") from error
    return duckdb
