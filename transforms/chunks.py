"""Chunks: Arrow tables of many rows, the elements of every PCollection."""

from collections.abc import Iterator
from typing import TypeAlias

import apache_beam as beam
import polars as pl
import pyarrow as pa

from ..policy.schema import conform, to_frame
from .spill import brought, put_away

Chunk: TypeAlias = pa.Table
MAX_ROWS = 131_072
MAX_BYTES = 16 << 20


class ChunkCoder(beam.coders.Coder):
    """Arrow IPC: the schema travels along, columns are copied as they lie.

    In one process what is large lies in a file meanwhile (spill.py).
    """

    def encode(self, chunk: Chunk) -> bytes:
        return put_away(to_ipc(chunk))

    def decode(self, encoded: bytes) -> Chunk:
        return from_ipc(brought(encoded))

    def estimate_size(self, chunk: Chunk) -> int:
        return chunk.nbytes  # Beam would encode it to know

    def is_deterministic(self) -> bool:
        return False


def to_ipc(chunk: Chunk) -> pa.Buffer:
    """Returns a chunk as an Arrow IPC stream."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, chunk.schema) as writer:
        writer.write_table(chunk)
    return sink.getvalue()


def from_ipc(stream: pa.Buffer | bytes) -> Chunk:
    """Returns the chunk of an Arrow IPC stream; its columns are where the stream is."""
    return pa.ipc.open_stream(stream).read_all()


beam.coders.registry.register_coder(Chunk, ChunkCoder)


def to_chunks(frame: pl.DataFrame, schema: pa.Schema | None = None) -> Iterator[Chunk]:
    """Cuts a frame into chunks of at most ``MAX_ROWS`` rows and about ``MAX_BYTES``.

    Args:
        frame: The rows; no rows give no chunk.
        schema: What the chunks are declared to be (policy/schema.py); they are
            cast to it. None keeps the frame's own columns.
    """
    for part in frame.iter_slices(MAX_ROWS):
        table = part.to_arrow() if schema is None else conform(part, schema)
        # Not the frame's own estimate: there, equal strings may count only once.
        rows = max(1, len(table) * MAX_BYTES // max(1, table.nbytes))
        for start in range(0, len(table), rows):
            yield table.slice(start, rows)


def rechunk(chunk: Chunk) -> Iterator[Chunk]:
    """Cuts a chunk that has grown too large."""
    yield from to_chunks(to_frame(chunk), chunk.schema)
