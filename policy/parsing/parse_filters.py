"""Gives parse filters a view of a page, and applies their changes.

A parse filter is a function in a package of the user. It is called with each
parsed page, and may change the stored data, or drop the page.
"""

import dataclasses
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Protocol

from ...web.pages.page import Page, ParseFailed
from ...web.plugins.plugin_calls import report_call
from ...web.plugins.plugin_files import plugin_label
from ...web.urls.userinfo import parse_target

if TYPE_CHECKING:
    from bs4 import BeautifulSoup

_REASON = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}")


@dataclasses.dataclass(slots=True)
class Link:
    """A link of a page.

    Attributes:
        url: Absolute URL, resolved against the page; if it is not a URL, the text in the page.
        anchor: Its text.
        rel: Its ``rel``, in lower case.
    """

    url: str
    anchor: str = ""
    rel: str = ""


class FilteredPage:
    """The view of a page for parse filters; their changes are stored.

    Other attributes cannot be set: a misspelt one is a fault.

    Attributes:
        url: Absolute URL of the page; changing it has no effect.
        content_type: The ``Content-Type`` of the response; changing it has no effect.
        title: Text of the first ``title``.
        text: Text of the body, in lines. A text that a filter changes has no blocks, and no main content.
        language: Code of the declared language, or None.
        metadata: Texts by name; initially description, keywords, Open Graph and
            similar metadata, and ``canonical``.
        dropped: The reason, after ``drop`` was called.
    """

    __slots__ = (
        *("url", "content_type", "title", "text", "language", "metadata", "dropped"),
        *("_links", "_page"),
    )

    def __init__(
        self, url: str, content_type: str | None, page: Page, metadata: dict[str, str]
    ) -> None:
        self.url = url
        self.content_type = content_type
        self.title = page.title
        self.text = page.text
        self.language = page.language
        self.metadata = metadata
        self.dropped: str | None = None
        self._page = page
        self._links: list[Link] | None = None

    @property
    def links(self) -> list[Link]:
        """The links, in document order; add, change and remove as you like."""
        if self._links is None:
            page = self._page
            self._links = [
                Link(parse_target(href, page.base) or href, anchor, rel)
                for href, anchor, rel in zip(page.hrefs, page.anchors, page.rels, strict=True)
            ]
        return self._links

    @links.setter
    def links(self, links: list[Link]) -> None:
        self._links = list(links)

    @property
    def soup(self) -> "BeautifulSoup":
        """The whole document as BeautifulSoup, made at its first use."""
        return self._page.soup

    def add_part(self, url: str, title: str = "", text: str = "", **metadata: str) -> None:
        """Makes a separate document of a part of the page, like an item of a feed.

        Args:
            url: Absolute, or relative to the page; a part on another host is dropped.
            title: Title of the part.
            text: Text of the part.
            metadata: Texts by name.

        Raises:
            TypeError: A value is not a text.
        """
        page, url = self._page, _text("the url of a part", url)
        url = parse_target(url, page.base) or url
        part = Page(_text("title", title), _text("text", text), base=url, charset=page.charset)
        part.language = page.language
        part.metas = {name: _text(f"metadata {name!r}", value) for name, value in metadata.items()}
        page.parts.append((url, part))

    def drop(self, reason: str) -> None:
        """Stores nothing of this page, and follows none of its links.

        Args:
            reason: A word, counted as ``skipped/REASON``; letters, digits and ``_.-``.

        Raises:
            ValueError: The reason is not such a word.
        """
        if not isinstance(reason, str) or not _REASON.fullmatch(reason):
            raise ValueError(f"a reason must be one word of letters, digits, _.-, got {reason!r}")
        self.dropped = reason

    def take_over(self) -> None:
        """Copies the changes of filters to the parsed page.

        Raises:
            TypeError: A value is not a text.
        """
        page = self._page
        page.title, text = _text("title", self.title), _text("text", self.text)
        if text != page.text:
            page.text, page.spans, page.main = text, [], ()
        page.remove_controls()
        page.language = None if self.language is None else _text("language", self.language)
        self.metadata = {
            _text("a name in metadata", name): _text(f"metadata {name!r}", value)
            for name, value in self.metadata.items()
        }
        if self._links is not None:
            page.hrefs = [_text("the url of a link", link.url) for link in self._links]
            page.anchors = [_text("the anchor of a link", link.anchor) for link in self._links]
            page.rels = [_text("the rel of a link", link.rel) for link in self._links]


def _text(what: str, value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{what} must be a text, got {value!r}")
    try:
        value.encode()
    except UnicodeEncodeError:  # half of a surrogate pair, for example from JSON in a page
        return value.encode("utf-8", "replace").decode()
    return value


class Filter(Protocol):
    """What a parse filter is: a function of a parsed page.

    It runs in the child processes that parse, after the parser of a page and the filters before it:
    it is ended after ``--parser_timeout``, and when it needs more memory than ``--parser_memory``.
    That and a crash cost only the page, counted as ``failed/filter_NAME``.
    """

    def __call__(self, page: FilteredPage, /) -> Any:
        """Changes the page in place, or drops it; the result has no meaning.

        Raises:
            Exception: Any is a fault of the plug-in; it costs this page, counted as
                ``failed/filter_NAME``.
        """


def apply_filters(page: FilteredPage, filters: Sequence[tuple[str, Filter]]) -> None:
    """Calls filters in their order, up to the first that drops the page.

    Args:
        page: The page.
        filters: (name, filter).

    Raises:
        ParseFailed: A filter failed: ``filter_NAME``, with its exception as the cause.
    """
    for name, function in filters:
        reason = f"filter_{plugin_label(name)}"
        report_call(reason)
        try:
            function(page)
            if page.dropped is None:
                page.take_over()
        except MemoryError:
            raise
        # BaseException: SystemExit in a filter is a mistake, and a page must not end the process.
        except BaseException as error:
            raise ParseFailed(reason) from error
        report_call("")
        if page.dropped is not None:
            return
