"""Pages as the documents that Nutch's ``commoncrawldump`` writes."""

import base64
from collections.abc import Sequence
from typing import Any, NamedTuple

from ...web.base.dataclass import dataclass
from ...web.base.options import option
from ...web.urls.row_keys import from_host_key, from_key, host_key_of
from ..components.vocabulary import iso
from .dumped_names import reversed_name
from .segment_text import StoredRow


class PageContext(NamedTuple):
    """What a document needs besides the page.

    Attributes:
        charset: The charset of its text, if it is known.
        imported: When the batch was made, ms.
        inlinks: URLs of pages that link to it; None leaves them out.
    """

    charset: str | None = None
    imported: int = 0
    inlinks: Sequence[str] | None = None


@dataclass(frozen=True)
class DocumentShape:
    """Options of the form of the documents."""

    GROUP = "commoncrawldump"

    key_prefix: str = option(
        "", "Begins the key of each document, before a slash.", nutch="commoncrawldump -keyPrefix"
    )
    reverse_key: bool = option(
        False, "Make the key of the reversed host and a hash of the URL; without it, it is the URL.",
        nutch="commoncrawldump -reverseKey",
    )  # fmt: skip
    simple_date_format: bool = option(
        False, "Write times as milliseconds since 1970; without it, as 2026-11-28T17:00:00Z.",
        nutch="commoncrawldump -SimpleDateFormat",
    )  # fmt: skip
    json_array: bool = option(
        False, "Write headers as a list of pairs, which keeps repeated names; without it, as an object.",
        nutch="commoncrawldump -jsonArray",
    )  # fmt: skip


def crawl_document(page: StoredRow, shape: DocumentShape, context: PageContext) -> dict[str, Any]:
    """Returns the document of a page.

    A body that is no text in its charset is in base64, and ``bodyEncoding`` says so. The machine that
    fetched the page is not named.

    Args:
        page: Its PAGES row.
        shape: The form of the document.
        context: What else is known of it.
    """
    line, request = _request_of(page.get("request") or "")
    body, encoding = _text_of(page["body"], context.charset)
    headers = [(header["name"], header["value"]) for header in page.get("headers") or []]
    key = str(page["key"])
    document: dict[str, Any] = {
        "url": from_key(key),
        "timestamp": _time(page.get("fetch_time"), shape),
        "request": {
            "method": line.partition(" ")[0] or "GET",
            "client": {
                "hostname": None,
                "address": None,
                "software": "nutbeam",
                "robots": "CLASSIC",
                "contact": {
                    "name": _value(request, "user-agent"),
                    "email": _value(request, "from"),
                },
            },
            "headers": _headers(request, shape),
            "body": None,
        },
        "response": {
            "status": page.get("http_code"),
            "server": {"hostname": from_host_key(host_key_of(key)), "address": page.get("ip")},
            "headers": _headers(headers, shape),
            "body": body,
            **({"bodyEncoding": encoding} if encoding else {}),
        },
        "key": _key(key, shape),
        "imported": _time(context.imported, shape),
    }
    links = context.inlinks
    return document | ({} if links is None else {"inlinks": list(links)})


def _key(key: str, shape: DocumentShape) -> str:
    name = reversed_name(key).replace("/", "_") if shape.reverse_key else from_key(key)
    return f"{shape.key_prefix}/{name}" if shape.key_prefix else name


def _time(time_ms: int | None, shape: DocumentShape) -> str | int | None:
    if time_ms is None or shape.simple_date_format:
        return time_ms
    return iso(time_ms, "seconds")


def _request_of(text: str) -> tuple[str, list[tuple[str, str]]]:
    """Returns the request line and the headers of a stored request.

    >>> _request_of("GET / HTTP/1.1\\r\\nHost: a.com\\r\\n")
    ('GET / HTTP/1.1', [('Host', 'a.com')])
    """
    line, *rest = text.splitlines() or [""]
    pairs = (each.partition(":") for each in rest)
    return line, [(name.strip(), value.strip()) for name, colon, value in pairs if colon]


def _value(headers: Sequence[tuple[str, str]], name: str) -> str | None:
    return next((value for each, value in headers if each.lower() == name), None)


def _headers(headers: Sequence[tuple[str, str]], shape: DocumentShape) -> Any:
    return [list(pair) for pair in headers] if shape.json_array else dict(headers)


def _text_of(body: bytes, charset: str | None) -> tuple[str, str | None]:
    """Returns a body as text, and its coding: None for plain text.

    >>> _text_of(b"caf\\xe9", "iso-8859-1"), _text_of(b"\\x89PNG", None)
    (('café', None), ('iVBORw==', 'base64'))
    """
    for name in dict.fromkeys(filter(None, (charset, "utf-8"))):
        try:
            text = body.decode(name)
        except (LookupError, UnicodeError):
            continue
        # A round trip, so that the bytes can be made of it again.
        if text.encode(name, "replace") == body:
            return text, None
    return base64.b64encode(body).decode(), "base64"
