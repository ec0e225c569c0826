"""Plain text, tables of values, and XML of an unknown kind."""

import re
from collections.abc import Callable, Iterable

from ..content.charset import decode_body
from ..content.legibility import SPACELESS_RANGES
from ..pages.directives import header_directives, obey
from ..pages.page import MAX_TITLE_CHARS, Page, Source, collapse, collapse_lines, trim_lines
from ..pages.parse_options import ParseOptions
from ..pages.xml_events import CHARACTERS, END, START, Attributes, Event, MalformedXml, text_events

_SCHEME = r"(?<![A-Za-z0-9+.-])[A-Za-z][A-Za-z0-9+.-]{1,120}+:(?=[A-Za-z0-9/])"
# Spaces, controls and punctuation beyond ASCII: they end a URL.
_ENDS = (
    r"\x80-\xa1\xab\xb6\xbb\xbf\u060c\u061b\u061f\u06d4\u0964\u0965\u1680\u2000-\u200b\u200e\u200f"
    r"\u2014-\u206f\u3000-\u3004\u3008-\u3020\u3030\ufe10-\ufe1f\ufe30-\ufe6f\ufeff"
    r"\uff01-\uff0f\uff1a-\uff20\uff3b-\uff40\uff5b-\uff65\ufff0-\uffff"
)
# Hyphens, short dashes and the dot between words of Kana: titles have them, so a URL may.
_DASHES, _DOT = r"\u2010-\u2013", r"\u30fb"
# Without spaces between words, a letter may be the text after a URL.
_WHOLE_CHAR = (
    rf"(?:[^\s\"<>|`{SPACELESS_RANGES}{_ENDS}{_DOT}]|(?<![A-Za-z0-9])[{SPACELESS_RANGES}{_DOT}])"
)
_CHAR = (
    r"(?:[A-Za-z0-9$_.+!*/?:@&~=%#-]|[,;](?!https?://)|(?<=\w)'(?!s\b)(?=\w)"
    rf"|(?<![A-Za-z0-9])[{SPACELESS_RANGES}]|[^\x00-\x7f{SPACELESS_RANGES}{_ENDS}{_DASHES}{_DOT}])"
)
# In a text a URL has brackets in pairs only.
_WITHIN = (
    rf"{_SCHEME}(?://\[[0-9A-Fa-f:.]++\])?"
    rf"(?:{_CHAR}|\({_CHAR}*+\)|(?<=[\w\]])\[{_CHAR}*+\](?=[=\[]))++"
)
_URL_WITHIN = re.compile(_WITHIN)
# Both alternatives are linear: their repetitions are possessive, and a word is tried once. The first
# is a line, or a value, that may be one URL.
_URL_IN_TEXT = re.compile(
    rf"^[ \t\"'<(*+-]*+(?P<line>{_SCHEME}{_WHOLE_CHAR}++)[\"'>]*+[ \t\r]*+$|{_WITHIN}", re.MULTILINE
)
_BRACKET = re.compile(r"[()\[\]{}]")
_CLOSING = {"(": ")", "[": "]", "{": "}"}
_MARKS = ".,;:!?*'。，、；：！？」』）】》”’»…"  # noqa: RUF001
# A value in quotes, which may hold separators; or a separator.
_COMMAS = re.compile(r'"[^"]*+"|,')
_SEMICOLONS = re.compile(r'"[^"]*+"|;')
_HEADER_CHARS = 10_000


def parse_text(source: Source, options: ParseOptions) -> Page:
    """Parses plain text; what looks like a URL is a link.

    This also reads sitemaps that are lists of URLs.

    >>> document = Source("http://example.com/", b"See http://example.com/a.")
    >>> parse_text(document, ParseOptions()).hrefs
    ['http://example.com/a']
    """
    text, page = text_page(source, options)
    fill_page(page, text, tidy=trim_lines)
    return page


def parse_csv(source: Source, options: ParseOptions) -> Page:
    """Parses comma-separated values as plain text; a URL ends with its value.

    >>> document = Source("http://example.com/", b'http://a/1,"http://a/2,3"')
    >>> parse_csv(document, ParseOptions()).hrefs
    ['http://a/1', 'http://a/2,3']
    """
    text, page = text_page(source, options)
    header = text[:_HEADER_CHARS].lstrip().partition("\n")[0]
    # Where the comma is the decimal one, the semicolon is between values.
    between = _SEMICOLONS if ";" in header and "," not in header else _COMMAS
    lines_of_values = between.sub(lambda match: match[0] if match[0][0] == '"' else "\n", text)
    fill_page(page, text, linked=lines_of_values, tidy=trim_lines)
    return page


def text_page(
    source: Source, options: ParseOptions, decoder: Callable[..., tuple[str, str]] = decode_body
) -> tuple[str, Page]:
    """Returns the decoded text of a document, and a page without text and links so far.

    Args:
        source: The document.
        options: For the directives of its header.
        decoder: Returns (text, encoding) of a body, its content type and its URL, as ``decode_body``
            does.
    """
    text, charset = decoder(source.body, source.content_type, source.url)
    page = Page(base=source.url, charset=charset, body=text.encode("utf-8", "replace"))
    page.directives = header_directives(source, options)
    return text, page


def fill_page(
    page: Page, text: str, linked: str | None = None, tidy: Callable[[str], str] = collapse_lines
) -> None:
    """Gives a page its text and the links in it, as far as its directives allow.

    Args:
        page: A page with base and directives.
        text: All of its text.
        linked: Where to look for links, with a line for each value, if the text is one of values.
        tidy: Returns the text without needless white space.
    """
    page.hrefs += urls_in(text) if linked is None else urls_in(linked, are_values=True)
    page.anchors = [""] * len(page.hrefs)
    page.rels = [""] * len(page.hrefs)
    obey(page, tidy(text))


def urls_in(text: str, are_values: bool = False) -> list[str]:
    """Returns what looks like a URL in a text.

    A line that is one URL counts whole: without ``|``, backticks, a second ``://``, punctuation
    beyond ASCII, and brackets that are not in pairs. In other lines a URL ends at white space,
    quotation marks, punctuation at its end, and brackets that begin before it. Letters beyond ASCII
    belong to it; those of scripts without spaces not directly after a letter or digit of ASCII.

    Args:
        text: The text.
        are_values: Whether each line is a value. The punctuation at the end of a value that is one
            URL belongs to the URL; at the end of a line it may be that of a sentence.

    >>> urls_in("See http://example.com/wiki/Zürich_(Stadt), and (http://example.com/a).")
    ['http://example.com/wiki/Zürich_(Stadt)', 'http://example.com/a']
    >>> urls_in("http://example.com/Inc."), urls_in("http://example.com/Inc.", are_values=True)
    (['http://example.com/Inc'], ['http://example.com/Inc.'])
    """
    urls: list[str] = []
    for match in _URL_IN_TEXT.finditer(text):
        line = match["line"]
        if line is None:
            urls.append(match[0].rstrip(_MARKS))
        elif _is_one_url(line):
            urls.append(line if are_values else line.rstrip(_MARKS))
        else:
            urls += [url.rstrip(_MARKS) for url in _URL_WITHIN.findall(match[0])]
    return urls


def _is_one_url(line: str) -> bool:
    """Returns whether a line has no second URL, and brackets in pairs only."""
    if line.count("://") > 1:
        return False
    closing_brackets: list[str] = []
    for bracket in _BRACKET.findall(line):
        if bracket in _CLOSING:
            closing_brackets.append(_CLOSING[bracket])
        elif not closing_brackets or closing_brackets.pop() != bracket:
            return False
    return not closing_brackets


_TITLES = frozenset({"title", "Title"})
_NOT_TEXT = frozenset({"script", "style"})
_LINKS = ("href", "src", "resource", "about")


def parse_xml(source: Source, options: ParseOptions) -> Page:
    """Parses XML: the text of all elements, and the first ``title``.

    Links are the attributes ``href``, ``src``, ``rdf:about`` and ``rdf:resource``,
    then what looks like a URL in the text, as in plain text.

    Raises:
        ParseFailed: ``malformed_xml``: there is no text before the first mistake. Others as
            ``xml_events``.

    >>> body = b"<book><title>T</title><p>See http://example.com/a.</p></book>"
    >>> page = parse_xml(Source("http://example.com/", body), ParseOptions())
    >>> page.title, page.text, page.hrefs
    ('T', 'T\\nSee http://example.com/a.', ['http://example.com/a'])
    """
    document_text, page = text_page(source, options)
    reader = _Reader(page)
    try:
        reader.read(text_events(document_text))
    except MalformedXml as mistake:
        if not reader.text().strip():
            raise
        page.drop(mistake.reason)
    page.encode_queries()
    page.title = collapse(reader.title)[:MAX_TITLE_CHARS]
    fill_page(page, reader.text(), linked=reader.text())
    return page


class _Reader:
    def __init__(self, page: Page) -> None:
        self.title = ""
        self._page = page
        self._texts: list[str] = []
        # Where in the texts an element that is not text, and the title, begin.
        self._skipped_from: int | None = None
        self._title_from: int | None = None

    def read(self, events: Iterable[Event]) -> None:
        texts = self._texts
        for kind, value, attributes in events:
            if kind == CHARACTERS:
                texts.append(value)
                continue
            texts.append("\n")
            if attributes:
                self._take(attributes)
            if value in _NOT_TEXT:
                if kind == START and self._skipped_from is None:
                    self._skipped_from = len(texts)
                elif kind == END and self._skipped_from is not None:
                    del texts[self._skipped_from :]
                    self._skipped_from = None
            elif value in _TITLES:
                if kind == START and not self.title:
                    self._title_from = len(texts)
                elif kind == END and self._title_from is not None:
                    self.title = "".join(texts[self._title_from :])
                    self._title_from = None

    def text(self) -> str:
        return "".join(self._texts)

    def _take(self, attributes: Attributes) -> None:
        """Takes the language and the links of an element."""
        page = self._page
        if page.language is None:
            page.language = attributes.get("xml:lang", "")[:35] or None
        for attribute, value in attributes.items():
            if attribute.rpartition(":")[2] in _LINKS and (href := value.strip()):
                page.add_link(href)
