"""PDF, by PDFium through pypdfium2: the extra ``nutbeam[pdf]``."""

import contextlib
import ctypes
import re
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from ..pages.page import NoParser, Page, ParseFailed, Source
from ..pages.parse_options import ParseOptions
from .collected import Collected

if TYPE_CHECKING:
    from pypdfium2 import PdfDocument, PdfPage

_MAX_PAGE_LINKS = 10_000
# The number of pages may be invented.
_MAX_BAD_PAGES = 100
_MAX_LANGUAGE_CHARS = 512
_MISSING = "PDF is read by pypdfium2, of the extra nutbeam[pdf]: pip install nutbeam[pdf]"
_METAS = {"Author": "author", "Keywords": "keywords", "Subject": "description"}
# PDFium's sign for a hyphen at the end of a line; before a capital the hyphen belongs to the word.
_HYPHEN, _KEPT_HYPHEN = "\ufffe", re.compile("\ufffe(?=[^\\W\\d_a-zß-öø-ÿ])")


def parse_pdf(source: Source, options: ParseOptions) -> Page:
    """Parses PDF: title and the like of its information, text of its pages, links out of it.

    Of a long document the first ``pdf_max_pages`` pages are taken. PDFium is native code: a
    document that makes it crash, or takes too long, ends the parse process and fails alone.

    Raises:
        NoParser: ``no_pypdfium2``: it is not installed.
        ParseFailed: ``encrypted`` (with a password that is not empty), ``malformed``.
    """
    collected = Collected(source, options)
    with _opened(source.body) as document:
        _read_information(document, collected)
        return collected.read(_read_pages, document, options.pdf_max_pages)


@contextlib.contextmanager
def _opened(body: bytes) -> Iterator["PdfDocument"]:
    try:
        from pypdfium2 import PdfDocument, PdfiumError, raw
    except ModuleNotFoundError as error:
        missing = error.name == "pypdfium2"
        raise NoParser("no_pypdfium2") from (ModuleNotFoundError(_MISSING) if missing else error)
    except ImportError as error:
        raise NoParser("no_pypdfium2") from error
    try:
        document = PdfDocument(body)
    except PdfiumError as error:
        locked = error.err_code in (raw.FPDF_ERR_PASSWORD, raw.FPDF_ERR_SECURITY)
        raise ParseFailed("encrypted" if locked else "malformed") from error
    with contextlib.closing(document):
        yield document


def _read_information(document: "PdfDocument", collected: Collected) -> None:
    from pypdfium2 import raw

    collected.title(document.get_metadata_value("Title"))
    for name, meta in _METAS.items():
        collected.meta(meta, document.get_metadata_value(name))
    units = (raw.FPDF_WCHAR * _MAX_LANGUAGE_CHARS)()
    if raw.FPDFCatalog_GetLanguage(document, units, len(units)) <= len(units):
        collected.language(bytes(units).decode("utf-16-le", "replace").partition("\0")[0])


def _read_pages(document: "PdfDocument", max_pages: int, collected: Collected) -> None:
    """Reads pages up to a limit; broken pages are skipped.

    Raises:
        ParseFailed: ``malformed``: none can be read.
    """
    from pypdfium2 import PdfiumError

    pages, bad = len(document), 0
    read = pages if max_pages < 0 else min(pages, max_pages)
    for number in range(read):
        try:
            page = document[number]
        except PdfiumError as error:
            bad += 1
            if bad == read or bad == number + 1 == _MAX_BAD_PAGES:
                raise ParseFailed("malformed") from error
            if bad > _MAX_BAD_PAGES:
                return collected.cut("bad_pages")
            continue
        with contextlib.closing(page):
            _take_links(document, page, collected)
            _take_text(page, collected)
    if not pages:
        raise ParseFailed("malformed") from ValueError("it has no pages")
    if read < pages:
        collected.cut("pages")


def _take_text(page: "PdfPage", collected: Collected) -> None:
    with contextlib.closing(page.get_textpage()) as text:
        # Text beyond the edge of its page counts, too.
        found = text.get_text_range(errors="replace")
    collected.add(_KEPT_HYPHEN.sub("-", found).replace(_HYPHEN, "") + " ")


def _take_links(document: "PdfDocument", page: "PdfPage", collected: Collected) -> None:
    from pypdfium2 import raw

    place, link = ctypes.c_int(0), raw.FPDF_LINK()
    for _ in range(_MAX_PAGE_LINKS):
        if not raw.FPDFLink_Enumerate(page, place, link):
            break
        action = raw.FPDFLink_GetAction(link)
        if action and raw.FPDFAction_GetType(action) == raw.PDFACTION_URI:
            # PDFium puts the base of the catalog before a URI without a scheme.
            collected.link(_uri(raw.FPDFAction_GetURIPath, document, action))


def _uri(get: Callable[..., int], *of: Any) -> str:
    buffer = ctypes.create_string_buffer(get(*of, None, 0))
    get(*of, buffer, len(buffer))
    return buffer.value.decode("utf-8", "replace")
