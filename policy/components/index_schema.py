"""Schemas of the components of an index, and their names; what an index run reads and decides."""

from enum import StrEnum
from typing import NamedTuple, TypeAlias

import polars as pl
import pyarrow as pa

from .columns import Column, Columns, Form, Purged, code_column, join_columns, time_column
from .document_schema import DOCUMENTS_COLUMNS
from .link_rows import LinkRows
from .schema import PAGES_COLUMNS, STATE, STATE_COLUMNS, TEXT, TEXT_MAP, StateRows, empty

JournalRows: TypeAlias = pl.DataFrame  # columns of INDEXED
CandidateRows: TypeAlias = pl.DataFrame  # columns of INDEX_CANDIDATES

DEFAULT_INDEX = "main"


def index_component(index: str, kind: str) -> str:
    """Returns the name of a component of an index, which is also its folder.

    >>> index_component("main", "shards")
    'index/main/shards'
    """
    return f"index/{index}/{kind}"


# What an index has of each page: one row per page that it holds or has refused.
HELD, REFUSED = 1, 2
INDEXED_STATES = {HELD: "held", REFUSED: "refused"}
INDEXED_COLUMNS = join_columns(
    STATE_COLUMNS.pick("key"),
    [
        Column("document", TEXT, "File of the text that was sent.", purged=Purged.KEPT),
        *STATE_COLUMNS.pick("signature"),
        code_column(
            "state",
            INDEXED_STATES,
            "Whether a writer holds the page, or none: refused it, or got it by no route.",
        ),
        Column("writers", pa.large_list(TEXT), "Writers that hold it.", purged=Purged.KEPT),
        time_column("time", "When it was sent."),
        time_column("deleted", "When it was deleted from the index; null: it was not."),
        *STATE_COLUMNS.pick("repr_url"),
    ],
)
INDEXED = INDEXED_COLUMNS.schema

# Pages that a writer refuses for good.
DEAD_LETTERS_COLUMNS = join_columns(
    STATE_COLUMNS.pick("key"),
    [
        Column("writer", TEXT, "The writer that has refused it.", purged=Purged.KEPT),
        Column("reason", TEXT, "Why."),
        Column("document", TEXT, "What was sent, as JSON."),
        time_column("time", "When it was sent."),
    ],
)

DEAD_LETTERS = DEAD_LETTERS_COLUMNS.schema

# The operation that was the last to write an index.
INDEX_RUNS_COLUMNS = Columns(
    (
        Column("key", TEXT, "Id of the operation."),
        Column("snapshot", pa.int64(), "The snapshot of the table that the index shows."),
        Column("version", pa.int64(), "Number that grows with each operation, for servers."),
        Column("rebuilt", pa.bool_(), "Whether it has built the index from the beginning."),
        Column("writers", pa.large_list(TEXT), "Name and kind of each writer.", purged=Purged.KEPT),
        Column(
            "places",
            pa.large_list(TEXT),
            "Where each writer writes: a digest of the address, and the server's id of the index.",
            purged=Purged.KEPT,
        ),
        time_column("time", "When it began."),
    )
)
INDEX_RUNS = INDEX_RUNS_COLUMNS.schema

# A shard of an index: which keys it names, and its files. A row has a key or a piece of a file.
SHARD_COLUMNS = Columns(
    (
        Column("key", TEXT, "Row key of a URL that the shard holds or deletes."),
        Column("deletes", pa.bool_(), "Whether the shard deletes the URL."),
        Column("file", TEXT, "Name of the file that a piece is of.", purged=Purged.KEPT),
        Column("piece", pa.int32(), "Number of the piece in its file, from 0."),
        Column("data", pa.large_binary(), "Bytes of the piece.", form=Form.HEX),
    )
)

# Reason why a filter leaves a document out; null: it stays. The first filter counts.
DROPPED = "dropped_by"
TEXTS = pa.large_list(TEXT)

# One row per page that may become a document of an index.
INDEX_PAGES_COLUMNS = join_columns(
    STATE_COLUMNS.pick("key"),
    DOCUMENTS_COLUMNS.pick(
        "title", "text", "main", "outlinks", "directives", "language", "charset"
    ),
    DOCUMENTS_COLUMNS.pick("content_type", "metadata", "fetch_time", "part_of", "parse_status"),
    PAGES_COLUMNS.pick("headers", "ip"),
    STATE_COLUMNS.pick("status", "score", "signature", "modified_time", "repr_url", "batch_id"),
    STATE_COLUMNS.pick("retries", "fetch_interval", "usage"),
    [
        Column("row_metadata", TEXT_MAP, "Metadata of its row in the state."),
        Column("anchors", TEXTS, "Texts of the links to it."),
        Column("inlinks", TEXTS, "URLs of the pages that link to it."),
        Column("rank", pa.float64(), "Its rank in the graph of links."),
    ],
)
INDEX_PAGES = INDEX_PAGES_COLUMNS.schema

# What an index run does with a page.
ADD, DELETE, NOTHING = "add", "delete", "nothing"
# What index filters read of the state, with what the decision needs.
STATE_READ = ("key", "status", "parse_status", "document", "page", "signature", "score",
              "modified_time", "repr_url", "batch_id", "retries", "fetch_interval", "usage",
              "metadata")  # fmt: skip
# Rows on their way to the documents, or to the writers that delete them.
INDEX_CANDIDATES = pa.schema(
    [
        *(STATE.field(name) for name in STATE_READ),
        ("known", pa.bool_()),
        ("writers", INDEXED.field("writers").type),
        ("action", pa.large_string()),
        ("reason", pa.large_string()),
    ]
)


class CandidateKind(StrEnum):
    """Why pages may have changed their place in an index."""

    CHANGED = "changed"  # their rows of the state may have changed
    REMOVED = "removed"  # they may have left the table
    INDEXED = "indexed"  # the index has them; those that must go are deleted
    UNFINISHED = "unfinished"  # a run that never committed may have sent them
    REFUSED = "refused"  # a writer has refused them
    PURGED = "purged"  # a purge may have removed them from the journal


class CandidateFacts(NamedTuple):
    """What the table and the index know of some pages.

    Attributes:
        kind: Why they are looked at.
        state_rows: Their rows of the state, with the columns ``STATE_READ``; those of pages that may
            have left the table have ``key`` at least.
        journal_rows: Their rows of the journal that count; of purged pages also those that do not.
        sent_rows: Of unfinished pages: ``key``, and ``committed``, whether only a run that has
            committed has sent them.
        earlier_rows: Of purged pages: their rows of an older journal that count.
        kept_keys: Of purged pages: keys that the state has.
    """

    kind: CandidateKind
    state_rows: pl.DataFrame
    journal_rows: JournalRows
    sent_rows: pl.DataFrame = pl.DataFrame(schema={"key": pl.String, "committed": pl.Boolean})
    earlier_rows: JournalRows = empty(INDEXED)
    kept_keys: pl.DataFrame = pl.DataFrame(schema={"key": pl.String})


class IndexPageFacts(NamedTuple):
    """What the table knows of some pages that are to be added to an index.

    Attributes:
        pages: INDEX_PAGES rows, without ``anchors`` and ``inlinks``; with ``blocks`` if they are wanted.
        candidate_rows: The decisions about them so far, in the same order.
        link_rows: The best links to them, best first: ``target``, ``source``, ``anchor`` and
            ``rel`` of the link table; None: no index filter reads links.
    """

    pages: pl.DataFrame
    candidate_rows: CandidateRows
    link_rows: LinkRows | None


def to_candidates(rows: StateRows) -> CandidateRows:
    """Returns rows with all columns of ``INDEX_CANDIDATES``."""
    wide = empty(INDEX_CANDIDATES)
    whole = pl.concat([wide, rows], how="diagonal_relaxed")
    return whole.select(pl.col(name).cast(kind) for name, kind in wide.schema.items())
