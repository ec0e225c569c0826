"""Office Open XML: what Word, Excel and PowerPoint write, and others in their formats."""

from ..pages.page import Page, ParseFailed, Source
from ..pages.parse_options import ParseOptions
from .archive import Archive
from .collected import Collected
from .ooxml_parts import Relations, Words, relations_of, root_of
from .ooxml_sheets import read_workbook
from .properties import read_properties
from .xml_events import Attributes, Enough, Handler, read_xml

_NOTES = ("footnotes", "endnotes")


def parse_office(source: Source, options: ParseOptions) -> Page:
    """Parses a text document, a workbook or a presentation, whichever it proves to be.

    Title, author and the like are its core properties. Text is that of the document with its foot-
    and endnotes, of all sheets, or of all slides with their notes. Links are its hyperlinks out.

    Raises:
        ParseFailed: It is no such document, or is too much: see ``Archive`` and ``read_xml``.
    """
    archive = Archive(source.body)
    collected = Collected(source, options)
    package = relations_of(archive, "")
    main = package.first("officeDocument")
    if main is None:
        raise ParseFailed("malformed") from KeyError("no main part")
    if core := package.first("core-properties"):
        read_properties(archive, core, collected)
    _READERS.get(root_of(archive, main), _read_other)(archive, main, collected)
    return collected.done()


def _read_document(archive: Archive, main: str, collected: Collected) -> None:
    relations = relations_of(archive, main)
    read_words(archive, main, collected, relations)
    for kind in _NOTES:
        if (part := relations.first(kind)) and part in archive:
            read_words(archive, part, collected, relations_of(archive, part))
    if (styles := relations.first("styles")) and styles in archive:
        read_xml(archive.chunks(styles), _Language(collected))


def _read_presentation(archive: Archive, main: str, collected: Collected) -> None:
    slides = _Slides()
    read_xml(archive.chunks(main), slides)
    relations = relations_of(archive, main)
    for name in slides.ids:
        slide = relations.inside.get(name)
        if slide is None:
            continue
        own = relations_of(archive, slide)
        read_words(archive, slide, collected, own)
        if (notes := own.first("notesSlide")) and notes in archive:
            read_words(archive, notes, collected, relations_of(archive, notes))


def _read_other(archive: Archive, main: str, collected: Collected) -> None:
    raise ParseFailed("malformed") from KeyError(f"unknown main part {main[:100]!r}")


def read_words(archive: Archive, part: str, collected: Collected, relations: Relations) -> None:
    """Takes the text and links of a part."""
    words = Words(collected, relations)
    read_xml(archive.chunks(part), words)
    words.rest()


class _Slides(Handler):
    """The relationships of the slides, in their order."""

    def __init__(self) -> None:
        self.ids: dict[str, None] = {}  # no slide twice

    def start(self, name: str, attributes: Attributes) -> None:
        if name == "sldId" and "r:id" in attributes:
            self.ids[attributes["r:id"]] = None


class _Language(Handler):
    """The language that a text document is in where it says nothing else."""

    def __init__(self, collected: Collected) -> None:
        self._collected = collected

    def start(self, name: str, attributes: Attributes) -> None:
        if name == "lang" and "val" in attributes:
            self._collected.language(attributes["val"])

    def end(self, name: str) -> None:
        if name == "docDefaults":
            raise Enough


_READERS = {
    "document": _read_document,
    "presentation": _read_presentation,
    "workbook": read_workbook,
}
