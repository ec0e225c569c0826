"""The outputs of FetchPages and ParsePages, each declared once for rows and chunks.

``row_types.arrow_schema`` derives the columns of chunks from the fields.
"""

# Beam's schemas treat ``X | None`` as "any Python object", which other languages cannot read.
# ruff: noqa: UP045

from collections.abc import Mapping, Sequence
from typing import NamedTuple, Optional


class Header(NamedTuple):
    """A header of a response, unchanged."""

    name: str
    value: str


class FetchedPage(NamedTuple):
    """The answer of a server for a URL.

    Attributes:
        url: The requested URL: the URL of the input as browsers parse it, without user and
            fragment.
        host: Its host, without port.
        key: Key of the input row, if it has one.
        score: Score of the input row; 0 if it has none.
        fetch_status: ``success``, ``redir_temp``, ``redir_perm``, ``notmodified``,
            ``gone`` (4xx), or ``retry`` (5xx, 408, 429: a later request may succeed).
        protocol_status: Nutch's name of the status, such as ``notfound``.
        message: Status code and reason phrase, or the target of a redirect; None
            for success.
        http_code: Status code.
        content_type: Content-Type, as it was sent.
        etag: ETag, for a conditional request.
        last_modified: Last-Modified, as it was sent, for a conditional request.
        redirect: Absolute URL of a redirect, which is not followed. None if it is a file.
        retry_after: Seconds for which the server wants no requests.
        ip: IP address of the server; None with a proxy.
        tls: ``checked`` for https, ``unchecked`` if the host is in ``insecure_host``.
        headers: All headers, in the order received.
        fetch_time: End of the request, UTC ms.
        response_ms: Duration of the request, ms.
        truncated: Reason why the body is incomplete: ``length`` (over content_limit),
            ``ratio``, ``time``, ``disconnect``, ``encoding``; ``frame`` or ``checksum`` if it is
            complete, and the answer broke off or has a wrong checksum; None if all is well.
        body: The bytes, decoded from gzip, deflate or brotli; None unless the status is
            ``success`` or that of a redirect.
        usage: What robots.txt says its content may be used for (Content-Usage); None: nothing.
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
    usage: Optional[str]


class DeadLetter(NamedTuple):
    """An input row without a result.

    Attributes:
        url: URL of the input row, unchanged.
        key: Key of the input row, if it has one.
        reason: The reason as one word, which is also the name of a count.
        message: A detail, or None.
    """

    url: Optional[str]
    key: Optional[str]
    reason: str
    message: Optional[str]


class ParsedLink(NamedTuple):
    """A link of a page.

    Attributes:
        url: Its target, absolute and normalized.
        anchor: Its text.
        rel: Its ``rel``, in lower case.
    """

    url: str
    anchor: str
    rel: str


class ParsedBlock(NamedTuple):
    """A block of the text of a page, or a mark in it; ``nutbeam.markdown_of`` makes Markdown of them.

    Attributes:
        kind: What it is, such as ``heading`` or ``link``; the column ``blocks`` of documents names all.
        start: Number of its first character in the text, from 0.
        end: Number of the character after it.
        level: Of a heading 1 to 6, for example.
        of: Target of a link, for example.
    """

    kind: str
    start: int
    end: int
    level: int
    of: str


class ParsedPart(NamedTuple):
    """A part of the text of a page: its first character, and the one after it."""

    start: int
    end: int


class ParsedItem(NamedTuple):
    """An item of structured data of a page, such as a product.

    Attributes:
        syntax: How the page writes it, such as ``json-ld``.
        type: Its types, with a space between them, such as ``Product``.
        properties: Its values by name, as JSON.
    """

    syntax: str
    type: str
    properties: str


class ParsedExtract(NamedTuple):
    """A record that rules have taken from a page.

    Attributes:
        rules: Name of the set of rules.
        rules_version: Version of the set.
        rule: Name of the rule.
        position: Number of the item on the page, from 0.
        fields: JSON: values by name.
    """

    rules: str
    rules_version: str
    rule: str
    position: int
    fields: str


class ParsedPage(NamedTuple):
    """The content of a page.

    Attributes:
        url: URL of the page, normalized.
        host: Its host, without port.
        key: Key of the input row, if it has one.
        score: Score of the input row; 0 if it has none.
        title: Text of the first ``title``; empty if the page says noindex.
        text: Text of the body, a line for each block; empty if the page says noindex.
        language: As the page declares it.
        content_type: Content type of the input row.
        charset: Encoding, by its name in the WHATWG Encoding Standard.
        directives: The directives noindex, nofollow and noarchive that apply, from meta
            robots and X-Robots-Tag.
        refresh: Absolute URL of a meta refresh.
        canonical: Absolute URL of ``link rel=canonical``.
        links: Its links, without those with nofollow and those that the URL filter refuses.
        metadata: Description, keywords, Open Graph and similar metadata.
        signature: MD5 of the body, or the hash that the option ``signature`` selects; equal pages
            have equal signatures.
        fetch_time: Fetch time of the input row, UTC ms.
        part_of: URL of the page that contains this part, for example an item of a feed; None
            for a page.
        blocks: Blocks of the text and marks in it, those around others first.
        main: Parts of the text that are its main content; none if they are not known.
        structured_data: Products, articles and the like.
        extracted: What the rules of the option ``extract`` have taken from it.
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
    links: Sequence[ParsedLink]
    metadata: Mapping[str, str]
    signature: bytes
    fetch_time: Optional[int]
    part_of: Optional[str]
    blocks: Sequence[ParsedBlock]
    main: Sequence[ParsedPart]
    structured_data: Sequence[ParsedItem]
    extracted: Sequence[ParsedExtract]


# Beam gets a coder for each.
OUTPUT_RECORDS = (
    Header,
    FetchedPage,
    DeadLetter,
    ParsedLink,
    ParsedBlock,
    ParsedPart,
    ParsedItem,
    ParsedExtract,
    ParsedPage,
)
