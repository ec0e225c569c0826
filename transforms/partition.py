"""Sends all rows of a key to one worker."""

import dataclasses
from collections.abc import Iterable, Iterator
from typing import Any

import apache_beam as beam
import polars as pl
import pyarrow as pa

from ..io.snapshots.operations import Operation
from ..policy.base.hash_buckets import SLOTS, hash_buckets
from ..policy.base.key_columns import hosts_of
from ..policy.components.schema import conform, to_frame
from .elements.arguments import DEFAULT_PARTITIONS, check_partitions
from .elements.chunks import MAX_ROWS, Chunk, rechunk, split_by_hash
from .elements.row_types import extended_row_type
from .elements.rows import check_chunk, row_type_of, through_chunks
from .wiring.display import Displayed

# Limit of a partition in a shuffle, which a worker has in memory.
PARTITION_BYTES = 32 << 20


def partitions_of_rows(
    operations: beam.PCollection[Operation], component: str, row_bytes: int
) -> beam.pvalue.AsSideInput:
    """Returns the number of partitions that keeps each small even if all rows are shuffled.

    Args:
        operations: One operation.
        component: The component whose rows may all be shuffled.
        row_bytes: Size of a row in the shuffle.
    """
    count = beam.Map(_partitions, component, row_bytes).with_output_types(int)
    return beam.pvalue.AsSingleton(operations | "Partitions" >> count)


def _partitions(operation: Operation, component: str, row_bytes: int) -> int:
    rows = 0 if operation.idle else sum(file.live_rows for file in operation.files(component))
    return 1 + rows * row_bytes // PARTITION_BYTES


def grouped_by_hash(
    chunks: beam.PCollection[Chunk],
    key: str,
    partitions: int | beam.pvalue.AsSideInput,
    name: str = "ByHash",
) -> beam.PCollection[tuple[int, Iterable[Chunk]]]:
    """Brings rows with equal values of ``key`` together: (number of a partition, chunks)."""
    split = beam.FlatMap(split_by_hash, key, partitions).with_output_types(tuple[int, Chunk])
    return chunks | name >> split | "Meet" >> beam.GroupByKey()


@dataclasses.dataclass
class PartitionByHost(Displayed):
    """Sends all rows of a host to one worker.

    Input:  chunks or rows with a text column ``host``, or with one of URLs.
    Output: for chunks, (partition, chunk): all rows of a host have the same
        partition, and each chunk is of bounded size. A host with too many rows for
        one chunk has several chunks in one partition. For rows, the same
        rows with an additional field ``partition``; rows of a partition are
        consecutive, on one worker.

    Cost: one shuffle of all rows. The values of one partition must stay under
    64 MB, so choose the number of partitions by the size of the input.

    >>> from nutbeam import PartitionByHost
    >>> urls = ["http://a.com/1", "http://b.com/", "http://a.com/2"]
    >>> with beam.Pipeline("FnApiRunner") as pipeline:
    ...     rows = pipeline | beam.Create(urls) | beam.Map(lambda url: beam.Row(url=str(url)))
    ...     parts = rows | PartitionByHost(partitions=8, url="url")
    ...     _ = parts | "Print" >> beam.Map(lambda row: print(row.partition, row.url))
    4 http://a.com/1
    4 http://a.com/2
    1 http://b.com/

    Attributes:
        partitions: Number of partitions: at least as many as there are workers.
        host: Name of the column of hosts.
        salt: Changes the partitions of hosts; each batch has its own.
        slot: Name of a column to add, with the slot of each row: a number below ``SLOTS``.
            Empty adds none.
        url: Name of a column of URLs, whose hosts are used instead of the column ``host``.
            All values that are not URLs count as one host. Empty means ``host`` is used.

    Raises:
        ValueError: An argument or the input's type is not valid.
    """

    partitions: int = DEFAULT_PARTITIONS
    host: str = "host"
    salt: str = ""
    slot: str = ""
    url: str = ""

    def __post_init__(self) -> None:
        check_partitions(self.partitions)

    def expand(self, elements: beam.PCollection[Any]) -> Any:
        needed = {"url": [self.url]} if self.url else {"host": [self.host]}
        row_type = row_type_of(elements, "PartitionByHost")
        if row_type is None:
            return through_chunks(elements, self._deal, "PartitionByHost", needed)
        more = ["partition", *([self.slot] if self.slot else [])]
        outputs = extended_row_type(row_type, dict.fromkeys(more, int), "PartitionByHost")
        return through_chunks(elements, self._deal_rows, "PartitionByHost", needed, outputs)

    def _deal(self, chunks: beam.PCollection[Chunk]) -> beam.PCollection[tuple[int, Chunk]]:
        bounded = beam.FlatMap(_bound_chunks).with_output_types(tuple[int, Chunk])
        groups = GroupByHost(self.partitions, self.host, self.salt, self.slot, self.url)
        return chunks | groups | "Chunks" >> bounded

    def _deal_rows(self, chunks: beam.PCollection[Chunk]) -> beam.PCollection[Chunk]:
        return self._deal(chunks) | "Number" >> beam.MapTuple(_number_rows).with_output_types(Chunk)


@dataclasses.dataclass
class GroupByHost(Displayed):
    """Groups chunks so that all rows of a host are in one partition.

    Input:  chunks with a text column ``host``, or with one of URLs.
    Output: (number, its chunks). The partition is ``number // files``. With one file, a partition is
        one group. Else ``key`` divides it into files, and a host may be in all files of its partition.

    Cost: one shuffle of all rows. See ``PartitionByHost``, whose attributes these have, too.

    Attributes:
        partitions: Number of partitions, or a side input with this number.
        files: Number of files per partition, or a side input with this number.
        key: Name of the column that determines the file.
        drop: Columns to remove before the shuffle.
    """

    partitions: int | beam.pvalue.AsSideInput
    host: str = "host"
    salt: str = ""
    slot: str = ""
    url: str = ""
    files: int | beam.pvalue.AsSideInput = 1
    key: str = ""
    drop: tuple[str, ...] = ()

    def expand(
        self, chunks: beam.PCollection[Chunk]
    ) -> beam.PCollection[tuple[int, Iterable[Chunk]]]:
        how = (self.host, self.salt, self.slot, self.url)
        deal = beam.FlatMap(_deal, self.partitions, how, self.key, self.drop, self.files)
        # Politeness needs all rows of a host on one worker.
        return chunks | "Deal" >> deal.with_output_types(tuple[int, Chunk]) | beam.GroupByKey()


def _deal(
    chunk: Chunk,
    partitions: int,
    how: tuple[str, ...],
    key: str,
    drop: tuple[str, ...],
    files: int,
) -> Iterator[tuple[int, Chunk]]:
    for partition, rows in partition_by_host(chunk, partitions, *how):
        needed = rows.drop_columns(list(drop)) if drop else rows
        for file, part in split_by_hash(needed, key, files):
            yield partition * files + file, part


def partition_by_host(
    chunk: Chunk, partitions: int, host: str = "host", salt: str = "", slot: str = "", url: str = ""
) -> Iterator[tuple[int, Chunk]]:
    """Splits a chunk by partition.

    A host is in one of ``SLOTS`` slots, and a slot is in one partition. So the hosts of a slot
    are in the same partition for any number of partitions.
    """
    needed = {"url": [url]} if url else {"host": [host]}
    check_chunk(chunk, needed, "PartitionByHost")
    frame = to_frame(chunk)
    hosts = hosts_of(frame.get_column(url)) if url else frame.get_column(host)
    slots = hash_buckets(hosts, SLOTS, salt)
    number = (slots.cast(pl.UInt64) * partitions // SLOTS).alias("_part")
    schema = chunk.schema
    if slot:
        frame = frame.with_columns(slots.alias(slot))
        schema = schema.append(pa.field(slot, pa.uint32()))
    for (part,), rows in frame.group_by(number, maintain_order=True):
        yield int(str(part)), conform(rows, schema)


def _number_rows(partition: int, chunk: Chunk) -> Chunk:
    return chunk.append_column("partition", pa.repeat(partition, len(chunk)))


def _bound_chunks(grouped: tuple[int, Iterable[Chunk]]) -> Iterator[tuple[int, Chunk]]:
    partition, chunks = grouped
    gathered: list[Chunk] = []
    for chunk in chunks:
        if gathered and sum(map(len, gathered)) + len(chunk) > MAX_ROWS:
            yield from ((partition, part) for part in rechunk(pa.concat_tables(gathered)))
            gathered = []
        gathered.append(chunk)
    if gathered:
        yield from ((partition, part) for part in rechunk(pa.concat_tables(gathered)))
