"""Writes records into the files of a part of an archive, which end at a size, and files beside them."""

import contextlib
import dataclasses
import uuid
import zlib
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import IO, Any, NamedTuple

import polars as pl
import pyarrow as pa

from ...policy.components.archive_rows import CAPTURES
from ...web.archives.member_codecs import encode_gzip, record_encoder
from ...web.archives.page_records import CapturedContent
from ...web.archives.warc_options import GZIP
from ...web.archives.warc_records import RESOURCE, RESPONSE, REVISIT, WarcRecord, encode_record
from ...web.archives.wat import RecordPlace, encode_derived
from ...web.base.dataclass import dataclass
from ..storage.files import creating
from ..storage.places import Place

_ANSWERS = (RESPONSE, REVISIT, RESOURCE)
_AHEAD_BYTES = 64 << 20
_ROWS = 100_000


@dataclass(frozen=True)
class RecordGroup:
    """Records that stay together in a file.

    Attributes:
        records: The records, in order.
        capture: Columns of ``CAPTURES`` that do not say where the record is; None: they are of no
            answer.
        content: What the records are made of, for files beside the archive; None: of no capture.
    """

    records: Sequence[WarcRecord]
    capture: Mapping[str, Any] | None = None
    content: CapturedContent | None = None

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


class FilesBeside(NamedTuple):
    """Files beside those of an archive, one for each: WET, WAT.

    Attributes:
        folder: Their folder.
        ending: Ends their names, instead of ``warc.gz``.
        warcinfo: Returns the first record of a file of a name.
        records: Returns the records for a group: for its content, and where its records are.
    """

    folder: Place
    ending: str
    warcinfo: Callable[[str], WarcRecord]
    records: Callable[[CapturedContent | None, Sequence[RecordPlace]], Iterable[WarcRecord]]


class _OpenFile:
    """A file that is being written, and its numbers."""

    def __init__(self, file: IO[bytes], name: str) -> None:
        self.file, self.written = file, WrittenFile(name)

    def add(self, data: bytes) -> int:
        """Adds a compressed record; returns its position."""
        offset = self.written.bytes
        self.file.write(data)
        self.written.bytes += len(data)
        self.written.records += 1
        return offset


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
        beside: What is written beside each file.
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
        beside: Iterable[FilesBeside] = (),
    ) -> None:
        self._folder, self._name_of, self._warcinfo = folder, name_of, warcinfo
        self._version, self._size, self._threads = version, size, threads
        self._compress, self._gzip = record_encoder(compression), compression == GZIP
        self._beside = tuple(beside)
        self.files: list[WrittenFile] = []
        self.files_beside: list[WrittenFile] = []
        self._file: _OpenFile | None = None
        self._opened_beside: list[_OpenFile] = []
        self._open = contextlib.ExitStack()

    def write(self, groups: Iterable[RecordGroup]) -> Iterator[pa.Table]:
        """Writes groups of records; yields where the answers are, columns of ``CAPTURES``.

        If it raises, the last file does not appear.
        """
        rows: list[dict[str, object]] = []
        with self._open:
            for group, encoded in self._encoded(groups):
                rows += self._write_group(group, encoded)
                if len(rows) >= _ROWS:
                    yield _captures(rows)
                    rows = []
        if rows:
            yield _captures(rows)

    def _encoded(
        self, groups: Iterable[RecordGroup]
    ) -> Iterator[tuple[RecordGroup, list[RecordPlace]]]:
        """Yields groups with the bytes of their records, which threads compress ahead."""
        if self._threads == 1:
            yield from ((group, self._encode(group)) for group in groups)
            return
        waiting: deque[tuple[RecordGroup, Future[list[RecordPlace]]]] = deque()
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

    def _encode(self, group: RecordGroup) -> list[RecordPlace]:
        places = []
        for record in group.records:
            plain = encode_record(record, self._version)
            crc = zlib.crc32(plain) if self._beside and self._gzip else None
            places.append(RecordPlace(record, self._compress(plain), len(plain), crc))
        return places

    def _write_group(
        self, group: RecordGroup, encoded: Sequence[RecordPlace]
    ) -> Iterator[dict[str, object]]:
        size = sum(len(place.data) for place in encoded)
        if self._file is None or self._file.written.bytes + size > self._size:
            self._next_file()
        assert self._file is not None
        name = self._file.written.name
        places = [place._replace(file=name, offset=self._file.add(place.data)) for place in encoded]
        self._write_beside(group, places)
        for place in places:
            if group.capture is not None and place.record.kind in _ANSWERS:
                yield {
                    **group.capture,
                    "kind": place.record.kind,
                    "file": name,
                    "offset": place.offset,
                    "length": len(place.data),
                    "record": uuid.UUID(place.record.id).bytes,
                }

    def _write_beside(self, group: RecordGroup, places: Sequence[RecordPlace]) -> None:
        for beside, opened in zip(self._beside, self._opened_beside, strict=True):
            for record in beside.records(group.content, places):
                opened.add(encode_gzip(encode_derived(record)))

    def _next_file(self) -> None:
        self._open.close()
        name = self._name_of(len(self.files))
        info = RecordGroup([self._warcinfo(name)])
        self._file = self._open_file(self._folder, name, self.files)
        self._opened_beside = []
        for beside in self._beside:
            own_name = f"{name.partition('.warc.')[0]}.{beside.ending}"
            opened = self._open_file(beside.folder, own_name, self.files_beside)
            opened.add(encode_gzip(encode_derived(beside.warcinfo(own_name))))
            self._opened_beside.append(opened)
        (place,) = self._encode(info)
        place = place._replace(file=name, offset=self._file.add(place.data))
        self._write_beside(info, [place])

    def _open_file(self, folder: Place, name: str, files: list[WrittenFile]) -> _OpenFile:
        file = self._open.enter_context(creating(folder / name, durable=True))
        opened = _OpenFile(file, name)
        files.append(opened.written)
        return opened


def _captures(rows: list[dict[str, object]]) -> pa.Table:
    frame = pl.DataFrame(rows, schema=pl.Schema(CAPTURES), orient="row")
    return frame.to_arrow().cast(CAPTURES)
