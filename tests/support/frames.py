"""Rows for tests, in the declared schemas."""

from collections.abc import Iterable
from typing import Any

import polars as pl
import pyarrow as pa

from nutbeam.policy.components.schema import to_frame


def frame_of(schema: pa.Schema, *records: dict[str, Any]) -> pl.DataFrame:
    """Returns rows; what a record does not name is null."""
    return to_frame(table_of(schema, *records))


def table_of(schema: pa.Schema, *records: dict[str, Any]) -> pa.Table:
    """Returns rows as an Arrow table; what a record does not name is null."""
    unknown = {name for record in records for name in record} - set(schema.names)
    assert not unknown, f"no such columns: {unknown}"
    return pa.Table.from_pylist(list(records), schema=schema)


def chunks_of(frame: pl.DataFrame, rows: int) -> list[pa.Table]:
    """Returns a frame as chunks of at most ``rows`` rows."""
    return [part.to_arrow() for part in frame.iter_slices(rows)]


def rows_in(chunks: Iterable[pa.Table]) -> list[tuple[Any, ...]]:
    """Returns the rows of chunks, sorted."""
    return sorted(row for chunk in chunks for row in to_frame(chunk).rows())
