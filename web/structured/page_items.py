"""Reads all structured data of a page: what its scripts, its meta elements and its tree hold."""

import dataclasses
from collections.abc import Callable

from selectolax.lexbor import LexborHTMLParser

from .item_collector import ItemCollector, StructuredItem
from .json_ld import add_json_ld_items
from .meta_items import add_meta_items
from .microdata import add_microdata_items
from .rdfa_lite import add_rdfa_items

# The operator typeof of scripts has no "=".
_TYPEOF = (b"typeof=", b"typeof =")
# A page with more of these words is left out: its elements would take too long to make.
_MAX_WORDS = 10_000
_MICRODATA_WORDS = (b"itemscope", b"itemprop")
_RDFA_WORDS = (b"typeof=", b"property=", b"rel=")


@dataclasses.dataclass(slots=True)
class ItemSources:
    """What the walk over the elements of a page finds for items.

    Attributes:
        json_ld: Texts of the scripts with JSON-LD.
        metas: (name in lower case, content) of the meta elements that are part of an item.
    """

    json_ld: list[str] = dataclasses.field(default_factory=list)
    metas: list[tuple[str, str]] = dataclasses.field(default_factory=list)


def items_of_page(
    document: LexborHTMLParser,
    markup: bytes,
    base: str,
    sources: ItemSources,
    count: Callable[[str], None],
) -> list[StructuredItem]:
    """Returns the items of a page. The tree is searched only if the markup has items in it.

    Args:
        document: The tree.
        markup: The page as UTF-8.
        base: Absolute URL that links are relative to.
        sources: What the walk over the elements found.
        count: Called with the reason for each thing that is left out.
    """
    items = ItemCollector(count)
    if sources.json_ld:
        add_json_ld_items(sources.json_ld, items)
    # A look into the tree takes a quarter of the time of one through the markup of a large page.
    if document.css_first("[itemscope],[typeof]") is not None:
        lower = markup.lower()
        if b"itemscope" in lower and _is_searched(lower, _MICRODATA_WORDS, count):
            add_microdata_items(document, base, items)
        if any(each in lower for each in _TYPEOF) and _is_searched(lower, _RDFA_WORDS, count):
            add_rdfa_items(document, base, items)
    if sources.metas:
        add_meta_items(sources.metas, items)
    return items.items


def _is_searched(markup: bytes, words: tuple[bytes, ...], count: Callable[[str], None]) -> bool:
    """Returns whether the elements with some attributes may be searched; counts it if not."""
    is_searched = sum(map(markup.count, words)) <= _MAX_WORDS
    if not is_searched:
        count("structured_data_too_large")
    return is_searched
