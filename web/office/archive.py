"""Documents that are ZIP archives: their entries are read within limits, and never written.

An entry's name is only ever compared with names that the document itself gives, so it is no path.
"""

import io
import posixpath
import zipfile
import zlib
from collections.abc import Iterator
from typing import IO
from urllib.parse import unquote

from ..pages.page import ParseFailed

MAX_ENTRIES = 10_000
# What all entries that are read may have together, unpacked.
MAX_BYTES = 64 << 20
# Markup of empty cells packs 100 to 1; deflate cannot do better than 1032.
MAX_RATIO = 200
_RATIO_HOLDS_FROM = 1 << 20
_FIRST_BYTES = 64 << 10
_MOST_BYTES = 8 << 20
_LOCAL_HEADER_BYTES = 30
_ENCRYPTED = 0x1
_CENTRAL_HEADER = b"PK\x01\x02"
_ARCHIVES = (b"PK\x03\x04", b"PK\x05\x06", b"\x1f\x8b", b"BZh", b"7z\xbc\xaf", b"Rar!", b"\xfd7zXZ")
# Office puts what a password protects into a container of an older format.
_COMPOUND = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
_PROTECTED = "EncryptedPackage".encode("utf-16-le")


class Archive:
    """A document's entries.

    Args:
        body: The document.

    Raises:
        ParseFailed: ``encrypted``, ``malformed``, ``archive_entries`` (there are over 10,000),
            ``archive_overlap`` (entries that share their bytes).
    """

    def __init__(self, body: bytes) -> None:
        if body.startswith(_COMPOUND) and _PROTECTED in body:
            raise ParseFailed("encrypted")
        # Before they are read: each costs more memory than it has bytes.
        if body.count(_CENTRAL_HEADER) > MAX_ENTRIES:
            raise ParseFailed("archive_entries")
        try:
            self._file = zipfile.ZipFile(io.BytesIO(body))
        except (zipfile.BadZipFile, NotImplementedError, ValueError, OverflowError) as error:
            raise ParseFailed("malformed") from error
        self._entries = {entry.filename: entry for entry in self._file.infolist()}
        self._left = MAX_BYTES
        _check_overlap(self._file.infolist())

    def __contains__(self, name: str) -> bool:
        return name in self._entries

    def chunks(self, name: str) -> Iterator[bytes]:
        """Yields an entry's bytes, in parts that grow.

        expat before 2.6 scans a long token anew with each part.

        Raises:
            ParseFailed: ``malformed`` (there is none of that name, or it is damaged),
                ``encrypted``, ``archive_method`` (not deflate), ``archive_nested`` (an archive),
                ``archive_ratio`` (it unpacks to over 200 times its size), ``archive_size``
                (what was read of the archive has over 64 MiB).
        """
        entry = self._entries.get(name)
        if entry is None:
            raise ParseFailed("malformed") from KeyError(f"no entry {name[:100]!r}")
        if entry.flag_bits & _ENCRYPTED:
            raise ParseFailed("encrypted")
        if entry.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
            raise ParseFailed("archive_method")
        try:
            with self._file.open(entry) as stream:
                yield from self._checked(stream, entry)
        except (zipfile.BadZipFile, zlib.error, NotImplementedError, EOFError, ValueError) as error:
            raise ParseFailed("malformed") from error

    def _checked(self, stream: IO[bytes], entry: zipfile.ZipInfo) -> Iterator[bytes]:
        total = 0
        while chunk := stream.read(min(max(_FIRST_BYTES, total), _MOST_BYTES)):
            if not total and chunk.startswith(_ARCHIVES):
                raise ParseFailed("archive_nested")
            total += len(chunk)
            self._left -= len(chunk)
            if total > _RATIO_HOLDS_FROM and total > MAX_RATIO * entry.compress_size:
                raise ParseFailed("archive_ratio")
            if self._left < 0:
                raise ParseFailed("archive_size")
            yield chunk

    def read(self, name: str) -> bytes:
        """Returns an entry; see ``chunks``."""
        return b"".join(self.chunks(name))


def entry_name(folder: str, reference: str) -> str:
    """Returns the name of the entry that a reference in a document means.

    >>> entry_name("word/", "../docProps/core.xml"), entry_name("ppt/", "/ppt/slides/1.xml")
    ('docProps/core.xml', 'ppt/slides/1.xml')
    """
    path = unquote(reference.partition("#")[0])
    return posixpath.normpath(posixpath.join("/", folder, path)).lstrip("/")


def folder_of(name: str) -> str:
    """Returns what an entry's references are relative to.

    >>> folder_of("word/document.xml")
    'word/'
    """
    return name[: name.rfind("/") + 1]


def _check_overlap(entries: list[zipfile.ZipInfo]) -> None:
    """Refuses entries that share their bytes: so a bomb needs no nesting."""
    end = 0
    for entry in sorted(entries, key=lambda entry: entry.header_offset):
        if entry.header_offset < end:
            raise ParseFailed("archive_overlap")
        end = entry.header_offset + _LOCAL_HEADER_BYTES + entry.compress_size
