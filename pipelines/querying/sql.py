"""sql: queries the table in SQL, by DuckDB over the files of the newest snapshot.

Rows of Bigtable are loaded into DuckDB: those of one pinned snapshot, and only if a query needs them.
"""

import contextlib
import functools
import itertools
import re
import sys
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from ...io.reading.extract_runs import stored_columns, unstored_rules
from ...io.rows.duckdb_tables import (
    MACROS,
    batches_frame,
    empty_table,
    files_of,
    register_files,
    views_sql,
)
from ...io.rows.extracted_views import extracted_views_sql
from ...io.snapshots.manifest import Manifest, newest_manifest
from ...io.storage.places import Place
from ...io.storage.processes import ScratchFull, full, scratch
from ...io.table.opening import open_table
from ...policy.components.views import views
from ...web.base.dataclass import dataclass
from ...web.base.errors import UsageError, UserError
from ...web.base.options import option
from ..base.command import TABLE, Argument, Invocation
from ..base.ending import ENDING
from ..base.suggestions import suggestion
from ..outputs.output_files import csv_line
from .read_only_queries import ONLY_SELECT, check_reads_only
from .sql_functions import register_functions
from .sql_shell import hint_on_statuses, run_shell, run_statements, with_statuses
from .sql_text import json_text, plain_value, readable_value, show, unique_names
from .stored_rows import StoredRows

if TYPE_CHECKING:
    from ...web.extracting.extraction_rules import RuleSet

ARGUMENTS = (
    TABLE,
    Argument("query", "A SELECT. Without it: a shell, or the statements of standard input.", "?"),
)
FORMATS = ("text", "json", "csv")
FORMAT_HELP = "Format of the result; json is one object per line for each row."
_ROWS_AT_ONCE = 1000
_PATIENCE_S = 0.1
_SUM = pa.decimal128(38, 0)  # sums of whole numbers
# Messages of DuckDB if there is no space for its temporary files.
_FULL = ("failed to offload data block", "No space left on device", "File too large")
# DuckDB's words where a signal comes while the main thread is in it.
_INTERRUPTED = "Query interrupted"
_NO_TABLE = re.compile(r'Table with name "?([^"\s]+)"? does not exist.*', re.DOTALL)
_SUGGESTION = re.compile(r'(?<=does not exist)! Did you mean ".*"\?')
_EXTENSION = re.compile(r", but it exists in the (\S+) extension.*", re.DOTALL)
_CODE = re.compile(r"^Conversion Error: Could not convert string '(.*)' to \w+ when casting from "
                   r"source column (\w+)$")  # fmt: skip
_TIME = re.compile(r"(TIMESTAMP.*(?:INTEGER|BIGINT)|(?:INTEGER|BIGINT).*TIMESTAMP).*"
                   r"an explicit cast is required")  # fmt: skip


@dataclass(frozen=True)
class Options:
    """Options of sql."""

    max_rows: int = option(
        100, "Most rows to show as text; 0 is all. JSON and CSV have all rows.", minimum=0
    )
    memory_limit: float = option(
        0.0, "Memory that DuckDB may use; 0 is its own default.", unit="B", minimum=0.0
    )


def run(invocation: Invocation) -> int:
    query = invocation.arguments["query"]
    if query is not None and not query.strip():
        raise UsageError("the query is empty: leave it out for a shell, or write a SELECT")
    address = str(invocation.table)
    with _connected(address, invocation.options.memory_limit) as (connection, stored, errors):
        answer = functools.partial(_answer, connection, stored, invocation, errors)
        if query is not None:
            answer(query)
        elif sys.stdin.isatty() and sys.stdout.isatty():
            run_shell(answer, address)
        else:
            run_statements(answer, sys.stdin)
    return 0


@contextlib.contextmanager
def _connected(
    address: str, memory_limit: float
) -> Iterator[tuple[Any, StoredRows, Callable[[], AbstractContextManager[None]]]]:
    """Yields a connection to the newest snapshot, its stored rows, and the context of their errors."""
    root = open_table(address).files
    duckdb = import_duckdb()
    manifest, failures = newest_manifest(address), list[UserError]()
    rule_sets = _unstored_rule_sets(root)
    errors = functools.partial(duckdb_errors, duckdb, address, failures, rule_sets)
    with errors():
        stored = StoredRows(address, manifest.snapshot, rule_sets)
        settings = {"memory_limit": f"{int(memory_limit)}B"} if memory_limit else {}
        connection = connect_duckdb(duckdb, root, manifest, settings, stored.kinds, failures)
        if rule_sets:
            from .rule_views import create_rule_view

            for rules in rule_sets:
                create_rule_view(connection, rules)
    with contextlib.closing(connection):
        yield connection, stored, errors


def _unstored_rule_sets(files: Place) -> "list[RuleSet]":
    """Returns the sets of rules of the newest runs, but not those whose rows are in documents."""
    texts = unstored_rules(files)
    if not texts:
        return []
    from .rule_views import read_rule_sets  # late: rules need all that parses a page

    return read_rule_sets(texts)


def query_rows(address: str, query: str, memory_limit: float = 0.0) -> pa.Table:
    """Returns the rows of a SELECT; of columns with one name, later ones get a number.

    Args:
        address: Address of the table.
        query: The SELECT.
        memory_limit: Memory that DuckDB may use, in bytes; 0 is its own default.

    Raises:
        UserError: The query is wrong, is more than one SELECT, or the table cannot be read.
    """
    with _connected(address, memory_limit) as (connection, stored, errors), errors():
        statements = _selects(connection, query)
        if len(statements) != 1:
            raise UsageError(f"sql takes one SELECT, got {len(statements)} statements")
        result = _execute(connection, stored, statements[0], connection.sql)
        rows = _interruptible(connection, result.to_arrow_table)
    for number, field in enumerate(rows.schema):
        if field.type == _SUM:
            with contextlib.suppress(pa.ArrowInvalid):  # it is larger
                rows = rows.set_column(number, field.name, rows.column(number).cast(pa.int64()))
    return rows.rename_columns(unique_names(rows.column_names))


def _selects(connection: Any, text: str) -> list[Any]:
    """Returns the statements in a text.

    Raises:
        UsageError: One of them is more than a query.
    """
    kinds = import_duckdb().StatementType
    statements = list(connection.extract_statements(text))
    if any(statement.type not in (kinds.SELECT, kinds.EXPLAIN) for statement in statements):
        raise UsageError(ONLY_SELECT)
    for statement in statements:
        check_reads_only(connection, statement.query)
    return statements


def _execute(
    connection: Any, stored: StoredRows, statement: Any, execute: Callable[[str], Any]
) -> Any:
    query = with_statuses(statement.query)
    _interruptible(connection, stored.bring, connection, query)
    return _interruptible(connection, execute, query)


def _answer(
    connection: Any, stored: StoredRows, invocation: Invocation,
    errors: Callable[[], AbstractContextManager[None]], text: str,
) -> None:  # fmt: skip
    """Prints the results of the statements in a text, one after the other.

    Raises:
        UserError: A statement is wrong, or more than a query.
    """
    with errors():
        for statement in _selects(connection, text):
            result = _execute(connection, stored, statement, connection.execute)
            rows = _rows(connection, result)
            first = next(rows, None)
            _print(result, rows if first is None else itertools.chain([first], rows), invocation)
            hint = None if any(first or ()) else hint_on_statuses(statement.query)
            if hint:
                print(f"nutbeam sql: no result? {hint}", file=sys.stderr)


def _interruptible(connection: Any, function: Callable[..., Any], *args: Any) -> Any:
    """Calls a function of DuckDB in a thread, so that Ctrl-C ends its query at once."""
    with ENDING.noting() as interrupted, ThreadPoolExecutor(max_workers=1) as pool:
        result = pool.submit(function, *args)
        try:
            # After readline, a signal does not end a wait without a timeout.
            while not wait([result], timeout=_PATIENCE_S).done:
                if interrupted.is_set():
                    connection.interrupt()
        except KeyboardInterrupt:  # of a Python program, which handles signals itself
            connection.interrupt()
            raise
        return result.result()


def _rows(connection: Any, result: Any) -> Iterator[tuple[Any, ...]]:
    while rows := _interruptible(connection, result.fetchmany, _ROWS_AT_ONCE):
        yield from rows


def _print(result: Any, value_rows: Iterator[tuple[Any, ...]], invocation: Invocation) -> None:
    names = [column[0] for column in result.description or ()]
    rows = ([plain_value(value) for value in row] for row in value_rows)
    if invocation.format == "json":
        keys = unique_names(names)
        for row in rows:
            print(json_text(dict(zip(keys, row, strict=True))))
    elif invocation.format == "csv":
        sys.stdout.write(csv_line(names))
        for row in rows:
            sys.stdout.write(
                csv_line(json_text(v) if isinstance(v, dict | list) else v for v in row)
            )
    else:
        texts = ([readable_value(value) for value in row] for row in value_rows)
        show(names, texts, invocation.options.max_rows)


@contextlib.contextmanager
def duckdb_errors(
    duckdb: Any, address: str, failures: list[UserError], rule_sets: "Iterable[RuleSet]" = ()
) -> Iterator[None]:
    """Raises errors of DuckDB as errors of users; those of reading files are in ``failures``.

    What a signal's handler raises, DuckDB replaces by an error of its own: here it is a KeyboardInterrupt again.

    Args:
        duckdb: The module.
        address: Address of the table.
        failures: Gets the errors of reading files in a store.
        rule_sets: Sets of rules that have a view without rows in documents.
    """
    failures.clear()
    try:
        yield
    except duckdb.Error as error:
        if failures:
            raise failures[0] from None
        raise _refusal(duckdb, error, address, [rules.name for rules in rule_sets]) from error
    except RuntimeError as error:
        if str(error) == _INTERRUPTED:
            raise KeyboardInterrupt from error
        raise


def import_duckdb() -> Any:
    """Returns the module of DuckDB.

    Raises:
        UsageError: It is not installed.
    """
    try:
        import duckdb
    except ModuleNotFoundError as error:
        raise UsageError("sql needs DuckDB: pip install 'nutbeam[sql]'") from error
    return duckdb


def connect_duckdb(
    duckdb: Any,
    root: Place,
    manifest: Manifest,
    settings: Mapping[str, str] | None = None,
    in_rows: Collection[str] = (),
    failures: list[UserError] | None = None,
) -> Any:
    """Returns a connection that has one snapshot's files as views, and nothing else.

    It loads and downloads no extension, and opens no other file and no URL. Its time zone is UTC.

    Args:
        duckdb: The module.
        root: The folder of the table's files, or its name in a store.
        manifest: The snapshot.
        settings: DuckDB's settings that are not the defaults, such as ``memory_limit``.
        in_rows: Kinds of components that are not in files: ``StoredRows`` brings their rows.
        failures: Gets the errors of reading files in a store.
    """
    config = {
        "autoinstall_known_extensions": "false",
        "autoload_known_extensions": "false",
        "allow_community_extensions": "false",
        "temp_directory": str(scratch() / "duckdb"),
    }
    connection = duckdb.connect(":memory:", config=config)
    for macro in MACROS:
        connection.execute(macro)
    register_functions(connection)
    kinds = [view.kind for view in views().values() if view.kind is not None]
    files = {k.name: [] if k.name in in_rows else files_of(root, manifest, k) for k in kinds}
    for kind in kinds:
        _store(connection, f"empty_{kind.name}", empty_table(kind.name))
    _store(connection, "batches", batches_frame(manifest).to_arrow())
    sizes = {
        root / file.path: file.bytes for kind_files in files.values() for _, file in kind_files
    }
    register_files(connection, sizes, [] if failures is None else failures)
    for statement in views_sql(root, files):
        connection.execute(statement)
    for statement in extracted_views_sql(stored_columns(root)):
        connection.execute(statement)
    listed = ", ".join("'" + str(path).replace("'", "''") + "'" for path in sizes)
    connection.execute(f"SET allowed_paths = [{listed}]")
    connection.execute("SET enable_external_access = false")
    connection.execute("SET python_enable_replacements = false")
    # Times of the views are UTC without a zone. DuckDB compares them with now() in the session's.
    connection.execute("SET TimeZone = 'UTC'")
    for name, value in (settings or {}).items():
        connection.execute(f"SET {name} = '{value}'")
    connection.execute("SET lock_configuration = true")
    return connection


def _store(connection: Any, name: str, rows: pa.Table) -> None:
    """Copies rows into the schema ``stored``."""
    connection.register("rows", rows)
    connection.execute(f"CREATE TABLE stored.{name} AS SELECT * FROM rows")
    connection.unregister("rows")


def _refusal(duckdb: Any, error: Exception, address: str, of_rules: list[str]) -> UserError:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    text = " ".join(line for line in lines if not line.startswith(("LINE ", "^")))
    text = text or type(error).__name__
    if any(word in text for word in _FULL):
        return ScratchFull(full(scratch()))
    if f"{open_table(address).files}/" in text:  # a file of the table is damaged
        return UserError(f"{text}: run nutbeam fsck {address}")
    # DuckDB's reader of Parquet has no class for its errors, such as "Out of buffer", and no file.
    if type(error) is duckdb.Error:
        return UserError(f"a file of {address} cannot be read: {text}: run nutbeam fsck {address}")
    files = open_table(address).files
    text = with_advice(text, [*views(), *stored_columns(files), *of_rules])
    # Other operational errors come from the machine, such as no memory or no disk space.
    return UserError(text) if isinstance(error, duckdb.OperationalError) else UsageError(text)


def with_advice(message: str, views: Iterable[str]) -> str:
    """Replaces DuckDB's advice in an error message with advice that fits our views.

    Args:
        message: The message as one line.
        views: Names of the views.

    >>> with_advice('Catalog Error: Table with name x does not exist! Did you mean "y"?', ["state"])
    "there is no view 'x': the views are state"
    """
    match = _NO_TABLE.search(message)
    if match:
        names = list(views)
        return f"there is no view {match[1]!r}: the views are {', '.join(names)}{suggestion(match[1], names)}"
    if match := _CODE.match(message):
        return f"values of {match[2]} are names, such as {match[1]!r}, not numbers"
    if _TIME.search(message):
        return "times are timestamps: compare them with TIMESTAMP '2026-01-31 12:00:00'"
    if "file system operations are disabled" in message:
        return f"{message.partition(' - ')[0]}: sql reads only the files of the table"
    message = _EXTENSION.sub(": it is in the extension \\1, and sql loads no extension", message)
    return _SUGGESTION.sub("", message)
