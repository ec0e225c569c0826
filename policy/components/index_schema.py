"""Schemas of the components of an index, and their names."""

import pyarrow as pa

from .columns import Column, Columns, Form, Purged, code_column, joined, time_column
from .schema import STATE_COLUMNS, TEXT

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
INDEXED_COLUMNS = joined(
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
DEAD_LETTERS_COLUMNS = joined(
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
