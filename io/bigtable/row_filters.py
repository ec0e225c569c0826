"""Filters of rows, which Bigtable applies where the rows are."""

from typing import Any

from google.cloud.bigtable_v2 import types

from ..tablets.tablets import Due
from .cells import CellKind, due_bytes


def snapshot_filter(kind: CellKind, snapshot: int, due: Due | None = None) -> Any:
    """Returns the filter that leaves each row's one cell as of a snapshot, and no tombstone."""
    chain = version_filter(kind, snapshot)
    add = chain.chain.filters.add
    value = add().value_range_filter if due is None or due.far is None else None
    if value is not None:
        value.start_value_open = b""  # the tombstone
        if due is not None:
            value.end_value_open = due_bytes(due.until + 1)
    else:
        assert due is not None
        assert due.far is not None
        either = add().interleave.filters.add
        either(value_range_filter={"start_value_open": b"",
                                   "end_value_open": due_bytes(due.until + 1)})  # fmt: skip
        either(value_range_filter={"start_value_closed": due_bytes(due.far + 1)})
    return chain


def version_filter(kind: CellKind, snapshot: int) -> Any:
    """Returns the filter that leaves each row's one cell as of a snapshot, or its tombstone."""
    # The limit stands before the values are looked at, or old versions would rise again.
    return _one_cell(kind, {"end_timestamp_micros": (snapshot + 1) * 1000})


def change_filter(kind: CellKind, snapshot: int) -> Any:
    """Returns the filter that leaves the rows that were changed after a snapshot, without values."""
    chain = _one_cell(kind, {"start_timestamp_micros": (snapshot + 1) * 1000})
    chain.chain.filters.add(strip_value_transformer=True)
    return chain


def history_filter(kind: CellKind, snapshot: int) -> Any:
    """Returns the filter that leaves all versions of each row up to a snapshot."""
    return _cells(kind, {"end_timestamp_micros": (snapshot + 1) * 1000})


def _one_cell(kind: CellKind, times: dict[str, int]) -> Any:
    """Returns the filter that leaves each row's newest cell of some time."""
    chain = _cells(kind, times)
    chain.chain.filters.add(cells_per_column_limit_filter=1)
    return chain


def _cells(kind: CellKind, times: dict[str, int]) -> Any:
    """Returns the filter that leaves each row's cells of some time."""
    chain = types.RowFilter.pb()()
    add = chain.chain.filters.add
    add(column_range_filter={"family_name": kind.family, "start_qualifier_closed": kind.qualifier,
                             "end_qualifier_closed": kind.qualifier})  # fmt: skip
    add(timestamp_range_filter=times)
    return chain
