"""The input and the result of a parser: a source, and a page or the reason of a failure; white space."""

import dataclasses
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ..content.control_characters import has_controls, without_controls
from ..content.whatwg_encodings import encode_query
from ..structured.item_collector import StructuredItem
from .main_part import TextParts
from .spans import Span

_LINE_ENDS = re.compile(r"[ \t\xa0]*+\n")
_EMPTY_LINES = re.compile(r"\n{3,}")


def collapse(text: str) -> str:
    """Returns a text in which a run of white space is one space, without any at the ends."""
    return " ".join(text.split())


def collapse_lines(text: str) -> str:
    r"""Returns a text in which each line is collapsed, without empty lines and control characters.

    >>> collapse_lines(" a  b \n\n\tc\0 ")
    'a b\nc'
    """
    return "\n".join(filter(None, map(collapse, without_controls(text).split("\n"))))


def trim_lines(text: str) -> str:
    r"""Returns a text as it stands, without what is not seen: white space at the ends of lines, controls.

    Lines end as in ``str.splitlines``. Several empty lines are one; those at the ends are left out.

    >>> trim_lines("\r\n a\0  b \r\n\r\n\r\n\tc\f\n")
    ' a  b\n\n\tc'
    """
    text = without_controls("\n".join(text.splitlines()))
    return _EMPTY_LINES.sub("\n\n", _LINE_ENDS.sub("\n", text)).strip("\n").rstrip()


def collapse_each(texts: list[str]) -> list[str]:
    """Collapses many short texts together, which takes a third of the time."""
    # U+0000 is in no text that the HTML parser makes.
    parts = collapse("\0".join(texts)).split("\0") if texts else []
    if len(parts) != len(texts):
        return [collapse(text) for text in texts]
    return [part.strip() for part in parts]


if TYPE_CHECKING:
    from bs4 import BeautifulSoup

MAX_TITLE_CHARS = 1_000
_MAX_HREF_CHARS = 65_536


class ParseFailed(Exception):
    """A page that cannot be parsed; ``reason`` is one word to count it under."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class NoParser(ParseFailed):
    """No parser supports the type of a document."""

    def __init__(self, reason: str = "no_parser") -> None:
        super().__init__(reason)


@dataclasses.dataclass(frozen=True, slots=True)
class Source:
    """A document as it came from its server.

    Attributes:
        url: Absolute URL that the body came from.
        body: The body, with any content coding removed.
        content_type: The value of ``Content-Type``, if there was one.
        headers: (name in lower case, value) of the other headers, as sent.
        fetch_time: When it was requested, UTC ms, if that is known.
    """

    url: str
    body: bytes
    content_type: str | None = None
    headers: Sequence[tuple[str, str]] = ()
    fetch_time: int | None = None

    def header(self, name: str) -> str | None:
        """Returns the values of a header joined by commas, or None without one."""
        values = [value for key, value in self.headers if key == name]
        return ", ".join(values) if values else None


@dataclasses.dataclass(slots=True)
class Page:
    """The result of a parser. In titles and anchors a run of white space is one space.

    Attributes:
        title: Of the first ``title``, at most 1,000 characters; empty on a page that says noindex.
        text: The text of the body in lines, without what is hidden; see ``block_text`` for HTML. Empty on
            noindex.
        spans: Blocks of the text, and what is marked in it; none, if the document says nothing about them.
        main: TextParts of the text that are its main content; none, if it is not known.
        base: Absolute URL that ``hrefs`` are relative to.
        hrefs: Links as they stand in the page, stripped, in document order, with their queries
            escaped in the encoding of the page;
            with duplicates, without those that say nofollow and those that lead to
            a place on the page itself.
        anchors: The text of each link, else the ``alt`` of its image; at most
            1,000 characters.
        rels: The ``rel`` of each link, in lower case.
        unfollowed: (href, anchor, rel) of the links that say nofollow. They are stored, and nothing
            follows them.
        directives: Those of ``noindex``, ``nofollow``, ``noarchive``, ``noai`` and ``noimageai``
            that hold.
        refresh: Absolute URL and seconds of a meta refresh.
        language: ISO 639-1 code of what ``html lang``, a meta element or the header
            Content-Language declares, else as detected, if wanted. Parsers
            leave what was declared; once it is settled, that is among ``metas`` as
            ``language_declared`` where it differs.
        charset: Name of the encoding in the WHATWG Encoding Standard.
        metas: Content of description, keywords, Open Graph and the like, by
            lower-case name; at most 64 of 2,000 characters each.
        canonical: Absolute URL of ``link rel=canonical``.
        alternates: Absolute URL of the page in another language, by that
            (``hreflang``, in lower case); at most 100.
        headings: (``h1`` to ``h6``, text) of the wanted levels, in
            document order; at most 100 of 500 characters. None on noindex.
        json_ld: Blocks of JSON-LD as they stand there, not checked; at most 20
            of 65,536 characters in all.
        items: Structured data, such as products and articles; none on noindex.
        counts: How often something was left out or not found, by reason.
        dropped: How many links were left out, by reason: ``nofollow``,
            ``page_nofollow``, ``url_too_long`` (over 65,536 characters).
        parts: (absolute URL, page) of documents within this one, such as items of a feed.
        is_list: Whether the page is a list of links, as a sitemap is: all of them are kept, without
            the limit of other pages.
        body: The document as UTF-8.
    """

    title: str = ""
    text: str = ""
    spans: list[Span] = dataclasses.field(default_factory=list)
    main: TextParts = ()
    base: str = ""
    hrefs: list[str] = dataclasses.field(default_factory=list)
    anchors: list[str] = dataclasses.field(default_factory=list)
    rels: list[str] = dataclasses.field(default_factory=list)
    unfollowed: list[tuple[str, str, str]] = dataclasses.field(default_factory=list)
    directives: set[str] = dataclasses.field(default_factory=set)
    refresh: tuple[str, int] | None = None
    language: str | None = None
    charset: str = "utf-8"
    metas: dict[str, str] = dataclasses.field(default_factory=dict)
    canonical: str | None = None
    alternates: dict[str, str] = dataclasses.field(default_factory=dict)
    headings: list[tuple[str, str]] = dataclasses.field(default_factory=list)
    json_ld: list[str] = dataclasses.field(default_factory=list)
    items: list[StructuredItem] = dataclasses.field(default_factory=list)
    counts: dict[str, int] = dataclasses.field(default_factory=dict)
    dropped: dict[str, int] = dataclasses.field(default_factory=dict)
    parts: list[tuple[str, "Page"]] = dataclasses.field(default_factory=list)
    is_list: bool = False
    body: bytes = dataclasses.field(default=b"", repr=False)
    _soup: Any = dataclasses.field(default=None, repr=False, compare=False)

    @property
    def soup(self) -> "BeautifulSoup":
        """The page for parse filters, built at its first use."""
        if self._soup is None:
            self._soup = soup(self.body)
        return self._soup

    def remove_controls(self) -> None:
        """Removes control characters from title, texts, anchors, headings and metadata.

        A text with spans has none: its parser leaves them out, so that spans stay where they are.
        """
        self.title = _clean_line(self.title)
        if not self.spans:
            self.text = without_controls(self.text)
        if has_controls("".join(self.anchors)):
            self.anchors = [*map(_clean_line, self.anchors)]
        self.headings = [(level, _clean_line(heading)) for level, heading in self.headings]
        self.metas = {
            without_controls(name): without_controls(of) for name, of in self.metas.items()
        }

    def release(self) -> None:
        """Frees the document; the extracted content stays."""
        self.body, self._soup = b"", None

    def add_link(self, href: str, anchor: str = "", rel: str = "") -> None:
        """Adds a link, unless it is too long."""
        if len(href) > _MAX_HREF_CHARS:
            self.drop("url_too_long")
        else:
            self.hrefs.append(href)
            self.anchors.append(anchor)
            self.rels.append(rel)

    def add_unfollowed(self, href: str, anchor: str, rel: str) -> None:
        """Adds a link that says nofollow, unless it is too long."""
        if len(href) <= _MAX_HREF_CHARS:
            self.unfollowed.append((href, anchor, rel))

    def of_unfollowed(self) -> "Page":
        """Returns a page that has the links with nofollow as its links, and nothing else."""
        page = Page(base=self.base, is_list=self.is_list)
        for link in self.unfollowed:
            page.add_link(*link)
        return page

    def encode_queries(self) -> None:
        """Escapes the queries of the links in the encoding of the page, as browsers do."""
        charset = self.charset
        if not charset.startswith("utf-"):
            self.hrefs = [encode_query(href, charset) for href in self.hrefs]
            self.unfollowed = [
                (encode_query(href, charset), anchor, rel) for href, anchor, rel in self.unfollowed
            ]

    def drop(self, reason: str, count: int = 1) -> None:
        """Counts links that are left out."""
        if count:
            self.dropped[reason] = self.dropped.get(reason, 0) + count

    def count(self, reason: str) -> None:
        """Counts a thing that is left out or not found, other than a link."""
        self.counts[reason] = self.counts.get(reason, 0) + 1


def _clean_line(text: str) -> str:
    return collapse(without_controls(text)) if has_controls(text) else text


def soup(body: bytes) -> "BeautifulSoup":
    """Returns a document in UTF-8 as BeautifulSoup, by Python's own parser.

    That parser is linear in depth and in attributes, and needs no other library.
    """
    from bs4 import BeautifulSoup  # takes 0.1 s, and few pages need it

    return BeautifulSoup(
        body.decode("utf-8", "replace"), "html.parser", multi_valued_attributes=None
    )
