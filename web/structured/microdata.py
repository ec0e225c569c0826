"""Reads microdata: HTML Living Standard, chapter 5."""

from typing import Any

from selectolax.lexbor import LexborHTMLParser, LexborNode

from ..urls.userinfo import parse_target
from .item_collector import (
    MAX_ITEM_DEPTH,
    MICRODATA,
    ItemCollector,
    schema_names,
    single_values,
)

_MAX_REFERRED = 2_000  # elements of a page that items refer to
_SELECTOR = "[itemscope],[itemprop]:not([itemscope])"
# HTML 5.2.4: the attribute with the value. It is a URL, or a text.
_URLS = {
    **dict.fromkeys(("a", "area", "link"), "href"),
    **dict.fromkeys(("audio", "embed", "iframe", "img", "source", "track", "video"), "src"),
    "object": "data",
}
_TEXTS = {"meta": "content", "data": "value", "meter": "value"}


def add_microdata_items(document: LexborHTMLParser, base: str, items: ItemCollector) -> None:
    """Adds the items of a page that are in no other one.

    An element with ``itemprop`` that belongs to no item is one, too, if it has ``itemscope``: by the
    standard it is none, but readers take it.

    Args:
        document: The tree.
        base: Absolute URL that links are relative to.
        items: Gets the items.
    """
    _Microdata(document, base, items).read()


class _Microdata:
    def __init__(self, document: LexborHTMLParser, base: str, items: ItemCollector) -> None:
        self._document, self._base, self._items = document, base, items
        self._nodes = items.allowed_elements(document.css(_SELECTOR))
        self._places = {node.mem_id: at for at, node in enumerate(self._nodes)}
        self._attributes = [node.attributes for node in self._nodes]
        # The element with the nearest itemscope, by that of an element around others.
        self._scopes = {
            node.mem_id: node.mem_id
            for node, attributes in zip(self._nodes, self._attributes, strict=True)
            if "itemscope" in attributes
        }
        self._properties: dict[int, list[int]] = {}
        self._by_id: dict[str, LexborNode] | None = None
        self._referred = _MAX_REFERRED
        self._built: set[int] = set()

    def read(self) -> None:
        """Adds the items."""
        owners = [self._scope_around(node) for node in self._nodes]
        for at, owner in enumerate(owners):
            if owner and "itemprop" in self._attributes[at]:
                self._properties.setdefault(owner, []).append(at)
        scopes = [at for at, attributes in enumerate(self._attributes) if "itemscope" in attributes]
        outer = [at for at in scopes if "itemprop" not in self._attributes[at]]
        items = {at: self._build(at, ()) for at in outer}
        for at in scopes:
            if at not in self._built:
                items[at] = self._build(at, ())
        for _, item in sorted(items.items()):
            types = item.get("@type", [])
            self._items.add(MICRODATA, [types] if isinstance(types, str) else types, item)

    def _scope_around(self, node: LexborNode) -> int:
        """Returns the id of the nearest element around a node that is an item; 0: there is none."""
        path: list[int] = []
        around = node.parent
        while around is not None and around.mem_id not in self._scopes:
            path.append(around.mem_id)
            around = around.parent
        scope = 0 if around is None else self._scopes[around.mem_id]
        self._scopes.update(dict.fromkeys(path, scope))
        return scope

    def _build(self, at: int, around: tuple[int, ...]) -> dict[str, Any]:
        """Returns an item with the items in it.

        Args:
            at: Its place among the elements.
            around: Places of the items around it.
        """
        is_repeated = at in self._built
        self._built.add(at)
        node, attributes = self._nodes[at], self._attributes[at]
        item: dict[str, Any] = {}
        if names := schema_names(attributes.get("itemtype")):
            item["@type"] = names[0] if len(names) == 1 else names
        if item_id := (attributes.get("itemid") or "").strip():
            item["@id"] = parse_target(item_id, self._base) or item_id
        places = self._properties.get(node.mem_id, [])
        if references := (attributes.get("itemref") or "").split():
            places = sorted({*places, *self._referred_places(references)} - {at})
        self._referred -= is_repeated * (1 + len(places))
        values: dict[str, list[Any]] = {}
        for place in places:
            if place in (*around, at) or (place in self._built and self._referred < 0):
                self._items.count("item_cycle")
                continue
            value = self._value(place, (*around, at))
            for name in schema_names(self._attributes[place].get("itemprop")):
                values.setdefault(name, []).append(value)
        if not values and (text := self._items.text_of(node)):
            item["@value"] = text
        return item | single_values(values)

    def _referred_places(self, references: list[str]) -> list[int]:
        """Returns the places of the properties in the elements that an item refers to (HTML 5.2.5)."""
        if self._by_id is None:
            self._by_id = {}
            for node in self._document.css("[id]"):
                self._by_id.setdefault(node.attributes.get("id") or "", node)
        places: list[int] = []
        for reference in dict.fromkeys(references):
            node = self._by_id.get(reference)
            if node is None:
                continue
            if node.mem_id in self._places and "itemscope" in node.attributes:
                inner = [node]
            elif self._referred > 0:
                inner = node.css("[itemprop]")
                scope = self._scope_around(node)
                inner = [each for each in inner if self._scope_around(each) == scope]
            else:
                self._items.count("structured_data_too_large")
                return places
            self._referred -= len(inner)
            places += [self._places[each.mem_id] for each in inner if each.mem_id in self._places]
        return [place for place in places if "itemprop" in self._attributes[place]]

    def _value(self, place: int, around: tuple[int, ...]) -> Any:
        node, attributes = self._nodes[place], self._attributes[place]
        tag = node.tag or ""
        if "itemscope" in attributes:
            if len(around) < MAX_ITEM_DEPTH:
                return self._build(place, around)
            self._items.count("item_too_deep")
            return None
        if tag in _URLS:
            address = (attributes.get(_URLS[tag]) or "").strip()
            return (parse_target(address, self._base) or address) if address else ""
        if tag in _TEXTS:
            return attributes.get(_TEXTS[tag]) or ""
        if tag == "time" and attributes.get("datetime"):
            return attributes["datetime"]
        # Not in the standard, but schema.org's examples have it on any element.
        return attributes.get("content") or self._items.text_of(node)
