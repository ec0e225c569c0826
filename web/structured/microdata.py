"""Reads microdata: HTML Living Standard, chapter 5."""

from typing import Any

from selectolax.lexbor import LexborHTMLParser, LexborNode

from ..urls.userinfo import parse_target
from .item_collector import (
    MAX_ITEM_DEPTH,
    MAX_NAMES,
    MICRODATA,
    ItemCollector,
    schema_names,
    single_values,
)

_MAX_REFERRED = 2_000  # elements of a page that items refer to
_MAX_IDS = 10_000
_MAX_IDS_AROUND = 50
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
        self._attributes = [node.attributes for node in self._nodes]
        # The element with the nearest itemscope, by that of an element around others.
        self._scopes = {
            node.mem_id: node.mem_id
            for node, attributes in zip(self._nodes, self._attributes, strict=True)
            if "itemscope" in attributes
        }
        self._properties: dict[int, list[int]] = {}
        self._places_by_id: dict[str, list[int]] | None = None
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
        is_whole_page = node.tag in ("html", "body")
        if not values and not is_whole_page and (text := self._items.text_of(node)):
            item["@value"] = text
        return item | single_values(values)

    def _referred_places(self, references: list[str]) -> list[int]:
        """Returns the places of the properties in the elements that an item refers to (HTML 5.2.5)."""
        if self._places_by_id is None:
            self._places_by_id = self._find_places_by_id()
        places: list[int] = []
        for reference in dict.fromkeys(references[:MAX_NAMES]):
            inner = self._places_by_id.get(reference, [])
            self._referred -= len(inner)
            if self._referred < 0:
                self._items.count("structured_data_too_large")
                break
            places += inner
        return places

    def _find_places_by_id(self) -> dict[str, list[int]]:
        """Returns the places of the properties in each element with an id, without those of items in it."""
        first_elements: dict[str, int] = {}
        for node in self._document.css("[id]")[:_MAX_IDS]:
            first_elements.setdefault(node.id or "", node.mem_id)
        ids = {mem_id: name for name, mem_id in first_elements.items()}
        places: dict[str, list[int]] = {}
        around: dict[int, tuple[str, ...]] = {}
        for at, node in enumerate(self._nodes):
            if "itemprop" in self._attributes[at]:
                own = (ids[node.mem_id],) if node.mem_id in ids else ()
                for name in (*own, *self._ids_around(node.parent, ids, around)):
                    places.setdefault(name, []).append(at)
        return places

    def _ids_around(
        self, node: LexborNode | None, ids: dict[int, str], around: dict[int, tuple[str, ...]]
    ) -> tuple[str, ...]:
        """Returns the ids of an element and of those around it, up to the next item.

        Args:
            node: The element.
            ids: The ids by element.
            around: What was returned for other elements.
        """
        path: list[int] = []
        while node is not None and node.mem_id not in around:
            if self._scopes.get(node.mem_id) == node.mem_id:
                node = None
            else:
                path.append(node.mem_id)
                node = node.parent
        names = () if node is None else around[node.mem_id]
        for mem_id in reversed(path):
            names = (ids[mem_id], *names)[:_MAX_IDS_AROUND] if mem_id in ids else names
            around[mem_id] = names
        return names

    def _value(self, place: int, around: tuple[int, ...]) -> Any:
        node, attributes = self._nodes[place], self._attributes[place]
        tag = node.tag or ""
        if "itemscope" in attributes:
            if len(around) < MAX_ITEM_DEPTH:
                return self._build(place, around)
            self._items.count("item_too_deep")
            return None
        if tag in _URLS:
            if _URLS[tag] not in attributes:
                return ""
            address = (attributes[_URLS[tag]] or "").strip()
            return parse_target(address, self._base) or address
        if tag in _TEXTS:
            return attributes.get(_TEXTS[tag]) or ""
        if tag == "time" and attributes.get("datetime"):
            return attributes["datetime"]
        # Not in the standard, but schema.org's examples have it on any element.
        return attributes.get("content") or self._items.text_of(node)
