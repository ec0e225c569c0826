"""XMP, the metadata that a PDF holds as XML (ISO 16684-1): PDF 2.0 has its title only there."""

import contextlib
import re
import zlib
from collections.abc import Iterator

from ..pages.page import ParseFailed
from ..pages.xml_events import CHARACTERS, START, xml_events

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
_METAS = {
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
                yield _METAS[field], value, language
            pieces, language = [], attributes.get("xml:lang", "").lower()
        if kind == START:
            for attribute in attributes.keys() & _METAS.keys():
                yield _METAS[attribute], attributes[attribute], ""
            field = name if name in _METAS else field
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
