"""What requests to Bigtable consist of: filters, which its servers apply, and batches of rows.

Rows are checked for Bigtable's limits before they are written: the emulator accepts more than the
real Bigtable.
"""

from collections.abc import Callable, Iterable, Iterator
from typing import Any, TypeVar

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
from google.cloud.bigtable_v2 import types

from ...policy.components.kinds import KINDS, kinds_in_rows
from ...web.base.errors import UserError
from ..tablets.tablets import Due
from .cell_layout import CellKind
from .cells import due_bytes, encode
from .packed_values import as_numpy

MAX_ROW_KEY_BYTES = 4 << 10
MAX_CELL_BYTES = 100 << 20
MAX_ROW_BYTES = 256 << 20
MUTATIONS_PER_REQUEST = 100_000
# Number of versions of a cell that are kept; one more may exist until it is removed.
VERSIONS = 4
# Limits of one write. Bigtable takes up to 256 MB; smaller requests work better.
REQUEST_ROWS = 5_000
REQUEST_BYTES = 8 << 20
# Limits of one request for given keys.
SOUGHT_ROWS = 65_536
SOUGHT_BYTES = 256 << 10
_Item = TypeVar("_Item")


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


assert REQUEST_ROWS <= MUTATIONS_PER_REQUEST


def split_by_limits(rows: pa.Table, kind: CellKind) -> tuple[pa.Table, dict[str, int]]:
    """Removes rows that Bigtable would refuse; called before a commit.

    A row that cannot be written would block the table: committed changes must be applied.

    Args:
        rows: Rows of the kind's schema.
        kind: The kind of their cells.

    Returns:
        (rows that Bigtable accepts, number of removed rows by reason: ``key_empty``,
        ``key_too_long``, ``cell_too_large``, ``row_too_large``).
    """
    accepted = np.ones(len(rows), bool)
    counts: dict[str, int] = {}
    # Components with the same keys are in the same rows.
    sharing = [n for n in kinds_in_rows() if KINDS[n].key is KINDS[kind.component].key]
    for name, refused in _reasons(encode(rows, kind), MAX_ROW_BYTES // len(sharing)).items():
        if number := int((refused & accepted).sum()):
            counts[name] = number
            accepted &= ~refused
    return (rows.filter(pa.array(accepted)) if counts else rows), counts


def check_limits(cells: pa.Table) -> None:
    """Checks that Bigtable accepts all rows.

    Raises:
        UserError: A row exceeds a limit; the message names the first such row and the limits.
    """
    for name, rows in _reasons(cells).items():
        if rows.any():
            at = int(np.argmax(rows))
            key = cells.column("key")[at].as_py()
            size = len(cells.column("cell")[at].as_py())
            raise UserError(
                f"Bigtable does not take row {key[:80]!r} ({name}): its key has {len(key):,} bytes "
                f"(1 to {MAX_ROW_KEY_BYTES:,}), its cell {size:,} (up to {MAX_CELL_BYTES:,}, and "
                f"{MAX_ROW_BYTES:,} with its older versions)"
            )


def _reasons(cells: pa.Table, row_bytes: int = MAX_ROW_BYTES) -> dict[str, np.ndarray]:
    keys, sizes = (
        as_numpy(pc.binary_length(cells.column(name).combine_chunks())) for name in ("key", "cell")
    )
    return {
        "key_empty": keys == 0,
        "key_too_long": keys > MAX_ROW_KEY_BYTES,
        "cell_too_large": sizes > MAX_CELL_BYTES,
        "row_too_large": sizes.astype(np.int64) * (VERSIONS + 1) > row_bytes,
    }


def table_of(keys: list[bytes], cells: list[bytes]) -> pa.Table:
    """Returns rows as columns ``key`` and ``cell``."""
    # Uses polars, because the first call of pa.array imports pandas if it is installed.
    columns = [pl.Series(values, dtype=pl.Binary).to_arrow() for values in (keys, cells)]
    return pa.Table.from_arrays(columns, ["key", "cell"])


def key_bytes(key: str) -> bytes:
    """Returns a row key as bytes, as Bigtable stores it."""
    return key.encode("utf-8", "surrogateescape")


def key_batches(keys: Iterable[str], most: int | None = None) -> Iterator[list[bytes]]:
    """Yields the distinct keys, sorted, in batches that one request may read."""
    distinct = sorted({key_bytes(key) for key in keys})
    return _batches(distinct, len, most or SOUGHT_ROWS, SOUGHT_BYTES)


def requests(cells: pa.Table) -> Iterator[list[tuple[bytes, bytes]]]:
    """Yields (key, cell) in batches that one request may write."""
    for batch in cells.select(["key", "cell"]).to_batches(max_chunksize=REQUEST_ROWS):
        rows = zip(*(batch.column(at).to_pylist() for at in (0, 1)), strict=True)
        yield from _batches(rows, lambda row: len(row[1]), REQUEST_ROWS, REQUEST_BYTES)


def _batches(
    items: Iterable[_Item], size_of: Callable[[_Item], int], most: int, most_bytes: int
) -> Iterator[list[_Item]]:
    batch: list[_Item] = []
    size = 0
    for item in items:
        if batch and (len(batch) == most or size + size_of(item) > most_bytes):
            yield batch
            batch, size = [], 0
        batch.append(item)
        size += size_of(item)
    if batch:
        yield batch
