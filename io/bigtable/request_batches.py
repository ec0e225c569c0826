"""Cuts rows into batches for one request or one Arrow table."""

from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

import polars as pl
import pyarrow as pa

from .limits import MUTATIONS_PER_REQUEST

# Limits of one write. Bigtable takes up to 256 MB; smaller requests work better.
REQUEST_ROWS = 5_000
REQUEST_BYTES = 8 << 20
# Limits of one request for given keys.
SOUGHT_ROWS = 65_536
SOUGHT_BYTES = 256 << 10
assert REQUEST_ROWS <= MUTATIONS_PER_REQUEST
_Item = TypeVar("_Item")


def table_of(keys: list[bytes], cells: list[bytes]) -> pa.Table:
    """Returns rows as columns ``key`` and ``cell``."""
    # Uses polars, because the first call of pa.array imports pandas if it is installed.
    columns = [pl.Series(some, dtype=pl.Binary).to_arrow() for some in (keys, cells)]
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
