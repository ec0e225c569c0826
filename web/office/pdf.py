"""PDF, by PDFium through pypdfium2: the extra ``nutbeam[pdf]``."""

import codecs
import contextlib
import ctypes
import re
import zlib
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from ..pages.page import NoParser, Page, ParseFailed, Source
from ..pages.parse_options import ParseOptions
from ..pages.xml_events import CHARACTERS, START, xml_events
from .collector import Collector

_MAX_BYTES = 1 << 20
_MAX_PACKETS = 100
_MAX_VALUES = 50
_IN_LANGUAGES = ("title", "description")
_DEFAULT_LANGUAGE = "x-default"
_CATALOG = re.compile(rb"/Type\s*/Catalog\b")
_REFERENCE = re.compile(rb"/Metadata\s+(\d{1,10})\s+(\d{1,5})\s+R\b")
_STREAM = re.compile(rb"stream\r?\n")
_PACKET, _PACKET_END = b"<x:xmpmeta", b"</x:xmpmeta>"
_PDF_NAMESPACE = b"http://ns.adobe.com/pdf/1.3/"
# Elements by their names, with the usual prefixes; and the metadata that they are.
_XMP_METAS = {
    "dc:title": "title",
    "dc:creator": "author",
    "dc:description": "description",
    "dc:subject": "keywords",
    "dc:language": "language",
    "pdf:Keywords": "keywords",
}


def read_xmp(body: bytes) -> dict[str, list[str]]:
    """Returns the metadata in the XMP of a PDF: values by ``title``, ``author`` and so on.

    Of a title or a description in several languages it is that with ``x-default``, else the first.
    It is the stream that the catalog names. If that cannot be seen, it is the last packet, for
    pictures in the document may have their own.

    >>> read_xmp(b'''%PDF <x:xmpmeta xmlns:x="adobe:ns:meta/"><dc:title xmlns:dc="d"><r:Alt xmlns:r="r">
    ... <r:li>Pears</r:li></r:Alt></dc:title></x:xmpmeta>''')
    {'title': ['Pears']}
    """
    values: dict[str, list[str]] = {}
    # What comes before a mistake counts.
    with contextlib.suppress(ParseFailed):
        for name, value, language in _values(_packet_of_catalog(body) or _last_packet(body)):
            field_values = values.setdefault(name, [])
            if name in _IN_LANGUAGES and field_values:
                values[name] = [value] if language == _DEFAULT_LANGUAGE else field_values
            elif len(field_values) < _MAX_VALUES:
                field_values.append(value)
    return values


def _values(packet: bytes) -> Iterator[tuple[str, str, str]]:
    """Yields (name, value, language) of the elements in a packet, and of attributes in their place."""
    field, language, pieces = "", "", []
    for kind, name, attributes in xml_events([packet], prefixes=True) if packet else ():
        if kind == CHARACTERS:
            if field:
                pieces.append(name)
            continue
        if field and (name == "rdf:li" or name.endswith(":li") or name == field):
            if value := "".join(pieces).strip():
                yield _XMP_METAS[field], value, language
            pieces, language = [], attributes.get("xml:lang", "").lower()
        if kind == START:
            for attribute in attributes.keys() & _XMP_METAS.keys():
                yield _XMP_METAS[attribute], attributes[attribute], ""
            field = name if name in _XMP_METAS else field
        elif name == field:
            field = ""


def _packet_of_catalog(body: bytes) -> bytes:
    """Returns the stream that the last visible catalog names, unpacked; else nothing."""
    catalogs = list(_CATALOG.finditer(body))
    if not catalogs:
        return b""
    at = catalogs[-1].start()
    start, end = body.rfind(b" obj", 0, at), body.find(b"endobj", at)
    reference = _REFERENCE.search(body, max(0, start), end if end >= 0 else len(body))
    if reference is None:
        return b""
    objects = list(re.finditer(rb"(?<!\d)%s\s+%s\s+obj\b" % reference.groups(), body))
    if not objects:
        return b""
    begin = _STREAM.search(body, objects[-1].end())
    if begin is None:
        return b""
    end = body.find(b"endstream", begin.end())
    data = body[begin.end() : end if end >= 0 else None]
    if b"/FlateDecode" not in body[objects[-1].end() : begin.start()]:
        return data[:_MAX_BYTES].strip()
    with contextlib.suppress(zlib.error):
        return zlib.decompressobj().decompress(data, _MAX_BYTES).strip()
    return b""


def _last_packet(body: bytes) -> bytes:
    packets: list[bytes] = []
    end = len(body)
    while len(packets) < _MAX_PACKETS and (start := body.rfind(_PACKET, 0, end)) >= 0:
        stop = body.find(_PACKET_END, start, start + _MAX_BYTES)
        if stop >= 0:
            packets.append(body[start : stop + len(_PACKET_END)])
        end = start
    return next(
        (packet for packet in packets if _PDF_NAMESPACE in packet), packets[0] if packets else b""
    )


if TYPE_CHECKING:
    from pypdfium2 import PdfDocument, PdfPage

_MAX_PAGE_LINKS = _MAX_PAGE_FIELDS = 10_000
# ISO 32000-1, 12.7.4.3: the value of a text field that must not be shown.
_PASSWORD = 1 << 13
_UTF_16 = (codecs.BOM_UTF16_BE, codecs.BOM_UTF16_LE)
_UTF_8 = codecs.BOM_UTF8
# The number of pages may be invented.
_MAX_BAD_PAGES = 100
_MAX_LANGUAGE_CHARS = 512
_MISSING = "PDF is read by pypdfium2, of the extra nutbeam[pdf]: pip install nutbeam[pdf]"
_METAS = {"Author": "author", "Keywords": "keywords", "Subject": "description"}
# PDFium's sign for a hyphen at the end of a line; before a capital the hyphen belongs to the word.
_HYPHEN, _KEPT_HYPHEN = "\ufffe", re.compile("\ufffe(?=[^\\W\\d_a-zß-öø-ÿ])")


def parse_pdf(source: Source, options: ParseOptions) -> Page:
    """Parses PDF: title and the like, text of its pages, values of its form, links out of it.

    Title and the like are those of the document information, else of the XMP.

    Of a long document the first ``pdf_max_pages`` pages are taken. PDFium is native code: a
    document that makes it crash, or takes too long, ends the parse process and fails alone.

    Raises:
        NoParser: ``no_pypdfium2``: it is not installed.
        ParseFailed: ``encrypted`` (with a password that is not empty), ``malformed``.
    """
    collector = Collector(source, options)
    with _open_document(source.body) as document:
        _read_information(document, collector)
        _add_xmp(source.body, collector)
        return collector.read(_read_pages, document, options.pdf_max_pages)


@contextlib.contextmanager
def _open_document(body: bytes) -> Iterator["PdfDocument"]:
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
        is_locked = error.err_code in (raw.FPDF_ERR_PASSWORD, raw.FPDF_ERR_SECURITY)
        raise ParseFailed("encrypted" if is_locked else "malformed") from error
    with contextlib.closing(document):
        yield document


def _read_information(document: "PdfDocument", collector: Collector) -> None:
    from pypdfium2 import raw

    collector.set_title(_information(document, "Title"))
    for name, meta in _METAS.items():
        collector.add_meta(meta, _information(document, name))
    units = (raw.FPDF_WCHAR * _MAX_LANGUAGE_CHARS)()
    if raw.FPDFCatalog_GetLanguage(document, units, len(units)) <= len(units):
        collector.set_language(bytes(units).decode("utf-16-le", "replace").partition("\0")[0])


def _information(document: "PdfDocument", name: str) -> str:
    from pypdfium2 import raw

    key = name.encode() + b"\0"
    buffer = ctypes.create_string_buffer(raw.FPDF_GetMetaText(document, key, None, 0))
    raw.FPDF_GetMetaText(document, key, buffer, len(buffer))
    # A letter beyond 16 bits that is cut, as titles of a fixed length are, is no reason to fail.
    return buffer.raw.decode("utf-16-le", "replace")


def _add_xmp(body: bytes, collector: Collector) -> None:
    """Takes from the XMP what the document information does not say."""
    page = collector.page
    if page.title and page.language and set(_METAS.values()) <= page.metas.keys():
        return
    information = frozenset(page.metas)
    for name, values in read_xmp(body).items():
        if name == "title":
            collector.set_title(values[0])
        elif name == "language":
            collector.set_language(values[0])
        elif name not in information:
            for value in values:
                collector.add_meta(name, value)


def _read_pages(document: "PdfDocument", max_pages: int, collector: Collector) -> None:
    """Reads pages up to a limit; broken pages are skipped.

    Raises:
        ParseFailed: ``malformed``: none can be read.
    """
    from pypdfium2 import PdfiumError

    _begin_form(document)
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
                return collector.note_cut("bad_pages")
            continue
        with contextlib.closing(page):
            _take_links(document, page, collector)
            _take_text(page, collector)
            _take_form(document, page, collector)
    if not pages:
        raise ParseFailed("malformed") from ValueError("it has no pages")
    if read < pages:
        collector.note_cut("pages")


def _take_text(page: "PdfPage", collector: Collector) -> None:
    with contextlib.closing(page.get_textpage()) as text:
        # Text beyond the edge of its page counts, too.
        page_text = text.get_text_range(errors="replace")
    collector.add_text(_KEPT_HYPHEN.sub("-", page_text).replace(_HYPHEN, "") + "\n")


def _begin_form(document: "PdfDocument") -> None:
    from pypdfium2 import PdfiumError

    with contextlib.suppress(PdfiumError):
        document.init_forms()


def _take_form(document: "PdfDocument", page: "PdfPage", collector: Collector) -> None:
    """Takes the values that somebody has filled in; they are no text of the page."""
    from pypdfium2 import raw

    if document.formenv is None:
        return
    kinds = {raw.FPDF_FORMFIELD_TEXTFIELD, raw.FPDF_FORMFIELD_COMBOBOX, raw.FPDF_FORMFIELD_LISTBOX}
    form = document.formenv.raw
    for number in range(min(raw.FPDFPage_GetAnnotCount(page), _MAX_PAGE_FIELDS)):
        annotation = raw.FPDFPage_GetAnnot(page, number)
        if annotation and raw.FPDFAnnot_GetFormFieldType(form, annotation) in kinds:
            is_secret = raw.FPDFAnnot_GetFormFieldFlags(form, annotation) & _PASSWORD
            if not is_secret:
                collector.add_text(_field_value(form, annotation) + "\n")
        raw.FPDFPage_CloseAnnot(annotation)


def _field_value(form: Any, annotation: Any) -> str:
    from pypdfium2 import raw

    length = raw.FPDFAnnot_GetFormFieldValue(form, annotation, None, 0)
    units = (raw.FPDF_WCHAR * (length // 2))()
    raw.FPDFAnnot_GetFormFieldValue(form, annotation, units, length)
    return bytes(units).decode("utf-16-le", "replace").partition("\0")[0]


def _take_links(document: "PdfDocument", page: "PdfPage", collector: Collector) -> None:
    from pypdfium2 import raw

    place, link = ctypes.c_int(0), raw.FPDF_LINK()
    for _ in range(_MAX_PAGE_LINKS):
        if not raw.FPDFLink_Enumerate(page, place, link):
            break
        action = raw.FPDFLink_GetAction(link)
        if action and raw.FPDFAction_GetType(action) == raw.PDFACTION_URI:
            # PDFium puts the base of the catalog before a URI without a scheme.
            collector.add_link(_uri(raw.FPDFAction_GetURIPath, document, action))


def _uri(get: Callable[..., int], *of: Any) -> str:
    buffer = ctypes.create_string_buffer(get(*of, None, 0))
    get(*of, buffer, len(buffer))
    return _uri_text(buffer.raw[:-1])


def _uri_text(uri: bytes) -> str:
    r"""Returns a URI as text; bytes that are not UTF-8 are escaped as they are.

    >>> _uri_text(b"http://a/caf\xe9"), _uri_text(b"\xfe\xff\0h\0:"), _uri_text("é".encode())
    ('http://a/caf%E9', 'h:', 'é')
    """
    if uri.startswith(_UTF_16):
        return uri.decode("utf-16", "replace").rstrip("\0")
    try:
        return uri.removeprefix(_UTF_8).decode().rstrip("\0")
    except UnicodeDecodeError:
        return "".join(chr(byte) if byte < 0x80 else f"%{byte:02X}" for byte in uri).rstrip("\0")
