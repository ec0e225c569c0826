"""Functions of nutbeam in SQL, beside the macros of the views."""

import functools
from typing import Any

import pyarrow as pa

from ...policy.components.columns import Columns
from ...policy.components.document_schema import ITEM_FIELDS, SPAN_FIELDS
from ...policy.components.item_views import ITEM_VIEWS
from ...policy.components.schema import to_frame
from ...policy.page_rows import markdown_of_pages
from ...policy.structured.item_rows import item_lists

_SQL_TYPES = {
    "large_string": "VARCHAR",
    "large_list<item: large_string>": "VARCHAR[]",
    "double": "DOUBLE",
    "bool": "BOOLEAN",
    "int16": "SMALLINT",
    "int32": "INTEGER",
    "int64": "BIGINT",
}

_NAMES = {True: "stored_markdown_with_links", False: "stored_markdown_without_links"}
_MACRO = f"""CREATE MACRO markdown_of(key, text, blocks, with_links := true) AS
    CASE WHEN with_links THEN {_NAMES[True]}(key, text, blocks) ELSE {_NAMES[False]}(key, text, blocks) END"""


def register_functions(connection: Any) -> None:
    """Makes functions of nutbeam known to a connection of DuckDB.

    They are ``markdown_of(key, text, blocks, with_links := true)``, and for each view of structured data one that
    returns its records, such as ``products_of(key, structured_data)``.
    """
    types = ["VARCHAR", "VARCHAR", _list_of(SPAN_FIELDS)]
    for with_links, name in _NAMES.items():
        _register(connection, name, functools.partial(_markdown, with_links), types, "VARCHAR")
    connection.execute(_MACRO)
    for name, view in ITEM_VIEWS.items():
        function = functools.partial(_items, name)
        types = ["VARCHAR", _list_of(ITEM_FIELDS)]
        _register(connection, f"{name}_of", function, types, _list_of(view.columns))


def _register(connection: Any, name: str, function: Any, inputs: list[Any], output: Any) -> None:
    connection.create_function(
        name, function, inputs, output, type="arrow", null_handling="special"
    )


def _markdown(with_links: bool, keys: pa.Array, texts: pa.Array, blocks: pa.Array) -> pa.Array:
    rows = pa.table({"key": keys, "text": texts, "blocks": blocks})
    return markdown_of_pages(to_frame(rows), with_links).to_arrow()


def _items(view: str, keys: pa.Array, stored: pa.Array) -> pa.Array:
    return item_lists(view, keys.to_pylist(), stored.to_pylist())


def _list_of(columns: Columns) -> Any:
    from duckdb import list_type, struct_type  # late: few commands need it

    fields = {
        column.name: str(column.type).replace("128", "").upper()
        if pa.types.is_decimal(column.type)
        else _SQL_TYPES[str(column.type)]
        for column in columns
    }
    return list_type(struct_type(fields))
