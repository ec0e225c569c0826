"""Reads the metadata of office documents: Dublin Core and similar."""

import re
from collections.abc import Mapping

from ..pages.xml_events import CHARACTERS, END, START
from .archive import Archive
from .collector import Collector

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
# ECMA-376 part 1, 22.9.2.19: characters that XML cannot hold, and the underscore of such an escape.
_ESCAPE = re.compile("_x([0-9A-Fa-f]{4})_")


def without_escapes(text: str) -> str:
    r"""Returns a text of Office Open XML with its escapes decoded; controls are spaces.

    >>> without_escapes("a_x000D_\nb_x005F_x0041_")
    'a \nb_x0041_'
    """
    return _ESCAPE.sub(_character, text) if "_x" in text else text


def _character(escape: re.Match[str]) -> str:
    character = chr(int(escape[1], 16))
    return character if character.isprintable() else " "


def read_properties(
    archive: Archive, part: str | None, collector: Collector, metas: Mapping[str, str] = OFFICE
) -> None:
    """Takes title and language, and the metadata of elements by their names, if the part exists."""
    element = text = ""
    for kind, value, _ in archive.events(part):
        if kind == CHARACTERS and element:
            text = (text + value)[:_MAX_CHARS]
        elif kind == START and not element and (value in metas or value in ("title", "language")):
            element, text = value, ""
        elif kind == END and value == element:
            text = without_escapes(text) if metas is OFFICE else text
            if element == "title":
                collector.set_title(text)
            elif element == "language":
                collector.set_language(text)
            else:
                collector.add_meta(metas[element], text)
            element = ""
