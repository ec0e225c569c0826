"""Reads RDFa Lite 1.1: vocab, typeof, property, resource and prefix, as RDFa Core and HTML+RDFa process them.

Subjects without a type are left out, and so are the other attributes of RDFa Core, except ``about``.
"""

import re
from collections.abc import Mapping
from typing import Any, NamedTuple

from selectolax.lexbor import LexborHTMLParser, LexborNode

from ..urls.userinfo import parse_target
from .item_collector import MAX_ITEM_DEPTH, MAX_NAMES, RDFA, ItemCollector, schema_name

_MAX_REPEATED_VALUES = 2_000  # of items that stand in several others
_MAX_PREFIXES = 100
_PREFIX = re.compile(r"([^\s:]{1,40}):\s+(\S{1,400})")
_RESOURCES = ("resource", "href", "src")
# The RDFa Core Initial Context, as far as pages use it.
_PREFIXES = {
    "article": "http://ogp.me/ns/article#",
    "cc": "http://creativecommons.org/ns#",
    "dc": "http://purl.org/dc/terms/",
    "dc11": "http://purl.org/dc/elements/1.1/",
    "dcterms": "http://purl.org/dc/terms/",
    "foaf": "http://xmlns.com/foaf/0.1/",
    "gr": "http://purl.org/goodrelations/v1#",
    "og": "http://ogp.me/ns#",
    "rdf": "http://www.w3.org/1999/02/22-rdf-syntax-ns#",
    "rdfs": "http://www.w3.org/2000/01/rdf-schema#",
    "schema": "http://schema.org/",
    "sioc": "http://rdfs.org/sioc/ns#",
    "skos": "http://www.w3.org/2004/02/skos/core#",
    "v": "http://rdf.data-vocabulary.org/#",
    "vcard": "http://www.w3.org/2006/vcard/ns#",
}


class _Surroundings(NamedTuple):
    """What holds for the elements within an element.

    Attributes:
        subject: Address of the item that properties belong to, or a name of ours.
        vocabulary: What the names of types and properties begin with; empty: names alone mean nothing.
        prefixes: Addresses by prefix.
    """

    subject: str
    vocabulary: str
    prefixes: Mapping[str, str]


def add_rdfa_items(document: LexborHTMLParser, base: str, items: ItemCollector) -> None:
    """Adds the items of a page that are in no other one.

    Args:
        document: The tree.
        base: Absolute URL that links are relative to.
        items: Gets the items.
    """
    _Rdfa(document, base, items).read()


class _Rdfa:
    def __init__(self, document: LexborHTMLParser, base: str, items: ItemCollector) -> None:
        self._document, self._base, self._items = document, base, items
        self._page = _Surroundings(base, "", _PREFIXES)
        self._around: dict[int, _Surroundings] = {}
        self._nodes: dict[str, dict[str, list[Any]]] = {}
        self._types: dict[str, list[str]] = {}
        self._values_left = _MAX_REPEATED_VALUES

    def read(self) -> None:
        """Adds the items."""
        elements = self._document.css("[typeof],[property]:not([typeof])")
        for node in self._items.allowed_elements(elements):
            self._take(node)
        inner = {
            value["@id"]
            for values in self._nodes.values()
            for each in values.values()
            for value in each
            if isinstance(value, dict)
        }
        outer = [subject for subject in self._types if subject not in inner]
        # Items that refer to one another in a circle have no outer one.
        for subject in outer or list(self._types)[:1]:
            self._items.add(RDFA, self._types[subject], self._nested(subject, ()))

    def _take(self, node: LexborNode) -> None:
        """Takes the type and the property of an element."""
        attributes = node.attributes
        outer = self._surroundings(node.parent)
        own = self._surroundings(node)
        if types := self._names(attributes.get("typeof"), own):
            self._types.setdefault(own.subject, []).extend(
                name for name in types if name not in self._types[own.subject]
            )
        names = self._names(attributes.get("property"), own)
        if names:
            has_subject = "property" in attributes and attributes.get("about") is not None
            subject = self._absolute(attributes["about"] or "") if has_subject else outer.subject
            value = self._value(node, attributes, own)
            values = self._nodes.setdefault(subject, {})
            for name in names:
                values.setdefault(name, []).append(value)

    def _surroundings(self, node: LexborNode | None) -> _Surroundings:
        """Returns what holds within an element."""
        path: list[LexborNode] = []
        while node is not None and node.mem_id not in self._around:
            path.append(node)
            node = node.parent
        around = self._page if node is None else self._around[node.mem_id]
        for each in reversed(path):
            around = self._around[each.mem_id] = self._within(each, around)
        return around

    def _within(self, node: LexborNode, around: _Surroundings) -> _Surroundings:
        attributes = node.attributes if node.is_element_node else {}
        if not attributes:
            return around
        subject, vocabulary, prefixes = around
        if "vocab" in attributes:
            vocabulary = (attributes["vocab"] or "").strip()
        if attributes.get("prefix") and len(prefixes) < _MAX_PREFIXES:
            pairs = _PREFIX.findall(attributes["prefix"] or "")[:_MAX_PREFIXES]
            prefixes = {**prefixes, **{name.lower(): address for name, address in pairs}}
        # RDFa Core 7.5, steps 5 and 6: a property alone does not change the subject.
        has_literal = "content" in attributes or "datatype" in attributes
        if "typeof" in attributes or "property" not in attributes or has_literal:
            address = next(
                (attributes[n] for n in ("about", *_RESOURCES) if attributes.get(n)), None
            )
            if address is not None:
                subject = self._absolute(address)
            elif "typeof" in attributes and node.tag not in ("html", "head", "body"):
                subject = f"_:{node.mem_id}"
        return _Surroundings(subject, vocabulary, prefixes)

    def _value(
        self, node: LexborNode, attributes: Mapping[str, str | None], own: _Surroundings
    ) -> Any:
        """Returns the value of a property (RDFa Core 7.5, step 11; HTML+RDFa 3.1)."""
        if "content" in attributes:
            return attributes["content"] or ""
        if "datetime" in attributes:
            return attributes["datetime"] or ""
        if "typeof" in attributes and "about" not in attributes:
            return {"@id": own.subject}
        address = next((attributes[name] for name in _RESOURCES if name in attributes), None)
        if address is not None:
            return {"@id": self._absolute(address)}
        return self._items.text_of(node)

    def _names(self, text: str | None, own: _Surroundings) -> list[str]:
        """Returns the names of types or properties; those that mean nothing are left out."""
        names = []
        for token in (text or "").split(None, MAX_NAMES)[:MAX_NAMES]:
            prefix, colon, name = token.partition(":")
            if not colon:
                token = own.vocabulary + token if own.vocabulary else ""
            elif not name.startswith("//"):
                token = own.prefixes.get(prefix.lower(), f"{prefix}:") + name
            if token:
                names.append(schema_name(token))
        return names

    def _absolute(self, address: str) -> str:
        address = address.strip()
        return (parse_target(address, self._base) or address) if address else self._base

    def _nested(self, subject: str, around: tuple[str, ...]) -> dict[str, Any]:
        """Returns an item, with the items in it in place of their addresses."""
        types = self._types.get(subject, [])
        item: dict[str, Any] = {"@type": types[0] if len(types) == 1 else types}
        if not subject.startswith("_:"):
            item["@id"] = subject
        for name, values in self._nodes.get(subject, {}).items():
            inner = [self._inner(value, (*around, subject)) for value in values]
            item[name] = inner[0] if len(inner) == 1 else inner
        return item

    def _inner(self, value: Any, around: tuple[str, ...]) -> Any:
        if not isinstance(value, dict):
            return value
        subject = value["@id"]
        if subject not in self._types:
            return subject
        self._values_left -= 1 + len(self._nodes.get(subject, ()))
        if subject in around or len(around) >= MAX_ITEM_DEPTH or self._values_left < 0:
            self._items.count("item_cycle")
            return "" if subject.startswith("_:") else subject
        return self._nested(subject, around)
