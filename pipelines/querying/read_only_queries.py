"""Checks that a query only reads.

DuckDB calls a statement a SELECT also if a part of it writes: ``WITH x AS (COPY … TO 'file') FROM x``. Its
access to files does not tell reading from writing, so such a query could write over files of the table.
"""

import json
import re
from collections.abc import Iterable, Iterator
from typing import Any

from ...web.base.errors import UsageError

ONLY_SELECT = "sql takes SELECT only: the table is only read"
# DuckDB's names of the parts of a query that read.
_READING = {"SELECT_NODE", "SET_OPERATION_NODE", "RECURSIVE_CTE_NODE", "CTE_NODE"}
_SPACE = r"(?:\s|--[^\n]*(?:\n|$)|/\*.*?\*/)*"
_EXPLAIN = re.compile(rf"{_SPACE}explain\b{_SPACE}(?:analyze\b)?", re.IGNORECASE | re.DOTALL)
_OPTIONS = re.compile(rf"{_SPACE}\([^()]*\)", re.DOTALL)


def check_reads_only(connection: Any, query: str) -> None:
    """Checks that a query, or what an EXPLAIN explains, only reads.

    Args:
        connection: A connection of DuckDB, which parses the query but does not run it.
        query: One SELECT or EXPLAIN.

    Raises:
        UsageError: It does more.
    """
    texts = [query]
    if explain := _EXPLAIN.match(query):
        texts = [query[explain.end() :]]
        if options := _OPTIONS.match(texts[0]):
            texts.append(texts[0][options.end() :])
    records = [_parsed(connection, text) for text in texts]
    record = next((record for record in records if not record["error"]), None)
    if record is None:
        raise UsageError(ONLY_SELECT)
    check_nodes_read(query_nodes(record))


def parsed_query(connection: Any, query: str) -> dict[str, Any]:
    """Returns the tree of one SELECT, as DuckDB parses it.

    Raises:
        UsageError: It is something else, or more than one.
    """
    record = _parsed(connection, query)
    if record["error"]:
        message = str(record["error_message"])
        raise UsageError(ONLY_SELECT if "Only SELECT" in message else message)
    if len(record["statements"]) != 1:
        raise UsageError("sql takes one SELECT here, without another statement after it")
    return record


def _parsed(connection: Any, query: str) -> dict[str, Any]:
    ((text,),) = connection.execute("SELECT json_serialize_sql(?::VARCHAR)", [query]).fetchall()
    try:
        record: dict[str, Any] = json.loads(text)
    except RecursionError:
        raise UsageError("the query is nested too deeply: write it flatter") from None
    return record


def query_nodes(tree: Any) -> Iterator[dict[str, Any]]:
    """Yields all nodes of a tree."""
    waiting = [tree]
    while waiting:
        node = waiting.pop()
        if isinstance(node, dict):
            yield node
            waiting += node.values()
        elif isinstance(node, list):
            waiting += node


def check_nodes_read(nodes: Iterable[dict[str, Any]]) -> None:
    """Checks that all parts of a query read.

    Raises:
        UsageError: One of them writes.
    """
    if any("cte_map" in node and node.get("type") not in _READING for node in nodes):
        raise UsageError(ONLY_SELECT)
