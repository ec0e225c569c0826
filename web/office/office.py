"""Parses Office Open XML, the formats of Word, Excel and PowerPoint."""

from ..pages.page import Page, ParseFailed, Source
from ..pages.parse_options import ParseOptions
from .archive import Archive
from .collected import Collected
from .ooxml_parts import relations_of
from .ooxml_sheets import read_workbook
from .ooxml_words import read_words
from .properties import read_properties


def parse_office(source: Source, options: ParseOptions) -> Page:
    """Parses a text document, a workbook or a presentation; its main part shows which it is.

    Title, author and the like are its core properties. Text is that of the document with its foot-
    and endnotes, of all sheets, or of all slides with their notes. Links are its hyperlinks out.

    Raises:
        ParseFailed: It is no such document, or exceeds a limit: see ``Archive``.
    """
    archive = Archive(source.body)
    collected = Collected(source, options)
    package = relations_of(archive, "")
    main = package.first.get("officeDocument")
    root = next((name for name, _ in archive.elements(main)), None)
    if main is None or root not in _READERS:
        raise ParseFailed("malformed") from KeyError(f"unknown main part {(main or '')[:100]!r}")
    read_properties(archive, package.first.get("core-properties"), collected)
    return collected.read(_READERS[root], archive, main)


def _read_document(archive: Archive, main: str, collected: Collected) -> None:
    relations = relations_of(archive, main)
    styles = archive.elements(relations.first.get("styles"))
    languages = (attributes.get("val", "") for name, attributes in styles if name == "lang")
    collected.language(next(languages, ""))  # the first is that of the defaults
    for part in (main, relations.first.get("footnotes"), relations.first.get("endnotes")):
        read_words(archive, part, collected)


def _read_presentation(archive: Archive, main: str, collected: Collected) -> None:
    parts = relations_of(archive, main).inside
    elements = archive.elements(main)
    ids = (attributes.get(":id", "") for name, attributes in elements if name == "sldId")
    for slide in dict.fromkeys(parts.get(id_) for id_ in ids):  # no slide twice
        if slide is not None:
            read_words(archive, slide, collected)
            read_words(archive, relations_of(archive, slide).first.get("notesSlide"), collected)


_READERS = {
    "document": _read_document,
    "presentation": _read_presentation,
    "workbook": read_workbook,
}
