"""WARC files, also those in packages (WACZ), which are read where they are: nothing is unpacked."""

import contextlib
import io
import struct
import zipfile
from collections.abc import Iterator
from typing import IO, NamedTuple, cast

from ...web.base.errors import UsageError
from ..storage.files import names
from ..storage.places import Place
from .archive_reading import WARC_FILE_ENDINGS, open_archive

_PACKAGE_ENDING, _FOLDER = ".wacz", "archive/"
_ZIP = b"PK\x03\x04"
_LOCAL_HEADER = struct.Struct("<4s22xHH")  # APPNOTE 4.3.7: lengths of the name and of more fields
_ENCRYPTED = 1  # of the flags
# What zipfile raises for damaged packages.
_DAMAGES = (zipfile.BadZipFile, NotImplementedError, ValueError, struct.error)


class ArchiveFile(NamedTuple):
    """A WARC file.

    Attributes:
        place: The file, or the package that has it.
        start: Its position in that.
        size: Its size in bytes; None: it is the whole file.
    """

    place: Place
    start: int = 0
    size: int | None = None

    @contextlib.contextmanager
    def open(self) -> Iterator[IO[bytes]]:
        """Opens it; the file can seek.

        Raises:
            UserError: It cannot be read; also if that fails in the block.
        """
        with open_archive(self.place) as file:
            part = None if self.size is None else _Part(file, self.start, self.size)
            yield file if part is None else cast("IO[bytes]", part)


class _Part(io.RawIOBase):
    """A part of a file, as a file; each read is one of it."""

    def __init__(self, file: IO[bytes], start: int, size: int) -> None:
        super().__init__()
        self._file, self._start, self._size, self._at = file, start, size, 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        origins = {io.SEEK_SET: 0, io.SEEK_CUR: self._at, io.SEEK_END: self._size}
        self._at = origins[whence] + offset
        return self._at

    def read(self, size: int | None = -1) -> bytes:
        rest = max(0, self._size - self._at)
        wanted = rest if size is None or size < 0 else min(size, rest)
        if not wanted:
            return b""
        self._file.seek(self._start + self._at)
        data = self._file.read(wanted)
        self._at += len(data)
        return data


def is_archive_name(name: str) -> bool:
    """Returns whether a name is that of a WARC file.

    >>> is_archive_name("a/b.warc.gz"), is_archive_name("b.cdxj")
    (True, False)
    """
    return name.lower().endswith(WARC_FILE_ENDINGS)


def is_package_name(name: str) -> bool:
    """Returns whether a name is that of a package."""
    return name.lower().endswith(_PACKAGE_ENDING)


def archive_files_in(folder: Place) -> list[ArchiveFile]:
    """Returns the WARC files in a folder, by name; without any, those of the packages in it.

    Raises:
        UserError: A package cannot be read.
    """
    all_names = sorted(names(folder))
    files = [ArchiveFile(folder / name) for name in all_names if is_archive_name(name)]
    packages = [folder / name for name in all_names if is_package_name(name)]
    return files or [file for package in packages for file in archive_files_of(package)]


def archive_files_of(place: Place) -> list[ArchiveFile]:
    """Returns the WARC files of a file: it is one, or a package of some.

    Raises:
        UsageError: It is a package that cannot be read as it is.
        UserError: It cannot be read.
    """
    with open_archive(place) as file:
        if file.read(len(_ZIP)) != _ZIP:
            return [ArchiveFile(place)]
        try:
            files = [_packaged_file(place, file, entry) for entry in _archive_entries(file)]
        except _DAMAGES as error:
            raise UsageError(f"package {str(place)!r} is damaged: {error}") from error
    if not files:
        raise UsageError(f"{str(place)!r} is a ZIP file without WARC files in a folder archive")
    return files


def _archive_entries(file: IO[bytes]) -> list[zipfile.ZipInfo]:
    entries = zipfile.ZipFile(file).infolist()
    return [
        entry
        for entry in entries
        if entry.filename.startswith(_FOLDER) and is_archive_name(entry.filename)
    ]


def _packaged_file(place: Place, file: IO[bytes], entry: zipfile.ZipInfo) -> ArchiveFile:
    if entry.compress_type != zipfile.ZIP_STORED or entry.flag_bits & _ENCRYPTED:
        raise UsageError(
            f"package {str(place)!r} has {entry.filename!r} compressed or encrypted: unpack it"
        )
    file.seek(max(0, entry.header_offset))
    magic, name, more = _LOCAL_HEADER.unpack(file.read(_LOCAL_HEADER.size))
    if magic != _ZIP or entry.header_offset < 0:
        raise zipfile.BadZipFile(f"{entry.filename!r} is not where its directory says")
    start = entry.header_offset + _LOCAL_HEADER.size + name + more
    return ArchiveFile(place, start, entry.file_size)
