"""Lets a query use short names of statuses, as options do: ``status = 'fetched'``.

DuckDB parses the query and serializes its syntax tree. The tree says where in the text a constant
is compared with a column named ``status``. Only these constants are replaced, and each replacement
still matches the constant as it was typed. All other text stays as it is, also comments and
constructs that this module does not know, so their meaning cannot change. A query that DuckDB does
not serialize stays as typed as a whole.
"""

import json
from collections.abc import Iterator
from typing import Any

from ...policy.vocabulary import STATUS_WORDS, statuses_of

_COMPARED = ("COMPARE_EQUAL", "COMPARE_NOTEQUAL", "COMPARE_DISTINCT_FROM",
             "COMPARE_NOT_DISTINCT_FROM")  # fmt: skip
_LISTED = ("COMPARE_IN", "COMPARE_NOT_IN")
_SHORT = frozenset(word for word in STATUS_WORDS if not word.startswith("db_"))


def with_statuses(connection: Any, query: str) -> str:
    """Returns a query with short names of statuses replaced.

    Args:
        connection: A connection to DuckDB.
        query: One statement.
    """
    if not any(f"'{word}'" in query for word in _SHORT):
        return query
    (tree,) = connection.execute("SELECT json_serialize_sql(?::VARCHAR)", [query]).fetchone()
    return replaced(query, json.loads(tree))


def replaced(query: str, tree: Any) -> str:
    """Returns a query with the short names of statuses replaced that its syntax tree names.

    >>> column = {"class": "COLUMN_REF", "column_names": ["s", "status"], "query_location": 6}
    >>> constant = {"class": "CONSTANT", "query_location": 17, "literal": {"text": "gone"}}
    >>> equal = {"type": "COMPARE_EQUAL", "left": column, "right": constant}
    >>> replaced("WHERE s.status = 'gone'", {"where": equal})
    "WHERE s.status = CASE WHEN s.status IN ('db_gone') THEN s.status ELSE 'gone' END"
    """
    text = query.encode()
    for place, old, new in sorted(set(_edits(tree)), reverse=True):
        if text[place : place + len(old)] == old.encode():
            text = text[:place] + new.encode() + text[place + len(old) :]
    return text.decode()


def _edits(node: Any) -> Iterator[tuple[int, str, str]]:
    """Yields (place in bytes, old text, new text) of each constant to replace."""
    if isinstance(node, list):
        for child in node:
            yield from _edits(child)
    elif isinstance(node, dict):
        yield from _edits_here(node)
        for child in node.values():
            yield from _edits(child)


def _edits_here(node: dict[str, Any]) -> Iterator[tuple[int, str, str]]:
    if node.get("type") in _COMPARED:
        sides = node["left"], node["right"]
        for one, other in (sides, sides[::-1]):
            column, word = _status_column(one), _short_word(other)
            if column and word:
                names = f"CASE WHEN {column} IN ({_names(word)}) THEN {column} ELSE '{word}' END"
                yield other["query_location"], f"'{word}'", names
    elif node.get("type") in _LISTED:
        first, *others = node["children"]
        for other in others:
            word = _short_word(other)
            if _status_column(first) and word:
                yield other["query_location"], f"'{word}'", f"'{word}', {_names(word)}"


def _status_column(node: dict[str, Any]) -> str | None:
    """Returns a column named ``status`` as SQL; None if the node is something else."""
    names = node.get("column_names", [""])
    if node.get("class") != "COLUMN_REF" or names[-1].lower() != "status":
        return None
    return ".".join(name if name.isidentifier() else _quoted(name) for name in names)


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _short_word(node: dict[str, Any]) -> str | None:
    """Returns the short name of a status that a node is; None if it is something else."""
    # Older versions of DuckDB have "value", newer ones "literal".
    value = (node.get("literal") or {}).get("text") or (node.get("value") or {}).get("value")
    return value if node.get("class") == "CONSTANT" and value in _SHORT else None


def _names(word: str) -> str:
    return ", ".join(f"'{status.name.lower()}'" for status in statuses_of(word))
