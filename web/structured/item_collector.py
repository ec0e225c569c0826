"""The items of structured data of a page: collects them, cleans their values, keeps them within limits."""

import json
import math
from collections.abc import Callable
from typing import Any, NamedTuple

from selectolax.lexbor import LexborNode

from ..base.safe_json import storable_text
from ..urls.userinfo import mask_users
from .value_text import text_of_markup, value_markup

JSON_LD, MICRODATA, RDFA = "json-ld", "microdata", "rdfa"
OPEN_GRAPH, TWITTER = "opengraph", "twitter"
DUBLIN_CORE, HIGHWIRE = "dublin-core", "highwire"
SYNTAXES = (JSON_LD, MICRODATA, RDFA, OPEN_GRAPH, TWITTER, DUBLIN_CORE, HIGHWIRE)

# Of a page. A unit of work takes 0.1 µs at most: a character of JSON-LD or of the markup of a value.
MAX_WORK = 300_000
ELEMENT_WORK = 60  # of an element with attributes of structured data
MAX_PAGE_ITEMS = 1_000
MAX_VALUES = 10_000
MAX_ITEM_BYTES = 1_000_000  # of all items together
# Of an item and of a value.
MAX_ITEM_DEPTH = 32
_MAX_VALUE_CHARS = 100_000
MAX_NAMES = 50  # in an attribute

_SCHEMA_ORG = tuple(
    f"{scheme}://{host}schema.org/" for scheme in ("https", "http") for host in ("", "www.")
)
_ENCODER = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"))


class StructuredItem(NamedTuple):
    """An item of structured data, such as a product.

    Attributes:
        syntax: How the page writes it, one of ``SYNTAXES``.
        type: Its types, with a space between them: the names of schema.org's, the URLs of others.
        properties: A JSON object: values by name. ``@type`` and ``@id`` are those of the item, ``@value``
            is the text of an item without properties. Items within it have the same form.
    """

    syntax: str
    type: str
    properties: str


class ItemCollector:
    """Collects the items of a page; what exceeds a limit is left out and counted by its reason.

    Args:
        count: Called with the reason.
    """

    def __init__(self, count: Callable[[str], None]) -> None:
        self.count = count
        self.items: list[StructuredItem] = []
        self._work = MAX_WORK
        self._has_large_text = False
        self._values = MAX_VALUES
        self._bytes = MAX_ITEM_BYTES

    def allows(self, work: int) -> bool:
        """Takes units of work from those of the page; returns False, and counts it, if it has no more."""
        if work > self._work:
            self.count("structured_data_too_large")
            return False
        self._work -= work
        return True

    def allowed_elements(self, nodes: list[LexborNode]) -> list[LexborNode]:
        """Returns elements whose attributes may be read, the first of these; their values need work, too."""
        number = min(len(nodes), self._work // (2 * ELEMENT_WORK))
        self.allows(ELEMENT_WORK * number)
        if number < len(nodes):
            self.count("structured_data_too_large")
        return nodes[:number]

    def text_of(self, node: LexborNode) -> str:
        """Returns the text of an element as the value of a property; empty if it is too much work."""
        if self._has_large_text:  # to get the markup is work, too
            self.count("structured_data_too_large")
            return ""
        markup = value_markup(node)
        self._has_large_text = not self.allows(len(markup))
        return "" if self._has_large_text else text_of_markup(markup)

    def add(self, syntax: str, type_names: list[str], properties: dict[str, Any]) -> None:
        """Adds an item, unless it exceeds a limit of the page."""
        if len(self.items) >= MAX_PAGE_ITEMS:
            self.count("too_many_items")
            return
        values_left = self._values
        cleaned = self._clean(properties, 0)
        if self._values < 0:
            self.count("too_many_item_values")
            self._values = values_left // 2  # for smaller items; to count again is work, too
            return
        text = _ENCODER.encode(cleaned)
        self._bytes -= len(text) if text.isascii() else len(text.encode())
        if self._bytes < 0:
            self.count("items_too_large")
        else:
            types = mask_users(storable_text(" ".join(type_names)))
            self.items.append(StructuredItem(syntax, types, text))

    def _clean(self, value: Any, depth: int) -> Any:
        """Returns a value that can be stored: without passwords in URLs, and not too deep."""
        self._values -= 1
        if isinstance(value, str):
            if len(value) > _MAX_VALUE_CHARS:
                self.count("item_value_too_long")
                value = value[:_MAX_VALUE_CHARS]
            return mask_users(value if _is_plain(value) else storable_text(value))
        if isinstance(value, float) and not math.isfinite(value):
            return str(value)
        if not isinstance(value, dict | list) or self._values < 0:
            return value
        if depth >= MAX_ITEM_DEPTH:
            self.count("item_too_deep")
            return None
        if len(value) > self._values:
            self._values = -1
            return None
        if isinstance(value, list):
            return [self._clean(each, depth + 1) for each in value]
        return {_clean_name(name): self._clean(each, depth + 1) for name, each in value.items()}


def _clean_name(name: str) -> str:
    if "@" in name and ":" in name:
        name = mask_users(name)
    return name if _is_plain(name) else storable_text(name)


def _is_plain(text: str) -> bool:
    return text.isascii() and "\0" not in text


def schema_name(name: str) -> str:
    """Returns the name of a type or property of schema.org without its address; others as they are.

    >>> schema_name("http://schema.org/Product"), schema_name("schema:Offer"), schema_name("urn:x")
    ('Product', 'Offer', 'urn:x')
    """
    if name.startswith("http"):
        address = next((each for each in _SCHEMA_ORG if name.startswith(each)), "")
        return name[len(address) :].lstrip("/#") or name
    return name.removeprefix("schema:")


def schema_names(text: str | None) -> list[str]:
    """Returns the names of types or properties in an attribute, each once."""
    words = (text or "").split(None, MAX_NAMES)[:MAX_NAMES]
    return list(dict.fromkeys(map(schema_name, words)))


def values_in(value: Any) -> list[Any]:
    """Returns the values of a property: itself, if it is no list."""
    return value if isinstance(value, list) else [value]


def single_values(properties: dict[str, list[Any]]) -> dict[str, Any]:
    """Returns properties of which each has a list of values; one value stands alone."""
    return {name: each[0] if len(each) == 1 else each for name, each in properties.items()}
