"""Rows of Bigtable in portions of which one makes a request, or a table."""

from collections.abc import Iterator, Sequence

import polars as pl
import pyarrow as pa

from .limits import MUTATIONS_PER_REQUEST

# Of one request. Bigtable takes 256 MB, and is happier with less.
REQUEST_ROWS = 5_000
REQUEST_BYTES = 8 << 20
SOUGHT_ROWS = 65_536
SOUGHT_BYTES = 256 << 10
assert REQUEST_ROWS <= MUTATIONS_PER_REQUEST


def table_of(keys: list[bytes], values: list[bytes]) -> pa.Table:
    """Returns cells as columns ``key`` and ``cell``."""
    # By polars: pa.array imports pandas, where there is one, at its first call.
    columns = [pl.Series(some, dtype=pl.Binary).to_arrow() for some in (keys, values)]
    return pa.Table.from_arrays(columns, ["key", "cell"])


def key_bytes(key: str) -> bytes:
    """Returns a row key as Bigtable has it."""
    return key.encode("utf-8", "surrogateescape")


def packets(keys: Sequence[bytes], most: int = SOUGHT_ROWS) -> Iterator[list[bytes]]:
    """Cuts keys into such portions as one request may seek."""
    packet: list[bytes] = []
    size = 0
    for key in keys:
        packet.append(key)
        size += len(key)
        if size >= SOUGHT_BYTES or len(packet) == most:
            yield packet
            packet, size = [], 0
    if packet:
        yield packet


def requests(cells: pa.Table) -> Iterator[list[tuple[bytes, bytes]]]:
    """Cuts cells into such portions as one request may write."""
    for batch in cells.select(["key", "cell"]).to_batches(max_chunksize=REQUEST_ROWS):
        keys, values = (batch.column(at).to_pylist() for at in (0, 1))
        if batch.nbytes <= REQUEST_BYTES:
            yield list(zip(keys, values, strict=True))
            continue
        rows: list[tuple[bytes, bytes]] = []
        size = 0
        for row in zip(keys, values, strict=True):
            if rows and size + len(row[1]) > REQUEST_BYTES:
                yield rows
                rows, size = [], 0
            rows.append(row)
            size += len(row[1])
        yield rows
