"""What FetchPages and ParsePages give: one declaration each, of rows and of chunks.

The columns of chunks follow from the fields, see ``row_types.arrow_schema``.
"""

# Beam's schemas read ``X | None`` as "any Python object", which no other language takes.
# ruff: noqa: UP045

from collections.abc import Mapping, Sequence
from typing import NamedTuple, Optional

import apache_beam as beam


class Header(NamedTuple):
    """A header of a response, as it was sent."""

    name: str
    value: str


class FetchedPage(NamedTuple):
    """What a server answered for a URL.

    Attributes:
        url: As it was asked for: what browsers make of the URL that was given,
            without user and fragment.
        host: Its host, without port.
        key: Of the row that was given, if it has one.
        score: Of the row that was given; 0 if it has none.
        fetch_status: ``success``, ``redir_temp``, ``redir_perm``, ``notmodified``,
            ``gone`` (4xx), or ``retry`` (5xx, 408, 429: another time it may be there).
        protocol_status: Nutch's word for it, such as ``notfound``.
        message: Status code and reason phrase, or where a redirect leads; None
            for success.
        http_code: Status code.
        content_type: Content-Type, as it was sent.
        etag: ETag; give it back for a conditional request.
        last_modified: Last-Modified, as it was sent; the same.
        redirect: Absolute URL where the page is said to be. It is not followed. None where a
            server says that it is a file.
        retry_after: Seconds that the server asks to be left alone.
        ip: Address that was asked; None behind a proxy.
        tls: ``checked`` for https, ``unchecked`` where ``insecure_host`` names the host.
        headers: All headers, in the order received.
        fetch_time: End of the request, UTC ms.
        response_ms: How long it took.
        truncated: Why the body is not whole: ``length`` (over content_limit),
            ``ratio``, ``time``, ``disconnect``, ``encoding``; None if it is.
        body: The bytes, decoded from gzip, deflate or brotli; None unless the status is
            ``success`` or a redirect's.
    """

    url: str
    host: str
    key: Optional[str]
    score: float
    fetch_status: str
    protocol_status: str
    message: Optional[str]
    http_code: int
    content_type: Optional[str]
    etag: Optional[str]
    last_modified: Optional[str]
    redirect: Optional[str]
    retry_after: Optional[int]
    ip: Optional[str]
    tls: Optional[str]
    headers: Sequence[Header]
    fetch_time: int
    response_ms: int
    truncated: Optional[str]
    body: Optional[bytes]


class DeadLetter(NamedTuple):
    """A row that nothing came of.

    Attributes:
        url: As it was given; None if it was.
        key: Of the row that was given, if it has one.
        reason: One word to count it under.
        message: What is known besides; None if nothing is.
    """

    url: Optional[str]
    key: Optional[str]
    reason: str
    message: Optional[str]


class Link(NamedTuple):
    """A link of a page.

    Attributes:
        url: Where it leads, absolute and normalized.
        anchor: Its text.
        rel: Its ``rel``, in lower case.
    """

    url: str
    anchor: str
    rel: str


class ParsedPage(NamedTuple):
    """What a page says. In all texts a run of white space is one space.

    Attributes:
        url: Of the page, normalized.
        host: Its host, without port.
        key: Of the row that was given, if it has one.
        score: Of the row that was given; 0 if it has none.
        title: Of the first ``title``; empty on a page that says noindex.
        text: Of the body; empty on a page that says noindex.
        language: As the page declares it.
        content_type: As it was given.
        charset: Encoding, by its name in the WHATWG Encoding Standard.
        directives: Those of noindex, nofollow and noarchive that hold, of meta
            robots and X-Robots-Tag.
        refresh: Absolute URL of a meta refresh.
        canonical: Absolute URL of ``link rel=canonical``.
        links: Where it leads to, without those that say nofollow or that the
            URL filter refuses.
        metadata: Description, keywords, Open Graph and the like.
        signature: MD5 of the body, or what the option ``signature`` says; equal pages have
            the same.
        fetch_time: As it was given, UTC ms.
        part_of: URL of the page that it is a part of, such as an item of a feed; None
            for a page itself.
    """

    url: str
    host: str
    key: Optional[str]
    score: float
    title: str
    text: str
    language: Optional[str]
    content_type: Optional[str]
    charset: Optional[str]
    directives: Sequence[str]
    refresh: Optional[str]
    canonical: Optional[str]
    links: Sequence[Link]
    metadata: Mapping[str, str]
    signature: bytes
    fetch_time: Optional[int]
    part_of: Optional[str]


for _record in (Header, FetchedPage, DeadLetter, Link, ParsedPage):
    beam.coders.registry.register_coder(_record, beam.coders.RowCoder)
