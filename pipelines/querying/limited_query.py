"""Queries of strangers, such as a language model: one SELECT of the views, within limits.

``sql`` reads only the files of the table in any case. Here the caller names no file at all, not even one
of these, and calls no function that reads files, runs a text as a query, or shows settings. DuckDB's own views would do
the same: some show settings, and the text of a view has the paths of files.
"""

import json
from collections.abc import Sequence
from typing import Any, NamedTuple

from ...web.base.errors import UsageError
from .read_only_queries import check_nodes_read, parsed_query, query_nodes

# Functions that a query may select from.
TABLE_FUNCTIONS = ("generate_series", "json_each", "json_tree", "range", "unnest")
# Functions that tell something of this machine.
_REFUSED = ("current_setting", "pragma_version", "write_log")
_CATALOGS = ("information_schema", "pg_catalog")
_CATALOG_VIEWS = ("columns", "tables")  # that say nothing but names and types
# Of the tables below the views: they have rows that no view shows.
_STORED = "stored"
_LONGEST = 20_000  # characters of a query
_SHORTEST_CUT = 200  # characters that are left of a value that is cut


class QueryLimits(NamedTuple):
    """What a query may take.

    Attributes:
        rows: Most rows of a result.
        chars: Most characters of a result.
        seconds: Longest time.
        memory: Memory of the process that runs it, in bytes, beside what it has when it waits.
    """

    rows: int = 100
    chars: int = 100_000
    seconds: float = 30.0
    memory: int = 1_000_000_000


class QueryResult(NamedTuple):
    """The result of a query.

    Attributes:
        columns: Names of the columns.
        rows: Values for JSON.
        is_cut: Whether rows, or parts of values, were left out because of a limit.
    """

    columns: list[str]
    rows: list[list[Any]]
    is_cut: bool


def check_query(connection: Any, query: str) -> None:
    """Checks that a query is one SELECT from views.

    Args:
        connection: A connection of DuckDB, which reads the query but does not run it.
        query: The query.

    Raises:
        UsageError: It is more, or something else; the message says what is refused.
    """
    if len(query) > _LONGEST:
        raise UsageError(f"a query has at most {_LONGEST:,} characters, got {len(query):,}")
    nodes = list(query_nodes(parsed_query(connection, query)))
    check_nodes_read(nodes)
    names = connection.execute(
        "SELECT view_name FROM duckdb_views() "
        "WHERE internal AND schema_name <> 'information_schema'"
    )
    own_views = {name for (name,) in names.fetchall()}
    for node in nodes:
        _check_node(node, own_views)


def _check_node(node: dict[str, Any], own_views: set[str]) -> None:
    kind = node.get("type")
    if _STORED in (
        str(node.get(name)).lower() for name in ("schema", "schema_name", "catalog", "catalog_name")
    ):
        raise UsageError(f"sql selects from views, and not from what is in the schema {_STORED!r}")
    if kind == "TABLE_FUNCTION":
        name = node.get("function", {}).get("function_name", "a function")
        if name not in TABLE_FUNCTIONS:
            raise UsageError(
                f"sql selects from views and from {', '.join(TABLE_FUNCTIONS)}, not from {name}()"
            )
    elif kind == "FUNCTION" and node.get("function_name") in _REFUSED:
        raise UsageError(f"the function {node['function_name']}() is not available here")
    elif kind == "BASE_TABLE":
        name, schema = str(node.get("table_name")), str(node.get("schema_name")).lower()
        if not name.isidentifier():
            raise UsageError(f"sql selects from views by their names, got {name!r}")
        in_catalog = schema in _CATALOGS and name.lower() not in _CATALOG_VIEWS
        if in_catalog or name.lower() in own_views:
            raise UsageError(f"sql selects from views of the table, not from DuckDB's {name}")


def bounded_result(
    columns: list[str], rows: Sequence[Sequence[Any]], limits: QueryLimits
) -> QueryResult:
    """Returns rows within the limits of a result: long values are cut, then rows left out.

    Args:
        columns: Names of the columns.
        rows: Values for JSON; one more row than allowed says that there are more.
        limits: The limits.
    """
    longest = max(_SHORTEST_CUT, limits.chars // max(1, len(columns)))
    bounded, chars, is_cut = list[list[Any]](), 0, len(rows) > limits.rows
    for row in rows[: limits.rows]:
        values = [_cut(value, longest) for value in row]
        chars += len(json.dumps(values, ensure_ascii=False))
        if chars > limits.chars and bounded:
            is_cut = True
            break
        is_cut = is_cut or values != list(row)
        bounded.append(values)
    return QueryResult(columns, bounded, is_cut)


def _cut(value: Any, longest: int) -> Any:
    if isinstance(value, list | dict):
        text = json.dumps(value, ensure_ascii=False)
        return value if len(text) <= longest else f"{text[:longest]}…"
    return f"{value[:longest]}…" if isinstance(value, str) and len(value) > longest else value
