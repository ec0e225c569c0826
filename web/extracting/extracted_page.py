"""A page from which fields are taken: its trees and its structured data, each made when a rule needs it."""

import functools
import time
from typing import Any

from selectolax.lexbor import LexborHTMLParser, LexborNode

from ..content.charset import to_utf8
from ..html.html import without_subset
from ..html.tree import flatten, parse_tree
from ..pages.directives import header_directives, robot_names, robots_directives
from ..pages.metadata import is_json_ld
from ..pages.page import Source, collapse
from ..pages.parse_options import ParseOptions
from ..structured.item_collector import StructuredItem
from ..structured.page_items import ItemSources, items_of_page
from ..structured.value_text import text_of_markup, value_markup
from ..urls.userinfo import parse_target
from .css_paths import MAX_SIBLING_TAGS, CssPath, TooManyElements, in_page_order, select_nodes

# Together of all rules for a page; what takes longer in one call is ended with its process.
MAX_PAGE_S = 5.0
MAX_TEXT_CHARS = 100_000  # of one value
_MAX_MARKUP_CHARS = 1_000_000  # of an element whose text is taken


class PageTooSlow(Exception):
    """The rules for a page have taken too long."""


class ExtractedPage:
    """A page, as rules see it.

    Args:
        source: The page.
        seconds: Longest time for all of its rules.
    """

    def __init__(self, source: Source, seconds: float = MAX_PAGE_S) -> None:
        self.url, self._source = source.url, source
        self._deadline = time.monotonic() + seconds

    def check_time(self) -> None:
        """Ends the work on the page if it takes too long.

        Raises:
            PageTooSlow: It does.
        """
        if time.monotonic() > self._deadline:
            raise PageTooSlow

    @functools.cached_property
    def markup(self) -> bytes:
        """The page in UTF-8."""
        source = self._source
        return without_subset(to_utf8(source.body, source.content_type, source.url)[0])

    @functools.cached_property
    def tree(self) -> LexborHTMLParser:
        """The tree, in which elements nest at most 512 deep."""
        return parse_tree(flatten(self.markup))

    @property
    def root(self) -> LexborNode:
        """The root element."""
        root = self.tree.root
        assert root is not None
        return root

    @functools.cached_property
    def is_large(self) -> bool:
        """Whether comparing siblings would take long."""
        return self.markup.count(b"<") - self.markup.count(b"</") > MAX_SIBLING_TAGS

    @functools.cached_property
    def directives(self) -> set[str]:
        """What the page says to robots."""
        options = ParseOptions()
        found = header_directives(self._source, options)
        if b"robots" in self.markup.lower():
            for node in self.tree.css("meta[name=robots i]"):
                found |= robots_directives(
                    node.attributes.get("content") or "", robot_names(options)
                )
        return found

    @functools.cached_property
    def selector(self) -> Any:
        """The page as parsel's Selector, for XPath."""
        import parsel  # late: few rules need it

        return parsel.Selector(text=self.markup.decode("utf-8", "replace") or "<html/>")

    @functools.cached_property
    def items(self) -> list[StructuredItem]:
        """The structured data."""
        sources, markup = ItemSources(), self.markup
        if b"application/ld+json" in markup:
            scripts = (node for node in self.tree.css("script") if is_json_ld(node.attributes))
            sources.json_ld += [node.text() or "" for node in scripts]
        return items_of_page(self.tree, markup, self.base, sources, lambda reason: None)

    @functools.cached_property
    def base(self) -> str:
        """The URL to which links are relative."""
        node = self.tree.css_first("base[href]")
        href = (node.attributes.get("href") or "") if node is not None else ""
        return parse_target(href.strip(), self.url) or self.url

    def select(
        self, path: CssPath, scope: LexborNode | None = None
    ) -> list[tuple[LexborNode, str]]:
        """Returns the elements that match, in the order of the page, with the attribute that is wanted.

        Args:
            path: The selector.
            scope: The element in which is searched; None: the page.

        Raises:
            TooManyElements: The page is too large for a selector that compares siblings.
            PageTooSlow: All rules together take too long.
        """
        self.check_time()
        if path.compares_siblings and self.is_large:
            raise TooManyElements
        where = self.root if scope is None else scope
        found = [(one.attribute, select_nodes(where, one)) for one in path.alternatives]
        if len(found) == 1:
            return [(node, found[0][0]) for node in found[0][1]]
        attributes = {node.mem_id: name for name, nodes in reversed(found) for node in nodes}
        ordered = in_page_order(where, (node for _, nodes in found for node in nodes))
        return [(node, attributes[node.mem_id]) for node in ordered]


def element_text(node: LexborNode) -> str:
    """Returns the text of an element in one line, without scripts."""
    child = node.child
    if child is not None and child.is_text_node and child.next is None:  # of most elements
        return collapse(child.text_content or "")[:MAX_TEXT_CHARS]
    markup = value_markup(node)
    return text_of_markup(markup)[:MAX_TEXT_CHARS] if len(markup) <= _MAX_MARKUP_CHARS else ""


def own_texts(node: LexborNode) -> list[str]:
    """Returns the text nodes of an element itself, without those of white space alone."""
    children = node.iter(include_text=True)
    texts = (collapse(child.text_content or "") for child in children if child.is_text_node)
    return [text[:MAX_TEXT_CHARS] for text in texts if text]
