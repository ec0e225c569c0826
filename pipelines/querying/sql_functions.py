"""Functions of nutbeam in SQL, beside the macros of the views."""

from typing import Any

import pyarrow as pa

from ...policy.components.schema import to_frame
from ...policy.page_rows import markdown_of_pages


def register_functions(connection: Any) -> None:
    """Makes functions of nutbeam known to a connection of DuckDB: ``markdown_of(key, text, blocks)``."""
    from duckdb import list_type, struct_type  # late: few commands need it

    def markdown_of(keys: pa.Array, texts: pa.Array, blocks: pa.Array) -> pa.Array:
        rows = pa.table({"key": keys, "text": texts, "blocks": blocks})
        return markdown_of_pages(to_frame(rows)).to_arrow()

    types = {
        "kind": "VARCHAR",
        "start": "INTEGER",
        "end": "INTEGER",
        "level": "SMALLINT",
        "of": "VARCHAR",
    }
    connection.create_function(
        "markdown_of",
        markdown_of,
        ["VARCHAR", "VARCHAR", list_type(struct_type(types))],
        "VARCHAR",
        type="arrow",
        null_handling="special",
    )
