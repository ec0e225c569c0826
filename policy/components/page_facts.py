"""The facts on which the changes of a batch depend: all that update reads before it decides.

Frames are named by their rows; ``schema.py`` has their types.
"""

import dataclasses
import functools
from typing import NamedTuple

import polars as pl

from ...web.base.dataclass import dataclass
from ...web.tls.contexts import TLS_REASONS
from .blocklist import Blocklist, blocklist_of
from .document_schema import DOCUMENTS, DocumentRows
from .host_rows import Seeds
from .schema import (
    BLOCKLIST,
    FETCHLIST,
    STATE,
    BlocklistRows,
    FetchListRows,
    HostRows,
    PageRows,
    StateRows,
    empty,
)

# Errors of a connection that could not be made, so that no request was sent.
_NO_CONNECTION = ("dns", "refused", "unreachable", *TLS_REASONS)
# What the target of a redirect inherits from the row of its source.
INHERITED = ("fetch_interval", "fixed_interval", "metadata")
COLUMNS_OF_PAGES = ("key", "score", "distance", "fetch_status", "protocol_status",
                "protocol_message", "http_code", "fetch_time", "response_ms", "content_type",
                "etag", "last_modified", "redirect", "retry_after")  # fmt: skip
DOCUMENT_COLUMNS = ("key", "score", "distance", "parse_status", "signature", "refresh",
                    "refresh_seconds", "outlinks", "part_of", "fetch_time", "content_type", "usage")  # fmt: skip
# Of documents of pages that answered 304.
EARLIER_COLUMNS = ("key", "refresh", "refresh_seconds", "outlinks", "part_of")
FETCH_LIST_COLUMNS = ("key", "signature", "document", "repr_url", *INHERITED)


class FactNeeds(NamedTuple):
    """What decisions need besides the columns that they always need.

    Attributes:
        documents: Columns of documents.
        state: Columns of the rows of pages in the state; none: these rows are not needed.
        domains: Whether they need links between registered domains.
    """

    documents: tuple[str, ...] = ()
    state: tuple[str, ...] = ()
    domains: bool = False


@dataclass(frozen=True)
class BatchOrigin:
    """Where changes come from.

    Attributes:
        order: Position of links and parts of pages among those of the batch.
        batch: Id of the batch.
        document: Path of the documents file, or None.
    """

    order: int
    batch: str
    document: str | None = None


@dataclasses.dataclass(frozen=True, eq=False)
class DomainFacts:
    """Links between registered domains.

    Attributes:
        linked_rows: HOSTS rows of domains: ``key``, ``linking_domains``.
        urls: Number of URLs of the table.
    """

    linked_rows: HostRows
    urls: int


@dataclasses.dataclass(frozen=True, eq=False)
class TableFacts:
    """What the table says to all files of a batch.

    It is equal only to itself, so that results can be kept for it.

    Attributes:
        seeds: The hosts of seeds.
        blocklist_rows: BLOCKLIST rows: names that were purged.
        domains: Links between registered domains; None if they are not needed.
    """

    seeds: Seeds = dataclasses.field(default_factory=Seeds)
    blocklist_rows: BlocklistRows = dataclasses.field(default_factory=lambda: empty(BLOCKLIST))
    domains: DomainFacts | None = None

    @functools.cached_property
    def blocklist(self) -> Blocklist:
        """The names that were purged."""
        return blocklist_of(self.blocklist_rows)


class PageFacts(NamedTuple):
    """What is known about some pages of a batch before the state changes.

    Attributes:
        origin: Their batch, the file of the documents, and the position of their links.
        page_rows: PAGES rows with ``COLUMNS_OF_PAGES`` and those of ``in_file``.
        document_rows: Their DOCUMENTS rows with ``DOCUMENT_COLUMNS`` and those that scorings need.
        fetch_list_rows: Their FETCHLIST rows with ``FETCH_LIST_COLUMNS``: what the state said when
            they were chosen. A page that the fetch followed has none.
        followed_rows: STATE rows of known pages that the fetch followed: ``key``, ``signature``.
        earlier_document_rows: DOCUMENTS rows of the newest bodies of pages that answered 304, with
            ``EARLIER_COLUMNS``.
        state_rows: STATE rows of the pages with the columns that scorings need; no rows if these need none.
        table: What the table says to all files.
    """

    origin: BatchOrigin
    page_rows: PageRows
    document_rows: DocumentRows
    fetch_list_rows: FetchListRows = empty(FETCHLIST)
    followed_rows: StateRows = empty(STATE)
    earlier_document_rows: DocumentRows = empty(DOCUMENTS)
    state_rows: StateRows = empty(STATE)
    table: TableFacts = TableFacts()


def in_file(page_rows: PageRows, path: str, order: int) -> PageRows:
    """Adds to PAGES rows their file (``page``) and its position in the batch (``order``)."""
    return page_rows.with_columns(page=pl.lit(path), order=pl.lit(order, pl.Int64))


def with_unique_rows(facts: PageFacts) -> PageFacts:
    """Returns the facts with one row per page, and one per document."""
    page_rows, document_rows = unique_pages(facts.page_rows), unique_documents(facts.document_rows)
    return facts._replace(page_rows=page_rows, document_rows=document_rows)


def unique_pages(page_rows: PageRows) -> PageRows:
    """Returns one PAGES row per key, in their order: a file of a resumed attempt may have it twice.

    >>> unique_pages(pl.DataFrame({"key": ["b", "a", "b"], "http_code": [200, 404, 500]})).rows()
    [('b', 200), ('a', 404)]
    """
    return page_rows.unique("key", keep="first", maintain_order=True)


def was_requested() -> pl.Expr:
    """Returns whether a request for the page of a PAGES row was sent.

    It was not for a page that robots.txt denies, one whose robots.txt could not be fetched, and one of a
    host to which no connection could be made.

    >>> rows = {"response_ms": [9, None, 9], "protocol_message": [None, None, "dns"]}
    >>> pl.DataFrame(rows).select(asked=was_requested()).to_series().to_list()
    [True, False, False]
    """
    unsent = pl.col("protocol_message").is_in(_NO_CONNECTION).fill_null(False)
    return pl.col("response_ms").is_not_null() & ~unsent


def unique_documents(document_rows: DocumentRows) -> DocumentRows:
    """Returns one DOCUMENTS row per key: that of the page itself, or else of the first part.

    Args:
        document_rows: Rows with the columns ``key`` and ``part_of``.
    """
    if document_rows.get_column("part_of").null_count() < len(document_rows):
        document_rows = document_rows.sort(pl.col("part_of").is_not_null(), maintain_order=True)
    return document_rows.unique("key", keep="first", maintain_order=True)
