"""Adds to the records of rules what became of their pages since an older snapshot."""

from collections.abc import Iterable, Iterator
from collections.abc import Set as AbstractSet

import polars as pl
import pyarrow as pa
import pyarrow.compute as pc

from ...policy.compared_pages import NEW
from ...policy.components.columns import join_columns
from ...policy.components.schema import conform
from ...policy.components.views import views
from ...policy.components.vocabulary import CHANGE_COLUMNS, shown_frame, shown_schema


def with_changes(
    tables: Iterable[pa.Table], stored_pages: pl.DataFrame, schema: pa.Schema
) -> Iterator[pa.Table]:
    """Yields records with what became of their pages; and a row for each changed page that has no more.

    Args:
        tables: Records of the pages.
        stored_pages: The pages as stored, with ``CHANGE_COLUMNS``.
        schema: ``CHANGE_COLUMNS`` and the columns of the records.
    """
    changes = _shown_changes(stored_pages)
    urls = set[str]()
    for table in tables:
        urls.update(table["url"].to_pylist())
        of_rows = changes.take(pc.index_in(table["url"], changes["url"].combine_chunks()))
        columns = [of_rows[name] for name in CHANGE_COLUMNS.schema.names]
        yield pa.Table.from_arrays([*columns, *table.columns], schema=schema)
    yield rows_without_records(stored_pages.filter(pl.col("change") != NEW), schema, urls)


def rows_without_records(
    rows: pl.DataFrame, schema: pa.Schema, left_out: AbstractSet[str] = frozenset()
) -> pa.Table:
    """Returns a row for each page that is not among some URLs, so that a reader forgets its records."""
    changes = _shown_changes(rows).to_pylist()
    return pa.Table.from_pylist(
        [row for row in changes if row["url"] not in left_out], schema=schema
    )


def _shown_changes(rows: pl.DataFrame) -> pa.Table:
    """Returns what became of pages, with ``CHANGE_COLUMNS``, ``url`` and ``last_fetch_time``."""
    names = views()["pages"].pick(("url", "last_fetch_time"))
    columns = join_columns(CHANGE_COLUMNS, names)
    return conform(shown_frame(rows, columns), shown_schema(columns))
