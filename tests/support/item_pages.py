"""Pages with structured data that are made by chance: items nested in items, in three syntaxes."""

import html
import json
import random
from typing import Any

TYPES = (
    "Product",
    "Offer",
    "NewsArticle",
    "Event",
    "JobPosting",
    "Recipe",
    "Restaurant",
    "Person",
    "Place",
)
NAMES = (
    "name",
    "description",
    "price",
    "brand",
    "offers",
    "author",
    "url",
    "image",
    "datePublished",
    "sku",
)
WORDS = (
    "green tea",
    "Ω & <b>",
    "1.234,56 €",
    "  two   spaces ",
    "茶",
    "it's",
    'a "quote"',
    "9.99",
    "été",
)
# Element, and the attribute with the value; an empty one: its text is the value.
ELEMENTS = (
    ("span", ""), ("p", ""), ("b", ""), ("h2", ""), ("div", ""), ("td", ""), ("meta", "content"), ("span", "content"),
    ("a", "href"), ("link", "href"), ("area", "href"), ("img", "src"), ("iframe", "src"), ("source", "src"),
    ("object", "data"), ("data", "value"), ("meter", "value"), ("time", "datetime"),
)  # fmt: skip
_VOID = ("meta", "link", "area", "img", "source")
_DATES = ("2024-02-29", "2023-01-01T12:30:00Z", "PT20M")


class ItemPages:
    """Makes pages; the same seed makes the same ones."""

    def __init__(self, seed: int) -> None:
        self._chance = random.Random(seed)
        self._ids = 0

    def page(self, syntax: str) -> str:
        """Returns a page with some items in a syntax: ``json-ld``, ``microdata`` or ``rdfa``."""
        make = {"json-ld": self._script, "microdata": self._microdata, "rdfa": self._rdfa}[syntax]
        filler = "<nav><ul><li><a href=/>home</a></ul></nav><p>Text."
        items = "".join(make(0) for _ in range(self._chance.randint(1, 3)))
        vocabulary = ' vocab="http://schema.org/"' if syntax == "rdfa" else ""
        return f"<!doctype html><html><head><title>t</title></head><body{vocabulary}>{filler}{items}</body></html>"

    def _value(self, attribute: str) -> str:
        if attribute in ("href", "src", "data"):
            return self._chance.choice(("/a", "b.png", "http://other.example/c", "?q=1"))
        if attribute == "datetime":
            return self._chance.choice(_DATES)
        return self._chance.choice(WORDS)

    def _element(self, naming: str, odd: bool) -> str:
        tag, attribute = self._chance.choice(ELEMENTS)
        value, text = self._value(attribute), html.escape(self._chance.choice(WORDS))
        given = attribute and not (odd and self._chance.random() < 0.2)
        own = f' {attribute}="{html.escape(value)}"' if given else ""
        if tag == "td":
            return f"<table><tr><td {naming}>{text}</td></tr></table>"
        inner = f"{text} <i>more</i>" if self._chance.random() < 0.3 else text
        return f"<{tag} {naming}{own}>" if tag in _VOID else f"<{tag} {naming}{own}>{inner}</{tag}>"

    def _microdata(self, depth: int, naming: str = "") -> str:
        type_name = self._chance.choice(TYPES)
        types = f' itemtype="http{self._chance.choice(("", "s"))}://schema.org/{type_name}"'
        identity = ' itemid="urn:x:1"' if self._chance.random() < 0.1 else ""
        inner, beside = [], ""
        for _ in range(self._chance.randint(0 if depth else 1, 5)):
            name = f'itemprop="{self._name()}"'
            is_item = depth < 3 and self._chance.random() < 0.25
            inner.append(
                self._microdata(depth + 1, name) if is_item else self._element(name, odd=True)
            )
        if self._chance.random() < 0.1:
            self._ids += 1
            types += f' itemref="i{self._ids}"'
            beside = f'<div id="i{self._ids}">{self._element(f"itemprop={self._name()}", odd=False)}</div>'
        around = ("<div>", "</div>") if self._chance.random() < 0.3 else ("", "")
        body = around[0] + "".join(inner) + around[1]
        item = f"<div itemscope{types}{identity} {naming}>{body or 'only text'}</div>"
        return item + (beside if not depth else "") if not depth else item

    def _rdfa(self, depth: int, naming: str = "") -> str:
        self._ids += 1
        resource = f' resource="#r{self._ids}"' if self._chance.random() < 0.3 else ""
        inner = []
        for _ in range(self._chance.randint(1, 5)):
            name = f'property="{self._name()}"'
            is_item = depth < 3 and self._chance.random() < 0.25
            inner.append(self._rdfa(depth + 1, name) if is_item else self._element(name, odd=False))
        return (
            f'<div {naming} typeof="{self._chance.choice(TYPES)}"{resource}>{"".join(inner)}</div>'
        )

    def _name(self) -> str:
        return self._chance.choice(NAMES)

    def _script(self, depth: int) -> str:
        data: Any = [self._object(0) for _ in range(self._chance.randint(1, 3))]
        data = self._chance.choice(
            (data, data[0], {"@context": "https://schema.org", "@graph": data})
        )
        text = json.dumps(data, ensure_ascii=self._chance.random() < 0.5)
        return f'<script type="application/ld+json">{text}</script>'

    def _object(self, depth: int) -> dict[str, Any]:
        item: dict[str, Any] = {"@type": self._chance.choice(TYPES)}
        for _ in range(self._chance.randint(1, 5)):
            kind = self._chance.random()
            value: Any = self._chance.choice((*WORDS, 3, 2.5, True, None))
            if kind < 0.2 and depth < 4:
                value = self._object(depth + 1)
            elif kind < 0.3:
                value = [self._chance.choice(WORDS), self._chance.choice(WORDS)]
            item[self._name()] = value
        return item
