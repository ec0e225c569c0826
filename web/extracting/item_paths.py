"""Paths into the structured data of a page, such as ``Product.offers.price``."""

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from ..structured.item_collector import (
    JSON_LD,
    MICRODATA,
    RDFA,
    StructuredItem,
    schema_name,
    values_in,
)

# Any of the three ways in which a page may write an item.
ANY_SYNTAX = "schema"
PATH_SYNTAXES = (JSON_LD, MICRODATA, RDFA, ANY_SYNTAX)
_MAX_PATH_DEPTH = 32
_TEXTS_OF_ITEMS = ("@value", "name", "@id")


class ItemPath(NamedTuple):
    """A path: the type of an item, then names of properties.

    Attributes:
        syntax: One of ``PATH_SYNTAXES``.
        type: The type, without ``https://schema.org/``.
        names: The properties.
    """

    syntax: str
    type: str
    names: tuple[str, ...]

    def texts(self, items: Iterable[StructuredItem]) -> list[str]:
        """Returns the texts at the path in all items of a page, also in those within others.

        >>> item = StructuredItem("json-ld", "Product", '{"@type":"Product","offers":[{"price":9}]}')
        >>> read_item_path("schema", "Product.offers.price").texts([item])
        ['9']
        """
        values: list[Any] = [
            node
            for item in items
            if self.syntax in (ANY_SYNTAX, item.syntax) and self.type in item.properties
            for node in _nested_nodes(json.loads(item.properties), 0)
            if self.type in _types_of(node)
        ]
        for name in self.names:
            values = [each for value in values for each in _property_values(value, name)]
        return [text for value in values if (text := _text_of_value(value))]


def read_item_path(syntax: str, text: str) -> ItemPath:
    """Reads a path.

    Raises:
        ValueError: It is none.

    >>> read_item_path("json-ld", "Product.offers.price")
    ItemPath(syntax='json-ld', type='Product', names=('offers', 'price'))
    """
    kind, *names = text.split(".")
    if not kind or not names or not all(names):
        raise ValueError("a path is a type and properties, such as Product.offers.price")
    return ItemPath(syntax, kind, tuple(names))


def _nested_nodes(value: Any, depth: int) -> Iterator[Mapping[str, Any]]:
    """Yields an object, and the objects in it."""
    if depth > _MAX_PATH_DEPTH:
        return
    if isinstance(value, dict):
        yield value
        value = list(value.values())
    for child in value if isinstance(value, list) else ():
        yield from _nested_nodes(child, depth + 1)


def _types_of(node: Mapping[str, Any]) -> list[str]:
    return [schema_name(name) for name in values_in(node.get("@type")) if isinstance(name, str)]


def _property_values(value: Any, name: str) -> Iterator[Any]:
    if isinstance(value, dict) and name in value:
        yield from values_in(value[name])


def _text_of_value(value: Any) -> str:
    if isinstance(value, dict):
        value = next((value[name] for name in _TEXTS_OF_ITEMS if name in value), "")
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value).strip() if isinstance(value, str | int | float) else ""
