"""Makes items of the meta elements of a page: Open Graph, Twitter cards, Dublin Core, Highwire."""

import functools
from collections.abc import Iterable

from .item_collector import (
    DUBLIN_CORE,
    HIGHWIRE,
    OPEN_GRAPH,
    TWITTER,
    ItemCollector,
    single_values,
)

_MAX_METAS = 500  # elements of a page
# What the names begin with, in lower case. Open Graph has names of its own by type of object.
_SYNTAX_PREFIXES = {
    OPEN_GRAPH: (
        *("og:", "article:", "book:", "business:", "event:", "fb:", "music:", "place:"),
        *("product:", "profile:", "restaurant:", "video:"),
    ),
    TWITTER: ("twitter:",),
    DUBLIN_CORE: ("dc.", "dc:", "dcterms.", "dcterms:"),
    HIGHWIRE: ("citation_",),
}
_META_PREFIXES = tuple(prefix for prefixes in _SYNTAX_PREFIXES.values() for prefix in prefixes)
# The property with the type of an item.
_TYPES = {OPEN_GRAPH: "og:type", TWITTER: "twitter:card", DUBLIN_CORE: "dc.type", HIGHWIRE: ""}


def is_item_meta(name: str) -> bool:
    """Returns whether a meta element of this name, in lower case, is part of an item.

    >>> is_item_meta("og:title"), is_item_meta("citation_author"), is_item_meta("viewport")
    (True, True, False)
    """
    return name.startswith(_META_PREFIXES)


@functools.lru_cache(maxsize=1_000)
def _syntax_of(name: str) -> str:
    return next(s for s, prefixes in _SYNTAX_PREFIXES.items() if name.startswith(prefixes))


def add_meta_items(metas: Iterable[tuple[str, str]], items: ItemCollector) -> None:
    """Adds an item for each syntax that has meta elements.

    Args:
        metas: (name in lower case, stripped content) of the elements for which ``is_item_meta`` holds.
        items: Gets the items.

    >>> items = ItemCollector(print)
    >>> add_meta_items([("og:type", "article"), ("og:image", "/a"), ("og:image", "/b")], items)
    >>> items.items[0].type, items.items[0].properties
    ('article', '{"og:type":"article","og:image":["/a","/b"]}')
    """
    by_syntax: dict[str, dict[str, list[str]]] = {}
    for number, (name, content) in enumerate(metas):
        if number == _MAX_METAS:
            items.count("structured_data_too_large")
            break
        by_syntax.setdefault(_syntax_of(name), {}).setdefault(name, []).append(content)
    for syntax, properties in by_syntax.items():
        types = properties.get(_TYPES[syntax], [""])[0].split()[:1]
        items.add(syntax, types, single_values(properties))
