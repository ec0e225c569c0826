"""A page of a table, as a record with the columns of the view ``pages``.

``make docs`` writes this file, and a test compares it.
"""

import dataclasses
import datetime
from collections.abc import Mapping


@dataclasses.dataclass(frozen=True, slots=True)
class PageLink:
    """An item of ``links``: Accepted links: URL of the target, anchor, rel.

    Attributes:
        url: URL of the target.
        anchor: Text of the link.
        rel: Its attribute ``rel``, or None.
    """

    url: str = ""
    anchor: str | None = None
    rel: str | None = None


@dataclasses.dataclass(frozen=True, slots=True)
class PageBlock:
    """An item of ``blocks``: Blocks of the text and marks in it, those around others first; none if it is not known.

    Attributes:
        kind: What it is: a block (`paragraph`, `heading`, `term`, `caption`, `preformatted`, `rule`), what holds blocks (`list`, `item`, `description`, `quote`, `table`, `row`, `cell`, `section`), or a mark (`link`, `image`, `code`, `strong`, `emphasis`, `deleted`, `break`); `base`: see `of`.
        start: Number of its first character in the text, from 0.
        end: Number of the character after it.
        level: Of a heading 1 to 6; of a list and an item how deep they nest; 1 for the heading of a column or row, and for a paragraph that is an element of its own.
        of: Target of a link and source of an image, as they stand in the page; language of preformatted text; first number of a list; number of an item that does not follow on the one before; columns of a cell; name of a section; URL that targets are relative to.
    """

    kind: str | None = None
    start: int | None = None
    end: int | None = None
    level: int | None = None
    of: str | None = None


@dataclasses.dataclass(frozen=True, slots=True)
class PageMain:
    """An item of ``main``: Parts of the text that are its main content, without navigation and the like; none if they are not known.

    Attributes:
        start: Number of its first character in the text, from 0.
        end: Number of the character after it.
    """

    start: int | None = None
    end: int | None = None


@dataclasses.dataclass(frozen=True, slots=True)
class PageStructuredData:
    """An item of ``structured_data``: Structured data of the page, such as products and articles; none if it has none.

    Attributes:
        syntax: How the page writes it: `json-ld`, `microdata`, `rdfa`, `opengraph`, `twitter`, `dublin-core`, `highwire`.
        type: Its types, with a space between them: the names of schema.org's, such as `Product`; the URLs of others.
        properties: JSON: values by name, with `@type` and `@id` as in JSON-LD; items in it have the same form.
    """

    syntax: str | None = None
    type: str | None = None
    properties: str | None = None


@dataclasses.dataclass(frozen=True, slots=True)
class PageHeader:
    """An item of ``headers``: Headers of the response, in order.

    Attributes:
        name: Name of the header, as the server sent it.
        value: Its value.
    """

    name: str | None = None
    value: str | None = None


@dataclasses.dataclass(frozen=True, slots=True)
class TablePage:
    """A page of a table; a column that was not read is None.

    Attributes:
        url: The URL.
        title: Title of the page.
        text: Text of the page, a line for each block; paragraphs have an empty line between them.
        status: What the table knows about the URL.
        http_code: HTTP's status code of the last answer; null: no answer.
        content_type: Content-Type of its newest body, as the server sent it.
        language: Language that the page declares.
        last_fetch_time: When it was last requested, with or without an answer.
        modified_time: Since when its content is as it is now: when that was first seen, or, with other schedules than `default`, what `Last-Modified` says.
        fetch_time: When the URL is due: from then on `generate` may choose it.
        score: Its importance (OPIC): the share that it got from links.
        distance: Number of links from the nearest seed; 0: it is a seed.
        metadata: Names and values from the page: meta tags and properties.
        parse_status: Result of parsing.
        parse_minor: Kind of success, or of failure.
        parse_message: The reason, if parsing failed.
        part_of: The page that this is a part of, such as a feed.
        repr_url: URL to show instead, if a redirect led to the page from a URL that is better to show.
        links: Accepted links: URL of the target, anchor, rel.
        markdown: The text as Markdown, with links and images: CommonMark, with GitHub's tables.
        blocks: Blocks of the text and marks in it, those around others first; none if it is not known.
        main: Parts of the text that are its main content, without navigation and the like; none if they are not known.
        structured_data: Structured data of the page, such as products and articles; none if it has none.
        headers: Headers of the response, in order.
        body: The body, without the codings of HTTP.
        batch_id: The batch of the newest body.
        key: Row key: the URL with its host reversed: `com.example:http/`.
        change: What became of the page since the older snapshot: `new`, `changed` (its content has another signature) or `gone`. Of a page that is gone, there is no text.
        snapshot: Number of the snapshot that the row was read from.
    """

    url: str = ""
    title: str | None = None
    text: str | None = None
    status: str | None = None
    http_code: int | None = None
    content_type: str | None = None
    language: str | None = None
    last_fetch_time: datetime.datetime | None = None
    modified_time: datetime.datetime | None = None
    fetch_time: datetime.datetime | None = None
    score: float | None = None
    distance: int | None = None
    metadata: Mapping[str, str] | None = None
    parse_status: str | None = None
    parse_minor: str | None = None
    parse_message: str | None = None
    part_of: str | None = None
    repr_url: str | None = None
    links: tuple[PageLink, ...] | None = None
    markdown: str | None = None
    blocks: tuple[PageBlock, ...] | None = None
    main: tuple[PageMain, ...] | None = None
    structured_data: tuple[PageStructuredData, ...] | None = None
    headers: tuple[PageHeader, ...] | None = None
    body: bytes | None = None
    batch_id: str | None = None
    key: str | None = None
    change: str | None = None
    snapshot: int | None = None


# The columns that are lists, with the class of their items.
NESTED: Mapping[str, type] = {
    "links": PageLink,
    "blocks": PageBlock,
    "main": PageMain,
    "structured_data": PageStructuredData,
    "headers": PageHeader,
}
