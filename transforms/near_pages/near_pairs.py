"""Finds pairs of near hashes in a collection of any size.

Hashes of 64 bits are in columns: as numbers, or as the 8 bytes that SimHash signatures have.
"""

import dataclasses
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, TypeAlias

import apache_beam as beam
import numpy as np
import polars as pl
import pyarrow as pa
from numpy.typing import NDArray

from ...policy.components.schema import empty, to_frame
from ...policy.dedup import near_pairs as bands_of
from ...policy.dedup.duplicates import NEAR_PAIRS, simhashes
from ...policy.dedup.near_pairs import DifferingBits, Hashes, band_values, pairs_of_band
from ...web.base.dataclass import dataclass
from ..elements.arguments import check_integer
from ..elements.chunks import MAX_ROWS, Chunk, hashes_of, to_chunks
from ..elements.row_types import arrow_schema, field_names, field_types, row_type_with
from ..elements.rows import check_chunk, check_columns, row_type_of, through_chunks
from ..wiring.display import Displayed

_NUMBER = pa.uint64()


def with_hashes(chunk: Chunk, name: str) -> Chunk:
    """Returns a chunk whose columns ``hash`` and ``scope`` are uint64.

    Args:
        chunk: ``hash``: numbers, or 8 bytes; other bytes become null. ``scope``: numbers, text or
            bytes, of which hashes are made; without it all rows are in one scope.
        name: Name of the transform, for messages.

    Raises:
        ValueError: ``hash`` is missing, or has another type.

    >>> chunk = pa.table({"hash": [-1, 2], "scope": ["a", "a"]})
    >>> with_hashes(chunk, "NearPairs")["hash"].to_pylist()
    [18446744073709551615, 2]
    """
    check_columns(chunk.schema.names, {"hash": ["hash"]}, name)
    if all(kind == _NUMBER for kind in _types(chunk, "hash", "scope")):
        return chunk
    frame = to_frame(chunk)
    hashes = frame.get_column("hash")
    if not (hashes.dtype.is_integer() or hashes.dtype in (pl.Binary, pl.Null)):
        raise ValueError(f"{name} needs a column 'hash' of numbers or bytes, got {hashes.dtype}")
    numbers = simhashes(hashes) if hashes.dtype == pl.Binary else _to_unsigned(hashes)
    return frame.with_columns(hash=numbers, scope=_scopes(frame)).to_arrow()


def hashes_as(chunk: Chunk, kinds: Mapping[str, pa.DataType]) -> Chunk:
    """Returns a chunk with int64 or bytes instead of uint64 in some columns.

    >>> chunk = pa.table({"hash": pa.array([2**64 - 1], pa.uint64())})
    >>> hashes_as(chunk, {"hash": pa.int64()})["hash"].to_pylist()
    [-1]
    """
    for name, kind in kinds.items():
        values = chunk.column(name).combine_chunks().to_numpy(zero_copy_only=False)
        if pa.types.is_integer(kind):
            column = pa.array(values.view("int64")).cast(kind)
        else:
            packed = pa.py_buffer(values.astype(">u8").tobytes())
            column = pa.Array.from_buffers(pa.binary(8), len(values), [None, packed]).cast(kind)
        chunk = chunk.set_column(chunk.schema.get_field_index(name), name, column)
    return chunk


def _types(chunk: Chunk, *names: str) -> list[pa.DataType | None]:
    return [chunk.schema.field(name).type if name in chunk.schema.names else None for name in names]


def _scopes(frame: pl.DataFrame) -> pl.Series:
    if "scope" not in frame.columns:
        return pl.zeros(len(frame), pl.UInt64, eager=True)
    scopes = frame.get_column("scope")
    if scopes.dtype.is_integer():
        return _to_unsigned(scopes.fill_null(0))
    return pl.Series(hashes_of(scopes), dtype=pl.UInt64)


def _to_unsigned(numbers: pl.Series) -> pl.Series:
    """Returns numbers as uint64: negative ones have the same bits."""
    if numbers.dtype == pl.UInt64:
        return numbers
    return numbers.cast(pl.Int64).reinterpret(signed=False)


# Band, partition of the band, number of slices, number of a pair of slices.
Key: TypeAlias = tuple[int, int, int, int]
# Rows of a partition, or of a slice: 16 MB.
MOST_ROWS = 1 << 20
_BUCKETS = 4_096
_NEEDED = {"the input": ["hash"]}


@dataclasses.dataclass
class NearPairs(Displayed):
    """Finds the pairs of hashes that differ in few bits, each pair once.

    Input:  chunks or rows with the column ``hash``: numbers of 64 bits, or 8 bytes, such as the
        signatures of ``--signature simhash``; and perhaps ``scope``, a number or text: only hashes
        of the same scope are compared. No two rows are equal.
    Output: chunks of NEAR_PAIRS rows: scope, hash, other. For rows, rows of ``hash`` and ``other``,
        of the type that ``hash`` has in the input, and ``scope`` if that is a number.

    Cost: hashes are counted by bits of each band, which is a small combiner. Then each row is
    shuffled once for each of the ``distance + 1`` bands. A key of this shuffle has at most 32 MB:
    values of a band that are too frequent for one key are cut into slices, and each
    pair of slices is a key.

    Attributes:
        distance: In how many bits the hashes of a pair may differ.

    Raises:
        ValueError: An argument or the input's type is not right.
    """

    distance: int

    def __post_init__(self) -> None:
        check_integer("distance", self.distance, 0)
        if self.distance >= bands_of.BITS:
            raise ValueError(f"distance must be from 0 to 63, got {self.distance}")

    def expand(self, elements: beam.PCollection[Any]) -> Any:
        row_type = row_type_of(elements, "NearPairs")
        if row_type is None:
            return self._pairs(elements)
        check_columns(field_names(row_type), _NEEDED, "NearPairs")
        fields, columns = field_types(row_type), arrow_schema(row_type)
        outputs = {"hash": fields["hash"], "other": fields["hash"]}
        if "scope" in fields and pa.types.is_integer(columns.field("scope").type):
            outputs = {"scope": fields["scope"], **outputs}
        kinds = {name: columns.field("hash" if name == "other" else name).type for name in outputs}

        def work(chunks: beam.PCollection[Chunk]) -> beam.PCollection[Chunk]:
            named = beam.Map(hashes_as, kinds).with_output_types(Chunk)
            return self._pairs(chunks) | "AsGiven" >> named

        return through_chunks(elements, work, "NearPairs", _NEEDED, row_type_with(outputs))

    def _pairs(self, chunks: beam.PCollection[Chunk]) -> beam.PCollection[Chunk]:
        numbers = beam.Map(_numbers).with_output_types(Chunk)
        chunks = chunks | "Numbers" >> numbers
        layout = beam.pvalue.AsSingleton(
            chunks
            | "Count" >> beam.Map(count_buckets, self.distance).with_output_types(Any)
            # Without a default, so that it works in windows; rows without a layout there are none.
            | "Layout" >> beam.CombineGlobally(_MakeLayout(self.distance)).without_defaults()
        )
        to_bands = beam.FlatMap(_to_bands, self.distance, layout).with_output_types(
            tuple[Key, Chunk]
        )
        return (
            chunks
            | "Bands" >> to_bands
            | "Meet" >> beam.GroupByKey()
            | "Pairs" >> beam.FlatMap(_pairs, self.distance).with_output_types(Chunk)
        )


def near_pairs(frame: pl.DataFrame, distance: int) -> pl.DataFrame:
    """Returns the pairs of near hashes of a frame.

    >>> frame = pl.DataFrame({"scope": [0, 0, 1], "hash": [1, 3, 1]}, schema_overrides={
    ...     "scope": pl.UInt64, "hash": pl.UInt64})
    >>> near_pairs(frame, 1).rows()
    [(0, 1, 3)]
    """
    scopes, hashes = _columns(frame)
    pair_frames = [
        _pair_rows(scopes, hashes, first, second)
        for first, second in bands_of.near_hashes(scopes ^ hashes, distance)
    ]
    return pl.concat([empty(NEAR_PAIRS), *pair_frames])


@dataclass(frozen=True)
class BandLayout:
    """How the rows of each band are divided into partitions.

    Attributes:
        partitions: Partition of each bucket of each band.
        slices: Number of slices of each bucket of each band; more than 1 for a bucket that is
            too large.
    """

    partitions: NDArray[np.int64]
    slices: NDArray[np.int64]


def _numbers(chunk: Chunk) -> Chunk:
    check_chunk(chunk, _NEEDED, "NearPairs")
    numbered = to_frame(with_hashes(chunk, "NearPairs")).select("scope", "hash")
    return numbered.drop_nulls("hash").to_arrow()


def count_buckets(chunk: Chunk, distance: int) -> NDArray[np.int64]:
    """Returns the number of rows in each bucket of each band."""
    mixed = np.bitwise_xor(*_columns(to_frame(chunk)))
    return np.array(
        [
            np.bincount(_buckets(mixed, mask), minlength=_BUCKETS)
            for mask in bands_of.bands(distance)
        ]
    )


class _MakeLayout(beam.CombineFn):
    """Adds numbers of rows, and makes the layout of the sum."""

    def __init__(self, distance: int) -> None:
        self._shape = (distance + 1, _BUCKETS)

    def create_accumulator(self) -> NDArray[np.int64]:
        return np.zeros(self._shape, np.int64)

    def add_input(self, total: NDArray[np.int64], counts: NDArray[np.int64]) -> NDArray[np.int64]:
        return total + counts

    def merge_accumulators(self, totals: Iterable[NDArray[np.int64]]) -> NDArray[np.int64]:
        return np.sum([self.create_accumulator(), *totals], axis=0)

    def extract_output(self, total: NDArray[np.int64]) -> BandLayout:
        return make_layout(total, MOST_ROWS)


def make_layout(counts: NDArray[np.int64], most: int) -> BandLayout:
    """Returns the layout for numbers of rows.

    >>> layout = make_layout(np.array([[2, 2, 9, 1]]), 4)
    >>> layout.slices.tolist(), layout.partitions.tolist()
    ([[1, 1, 3, 1]], [[0, 0, 1, 2]])
    """
    slices = np.maximum(1, -(-counts // most))
    partitions = np.zeros_like(counts)
    for band, sizes in enumerate(counts.tolist()):
        number, rows = 0, 0
        for bucket, size in enumerate(sizes):
            if rows and rows + size > most:
                number, rows = number + 1, 0
            partitions[band, bucket] = number
            rows += size
    return BandLayout(partitions, slices)


def _to_bands(chunk: Chunk, distance: int, layout: BandLayout) -> Iterator[tuple[Key, Chunk]]:
    frame = to_frame(chunk).select("scope", "hash")
    mixed = np.bitwise_xor(*_columns(frame))
    for band, mask in enumerate(bands_of.bands(distance)):
        buckets = _buckets(mixed, mask)
        slices = layout.slices[band, buckets]
        parts = pl.Series("part", layout.partitions[band, buckets])
        for (part, count), rows in frame.with_columns(
            parts, slices=slices, slice=_slices(mixed, slices)
        ).group_by("part", "slices", maintain_order=True):
            yield from _slice_rows((band, int(str(part)), int(str(count))), rows)


def _slice_rows(key: tuple[int, int, int], rows: pl.DataFrame) -> Iterator[tuple[Key, Chunk]]:
    """Yields rows for each pair of slices that they belong to."""
    slices = key[2]
    for pair, (one, other) in enumerate(_slice_pairs(slices)):
        slice_rows = rows if slices == 1 else rows.filter(pl.col("slice").is_in([one, other]))
        if len(slice_rows):
            yield (*key, pair), slice_rows.select("scope", "hash").to_arrow()


def _slice_pairs(slices: int) -> list[tuple[int, int]]:
    return [(one, other) for one in range(slices) for other in range(one, slices)]


def _buckets(mixed: Hashes, mask: int) -> NDArray[np.int64]:
    return (band_values(mixed, mask) % np.uint64(_BUCKETS)).astype(np.int64)


def _slices(mixed: Hashes, slices: NDArray[np.int64] | int) -> NDArray[np.int64]:
    spread = (mixed * np.uint64(0x9E3779B97F4A7C15)) >> np.uint64(33)
    return spread.astype(np.int64) % slices


def _pairs(grouped: tuple[Key, Iterable[Chunk]], distance: int) -> Iterator[Chunk]:
    (band, _, slices, pair), chunks = grouped
    scopes, hashes = _columns(to_frame(pa.concat_tables(chunks)))
    mixed = scopes ^ hashes
    own = _slices(mixed, slices)
    one, other = _slice_pairs(slices)[pair]
    pair_frames: list[pl.DataFrame] = []
    for first, second in pairs_of_band(mixed, band, DifferingBits(distance)):
        if slices > 1:  # a pair within a slice is in the key of that slice only
            low, high = np.minimum(own[first], own[second]), np.maximum(own[first], own[second])
            here = (low == one) & (high == other)
            first, second = first[here], second[here]
        pair_frames.append(_pair_rows(scopes, hashes, first, second))
        if sum(map(len, pair_frames)) > MAX_ROWS:
            yield from to_chunks(pl.concat(pair_frames), NEAR_PAIRS)
            pair_frames = []
    if pair_frames:
        yield from to_chunks(pl.concat(pair_frames), NEAR_PAIRS)


def _columns(frame: pl.DataFrame) -> tuple[Hashes, Hashes]:
    return frame.get_column("scope").to_numpy(), frame.get_column("hash").to_numpy()


def _pair_rows(
    scopes: Hashes, hashes: Hashes, first: NDArray[np.int64], second: NDArray[np.int64]
) -> pl.DataFrame:
    """Returns the pairs, without those of different scopes."""
    same = scopes[first] == scopes[second]
    first, second = first[same], second[same]
    return pl.DataFrame({"scope": scopes[first], "hash": hashes[first], "other": hashes[second]})
