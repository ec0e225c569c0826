"""Reads the syntax tree of a query, as DuckDB serializes it: which expressions are statuses."""

import dataclasses
from collections.abc import Iterator
from typing import Any

Node = dict[str, Any]

STATUS = "status"
# Functions and operators whose result is their first argument, or is made of its values.
_SAME = ("lower", "trim", "min", "max", "any_value", "first", "last", "mode", "arg_min", "arg_max",
         "OPERATOR_COALESCE")  # fmt: skip


@dataclasses.dataclass(frozen=True)
class StatusNames:
    """Names of columns in a query.

    Attributes:
        columns: Names of columns that are statuses, in lower case: ``status`` and its aliases.
        derived: Names of columns that are made of statuses, such as ``max(status)``.
        redefined: Whether the query gives such a name to something else, too.
    """

    columns: frozenset[str]
    derived: frozenset[str]
    redefined: bool

    def column_of(self, node: Node) -> str | None:
        """Returns a column that is a status as SQL; None if the node is something else."""
        if node.get("type") == "OPERATOR_CAST":
            return self.column_of(node["child"])
        names = node.get("column_names", [""])
        if node.get("class") != "COLUMN_REF" or names[-1].lower() not in self.columns:
            return None
        return ".".join(name if name.isidentifier() else _quote_name(name) for name in names)

    def is_derived(self, node: Node) -> bool:
        """Returns whether a node is made of a status, such as ``lower(status)``."""
        if node.get("class") == "COLUMN_REF":
            return node["column_names"][-1].lower() in self.derived
        if (node.get("function_name") or node.get("type")) not in _SAME:
            return False
        first = next(iter(arguments(node)), {})
        return self.column_of(first) is not None or self.is_derived(first)


def names_in(tree: Any) -> StatusNames:
    """Returns the names under which a query has statuses."""
    named = [(name.lower(), node) for name, node in _declared_names(tree)]
    names, size = StatusNames(frozenset([STATUS]), frozenset(), redefined=False), 0
    while size < (size := len(names.columns) + len(names.derived)):
        columns = {name for name, node in named if names.column_of(node) is not None}
        derived = {name for name, node in named if names.is_derived(node)}
        names = StatusNames(names.columns | columns, names.derived | derived, redefined=False)
    others = (
        name in names.columns | names.derived
        and names.column_of(node) is None
        and not names.is_derived(node)
        for name, node in named
    )
    return dataclasses.replace(names, redefined=any(others))


def nodes(tree: Any) -> Iterator[Node]:
    """Yields all nodes of a tree."""
    if isinstance(tree, list):
        for child in tree:
            yield from nodes(child)
    elif isinstance(tree, dict):
        yield tree
        for child in tree.values():
            yield from nodes(child)


def arguments(node: Node) -> list[Node]:
    """Returns the arguments of a function or an operator."""
    # Newer versions of DuckDB wrap each argument.
    children = node.get("arguments") or node.get("children") or []
    return [child.get("expression", child) for child in children]


def constant(node: Node) -> str | None:
    """Returns the text of a constant; None if the node is something else."""
    if node.get("type") == "OPERATOR_CAST":
        return constant(node["child"])
    if node.get("class") != "CONSTANT":
        return None
    # Older versions of DuckDB have "value", newer ones "literal".
    value = (node.get("literal") or {}).get("text") or (node.get("value") or {}).get("value")
    return value if isinstance(value, str) and not _is_number(node) else None


def place_in_text(node: Node) -> int:
    """Returns the place of a constant in the text of the query, in bytes."""
    return (
        place_in_text(node["child"])
        if node.get("type") == "OPERATOR_CAST"
        else node["query_location"]
    )


def selected_expressions(query: Any) -> list[Node]:
    """Returns the expressions that a query selects; of a UNION, those of its first query."""
    while "select_list" not in query:
        query = query.get("left") or next(iter(query.get("children") or []), None)
        if query is None:
            return []
    return list(query["select_list"])


def _is_number(node: Node) -> bool:
    kind = (node.get("literal") or {}).get("kind")
    return kind is not None and kind != "STRING"


def _declared_names(tree: Any) -> Iterator[tuple[str, Node]]:
    """Yields each (name, expression) that a query declares."""
    for node in nodes(tree):
        if node.get("alias") and "class" in node:
            yield node["alias"], node
        if "query_node" in node:  # WITH name(columns) AS (…)
            yield from zip(
                node.get("aliases") or [], selected_expressions(node["query_node"]), strict=False
            )
        columns = node.get("column_name_alias") or []
        if columns:  # FROM (…) AS name(columns)
            inner = (node.get("subquery") or {}).get("node")
            expressions = selected_expressions(inner) if inner else []
            yield from zip(columns, expressions or [{}] * len(columns), strict=False)


def _quote_name(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
