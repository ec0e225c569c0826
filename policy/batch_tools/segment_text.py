"""Pages of a batch in the text form of Nutch's ``readseg``.

Nutch keeps a segment in six parts: crawl_generate, crawl_fetch, content, crawl_parse, parse_data and
parse_text. A batch has the same data in fewer components; here they are divided as Nutch has them.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from ...web.base.dataclass import dataclass
from ...web.content.whatwg_encodings import decode_as, encoding_name
from ...web.exchange.status import FETCH_STATUS_NAMES, PROTOCOL_STATUS_NAMES
from ...web.urls.row_keys import from_key
from ..components.document_schema import ParseMinor
from ..components.schema import PARSE_STATUS_NAMES, ParseStatus
from ..components.vocabulary import datum_text

StoredRow = Mapping[str, Any]
# The headings of the parts for a dump and for one page.
DUMP_HEADINGS = {
    "generate": "CrawlDatum::",
    "fetch": "CrawlDatum::",
    "parse": "CrawlDatum::",
    "content": "Content::",
    "parsedata": "ParseData::",
    "parsetext": "ParseText::",
}
PAGE_HEADINGS = {
    "content": "Content::",
    "generate": "Crawl Generate::",
    "fetch": "Crawl Fetch::",
    "parse": "Crawl Parse::",
    "parsedata": "ParseData::",
    "parsetext": "ParseText::",
}
PARTS = tuple(DUMP_HEADINGS)
# The kind of files of a batch that has each part.
COMPONENTS_OF_PARTS = {
    "generate": "fetchlist",
    **dict.fromkeys(("fetch", "content"), "pages"),
    **dict.fromkeys(("parse", "parsedata", "parsetext"), "documents"),
}
_CONTENT_VERSION, _PARSE_DATA_VERSION = -1, 5
_SIGNATURE = "65 (signature)"


@dataclass(frozen=True)
class SegmentRecord:
    """What a batch has about a URL.

    Attributes:
        key: Its row key.
        listed: Its FETCHLIST row; None if generate did not choose it.
        page: Its PAGES row; None if it was not requested.
        document: Its DOCUMENTS row; None if there is no text.
        generated: When the batch was made, ms.
    """

    key: str
    listed: StoredRow | None = None
    page: StoredRow | None = None
    document: StoredRow | None = None
    generated: int = 0


def part_texts(
    record: SegmentRecord, parts: Iterable[str], *, recode: bool = False
) -> Iterator[tuple[str, str]]:
    """Yields (part, text) of the parts that a record has, in the given order.

    Args:
        record: The record.
        parts: Of ``PARTS``.
        recode: Whether to decode the body by the charset of its document, and not as UTF-8.
    """
    texts = {
        "generate": lambda: _generate_text(record),
        "fetch": lambda: _fetch_text(record),
        "parse": lambda: _parse_text(record),
        "content": lambda: _content_text(record, recode),
        "parsedata": lambda: _parse_data_text(record),
        "parsetext": lambda: _body_text(record),
    }
    for part in parts:
        text = texts[part]()
        if text is not None:
            yield part, text


def dump_text(number: int, record: SegmentRecord, parts: Iterable[str], *, recode: bool) -> str:
    """Returns a record of a dump: its number, its URL, its parts; empty if it has none of them.

    >>> page = {"fetch_status": 33, "fetch_time": 0, "score": 1.0}
    >>> record = SegmentRecord("com.a:http/", page=page)
    >>> print(dump_text(7, record, ["fetch", "parsetext"], recode=False)[:70].strip())
    Recno:: 7
    URL:: http://a.com/
    <BLANKLINE>
    CrawlDatum::
    Version: 7
    Status: 33 (fe
    """
    texts = [
        f"\n{DUMP_HEADINGS[part]}\n{text}"
        for part, text in part_texts(record, parts, recode=recode)
    ]
    return "".join([f"\nRecno:: {number}\nURL:: {from_key(record.key)}\n", *texts]) if texts else ""


def url_text(record: SegmentRecord, parts: Iterable[str], *, recode: bool) -> str:
    """Returns the parts of one URL with their headings; empty if it has none of them."""
    wanted = set(parts)
    ordered = [part for part in PAGE_HEADINGS if part in wanted]
    texts = part_texts(record, ordered, recode=recode)
    return "\n".join(f"{PAGE_HEADINGS[part]}\n{text}" for part, text in texts)


def _generate_text(record: SegmentRecord) -> str | None:
    if record.listed is None:
        return None
    metadata = {"_ngt_": record.generated, **dict(record.listed.get("metadata") or [])}
    row = {**record.listed, "fetch_time": record.generated, "metadata": list(metadata.items())}
    return datum_text(row, "1 (db_unfetched)")


def _fetch_text(record: SegmentRecord) -> str | None:
    page = record.page
    if page is None:
        return None
    status = page["fetch_status"]
    listed = record.listed or {}
    metadata = {
        "_ngt_": record.generated if record.listed else None,
        "Content-Type": page.get("content_type"),
        "_pst_": _protocol_text(page),
        "_rs_": page.get("response_ms"),
        "nutch.protocol.code": page.get("http_code"),
        "_ip_": page.get("ip"),
    }
    row = {
        **page,
        "fetch_interval": listed.get("fetch_interval"),
        "metadata": [(name, value) for name, value in metadata.items() if value is not None],
    }
    return datum_text(row, f"{status} (fetch_{FETCH_STATUS_NAMES.get(status, 'unknown')})")


def _protocol_text(page: StoredRow) -> str | None:
    status = page.get("protocol_status")
    if status is None:
        return None
    message = page.get("protocol_message")
    text = f"{PROTOCOL_STATUS_NAMES.get(status, 'unknown')}({status}), lastModified=0"
    return f"{text}: {message}" if message else text


def _parse_text(record: SegmentRecord) -> str | None:
    document = record.document
    if document is None or document.get("signature") is None:
        return None
    row = {"fetch_time": document.get("fetch_time"), "signature": document["signature"]}
    return datum_text(row, _SIGNATURE)


def _content_text(record: SegmentRecord, recode: bool) -> str | None:
    page = record.page
    if page is None or page.get("body") is None:
        return None
    charset = (record.document or {}).get("charset") if recode else None
    url = from_key(record.key)
    headers = [(header["name"], header["value"]) for header in page.get("headers") or []]
    lines = [
        f"Version: {_CONTENT_VERSION}",
        f"url: {url}",
        f"base: {url}",
        f"contentType: {page.get('content_type') or ''}",
        f"metadata: {_pairs(headers)}",
        "Content:",
        decode_as(encoding_name(charset or "") or "utf-8", page["body"]),
    ]
    return "\n".join([*lines, ""])


def _parse_data_text(record: SegmentRecord) -> str | None:
    document = record.document
    if document is None:
        return None
    links = [*(document.get("outlinks") or []), *(document.get("nofollow_links") or [])]
    lines = [
        f"Version: {_PARSE_DATA_VERSION}",
        f"Status: {_status_text(document)}",
        f"Title: {_one_line(document.get('title') or '')}",
        f"Outlinks: {len(links)}",
        *(
            f"  outlink: toUrl: {from_key(link['key'])} anchor: {_one_line(link['anchor'] or '')}"
            for link in links
        ),
        f"Content Metadata: {_pairs([('Content-Type', document.get('content_type'))])}",
        f"Parse Metadata: {_pairs(_parse_metadata(document))}",
    ]
    return "\n".join([*lines, ""])


def _parse_metadata(document: StoredRow) -> list[tuple[str, Any]]:
    """Returns names and values that parsing has found.

    >>> _parse_metadata({"language": "en", "metadata": {"author": "Ada"}})[1:]
    [('language', 'en'), ('author', 'Ada')]
    """
    return [
        ("CharEncodingForConversion", document.get("charset")),
        ("language", document.get("language")),
        *dict(document.get("metadata") or []).items(),
    ]


def _status_text(document: StoredRow) -> str:
    """Returns a parse status as Nutch prints it.

    >>> _status_text({"parse_status": 2, "parse_minor": 200, "parse_message": "bad"})
    'failed(2,200): bad'
    """
    major = document.get("parse_status") or ParseStatus.NOTPARSED
    minor = document.get("parse_minor") or ParseMinor.OK
    text = f"{PARSE_STATUS_NAMES.get(int(major), 'UNKNOWN!')}({int(major)},{int(minor)})"
    message = document.get("parse_message")
    return f"{text}: {_one_line(message)}" if message else text


def _body_text(record: SegmentRecord) -> str | None:
    document = record.document
    if document is None or document.get("text") is None:
        return None
    return f"{document['text']}\n"


def _pairs(values: Iterable[tuple[str, Any]]) -> str:
    """Returns names and values on one line, as Nutch's ``Metadata`` prints them."""
    pairs = (f"{name}={value}" for name, value in values if value is not None)
    return _one_line(" ".join(pairs))


def _one_line(text: str) -> str:
    return text.replace("\r", " ").replace("\n", " ")
