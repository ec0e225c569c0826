"""Encodes chunks between the steps of a pipeline; Beam knows it as soon as this module is imported."""

import functools

import apache_beam as beam
import pyarrow as pa

from .in_process import LEAST, restore, spill


class ChunkCoder(beam.coders.Coder):
    """Encodes chunks as Arrow IPC, which contains the schema and needs no conversion.

    In one process, large chunks are written to a file between two steps (in_process.py).
    """

    def encode(self, chunk: pa.Table) -> bytes:
        token = spill(functools.partial(_write_ipc, chunk)) if chunk.nbytes >= LEAST else None
        return to_ipc(chunk).to_pybytes() if token is None else token

    def decode(self, encoded: bytes) -> pa.Table:
        return from_ipc(restore(encoded))

    def estimate_size(self, chunk: pa.Table) -> int:
        return chunk.nbytes  # otherwise Beam encodes the chunk to measure it

    def is_deterministic(self) -> bool:
        return False


def to_ipc(chunk: pa.Table) -> pa.Buffer:
    """Returns a chunk as an Arrow IPC stream."""
    sink = pa.BufferOutputStream()
    _write_ipc(chunk, sink)
    return sink.getvalue()


def _write_ipc(chunk: pa.Table, sink: pa.NativeFile) -> None:
    with pa.ipc.new_stream(sink, chunk.schema) as writer:
        writer.write_table(chunk)


def from_ipc(stream: pa.Buffer | bytes) -> pa.Table:
    """Returns the chunk of an Arrow IPC stream; its columns share the memory of the stream."""
    return pa.ipc.open_stream(stream).read_all()


beam.coders.registry.register_coder(pa.Table, ChunkCoder)
