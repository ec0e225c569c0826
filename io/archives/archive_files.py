"""Writes records into the files of a part of an archive, which end at a size."""

import contextlib
import dataclasses
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import IO

import polars as pl
import pyarrow as pa

from ...web.archives.captures import Capture
from ...web.archives.cdxj import IndexedRecord, cdxj_line
from ...web.archives.record_codecs import record_encoder
from ...web.archives.warc_records import WarcRecord, encode_record
from ..storage.files import creating
from ..storage.parquet_files import ParquetWriter, row_groups
from ..storage.places import Place

# A record in a file. ``CAPTURES`` are those of answers, which indexes and later revisits need.
CAPTURES = pa.schema(
    [
        ("url", pa.large_string()),
        ("time", pa.int64()),  # ms
        ("batch", pa.large_string()),
        ("kind", pa.large_string()),  # WARC-Type
        ("status", pa.uint16()),  # of HTTP; null: there is none
        ("mime", pa.large_string()),
        ("digest", pa.large_binary()),  # SHA-1 of the payload; null: nothing of it is known
        ("whole", pa.bool_()),  # whether a revisit may name it
        ("file", pa.large_string()),
        ("offset", pa.int64()),
        ("length", pa.int64()),
    ]
)
_AHEAD_BYTES = 64 << 20
_ROWS = 100_000


@dataclasses.dataclass(frozen=True)
class RecordGroup:
    """Records that stay together in a file.

    Attributes:
        records: The records, in order.
        capture: What they are of; None for others.
        digest: SHA-1 of its payload, or None.
        whole: Whether a later revisit may name it.
    """

    records: Sequence[WarcRecord]
    capture: Capture | None = None
    digest: bytes | None = None
    whole: bool = False

    @property
    def bytes(self) -> int:
        """Size of the records before they are compressed, about."""
        return sum(len(piece) for record in self.records for piece in record.block)


@dataclasses.dataclass
class WrittenFile:
    """A complete file of an archive: its name, and its numbers of records and bytes."""

    name: str
    records: int = 0
    bytes: int = 0


class ArchiveWriter:
    """Writes the files of a part; each appears under its name when it is complete.

    Args:
        folder: The folder of the archive.
        name_of: Returns the name of the file with a serial number.
        warcinfo: Returns the first record of a file of a name.
        version: Version of the WARC format.
        compression: One of ``COMPRESSIONS``.
        size: Size at which a file ends, bytes.
        threads: How many records are compressed at once.
    """

    def __init__(
        self,
        folder: Place,
        name_of: Callable[[int], str],
        warcinfo: Callable[[str], WarcRecord],
        version: str,
        compression: str,
        size: int,
        threads: int = 1,
    ) -> None:
        self._folder, self._name_of, self._warcinfo = folder, name_of, warcinfo
        self._version, self._size, self._threads = version, size, threads
        self._compress = record_encoder(compression)
        self.files: list[WrittenFile] = []
        self._file: IO[bytes] | None = None
        self._open = contextlib.ExitStack()

    def write(self, groups: Iterable[RecordGroup]) -> Iterator[pa.Table]:
        """Writes groups of records; yields where the answers are, columns of ``CAPTURES``.

        If it raises, the last file does not appear.
        """
        rows: list[tuple[object, ...]] = []
        with self._open:
            for group, encoded in self._encoded(groups):
                rows += self._write_group(group, encoded)
                if len(rows) >= _ROWS:
                    yield _captures(rows)
                    rows = []
        if rows:
            yield _captures(rows)

    def _encoded(self, groups: Iterable[RecordGroup]) -> Iterator[tuple[RecordGroup, list[bytes]]]:
        """Yields groups with the bytes of their records, which threads compress ahead."""
        if self._threads == 1:
            yield from ((group, self._encode(group)) for group in groups)
            return
        waiting: deque[tuple[RecordGroup, Future[list[bytes]]]] = deque()
        ahead = 0
        with ThreadPoolExecutor(self._threads, "nutbeam-warc") as pool:
            for group in groups:
                waiting.append((group, pool.submit(self._encode, group)))
                ahead += group.bytes
                while waiting and (ahead > _AHEAD_BYTES or waiting[0][1].done()):
                    first, future = waiting.popleft()
                    ahead -= first.bytes
                    yield first, future.result()
            for group, future in waiting:
                yield group, future.result()

    def _encode(self, group: RecordGroup) -> list[bytes]:
        return [self._compress(encode_record(record, self._version)) for record in group.records]

    def _write_group(
        self, group: RecordGroup, encoded: Sequence[bytes]
    ) -> Iterator[tuple[object, ...]]:
        size = sum(map(len, encoded))
        if self._file is None or self.files[-1].bytes + size > self._size:
            self._next_file()
        assert self._file is not None
        written, capture = self.files[-1], group.capture
        for record, data in zip(group.records, encoded, strict=True):
            if capture is not None and record.kind in ("response", "revisit", "resource"):
                mime = capture.content_type.partition(";")[0].strip().lower()
                yield (capture.url, capture.time, capture.batch, record.kind,
                       capture.status or None, mime or None, group.digest, group.whole, written.name,
                       written.bytes, len(data))  # fmt: skip
            self._file.write(data)
            written.bytes += len(data)
            written.records += 1

    def _next_file(self) -> None:
        self._open.close()
        name = self._name_of(len(self.files))
        self._file = self._open.enter_context(creating(self._folder / name, durable=True))
        info = self._compress(encode_record(self._warcinfo(name), self._version))
        self._file.write(info)
        self.files.append(WrittenFile(name, 1, len(info)))


def _captures(rows: list[tuple[object, ...]]) -> pa.Table:
    frame = pl.DataFrame(rows, schema=pl.Schema(CAPTURES), orient="row")
    return frame.to_arrow().cast(CAPTURES)


def write_cdxj(path: Place, index: Place) -> None:
    """Writes a CDXJ index of the captures that ``write_index`` has listed, sorted as bytes are."""
    lines = [
        cdxj_line(IndexedRecord(**row))
        for rows in row_groups(index, CAPTURES, IndexedRecord._fields)
        for row in rows.to_pylist()
    ]
    with creating(path, durable=True) as file:
        file.write("".join(sorted(lines)).encode())


def write_index(path: Place, captures: Iterable[pa.Table]) -> None:
    """Writes the list of the captures of a part."""
    with ParquetWriter(path, CAPTURES) as writer:
        for rows in captures:
            writer.write(rows)
