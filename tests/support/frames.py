"""Rows for tests, in the declared schemas."""

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
