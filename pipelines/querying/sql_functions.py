"""Functions of nutbeam in SQL, beside the macros of the views."""

import functools
from typing import Any

import pyarrow as pa

from ...policy.components.schema import to_frame
from ...policy.page_rows import markdown_of_pages

_NAMES = {True: "stored_markdown_with_links", False: "stored_markdown_without_links"}
_MACRO = f"""CREATE MACRO markdown_of(key, text, blocks, with_links := true) AS
    CASE WHEN with_links THEN {_NAMES[True]}(key, text, blocks) ELSE {_NAMES[False]}(key, text, blocks) END"""
_TYPES_OF_SPANS = {
    "kind": "VARCHAR",
    "start": "INTEGER",
    "end": "INTEGER",
    "level": "SMALLINT",
    "of": "VARCHAR",
}


def register_functions(connection: Any) -> None:
    """Makes ``markdown_of(key, text, blocks, with_links := true)`` known to a connection of DuckDB."""
    from duckdb import list_type, struct_type  # late: few commands need it

    types = ["VARCHAR", "VARCHAR", list_type(struct_type(_TYPES_OF_SPANS))]
    for with_links, name in _NAMES.items():
        function = functools.partial(_markdown, with_links)
        connection.create_function(
            name, function, types, "VARCHAR", type="arrow", null_handling="special"
        )
    connection.execute(_MACRO)


def _markdown(with_links: bool, keys: pa.Array, texts: pa.Array, blocks: pa.Array) -> pa.Array:
    rows = pa.table({"key": keys, "text": texts, "blocks": blocks})
    return markdown_of_pages(to_frame(rows), with_links).to_arrow()
