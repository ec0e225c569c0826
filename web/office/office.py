"""Parses Office Open XML, the formats of Word, Excel and PowerPoint."""

import functools

from ..pages.page import Page, ParseFailed, Source
from ..pages.parse_options import ParseOptions
from .archive import Archive, read_parts
from .collector import Collector
from .ooxml_parts import read_words, relations_of
from .ooxml_sheets import read_workbook
from .properties import read_properties

# Where programs put these parts; a damaged list of parts says nothing else.
_USUAL_MAIN_PARTS = ("word/document.xml", "xl/workbook.xml", "ppt/presentation.xml")
_PROPERTIES = "docProps/core.xml"
_USUAL_SLIDE = "ppt/slides/slide{}.xml"


def parse_office(source: Source, options: ParseOptions) -> Page:
    """Parses a text document, a workbook or a presentation; its main part shows which it is.

    Title, author and the like are its core properties. Text is that of the document with its foot-
    and endnotes, of all sheets with their text boxes and comments, or of all slides with their notes. Links are its hyperlinks out.

    Parts that are damaged are read up to the damage; the metadata ``text_cut`` says so.

    Raises:
        ParseFailed: It is no such document, or exceeds a limit: see ``Archive``.
    """
    archive = Archive(source.body)
    collector = Collector(source, options)
    package = relations_of(archive, "")
    main = package.first.get("officeDocument") or next(
        filter(archive.__contains__, _USUAL_MAIN_PARTS), None
    )
    root = next((name for name, _ in archive.elements(main)), None)
    if main is None or root not in _READERS:
        raise ParseFailed("malformed") from KeyError(f"unknown main part {(main or '')[:100]!r}")
    properties = package.first.get("core-properties", _PROPERTIES)
    read_properties(archive, properties, collector)
    archive.forgive(properties)
    return collector.read(read_parts, archive, functools.partial(_READERS[root], archive, main))


def _read_document(archive: Archive, main: str, collector: Collector) -> None:
    relations = relations_of(archive, main)
    styles = relations.first.get("styles", "")
    elements = archive.elements(styles)
    languages = (attributes.get("val", "") for name, attributes in elements if name == "lang")
    collector.set_language(next(languages, ""))  # the first is that of the defaults
    archive.forgive(styles)
    for part in (main, relations.first.get("footnotes"), relations.first.get("endnotes")):
        read_words(archive, part, collector)


def _read_presentation(archive: Archive, main: str, collector: Collector) -> None:
    relations = relations_of(archive, main)
    parts, elements = relations.inside, archive.elements(main)
    ids = [attributes.get(":id", "") for name, attributes in elements if name == "sldId"]
    slides = [parts.get(id_, _USUAL_SLIDE.format(number)) for number, id_ in enumerate(ids, 1)]
    if archive.is_damaged(main):
        slides += relations.by_kind.get("slide", ())
    for slide in dict.fromkeys(slides):  # no slide twice
        if archive.require(slide):
            read_words(archive, slide, collector)
            read_words(archive, relations_of(archive, slide).first.get("notesSlide"), collector)


_READERS = {
    "document": _read_document,
    "presentation": _read_presentation,
    "workbook": read_workbook,
}
