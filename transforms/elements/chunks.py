"""Chunks: Arrow tables of many rows, the elements of every PCollection, and their files in a spool."""

import dataclasses
import functools
import secrets
from collections import defaultdict
from collections.abc import Hashable, Iterable, Iterator
from typing import Any, NamedTuple, TypeAlias

import apache_beam as beam
import numpy as np
import polars as pl
import pyarrow as pa
from apache_beam.io.filesystem import CompressionTypes
from apache_beam.io.filesystems import FileSystems
from apache_beam.transforms.window import GlobalWindow
from apache_beam.utils.windowed_value import WindowedValue
from numpy.typing import NDArray

from ...policy.components.schema import conform, to_frame
from ...web.content.signature import mix_bits
from ..wiring.display import Displayed
from ..wiring.in_process import LEAST, restore, spill

Chunk: TypeAlias = pa.Table
MAX_ROWS = 131_072
MAX_BYTES = 16 << 20


class ChunkCoder(beam.coders.Coder):
    """Encodes chunks as Arrow IPC, which contains the schema and needs no conversion.

    In one process, large chunks are written to a file between two steps (in_process.py).
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


class NamedRows(NamedTuple):
    """Rows with a name, such as that of the component to change.

    Attributes:
        name: The name.
        rows: The rows.
        schema: See ``to_chunks``.
    """

    name: str
    rows: pl.DataFrame
    schema: pa.Schema | None = None


def chunk_outputs(outputs: Iterable[NamedRows | beam.pvalue.TaggedOutput]) -> Iterator[Any]:
    """Yields the outputs of a step: of named rows pairs of the name and a chunk, others as they are."""
    for output in outputs:
        if isinstance(output, NamedRows):
            yield from named_chunks(*output)
        else:
            yield output


def tagged_chunks(
    tag: str, frame: pl.DataFrame, schema: pa.Schema | None = None
) -> Iterator[beam.pvalue.TaggedOutput]:
    """Yields the chunks of a frame for the output with a tag."""
    for chunk in to_chunks(frame, schema):
        yield beam.pvalue.TaggedOutput(tag, chunk)


def rechunk(chunk: Chunk) -> Iterator[Chunk]:
    """Cuts a chunk that has grown too large."""
    yield from to_chunks(to_frame(chunk), chunk.schema)


def split_by_hash(chunk: Chunk, key: str, partitions: int) -> Iterator[tuple[int, Chunk]]:
    """Splits a chunk by hash, so that equal values of ``key`` get the same number.

    Args:
        chunk: Rows with the column ``key``: text, bytes, numbers or booleans;
            nulls are equal, too.
        partitions: Number of partitions; at least 1.

    Yields:
        (number in [0, partitions), its rows); numbers without rows are skipped.

    Raises:
        ValueError: The column has another type.
    """
    if partitions == 1:
        if len(chunk):
            yield 0, chunk
        return
    hashes = hashes_of(pl.Series(key, chunk.column(key))) >> np.uint64(32)
    number = pl.Series("_part", hashes * np.uint64(partitions) >> np.uint64(32))
    for (part,), rows in to_frame(chunk).group_by(number, maintain_order=True):
        yield int(str(part)), conform(rows, chunk.schema)


def hashes_of(keys: pl.Series) -> NDArray[np.uint64]:
    """Returns a 64-bit hash of each value, the same on every worker.

    Whole columns are hashed at once: this takes a hundredth of the time of crc32 by value.

    Args:
        keys: Text, bytes, numbers or booleans; nulls are equal, too.

    Raises:
        ValueError: The column has another type.

    >>> one, other, same = hashes_of(pl.Series(["a", "b", "a"]))
    >>> one == same, one == other
    (np.True_, np.False_)
    """
    if keys.dtype.is_nested():
        raise ValueError(
            f"column {keys.name!r} must be text or numbers to be a key, got {keys.dtype}"
        )
    if keys.dtype.is_integer():
        numbers = keys.fill_null(0).to_numpy().astype(np.uint64)
        return _spread(numbers)
    if keys.dtype not in (pl.String, pl.Binary):
        keys = keys.cast(pl.String)
    values = keys.cast(pl.Binary).fill_null(b"").to_arrow().cast(pa.large_binary())
    starts = np.frombuffer(values.buffers()[1], np.int64)[values.offset :][: len(values) + 1]
    data = np.frombuffer((values.buffers()[2] or b""), np.uint8)
    # values     "ab"  "c"  "defghijklm"      Each round takes eight more bytes of the values that
    # data       a b c d e f g h i j k l m    have some left:
    # starts     0   2 3                  13
    # lengths    2   1 10                     round 0: ab, c, defghijk; round 1: lm
    #
    # ``words[n]`` is the number in the eight bytes from ``data[n]`` on, also across the end of a value.
    # A shift moves the bytes after the end out: "ab" is read as "abcdefgh", and six bytes leave.
    padded = np.concatenate([data, np.zeros(8, np.uint8)])
    words = np.ndarray(len(data) + 1, np.dtype("<u8"), padded.data, strides=(1,))
    lengths = np.diff(starts)
    hashes = _spread(lengths.astype(np.uint64))
    for done in range(0, int(lengths.max(initial=0)), 8):
        rows = np.flatnonzero(lengths > done)
        unused = np.maximum(0, 8 - (lengths[rows] - done)).astype(np.uint64) * np.uint64(8)
        word = words[starts[rows] + done] << unused
        hashes[rows] = _spread(hashes[rows] ^ word)
    return hashes


def _spread(numbers: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Spreads each number over all bits (SplitMix64)."""
    return mix_bits(numbers + np.uint64(0x9E3779B97F4A7C15))


GATHERED_BYTES = 64 << 20
# A chunk of this size is not worth joining.
_LARGE = 1 << 20
_GLOBAL = GlobalWindow()


@dataclasses.dataclass
class GroupChunks(Displayed):
    """Groups chunks by key, and joins small chunks of a key before the shuffle.

    Chunks that are divided by many key ranges have many small parts. In one process, parts of less
    than 64 KB would stay in memory (wiring/in_process.py); on a cluster each has its own overhead.

    Input:  pairs of a key and a chunk, in the global window.
    Output: pairs of a key and its chunks, in no particular order.

    Cost: one shuffle. A worker holds ``GATHERED_BYTES`` before it.
    """

    def expand(self, pairs: beam.PCollection[Any]) -> beam.PCollection[Any]:
        gathered = beam.ParDo(_Gather(GATHERED_BYTES)).with_output_types(pairs.element_type)
        return pairs | "Gather" >> gathered | "Group" >> beam.GroupByKey()


class _Gather(beam.DoFn):
    """Joins the chunks of each key in a bundle."""

    def __init__(self, most_bytes: int) -> None:
        self._most = most_bytes

    def start_bundle(self) -> None:
        self._parts: dict[Hashable, list[Chunk]] = defaultdict(list)
        self._bytes = 0

    def process(self, element: tuple[Any, Chunk]) -> Iterator[tuple[Any, Chunk]]:
        key, chunk = element
        if chunk.nbytes >= _LARGE:
            yield element
            return
        self._parts[key].append(chunk)
        self._bytes += chunk.nbytes
        if self._bytes >= self._most:
            yield from self._join_parts()

    def finish_bundle(self) -> Iterator[WindowedValue]:
        for element in self._join_parts():
            yield WindowedValue(element, _GLOBAL.max_timestamp(), (_GLOBAL,))

    def _join_parts(self) -> Iterator[tuple[Any, Chunk]]:
        parts = self._parts
        self.start_bundle()
        for key, chunks in parts.items():
            for chunk in rechunk(pa.concat_tables(chunks)):
                yield key, chunk


class Spool:
    """The saved pages of all attempts at one partition, on any file system of Beam.

    Args:
        folder: Folder of this run; all workers must reach it.
        number: Number of the partition.
        partitions: Number of partitions.
    """

    def __init__(self, folder: str, number: int, partitions: int) -> None:
        self._folder = FileSystems.join(folder, f"{number:05d}-of-{partitions:05d}")
        self._attempt = secrets.token_hex(8)
        self._files = 0

    def saved_rows(self, urls: pl.Series) -> Iterator[Chunk]:
        """Yields the saved rows of the given URLs, each URL once, in chunks."""
        missing = urls.unique()
        (match,) = FileSystems.match([FileSystems.join(self._folder, "*.arrow")])
        for file in sorted(match.metadata_list, key=lambda file: str(file.path)):
            if missing.is_empty():
                return
            chunk = _read(file.path)
            there = to_frame(chunk.select(["url"])).get_column("url")
            take = there.is_in(missing.implode()) & there.is_first_distinct()
            missing = missing.filter(~missing.is_in(there.implode()))
            if take.any():
                yield chunk.filter(pa.array(take.to_list(), pa.bool_()))

    def keep(self, chunk: Chunk) -> None:
        """Writes a chunk, so that it survives the end of the worker."""
        path = FileSystems.join(self._folder, f"{self._attempt}-{self._files:05d}.arrow")
        # The file gets its name when it is complete.
        with FileSystems.create(
            f"{path}.part", compression_type=CompressionTypes.UNCOMPRESSED
        ) as file:
            file.write(memoryview(to_ipc(chunk)))
        FileSystems.rename([f"{path}.part"], [path])
        self._files += 1


def _read(path: str) -> Chunk:
    with FileSystems.open(path, compression_type=CompressionTypes.UNCOMPRESSED) as file:
        return from_ipc(file.read())
