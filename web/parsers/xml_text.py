"""XML of no known kind: its text, and the URLs in it."""

from ..content.charset import decode
from ..pages.page import MAX_TITLE_CHARS, Page, ParseFailed, Source
from ..pages.parse_options import ParseOptions
from ..pages.white_space import collapse, collapse_long
from .text import fill
from .xml_reader import read_xml

_TITLES = frozenset({"title", "Title"})
_NOT_TEXT = frozenset({"script", "style"})
# As in HTML.
_MAX_HREF_CHARS = 65_536
_LINKS = ("href", "src", "resource", "about")


def parse_xml(source: Source, options: ParseOptions) -> Page:
    """Parses XML: the text of all elements, and the first ``title``.

    Links are the attributes ``href``, ``src``, ``rdf:about`` and ``rdf:resource``,
    then what looks like a URL in the text, as in plain text.

    Raises:
        ParseFailed: ``malformed_xml``: there is no text before the first mistake. Others as
            ``read_xml``.

    >>> body = b"<book><title>T</title><p>See http://example.com/a.</p></book>"
    >>> page = parse_xml(Source("http://example.com/", body), ParseOptions())
    >>> page.title, page.text, page.hrefs
    ('T', 'T See http://example.com/a.', ['http://example.com/a'])
    """
    decoded, charset = decode(source.body, source.content_type)
    reader = _Reader()
    complete = read_xml(decoded, reader.start, reader.end, reader.texts.append)
    text = collapse_long("".join(reader.texts))
    if not complete and not text:
        raise ParseFailed("malformed_xml")
    page = Page(base=source.url, charset=charset, body=decoded.encode("utf-8", "replace"))
    page.title = collapse(reader.title)[:MAX_TITLE_CHARS]
    page.language = reader.language
    page.drop("url_too_long", reader.too_long)
    fill(page, source, options, text, reader.hrefs)
    if not complete:
        page.drop("malformed_xml")
    return page


class _Reader:
    def __init__(self) -> None:
        self.title = ""
        self.language: str | None = None
        self.hrefs: list[str] = []
        self.texts: list[str] = []
        self.too_long = 0
        self._skipped_from: int | None = None
        self._title_from: int | None = None

    def start(self, name: str, attributes: dict[str, str]) -> None:
        if self.language is None:
            self.language = attributes.get("xml:lang", "")[:35] or None
        for attribute, value in attributes.items():
            if attribute.rpartition(":")[2] not in _LINKS or not value.strip():
                continue
            if len(value) > _MAX_HREF_CHARS:
                self.too_long += 1
            else:
                self.hrefs.append(value.strip())
        self.texts.append(" ")
        if name in _NOT_TEXT and self._skipped_from is None:
            self._skipped_from = len(self.texts)
        if name in _TITLES and not self.title:
            self._title_from = len(self.texts)

    def end(self, name: str) -> None:
        self.texts.append(" ")
        if name in _NOT_TEXT and self._skipped_from is not None:
            del self.texts[self._skipped_from :]
            self._skipped_from = None
        if name in _TITLES and self._title_from is not None:
            self.title = "".join(self.texts[self._title_from :])
            self._title_from = None
