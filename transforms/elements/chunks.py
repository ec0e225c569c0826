"""Chunks: Arrow tables of many rows, the elements of every PCollection."""

import functools
from collections.abc import Iterator
from typing import TypeAlias

import apache_beam as beam
import polars as pl
import pyarrow as pa

from ...policy.components.schema import conform, to_frame
from ..wiring.spill import LEAST, restore, spill

Chunk: TypeAlias = pa.Table
MAX_ROWS = 131_072
MAX_BYTES = 16 << 20


class ChunkCoder(beam.coders.Coder):
    """Encodes chunks as Arrow IPC, which contains the schema and needs no conversion.

    In one process, large chunks are written to a file between two steps (spill.py).
    """

    def encode(self, chunk: Chunk) -> bytes:
        token = spill(functools.partial(_write_ipc, chunk)) if chunk.nbytes >= LEAST else None
        return to_ipc(chunk).to_pybytes() if token is None else token

    def decode(self, encoded: bytes) -> Chunk:
        return from_ipc(restore(encoded))

    def estimate_size(self, chunk: Chunk) -> int:
        return chunk.nbytes  # otherwise Beam encodes the chunk to measure it

    def is_deterministic(self) -> bool:
        return False


def to_ipc(chunk: Chunk) -> pa.Buffer:
    """Returns a chunk as an Arrow IPC stream."""
    sink = pa.BufferOutputStream()
    _write_ipc(chunk, sink)
    return sink.getvalue()


def _write_ipc(chunk: Chunk, sink: pa.NativeFile) -> None:
    with pa.ipc.new_stream(sink, chunk.schema) as writer:
        writer.write_table(chunk)


def from_ipc(stream: pa.Buffer | bytes) -> Chunk:
    """Returns the chunk of an Arrow IPC stream; its columns share the memory of the stream."""
    return pa.ipc.open_stream(stream).read_all()


beam.coders.registry.register_coder(Chunk, ChunkCoder)


def to_chunks(frame: pl.DataFrame, schema: pa.Schema | None = None) -> Iterator[Chunk]:
    """Cuts a frame into chunks of at most ``MAX_ROWS`` rows and about ``MAX_BYTES``.

    Args:
        frame: The rows; no rows give no chunk.
        schema: Declared columns (policy/components/schema.py); chunks are cast to them. None keeps
            the columns of the frame.
    """
    for part in frame.iter_slices(MAX_ROWS):
        table = part.to_arrow() if schema is None else conform(part, schema)
        # The frame's own estimate may count equal strings only once.
        rows = max(1, len(table) * MAX_BYTES // max(1, table.nbytes))
        for start in range(0, len(table), rows):
            yield table.slice(start, rows)


def named_chunks(
    name: str, frame: pl.DataFrame, schema: pa.Schema | None = None
) -> Iterator[tuple[str, Chunk]]:
    """Yields the chunks of a frame with a name, such as that of the component to change."""
    for chunk in to_chunks(frame, schema):
        yield name, chunk


def rechunk(chunk: Chunk) -> Iterator[Chunk]:
    """Cuts a chunk that has grown too large."""
    yield from to_chunks(to_frame(chunk), chunk.schema)
