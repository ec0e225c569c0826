"""Reads JSON-LD of pages, also with the mistakes that pages make.

Repaired are: comments of HTML, CDATA and JavaScript around and in it, a comma or semicolon after the last value,
control characters in strings, wrong escapes, quotes as ``&quot;``, quotes in strings, and several values one after
another.
"""

import html
import json
import re
from collections.abc import Iterable, Iterator
from typing import Any

from .item_collector import JSON_LD, ItemCollector, schema_name, values_in

_MAX_ROOTS = 1_000  # in a block
# A string, a comment, or a comma with nothing after it.
_TOKEN = re.compile(
    r'"(?:[^"\\]|\\.)*+"|//[^\n]*+|/\*(?:(?!\*/).)*+(?:\*/)?|<!--|-->|<!\[CDATA\[|\]\]>'
    r"|,(?=\s*+(?:[\]}]|\Z))",
    re.DOTALL,
)
# A string that may have quotes in it: one that ends it stands before a colon, a comma or a bracket.
_QUOTING_STRING = re.compile(r'"((?:[^"\\]|\\.|"(?!\s*+(?:[,:\]}]|\Z)))*+)(?:"|\Z)', re.DOTALL)
_QUOTE = re.compile(r'(\\.)|"', re.DOTALL)
_WRONG_ESCAPE = re.compile(r'\\(x[0-9a-fA-F]{2}|u(?![0-9a-fA-F]{4})|[^"\\/bfnrtu])', re.DOTALL)
_BETWEEN = re.compile(r"[\s,;\ufeff]*+")


def add_json_ld_items(blocks: Iterable[str], items: ItemCollector) -> None:
    """Adds the items in the blocks of a page: each object, and each node of a ``@graph``.

    A block that cannot be read does not cost the others; it is counted as ``json_ld_malformed``.

    >>> items = ItemCollector(print)
    >>> add_json_ld_items(['{"@type": "Product", "name": "Tea",}', "{broken"], items)
    json_ld_malformed
    >>> items.items
    [StructuredItem(syntax='json-ld', type='Product', properties='{"@type":"Product","name":"Tea"}')]
    """
    for block in blocks:
        if not items.allows(len(block)):
            continue
        try:
            roots, is_whole = _load_roots(block, items)
        except RecursionError:
            items.count("json_ld_too_deep")
            continue
        if not is_whole:
            items.count("json_ld_malformed")
        for root in roots:
            for each in values_in(root):
                if isinstance(each, dict):
                    _add_node(each, None, items)


def _add_node(node: dict[str, Any], context: Any, items: ItemCollector) -> None:
    context = node.get("@context", context)
    graph = node.get("@graph")
    if isinstance(graph, dict | list):
        for each in values_in(graph):
            if isinstance(each, dict):
                _add_node(each if "@graph" not in each else {}, context, items)
        node = {name: value for name, value in node.items() if name != "@graph"}
        if not node.keys() - {"@context", "@id"}:
            return
    vocabulary = _vocabulary_of(context)
    names = [name for name in values_in(node.get("@type")) if isinstance(name, str)]
    if vocabulary is None:  # of schema.org
        node = {name: value for name, value in node.items() if name != "@context"}
        names = [schema_name(name) for name in names]
    else:
        names = [name if ":" in name else vocabulary + name for name in names]
    if node:
        items.add(JSON_LD, [name for name in names if name.split()], node)


def _vocabulary_of(context: Any) -> str | None:
    """Returns the address of the names in a context; None: schema.org, as without a context."""
    for each in values_in(context):
        address = each.get("@vocab") if isinstance(each, dict) else each
        if isinstance(address, str) and address.strip():
            is_schema = "schema.org" in address.lower()
            return None if is_schema else address.strip().rstrip("/") + "/"
    return None


def _load_roots(block: str, items: ItemCollector) -> tuple[list[Any], bool]:
    """Returns the values in a block, up to a mistake that is not repaired, and whether there is none."""
    text = block.strip()
    if not text:
        return [], True
    try:
        return [_DECODER.decode(text)], True
    except ValueError:
        if not items.allows(len(text)):  # to repair it is work, too
            return [], False
    roots, is_whole = _decode_each(text)
    if not roots and "&" in text:
        roots, is_whole = _decode_each(html.unescape(text))
    if not roots:
        roots, is_whole = _decode_each(_QUOTING_STRING.sub(_escape_quotes, text))
    return roots, is_whole


def _escape_quotes(string: re.Match[str]) -> str:
    inner = (
        _QUOTE.sub(lambda quote: quote[1] or '\\"', string[1]) if '"' in string[1] else string[1]
    )
    return f'"{inner}"'


def _repair_token(token: re.Match[str]) -> str:
    text = token[0]
    if text[0] != '"':
        return ""
    return _WRONG_ESCAPE.sub(_repair_escape, text) if "\\" in text else text


def _repair_escape(escape: re.Match[str]) -> str:
    if len(escape[1]) > 1:  # "\x26", as in JavaScript
        return f"\\u00{escape[1][1:]}"
    return "'" if escape[1] == "'" else f"\\\\{escape[1]}"


def _decode_each(text: str) -> tuple[list[Any], bool]:
    """Returns the values in a text after repair, up to a mistake, and whether there is none."""
    roots: list[Any] = []
    for value in _roots_in(_TOKEN.sub(_repair_token, text)):
        if value is _MISTAKE:
            return roots, False
        roots.append(value)
    return roots, bool(roots)


_MISTAKE = object()


def _roots_in(text: str) -> Iterator[Any]:
    """Yields the values in a text one after another, and ``_MISTAKE`` if it ends in another way."""
    at = 0
    for _ in range(_MAX_ROOTS):
        separator = _BETWEEN.match(text, at)
        at = separator.end() if separator else at
        if at == len(text):
            return
        try:
            value, at = _DECODER.raw_decode(text, at)
        except ValueError:
            yield _MISTAKE
            return
        yield value
    yield _MISTAKE


# Control characters in strings are allowed; NaN and Infinity, which JSON does not have, are texts.
_DECODER = json.JSONDecoder(strict=False, parse_constant=str)
