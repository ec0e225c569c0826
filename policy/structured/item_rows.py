"""Makes rows of the views of structured data from documents."""

from collections.abc import Iterable, Mapping
from typing import Any

import polars as pl
import pyarrow as pa

from ...web.urls.row_keys import from_key
from ..components.document_schema import DocumentRows
from ..components.item_views import ITEM_VIEWS
from ..components.schema import conform, to_frame
from .item_graph import ItemGraph
from .item_records import records_of


def item_lists(
    view: str, keys: Iterable[str], stored: Iterable[Iterable[Mapping[str, Any]] | None]
) -> pa.Array:
    """Returns the records of a view for each document, as a list of structs.

    Args:
        view: A name in ``ITEM_VIEWS``.
        keys: The row keys of documents.
        stored: The ``structured_data`` of each.
    """
    fields = list(ITEM_VIEWS[view].columns.schema)
    lists = [
        records_of(view, ItemGraph(items, from_key(key))) if items else []
        for key, items in zip(keys, stored, strict=True)
    ]
    return pa.array(lists, pa.large_list(pa.struct(fields)))


def item_rows(view: str, documents: DocumentRows) -> pl.DataFrame:
    """Returns the rows of a view, as stored, with the keys of their documents.

    Args:
        view: A name in ``ITEM_VIEWS``.
        documents: Rows with ``key`` and ``structured_data``.
    """
    keys, stored = (documents.get_column(name).to_list() for name in ("key", "structured_data"))
    lists = item_lists(view, keys, stored)
    rows = documents.select("key").with_columns(to_frame(pa.table({"record": lists})).to_series())
    rows = rows.explode("record").drop_nulls("record").unnest("record")
    schema = pa.schema([pa.field("key", pa.large_string()), *ITEM_VIEWS[view].columns.schema])
    return to_frame(conform(rows, schema))
