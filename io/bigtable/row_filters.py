"""Makes filters of rows that Bigtable applies on its servers."""

from typing import Any

from google.cloud.bigtable_v2 import types

from ..tablets.tablets import Due
from .cell_layout import CellKind
from .cells import due_bytes


def snapshot_filter(kind: CellKind, snapshot: int, due: Due | None = None) -> Any:
    """Returns the filter for each row's cell as of a snapshot, without tombstones.

    ``due`` selects rows by ``Kind.due``; of a component without that column all rows pass.
    """
    due = due if kind.newest.due else None
    chain = version_filter(kind, snapshot)
    add = chain.chain.filters.add
    values = {"start_value_open": b""}  # the tombstone
    if due is not None:
        values["end_value_open"] = due_bytes(due.until + 1)
    if due is None or due.far is None:
        add(value_range_filter=values)
    else:
        either = add().interleave.filters.add
        either(value_range_filter=values)
        either(value_range_filter={"start_value_closed": due_bytes(due.far + 1)})
    return chain


def version_filter(kind: CellKind, snapshot: int) -> Any:
    """Returns the filter for each row's cell as of a snapshot, tombstones included."""
    # Limit the time before any filter of values; otherwise old versions would reappear.
    return _one_cell(kind, {"end_timestamp_micros": (snapshot + 1) * 1000})


def change_filter(kind: CellKind, snapshot: int) -> Any:
    """Returns the filter for rows that were changed after a snapshot, with empty values."""
    chain = _one_cell(kind, {"start_timestamp_micros": (snapshot + 1) * 1000})
    chain.chain.filters.add(strip_value_transformer=True)
    return chain


def history_filter(kind: CellKind, snapshot: int) -> Any:
    """Returns the filter that passes all versions of each row up to a snapshot."""
    return _cells(kind, {"end_timestamp_micros": (snapshot + 1) * 1000})


def _one_cell(kind: CellKind, times: dict[str, int]) -> Any:
    """Returns the filter that passes each row's newest cell in a span of time."""
    chain = _cells(kind, times)
    chain.chain.filters.add(cells_per_column_limit_filter=1)
    return chain


def _cells(kind: CellKind, times: dict[str, int]) -> Any:
    """Returns the filter that passes each row's cells in a span of time."""
    chain = types.RowFilter.pb()()
    add = chain.chain.filters.add
    add(column_range_filter={"family_name": kind.family, "start_qualifier_closed": kind.qualifier,
                             "end_qualifier_closed": kind.qualifier})  # fmt: skip
    add(timestamp_range_filter=times)
    return chain
