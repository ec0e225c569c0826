"""Lets a query use short names of statuses, as options do: ``status = 'fetched'``.

DuckDB parses the query and serializes its syntax tree. The tree says where in the text a constant
is compared with a status. Only these constants are replaced, and each replacement still matches the
constant as it was typed. All other text stays as it is, also comments and constructs that this
module does not know, so their meaning cannot change. A query that DuckDB does not serialize stays
as typed as a whole.

A constant that no status can equal is an error: otherwise the result would be empty, in silence.
"""

import dataclasses
import fnmatch
import json
import re
from collections.abc import Iterator
from typing import Any

from ...policy.components.vocabulary import STATUS_WORDS, statuses_of
from ...web.base.errors import UsageError

_COMPARED = ("COMPARE_EQUAL", "COMPARE_NOTEQUAL", "COMPARE_DISTINCT_FROM",
             "COMPARE_NOT_DISTINCT_FROM")  # fmt: skip
_LISTED = ("COMPARE_IN", "COMPARE_NOT_IN")
_IN_LISTS = ("list_contains", "list_has", "array_contains", "array_has", "contains")
_LISTS = ("list_value", "list_pack", "array_value")
# Operators with a pattern: LIKE, ILIKE and GLOB.
_LIKE, _GLOB = ("~~", "!~~", "~~*", "!~~*"), ("~~~",)
_SHORT = frozenset(word for word in STATUS_WORDS if not word.startswith("db_"))
_NAMES = tuple(word for word in STATUS_WORDS if word.startswith("db_"))

# (place in bytes, old text, new text)
_Edit = tuple[int, str, str]
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


def with_statuses(connection: Any, query: str) -> str:
    """Returns a query with short names of statuses replaced.

    Args:
        connection: A connection to DuckDB.
        query: One statement.

    Raises:
        UsageError: A status is compared with a word that means none.
    """
    if "'" not in query:
        return query
    (tree,) = connection.execute("SELECT json_serialize_sql(?::VARCHAR)", [query]).fetchone()
    return replace_statuses(query, json.loads(tree))


def replace_statuses(query: str, tree: Any) -> str:
    """Returns a query with the short names of statuses replaced that its syntax tree names.

    >>> column = {"class": "COLUMN_REF", "column_names": ["s", "status"], "query_location": 6}
    >>> constant = {"class": "CONSTANT", "query_location": 17, "literal": {"text": "gone"}}
    >>> equal = {"type": "COMPARE_EQUAL", "left": column, "right": constant}
    >>> replace_statuses("WHERE s.status = 'gone'", {"where": equal})
    "WHERE s.status = (CASE WHEN s.status IN ('db_gone') THEN s.status ELSE 'gone' END)"

    Raises:
        UsageError: A status is compared with a word that means none.
    """
    names = names_in(tree)
    edits = {edit for node in nodes(tree) for edit in _edits(node, names)}
    text = query.encode()
    for place, old, new in sorted(edits, reverse=True):
        if text[place : place + len(old)] == old.encode():
            text = text[:place] + new.encode() + text[place + len(old) :]
    return text.decode()


def _edits(node: Node, names: StatusNames) -> Iterator[_Edit]:
    kind, function = node.get("type"), node.get("function_name")
    if kind in _COMPARED:
        sides = node["left"], node["right"]
        for one, other in (sides, sides[::-1]):
            yield from _comparison_edits(one, other, names)
    elif kind in _LISTED:
        first, *others = arguments(node)
        yield from _list_edits(first, others, names)
    elif kind == "SUBQUERY" and node.get("comparison_type") in _COMPARED and node.get("child"):
        yield from _subquery_edits(node["child"], node["subquery"].get("node") or {}, names)
    elif function in _IN_LISTS:
        for one, other in _both_ways(arguments(node)):
            if other.get("function_name") in _LISTS:
                yield from _list_edits(one, arguments(other), names)
    elif function in (*_LIKE, *_GLOB):
        one, pattern = arguments(node)[:2]
        if names.column_of(one) is not None:
            _check_pattern(constant(pattern), str(function), names)


def _both_ways(operands: list[Node]) -> list[tuple[Node, Node]]:
    return [(operands[0], operands[1]), (operands[1], operands[0])] if len(operands) > 1 else []


def _comparison_edits(one: Node, other: Node, names: StatusNames) -> Iterator[_Edit]:
    """Yields the edit of a constant that is compared with a status."""
    word, column = constant(other), names.column_of(one)
    if word is None:
        return
    if column is None:
        _check_derived(one, word, names)
    elif word in _SHORT:
        new = f"(CASE WHEN {column} IN ({_full(word)}) THEN {column} ELSE '{word}' END)"
        yield place_in_text(other), f"'{word}'", new
    else:
        _check(word, names)


def _list_edits(one: Node, others: list[Node], names: StatusNames) -> Iterator[_Edit]:
    """Yields the edits of constants in a list that is compared with a status."""
    for other in others:
        word = constant(other)
        if word is None:
            continue
        if names.column_of(one) is None:
            _check_derived(one, word, names)
        elif word in _SHORT:
            yield place_in_text(other), f"'{word}'", f"'{word}', {_full(word)}"
        else:
            _check(word, names)


def _subquery_edits(one: Node, query: Any, names: StatusNames) -> Iterator[_Edit]:
    """Yields the edits of what a subquery selects, or ``ANY`` of a list."""
    for node in selected_expressions(query):
        inner = next(iter(arguments(node)), {}) if node.get("function_name") == "unnest" else {}
        if inner.get("function_name") in _LISTS:
            yield from _list_edits(one, arguments(inner), names)
        elif names.column_of(one) is not None and (word := constant(node)) is not None:
            _refuse_short(word, names)
            _check(word, names)


def _check(word: str, names: StatusNames) -> None:
    """Checks that a word that is compared with a status is one."""
    if word not in _NAMES and not names.redefined:
        raise UsageError(
            f"there is no status {word!r}: the statuses are {', '.join(_NAMES)}, also without db_"
        )


def _check_derived(one: Node, word: str, names: StatusNames) -> None:
    if names.is_derived(one):
        _refuse_short(word, names)


def _refuse_short(word: str, names: StatusNames) -> None:
    if word in _SHORT and not names.redefined:
        raise UsageError(
            f"write {_full(word)} for {word!r} here: short names work in status = {word!r} and "
            f"in status IN ({word!r}, …)"
        )


def _check_pattern(pattern: str | None, function: str, names: StatusNames) -> None:
    """Checks that a pattern matches a status."""
    if pattern is None or names.redefined:
        return
    _refuse_short(pattern, names)
    if function in _LIKE:
        parts = {"%": ".*", "_": "."}
        expression = "".join(parts.get(char, re.escape(char)) for char in pattern)
    else:
        expression = fnmatch.translate(pattern)
    flags = re.IGNORECASE if function.endswith("~~*") else re.NOFLAG
    if not any(re.fullmatch(expression, name, flags) for name in _NAMES):
        raise UsageError(f"no status is like {pattern!r}: the statuses are {', '.join(_NAMES)}")


def _full(word: str) -> str:
    return ", ".join(f"'{status.name.lower()}'" for status in statuses_of(word))


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
