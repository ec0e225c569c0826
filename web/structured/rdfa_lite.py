"""Reads RDFa Lite 1.1: vocab, typeof, property, resource and prefix, as RDFa Core and HTML+RDFa process them.

Of RDFa Core it reads ``about`` and ``datatype``, too, ``rel`` with a prefix on an element with a link, and
``xmlns:`` for prefixes. Subjects without a type are left out.
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


class _Statement(NamedTuple):
    """What an element says.

    Attributes:
        subject: Of its properties.
        typed: Which subject has its types; None: it has none.
        linked: Address that its properties or ``rel`` lead to; None: it has none.
        has_rel: Whether it has a ``rel`` that counts.
        within: What holds within it.
    """

    subject: str
    typed: str | None
    linked: str | None
    has_rel: bool
    within: _Surroundings


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
        self._nested_subjects: set[str] = set()
        self._values_left = _MAX_REPEATED_VALUES

    def read(self) -> None:
        """Adds the items."""
        elements = self._document.css(
            "[typeof],[property]:not([typeof]),[rel*=':']:not([typeof],[property])"
        )
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
        # Of items that refer to one another in a circle, none is outside of the others.
        for subject in dict.fromkeys([*outer, *self._types]):
            if subject not in self._nested_subjects:
                self._items.add(RDFA, self._types[subject], self._nested(subject, ()))

    def _take(self, node: LexborNode) -> None:
        """Takes the type and the property of an element."""
        attributes = node.attributes
        said = self._statement(node, attributes, self._surroundings(node.parent))
        if said.typed is not None and (types := self._names(attributes.get("typeof"), said.within)):
            own_types = self._types.setdefault(said.typed, [])
            own_types.extend(name for name in types if name not in own_types)
        values = self._nodes.setdefault(said.subject, {})
        if names := self._names(attributes.get("property"), said.within):
            value = self._value(node, attributes, said)
            for name in names:
                values.setdefault(name, []).append(value)
        target = said.linked or said.typed
        if said.has_rel and target is not None:
            relations = " ".join(filter(_has_prefix, (attributes.get("rel") or "").split()))
            for name in self._names(relations, said.within):
                values.setdefault(name, []).append({"@id": target})

    def _surroundings(self, node: LexborNode | None) -> _Surroundings:
        """Returns what holds within an element."""
        path: list[LexborNode] = []
        while node is not None and node.mem_id not in self._around:
            path.append(node)
            node = node.parent
        around = self._page if node is None else self._around[node.mem_id]
        for each in reversed(path):
            attributes = each.attributes if each.is_element_node else {}
            if attributes:
                around = self._statement(each, attributes, around).within
            self._around[each.mem_id] = around
        return around

    def _statement(
        self, node: LexborNode, attributes: Mapping[str, str | None], around: _Surroundings
    ) -> _Statement:
        """Returns what an element says (RDFa Core 7.5, steps 2 to 6; HTML+RDFa 3.1)."""
        outer = around.subject
        about = self._address(attributes, "about")
        linked = self._address(attributes, *_RESOURCES)
        # A rel without a prefix is one of HTML, such as nofollow.
        has_rel = any(map(_has_prefix, (attributes.get("rel") or "").split()))
        typed = None
        if "typeof" in attributes:
            is_page = node.tag in ("html", "head", "body")
            typed = about or linked or (outer if is_page else f"_:{node.mem_id}")
        has_literal = "content" in attributes or "datatype" in attributes
        if has_rel or ("property" in attributes and not has_literal):
            subject = about or outer
            inner = typed or (linked if has_rel else None) or subject
        else:
            subject = inner = about or linked or typed or outer
        prefixes, vocabulary = around.prefixes, around.vocabulary
        if "vocab" in attributes:
            vocabulary = (attributes["vocab"] or "").strip()
        if pairs := _prefixes_in(attributes):
            prefixes = {**prefixes, **pairs} if len(prefixes) < _MAX_PREFIXES else prefixes
        return _Statement(
            subject, typed, linked, has_rel, _Surroundings(inner, vocabulary, prefixes)
        )

    def _value(
        self, node: LexborNode, attributes: Mapping[str, str | None], said: _Statement
    ) -> Any:
        """Returns the value of a property (RDFa Core 7.5, step 11; HTML+RDFa 3.1)."""
        if "content" in attributes:
            return attributes["content"] or ""
        if "datetime" in attributes:
            return attributes["datetime"] or ""
        if not said.has_rel and "datatype" not in attributes:
            target = said.linked or (said.typed if "about" not in attributes else None)
            if target is not None:
                return {"@id": target}
        return self._items.text_of(node)

    def _address(self, attributes: Mapping[str, str | None], *names: str) -> str | None:
        """Returns the address in the first of some attributes, or None without any."""
        text = next((attributes[name] or "" for name in names if name in attributes), None)
        return None if text is None else self._absolute(text)

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
        self._nested_subjects.add(subject)
        types = self._types.get(subject, [])
        item: dict[str, Any] = {"@type": types[0] if len(types) == 1 else types}
        if not subject.startswith("_:"):
            item["@id"] = subject
        for name, values in self._nodes.get(subject, {}).items():
            # A graph is a set of statements (RDF 1.1 Concepts, 3): the same one counts once.
            unique = {
                value if isinstance(value, str) else (value["@id"],): value for value in values
            }
            inner = [self._inner(value, (*around, subject)) for value in unique.values()]
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


def _has_prefix(token: str) -> bool:
    return ":" in token


def _prefixes_in(attributes: Mapping[str, str | None]) -> dict[str, str]:
    """Returns the addresses of the prefixes that an element declares."""
    pairs = [(name[6:], address) for name, address in attributes.items() if name[:6] == "xmlns:"]
    # RDFa Core 7.5, step 3: those in prefix count more.
    pairs += _PREFIX.findall(attributes.get("prefix") or "")[:_MAX_PREFIXES]
    return {name.lower(): address for name, address in pairs if address}
