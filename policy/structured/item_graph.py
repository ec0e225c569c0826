"""The items of a page as they refer to one another, and the plain values of their properties."""

import html
import itertools
import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from ...web.structured.item_collector import JSON_LD, MICRODATA, RDFA, schema_name, values_in
from ...web.urls.userinfo import parse_target

Item = dict[str, Any]

# Syntaxes whose items have types of schema.org, the one that counts most first.
_TYPED_SYNTAXES = (JSON_LD, MICRODATA, RDFA)
# Properties that hold things of their own, not a part of an item.
_HOLDERS = (
    *("mainEntity", "mainEntityOfPage", "itemListElement", "item", "hasVariant", "breadcrumb"),
    *("subEvent", "blogPost", "dataFeedElement", "hasPart"),
)
_MOST_HOLDERS = 8  # one in the other
_MOST_ITEMS = 1_000  # of a page
_MOST_PROPERTY_VALUES = 1_000
_NAMES = ("name", "@value", "title", "headline")
_MOST_NAMES = 3  # one in the other


class ItemGraph:
    """The items of a page.

    Args:
        stored: Its ``structured_data``: syntax, type and properties of each item.
        url: Its URL, which relative ones in JSON-LD are relative to.
    """

    def __init__(self, stored: Iterable[Mapping[str, Any]], url: str) -> None:
        self._url = url
        rows = [row for row in stored if row["syntax"] in _TYPED_SYNTAXES and row["properties"]]
        rows.sort(key=lambda row: _TYPED_SYNTAXES.index(row["syntax"]))
        self._items = [(row["syntax"], json.loads(row["properties"])) for row in rows]
        # An address of a type that is not of schema.org: the properties mean something else.
        self._strange = {
            id(item)
            for row, (_, item) in zip(rows, self._items, strict=True)
            if row["type"] and all(":" in word for word in row["type"].split())
        }
        self._by_id: dict[str, Item] = {}
        for _, item in self._items:
            self._register(item)

    def _register(self, item: Item) -> None:
        """Notes the items that have an address, the first with properties of each."""
        waiting: list[Any] = [item]
        while waiting:
            each = waiting.pop()
            if isinstance(each, list):
                waiting += reversed(each)
            elif isinstance(each, dict):
                if not _is_reference(each) and isinstance(each.get("@id"), str):
                    self._by_id.setdefault(each["@id"].strip(), each)
                waiting += reversed(list(each.values()))

    def resolve(self, value: Any) -> Any:
        """Returns the item that a value refers to by its address; other values as they are."""
        if isinstance(value, dict) and _is_reference(value):
            return self._by_id.get(str(value["@id"]).strip(), value)
        return value

    def items_of(self, types: frozenset[str]) -> Iterator[tuple[str, Item]]:
        """Yields (syntax, item) of each item of some types, also those in lists and pages."""
        visited: set[int] = set()
        for syntax, item in self._items:
            waiting: list[tuple[Any, int]] = [(item, 0)]
            while waiting:
                value, depth = waiting.pop()
                each = self.resolve(value)
                if isinstance(each, list):
                    waiting += [(inner, depth) for inner in reversed(each)]
                if not isinstance(each, dict) or id(each) in visited or id(each) in self._strange:
                    continue
                visited.add(id(each))
                if not types.isdisjoint(type_names(each)):
                    yield syntax, each
                if depth < _MOST_HOLDERS and len(visited) < _MOST_ITEMS:
                    waiting += [
                        (each[name], depth + 1) for name in reversed(_HOLDERS) if name in each
                    ]

    def values(self, item: Any, *path: str) -> list[Any]:
        """Returns the values of a property, with references resolved; of several names in turn.

        Args:
            item: An item; other values have no properties.
            path: The name of the property, then that of a property of its values, and so on.
        """
        values = [item]
        for name in path:
            owners = (each for each in values if isinstance(each, dict))
            inner = (value for owner in owners for value in values_in(owner.get(name)))
            present = (self.resolve(value) for value in inner if value not in (None, ""))
            values = list(itertools.islice(present, _MOST_PROPERTY_VALUES))
        return values

    def text(self, item: Any, *path: str) -> str | None:
        """Returns the first value of a property as a text: of an item its name."""
        return next(iter(self.texts(item, *path)), None)

    def texts(self, item: Any, *path: str) -> list[str]:
        """Returns the values of a property as texts, without those that have none."""
        texts = (self._text_of(value, 0) for value in self.values(item, *path))
        return [text for text in texts if text]

    def link(self, item: Any, *path: str) -> str | None:
        """Returns the first value of a property as an absolute URL: of an item its address."""
        for value in self.values(item, *path):
            names = ("url", "contentUrl", "@id") if isinstance(value, dict) else ()
            for address in (*map(value.get, names), value) if names else (value,):
                if isinstance(address, str) and (address := address.strip()):
                    return parse_target(address, self._url) or address
        return None

    def _text_of(self, value: Any, depth: int) -> str:
        """Returns the text of a value; of an item its name, which may be an item, too."""
        if not isinstance(value, dict):
            return plain_text(value)
        inner = (self.values(value, name)[:1] for name in _NAMES if depth < _MOST_NAMES)
        texts = (self._text_of(each, depth + 1) for values in inner for each in values)
        return next(filter(None, texts), "")


def plain_text(value: Any) -> str:
    """Returns a text or number in one line, without entities; empty for other values.

    >>> plain_text(" Tea &amp; milk "), plain_text(4.0), plain_text(True), plain_text([])
    ('Tea & milk', '4', 'true', '')
    """
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if isinstance(value, int | float):
        return str(value)
    if not isinstance(value, str):
        return ""
    return " ".join((html.unescape(value) if "&" in value else value).split())


def type_names(item: Item) -> list[str]:
    """Returns the names of an item's types in schema.org."""
    names = values_in(item.get("@type"))
    return [schema_name(name) for name in names if isinstance(name, str)]


def _is_reference(value: Item) -> bool:
    return "@id" in value and value.keys() <= {"@id", "@type"}
