"""XML of an unknown kind: its text, and the URLs in it."""

from collections.abc import Iterable

from ..pages.page import MAX_TITLE_CHARS, Page, Source
from ..pages.parse_options import ParseOptions
from ..pages.white_space import collapse
from ..pages.xml_events import CHARACTERS, END, START, Attributes, Event, MalformedXml, text_events
from .text import fill_page, text_page

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
    ('T', 'T See http://example.com/a.', ['http://example.com/a'])
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
