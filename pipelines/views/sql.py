"""sql: queries the table in SQL, by DuckDB over the files of the newest snapshot."""

import contextlib
import dataclasses
import datetime
import json
import math
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from ...io.rows.duckdb_views import (
    MACROS,
    batches_frame,
    empty_table,
    files_of,
    links_sql,
    shown,
    view_sql,
)
from ...io.snapshots.manifest import Manifest, newest_manifest
from ...io.storage.reach import local_path
from ...io.storage.scratch import ScratchFull, full, scratch
from ...io.table.opening import open_table
from ...web.base.errors import UsageError, UserError
from ...web.base.options import option
from ...web.base.visible import visible
from ..command_line.command import TABLE, Argument, Invocation
from .export import csv_line

ARGUMENTS = (TABLE, Argument("query", "The query: one SELECT."))
FORMATS = ("text", "json", "csv")
# Messages of DuckDB if there is no space for its temporary files.
_FULL = ("failed to offload data block", "No space left on device", "File too large")
_WIDEST = 100  # characters of a value in readable output


@dataclasses.dataclass(frozen=True)
class Options:
    """Options of sql."""

    max_rows: int = option(
        100, "Most rows to show as text; 0 is all. JSON and CSV have all rows.",
        minimum=0, group="sql",
    )  # fmt: skip
    memory_limit: float = option(
        0.0, "Memory that DuckDB may use; 0 is its own default.", unit="B",
        minimum=0.0, group="sql",
    )  # fmt: skip


def run(invocation: Invocation) -> int:
    table = str(invocation.table)
    opened, root = open_table(table), Path(table)
    if not opened.in_files("state"):
        raise UsageError(f"sql works on tables of files only, so far: {table!r} is in Bigtable")
    if local_path(opened.files) is None:
        raise UsageError(
            f"sql reads tables in folders only, got {table!r}: write the rows with nutbeam export, "
            "or copy the table into a folder"
        )
    duckdb = _duckdb()
    manifest = newest_manifest(table)
    query = invocation.arguments["query"]
    try:
        limit = invocation.options.memory_limit
        with contextlib.closing(connect(duckdb, root, manifest, limit)) as connection:
            _check(duckdb, connection, query)
            _answer(connection.execute(query), invocation)
    except duckdb.Error as error:
        raise _refusal(duckdb, error, root) from error
    return 0


def _answer(result: Any, invocation: Invocation) -> None:
    names = [column[0] for column in result.description or ()]
    rows = iter(result.fetchone, None)
    if invocation.format == "json":
        for row in rows:
            print(json.dumps(dict(zip(names, map(_plain, row), strict=True))))
    elif invocation.format == "csv":
        sys.stdout.write(csv_line(names))
        for row in rows:
            sys.stdout.write(csv_line(map(_plain, row)))
    else:
        _show(names, rows, invocation.options.max_rows)


def _duckdb() -> Any:
    try:
        import duckdb
    except ModuleNotFoundError as error:
        raise UsageError("sql needs DuckDB: pip install 'nutbeam[sql]'") from error
    return duckdb


def connect(duckdb: Any, root: Path, manifest: Manifest, memory_limit: float = 0.0) -> Any:
    """Returns a connection that has one snapshot's files as views, and nothing else.

    It loads and downloads no extension, and opens no other file and no URL.

    Args:
        duckdb: The module.
        root: The table's folder.
        manifest: The snapshot.
        memory_limit: Memory limit in bytes; 0 means DuckDB's default.
    """
    config = {
        "autoinstall_known_extensions": "false",
        "autoload_known_extensions": "false",
        "allow_community_extensions": "false",
        "temp_directory": str(scratch() / "duckdb"),
    }
    connection = duckdb.connect(":memory:", config=config)
    paths: list[str] = []
    for macro in MACROS:
        connection.execute(macro)
    for view in shown():
        files = files_of(root, manifest, view)
        paths += [str(root / file.path) for _, file in files]
        connection.register(f"empty_{view}", empty_table(view))
        connection.execute(view_sql(root, view, files))
    connection.execute(links_sql(root, files_of(root, manifest, "documents")))
    connection.register("batches", batches_frame(manifest).to_arrow())
    listed = ", ".join("'" + path.replace("'", "''") + "'" for path in paths)
    connection.execute(f"SET allowed_paths = [{listed}]")
    connection.execute("SET enable_external_access = false")
    connection.execute("SET python_enable_replacements = false")
    if memory_limit:
        connection.execute(f"SET memory_limit = '{int(memory_limit)}B'")
    connection.execute("SET lock_configuration = true")
    return connection


def _check(duckdb: Any, connection: Any, query: str) -> None:
    statements = connection.extract_statements(query)
    kinds = (duckdb.StatementType.SELECT, duckdb.StatementType.EXPLAIN)
    if len(statements) != 1 or statements[0].type not in kinds:
        raise UsageError("sql takes one SELECT: the table is only read")


def _refusal(duckdb: Any, error: Exception, root: Path) -> UserError:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    text = " ".join(line for line in lines if not line.startswith(("LINE ", "^")))
    text = text or type(error).__name__
    if any(word in text for word in _FULL):
        return ScratchFull(full(scratch()))
    if str(root) in text:  # a file of the table is damaged
        return UserError(f"{text}: run nutbeam fsck {root}")
    # Other operational errors come from the machine, such as no memory or no disk space.
    return UserError(text) if isinstance(error, duckdb.OperationalError) else UsageError(text)


def _plain(value: Any) -> Any:
    """Returns a value for JSON: bytes as hex, times in ISO form."""
    if isinstance(value, bytes | bytearray | memoryview):
        return bytes(value).hex()
    if isinstance(value, datetime.date | datetime.time):
        return value.isoformat()
    if isinstance(value, dict):
        return {str(name): _plain(v) for name, v in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(v) for v in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None  # JSON has neither infinity nor NaN
    return value if value is None or isinstance(value, str | int | float) else str(value)


def _show(names: Sequence[str], rows: Iterator[tuple[Any, ...]], most: int) -> None:
    from rich.box import SQUARE
    from rich.table import Table

    from ..command_line.console import VisibleConsole

    shown = Table(box=SQUARE)
    for name in names:
        shown.add_column(_cell(name), overflow="fold")
    cut = False
    for number, row in enumerate(rows):
        if cut := number == most > 0:
            break
        shown.add_row(*(_cell(_plain(value)) for value in row))
    width = None if sys.stdout.isatty() else 200
    VisibleConsole(sys.stdout, width).print(shown)
    if cut:
        print(f"the first {most:,} rows; --max_rows 0 shows all")


def _cell(value: Any) -> str:
    text = json.dumps(value) if isinstance(value, dict | list) else str(value)
    text = "" if value is None else visible(text)
    return text if len(text) <= _WIDEST else f"{text[: _WIDEST - 1]}…"
