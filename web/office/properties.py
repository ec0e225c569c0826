"""Reads the metadata of office documents: Dublin Core and similar."""

from collections.abc import Mapping

from ..pages.xml_events import CHARACTERS, END, START
from .archive import Archive
from .collected import Collected

# The elements of OOXML's core properties and of OpenDocument's meta.xml, and the metadata they are.
OFFICE = {
    "creator": "author",
    "initial-creator": "author",
    "description": "description",
    "keyword": "keywords",
    "keywords": "keywords",
    "subject": "subject",
}
# The same for EPUB's package document.
BOOK = {"creator": "author", "description": "description", "subject": "keywords"}
_MAX_CHARS = 4_000


def read_properties(
    archive: Archive, part: str | None, collected: Collected, metas: Mapping[str, str] = OFFICE
) -> None:
    """Takes title and language, and the metadata of elements by their names, if the part exists."""
    element = text = ""
    for kind, value, _ in archive.events(part):
        if kind == CHARACTERS and element:
            text = (text + value)[:_MAX_CHARS]
        elif kind == START and not element and (value in metas or value in ("title", "language")):
            element, text = value, ""
        elif kind == END and value == element:
            if element == "title":
                collected.title(text)
            elif element == "language":
                collected.language(text)
            else:
                collected.meta(metas[element], text)
            element = ""
