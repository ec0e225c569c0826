"""The records of WAT and WET files, in the shape of Common Crawl's.

A WAT record describes a record of an archive in JSON, as the program ia-web-commons does; all its
values are texts, lists and objects. A WET record has the text of a page. Many programs read both line by
line, so the version of the format, the order of the fields and the spaces in JSON are the same, too.
"""

import json
import struct
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from ..network.heads import end_of_head
from ..pages.language import three_letter_code
from .captures import Capture, mime_of
from .html_metadata import PAGE_TYPES, html_metadata
from .page_records import CapturedContent, PageContent
from .warc_records import (
    CONVERSION,
    FIELDS_TYPE,
    METADATA,
    RECORD_END,
    RESPONSE,
    WARCINFO,
    WarcRecord,
    encode_record,
    header_fields,
    record_id,
    sha1_digest,
)

WET_ENDING, WAT_ENDING = ("warc.wet.gz", "warc.wat.gz")
_GZIP_HEADER, _GZIP_FOOTER = 10, 8  # bytes of the members that we write
_METADATA_FIELDS = "application/metadata-fields"  # its name in WAT
_VERSION = "1.0"
_ORDER = (
    *(
        "WARC-Type",
        "WARC-Target-URI",
        "WARC-Date",
        "WARC-Filename",
        "WARC-Record-ID",
        "WARC-Refers-To",
    ),
    *("WARC-Block-Digest", "WARC-Identified-Content-Language", "Content-Type", "Content-Length"),
)


class RecordPlace(NamedTuple):
    """A record, and where its bytes are in an archive.

    Attributes:
        record: The record.
        data: Its compressed bytes.
        plain_length: Their number before.
        crc: CRC-32 of the plain bytes, if they are compressed with gzip; else None.
        file: Name of the file.
        offset: Position in it.
    """

    record: WarcRecord
    data: bytes
    plain_length: int
    crc: int | None
    file: str = ""
    offset: int = 0


def encode_derived(record: WarcRecord) -> bytes:
    """Returns the bytes of a record of a WAT or WET file: in WARC 1.0, with Common Crawl's order.

    >>> record = wet_record("http://a.com/", 0, "urn:uuid:1", "Pears", "eng")
    >>> [line.partition(b":")[0].decode() for line in encode_derived(record).splitlines()[:6]]
    ['WARC/1.0', 'WARC-Type', 'WARC-Target-URI', 'WARC-Date', 'WARC-Record-ID', 'WARC-Refers-To']
    """
    return encode_record(record, _VERSION, _ORDER)


def wat_records(
    time: int, version: str, content: CapturedContent | None, places: Sequence[RecordPlace]
) -> Iterator[WarcRecord]:
    """Yields the WAT records of the records of a capture.

    Only pages that were parsed are read for their links: parsing has limits of time and memory.

    Args:
        time: When they are made, UTC ms.
        version: Version of the WARC format.
        content: The capture; None: the records are of none.
        places: The records.
    """
    for place in places:
        html = _html_of(content) if place.record.kind == RESPONSE else None
        yield wat_record(place, time, version, html)


def _html_of(content: CapturedContent | None) -> dict[str, Any] | None:
    """Returns what a page has; None if it is none, or was not parsed."""
    if content is None or content.page is None or not _is_html(content.capture):
        return None
    capture = content.capture
    return html_metadata(capture.body or b"", capture.content_type, capture.url)


def _is_html(capture: Capture) -> bool:
    return bool(capture.body) and mime_of(capture).lower() in PAGE_TYPES


def wet_records(
    content: CapturedContent | None, places: Sequence[RecordPlace]
) -> Iterator[WarcRecord]:
    """Yields the WET record of a page, if it has a title or a text and its response is in the archive."""
    if content is None or content.page is None or not (text := _wet_text(content.page)):
        return
    language = three_letter_code(content.page.field("language") or "")
    for place in places:
        if place.record.kind == RESPONSE:
            capture = content.capture
            yield wet_record(capture.url, capture.time, place.record.id, text, language)


def _wet_text(page: PageContent) -> str:
    """Returns the title and the text of a page, with a line for each block, as Common Crawl has them."""
    lines = (
        " ".join(line.split()) for line in f"{page.field('title') or ''}\n{page.text}".split("\n")
    )
    return "\n".join(filter(None, lines))


def wat_record(
    place: RecordPlace, time: int, version: str, html: Mapping[str, Any] | None = None
) -> WarcRecord:
    """Returns the WAT record of a record.

    Args:
        place: The record.
        time: When it is made, UTC ms.
        version: Version of the WARC format.
        html: What the page has, see ``html_metadata``; None: the record is of no page.
    """
    record = place.record
    name = "WARC-Filename" if record.kind == WARCINFO else "WARC-Target-URI"
    described = {"Container": _container(place), "Envelope": _envelope(place, version, html)}
    fields = [
        ("WARC-Target-URI", record.field(name) or ""),
        ("WARC-Refers-To", f"<{record.id}>"),
        ("Content-Type", "application/json"),
    ]
    text = json.dumps(described, ensure_ascii=False, separators=(",", ":"))
    block = text.encode("utf-8", "replace")
    return WarcRecord(METADATA, record_id("wat", record.id), time, fields, (block,))


def _container(place: RecordPlace) -> dict[str, Any]:
    container: dict[str, Any] = {
        "Filename": place.file,
        "Compressed": True,
        "Offset": str(place.offset),
    }
    if place.crc is not None:
        # Java's numbers have a sign.
        (crc,) = struct.unpack("<i", struct.pack("<I", place.crc))
        container["Gzip-Metadata"] = {
            "Header-Length": str(_GZIP_HEADER),
            "Deflate-Length": str(len(place.data)),
            "Footer-Length": str(_GZIP_FOOTER),
            "Inflated-CRC": str(crc),
            "Inflated-Length": str(place.plain_length),
        }
    return container


def _envelope(place: RecordPlace, version: str, html: Mapping[str, Any] | None) -> dict[str, Any]:
    record, fields = place.record, dict(header_fields(place.record, version))
    length = int(fields["Content-Length"])
    return {
        "Payload-Metadata": {
            **_payload(record, html),
            "Actual-Content-Length": str(length),
            "Block-Digest": fields["WARC-Block-Digest"],
            "Trailing-Slop-Length": str(len(RECORD_END)),
        },
        "Format": f"WARC/{version}",
        "WARC-Header-Length": str(place.plain_length - length - len(RECORD_END)),
        "WARC-Header-Metadata": _merge_fields(header_fields(record, version)),
    }


def _payload(record: WarcRecord, html: Mapping[str, Any] | None) -> dict[str, Any]:
    kind = record.field("Content-Type") or ""
    block = b"".join(record.block)
    if kind.startswith("application/http"):
        name = "Request" if "request" in kind else "Response"
        message = _http_metadata(block, name)
        if html is not None:
            message["HTML-Metadata"] = html
        return {"Actual-Content-Type": kind, f"HTTP-{name}-Metadata": message}
    if kind != FIELDS_TYPE:
        return {"Actual-Content-Type": kind}
    fields = _fields_of(block.decode("utf-8", "replace"))
    if record.kind == WARCINFO:
        return {"Actual-Content-Type": kind, "WARC-Info-Metadata": _merge_fields(fields)}
    rows = [{"Name": name, "Value": value} for name, value in fields]
    metadata = {"Metadata-Records": rows}
    return {"Actual-Content-Type": _METADATA_FIELDS, "WARC-Metadata-Metadata": metadata}


def _http_metadata(block: bytes, name: str) -> dict[str, Any]:
    size = end_of_head(block) or len(block)
    head, entity = block[:size].decode("latin-1"), block[size:]
    line, _, lines = head.partition("\n")
    words = [*line.strip().split(" ", 2), "", ""][:3]
    names = ("Method", "Path", "Version") if name == "Request" else ("Version", "Status", "Reason")
    return {
        f"{name}-Message": dict(zip(names, words, strict=True)),
        "Headers-Length": str(size),
        "Headers": _merge_fields(_fields_of(lines)),
        "Entity-Length": str(len(entity)),
        "Entity-Digest": sha1_digest(entity),
        "Entity-Trailing-Slop-Length": "0",
    }


def _fields_of(lines: str) -> list[tuple[str, str]]:
    pairs = (line.partition(":") for line in lines.split("\n") if ":" in line)
    return [(name.strip(), value.strip()) for name, _, value in pairs]


def _merge_fields(fields: Iterable[tuple[str, str]]) -> dict[str, Any]:
    """Returns fields as an object; a name that comes several times has a list of values.

    >>> _merge_fields([("a", "1"), ("b", "2"), ("a", "3")])
    {'a': ['1', '3'], 'b': '2'}
    """
    values: dict[str, list[str]] = {}
    for name, value in fields:
        values.setdefault(name, []).append(value)
    return {name: own if len(own) > 1 else own[0] for name, own in values.items()}


def wet_record(
    url: str, time: int, answer: str, text: str, language: str | None = None
) -> WarcRecord:
    """Returns the WET record of a page.

    Args:
        url: Its URL.
        time: When it was requested, UTC ms.
        answer: Id of the record of its answer.
        text: Its text.
        language: ISO 639-3 code of its language; None if it is unknown.
    """
    fields = [
        ("WARC-Target-URI", url),
        ("WARC-Refers-To", f"<{answer}>"),
        *((("WARC-Identified-Content-Language", language),) if language else ()),
        ("Content-Type", "text/plain"),
    ]
    block = text.encode("utf-8", "replace")
    return WarcRecord(CONVERSION, record_id("wet", answer), time, fields, (block,))
