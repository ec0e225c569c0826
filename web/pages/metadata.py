"""Collects the metadata of an HTML page: meta elements, alternates, JSON-LD, headings."""

import re
from collections.abc import Mapping
from typing import Any

from ..urls.userinfo import mask_users
from .page import Page

MAX_CONTENT_CHARS = 65_536
_MAX_METAS = 64
_MAX_META_CHARS = 2_000
_MAX_ALTERNATES = 100
_MAX_HEADINGS = 100
_MAX_HEADING_CHARS = 500
_MAX_JSON_LD_CHARS = 65_536
_MAX_JSON_LD_BLOCKS = 20
_MAX_URL_CHARS = 4_096

_METAS = frozenset({"author", "description", "generator", "keywords"})
_META_PREFIXES = ("article:", "dc.", "dcterms.", "og:", "twitter:")
# Names of meta elements that declare the language of their page.
LANGUAGE_METAS = frozenset({"content-language", "dc.language", "dcterms.language", "language"})
_JSON_LD = "application/ld+json"
_HREFLANG = re.compile(r"[a-z0-9]{1,8}(?:-[a-z0-9]{1,8}){0,8}")
_REFRESH = re.compile(
    r"\s*(\d{1,9}|(?=\.))[\d.]*(?:[;,\s]\s*[;,]?\s*(?:url\s*=\s*)?(?:\"([^\"]*)|'([^']*)|(.*)))?",
    re.IGNORECASE | re.DOTALL,
)


def parse_refresh(content: str) -> tuple[str, int] | None:
    """Returns target and seconds of a meta refresh; the target is empty if none is named.

    >>> parse_refresh("0; url='next'"), parse_refresh("5"), parse_refresh(".5;/y")
    (('next', 0), ('', 5), ('/y', 0))
    >>> parse_refresh("now") is None
    True
    """
    refresh = _REFRESH.match(content)
    if not refresh:
        return None
    return (refresh[2] or refresh[3] or refresh[4] or "").strip(), int(refresh[1] or 0)


def is_kept_meta(name: str) -> bool:
    """Returns whether meta elements of this name, in lower case, are kept.

    >>> is_kept_meta("og:title"), is_kept_meta("viewport")
    (True, False)
    """
    return name in _METAS or (len(name) < 100 and name.startswith(_META_PREFIXES))


def add_meta(page: Page, name: str, content: str) -> None:
    """Keeps the first meta element of a name, if it is one of those that are kept."""
    if is_kept_meta(name) and len(page.metas) < _MAX_METAS:
        page.metas.setdefault(name, " ".join(content[:_MAX_META_CHARS].split()))


def is_json_ld(attributes: Mapping[str, str | None]) -> bool:
    """Returns whether a script is a block of JSON-LD."""
    return (attributes.get("type") or "").strip().lower().startswith(_JSON_LD)


def add_json_ld(page: Page, block: str) -> None:
    """Stores a block of JSON-LD unchanged, if all blocks together are within the limits."""
    block = block.strip()
    if not block:
        return
    if (
        len(page.json_ld) < _MAX_JSON_LD_BLOCKS
        and len(block) + sum(map(len, page.json_ld)) <= _MAX_JSON_LD_CHARS
    ):
        page.json_ld.append(block)
    else:
        page.count("json_ld_too_long")


def add_alternate(
    page: Page, alternates: dict[str, str], attributes: Mapping[str, str | None]
) -> None:
    """Adds a ``link rel=alternate hreflang`` to the links by language; the first of each counts."""
    language = (attributes.get("hreflang") or "").strip().lower().replace("_", "-")
    href = (attributes.get("href") or "").strip()
    if not href or not _HREFLANG.fullmatch(language) or language in alternates:
        return
    if len(alternates) < _MAX_ALTERNATES and len(href) <= _MAX_URL_CHARS:
        alternates[language] = href
    else:
        page.count("too_many_alternates")


def add_heading(page: Page, tag: str, text: str) -> None:
    """Keeps a heading that has text, cut to its limit."""
    if len(page.headings) >= _MAX_HEADINGS:
        page.count("too_many_headings")
    elif heading := " ".join(text[: 4 * _MAX_HEADING_CHARS].split())[:_MAX_HEADING_CHARS].strip():
        page.headings.append((tag, heading))


def metadata_of(page: Page) -> dict[str, str]:
    """Returns the stored metadata of a page, by name.

    Besides the meta elements: ``canonical``; ``hreflang:de`` and so on, each an
    absolute URL; ``h1`` to ``h6``, a line for each heading; ``json-ld``,
    ``json-ld:2`` and so on, a block each.

    >>> page = Page(headings=[("h1", "A"), ("h2", "B"), ("h2", "C")], json_ld=["{}", "[]"])
    >>> metadata_of(page)
    {'h1': 'A', 'h2': 'B\\nC', 'json-ld': '{}', 'json-ld:2': '[]'}
    """
    metadata: dict[str, Any] = {name: mask_users(value) for name, value in page.metas.items()}
    if page.canonical:
        metadata["canonical"] = page.canonical
    for language, url in page.alternates.items():
        metadata[f"hreflang:{language}"] = url
    headings: dict[str, list[str]] = {}
    for tag, text in page.headings:
        headings.setdefault(tag, []).append(text)
    metadata.update((tag, "\n".join(texts)) for tag, texts in headings.items())
    for number, block in enumerate(page.json_ld, 1):
        metadata["json-ld" if number == 1 else f"json-ld:{number}"] = mask_users(block)
    return metadata
