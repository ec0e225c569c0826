"""Reads documents that are ZIP archives, within limits, and their metadata; writes nothing to disk.

The name of an entry is only compared with names that the document itself gives. It is no path.
"""

import copy
import io
import posixpath
import re
import zipfile
import zlib
from collections.abc import Callable, Iterator, Mapping
from itertools import chain, islice
from typing import IO
from urllib.parse import unquote

from ..content.charset import encoding_as_declared
from ..pages.page import ParseFailed
from ..pages.xml_events import (
    CHARACTERS,
    END,
    START,
    XML_READ_BYTES,
    Attributes,
    Event,
    MalformedXml,
    repair_pieces,
    soup_events,
    xml_events,
)
from .collector import Collector

_MAX_ENTRIES = 10_000
# Of all entries that are read, unpacked.
_MAX_BYTES = 64 << 20
# Markup of empty cells packs 100 to 1; deflate cannot do better than 1032.
MAX_RATIO = 200
# Smaller entries may have any ratio.
_RATIO_MIN_BYTES = 1 << 20
_LOCAL_HEADER_BYTES = 30
# Of an entry with a mistake, which is read more slowly: lists of parts are not longer.
_MAX_SOUP_PIECES = _RATIO_MIN_BYTES // XML_READ_BYTES
_BLANKS = b" \t\r\n"
_ENCRYPTED = 0x1
_CENTRAL_HEADER = b"PK\x01\x02"
_ARCHIVES = (b"PK\x03\x04", b"PK\x05\x06", b"\x1f\x8b", b"BZh", b"7z\xbc\xaf", b"Rar!", b"\xfd7zXZ")
# Office wraps a document with a password in a container of an older format.
_COMPOUND = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
_PROTECTED_PACKAGE = "EncryptedPackage".encode("utf-16-le")


class Archive:
    """The entries of a document.

    Names of entries are the same in upper and lower case (OPC 6.2.2.3), and with backslashes, which
    some programs write. An entry that is damaged is read up to the damage.

    Args:
        body: The document.

    Attributes:
        damaged: Names of entries that are missing, or could not be read to their end, in lower case.

    Raises:
        ParseFailed: ``encrypted``, ``malformed``, ``archive_entries`` (there are over 10,000),
            ``archive_overlap`` (entries share their bytes).
    """

    def __init__(self, body: bytes) -> None:
        if body.startswith(_COMPOUND) and _PROTECTED_PACKAGE in body:
            raise ParseFailed("encrypted")
        # Counted before they are read: an entry needs more memory than it has bytes.
        if body.count(_CENTRAL_HEADER) > _MAX_ENTRIES:
            raise ParseFailed("archive_entries")
        try:
            self._file = zipfile.ZipFile(io.BytesIO(body))
        except (zipfile.BadZipFile, NotImplementedError, ValueError, OverflowError) as error:
            raise ParseFailed("malformed") from error
        self._entries = {entry.filename: entry for entry in self._file.infolist()}
        self._comparable_entries = {
            _comparable_name(name): entry for name, entry in self._entries.items()
        }
        self.damaged: set[str] = set()
        self._bytes_left = _MAX_BYTES
        _check_overlap(self._file.infolist())

    def __contains__(self, name: str) -> bool:
        return self._entry(name) is not None

    def require(self, name: str) -> bool:
        """Returns whether there is an entry of that name; a missing one counts as damaged."""
        if name not in self:
            self._note_damage(name)
        return name in self

    def names(self) -> list[str]:
        """Returns the names of all entries, in their order."""
        return list(self._entries)

    def forgive(self, *names: str) -> None:
        """Forgets damage to entries that hold no text."""
        self.damaged -= {_comparable_name(name) for name in names}

    def is_damaged(self, name: str) -> bool:
        """Returns whether an entry is missing, or could not be read to its end."""
        return _comparable_name(name) in self.damaged

    def _note_damage(self, name: str) -> None:
        self.damaged.add(_comparable_name(name))

    def _entry(self, name: str) -> zipfile.ZipInfo | None:
        return self._entries.get(name) or self._comparable_entries.get(_comparable_name(name))

    def events(self, name: str | None) -> Iterator[Event]:
        """Yields the XML events of an entry up to a mistake, none if there is no such entry.

        Attributes have their local names, but an ``id`` with a prefix is ``:id``: in Office Open
        XML it names a relationship, and elements may have an ``id`` of their own, too.

        Raises:
            ParseFailed: As ``xml_events``, but for mistakes; or as ``stream``.
        """
        if name is None or name not in self:
            return
        try:
            for kind, local, attributes in xml_events(_repair_part(self.stream(name))):
                yield kind, local, _local_attributes(attributes) if attributes else attributes
        except MalformedXml:
            self._note_damage(name)

    def elements(self, name: str | None) -> Iterator[tuple[str, Attributes]]:
        """Yields name and attributes of the elements of an entry, in order; see ``events``.

        After a mistake come the elements that can be seen all the same.
        """
        number = 0
        for kind, local, attributes in self.events(name):
            if kind == START:
                number += 1
                yield local, attributes
        if name is not None and self.is_damaged(name):
            yield from islice(self._visible_elements(name), number, None)

    def _visible_elements(self, name: str) -> Iterator[tuple[str, Attributes]]:
        """Yields the elements of an entry in UTF-8, whatever its mistakes are."""
        start = b"".join(islice(self.stream(name), _MAX_SOUP_PIECES))
        for kind, value, attributes in soup_events(start.decode("utf-8", "replace")):
            if kind == START:
                yield value.rpartition(":")[2], _local_attributes(attributes)

    def stream(self, name: str) -> Iterator[bytes]:
        """Yields the bytes of an entry up to damage; nothing if there is no such entry.

        An entry that is packed by another method than deflate counts as damaged.

        Raises:
            ParseFailed: ``encrypted``, ``archive_nested`` (an archive), ``archive_ratio`` (it
                unpacks to over 200 times its size), ``archive_size`` (over 64 MiB were read of the
                archive).
        """
        entry = self._entry(name)
        if entry is None:
            return
        if entry.flag_bits & _ENCRYPTED:
            raise ParseFailed("encrypted")
        if entry.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
            self._note_damage(entry.filename)
            return
        unchecked = copy.copy(entry)
        del unchecked.CRC  # or the last piece would be lost, which is checked here
        try:
            with self._file.open(unchecked) as stream:
                yield from self._check_pieces(stream, entry)
        except (zipfile.BadZipFile, zlib.error, NotImplementedError, EOFError, ValueError):
            self._note_damage(name)

    def _check_pieces(self, stream: IO[bytes], entry: zipfile.ZipInfo) -> Iterator[bytes]:
        total = checksum = 0
        while piece := stream.read(XML_READ_BYTES):
            if not total and piece.startswith(_ARCHIVES):
                raise ParseFailed("archive_nested")
            total += len(piece)
            checksum = zlib.crc32(piece, checksum)
            self._bytes_left -= len(piece)
            if total > _RATIO_MIN_BYTES and total > MAX_RATIO * entry.compress_size:
                raise ParseFailed("archive_ratio")
            if self._bytes_left < 0:
                raise ParseFailed("archive_size")
            yield piece
        if checksum != entry.CRC:
            self._note_damage(entry.filename)


def _repair_part(pieces: Iterator[bytes]) -> Iterator[bytes]:
    """Yields the pieces of a part; in UTF-8 with references that a strict parser accepts."""
    first = next(pieces, b"").lstrip(_BLANKS)
    all_pieces = chain((first,), pieces)
    is_utf8 = b"\0" not in first and encoding_as_declared(first, None) == "utf-8"
    return repair_pieces(all_pieces) if is_utf8 else all_pieces


def read_parts(archive: Archive, take: Callable[[Collector], object], collector: Collector) -> None:
    """Reads the text of a document with a function, and records damage to its entries.

    Raises:
        ParseFailed: ``malformed``: there is damage, and no text.
    """
    take(collector)
    if archive.damaged:
        if not collector.has_text:
            raise ParseFailed("malformed") from KeyError(f"damaged: {min(archive.damaged)[:100]!r}")
        collector.note_cut("damage")


def entry_name(base: str, reference: str) -> str:
    """Returns the name of the entry that a reference in another entry means.

    >>> entry_name("word/document.xml", "../docProps/core.xml")
    'docProps/core.xml'
    >>> entry_name("word/document.xml", r"media\\1.xml")
    'word/media/1.xml'
    >>> entry_name("ppt/presentation.xml", "/ppt/slides/1.xml")
    'ppt/slides/1.xml'
    """
    path = unquote(reference.partition("#")[0]).replace("\\", "/")
    return posixpath.normpath(posixpath.join("/", posixpath.dirname(base), path)).lstrip("/")


def _comparable_name(name: str) -> str:
    return name.replace("\\", "/").removeprefix("./").lstrip("/").lower()


def _local_attributes(attributes: Attributes) -> Attributes:
    local = {}
    for name, value in attributes.items():
        prefix, _, last = name.rpartition(":")
        local[f":{last}" if prefix and last == "id" else last] = value
    return local


def _check_overlap(entries: list[zipfile.ZipInfo]) -> None:
    """Refuses entries that overlap, because these can be a decompression bomb without nesting."""
    end = 0
    for entry in sorted(entries, key=lambda entry: entry.header_offset):
        if entry.header_offset < end:
            raise ParseFailed("archive_overlap")
        end = entry.header_offset + _LOCAL_HEADER_BYTES + entry.compress_size


# The elements of OOXML's core properties and of OpenDocument's meta.xml, and the metadata they are.
OFFICE = {
    "creator": "author",
    "initial-creator": "author",
    "description": "description",
    "keyword": "keywords",
    "keywords": "keywords",
    "subject": "subject",
}
# The same for EPUB's package document.
BOOK = {"creator": "author", "description": "description", "subject": "keywords"}
_MAX_CHARS = 4_000
# ECMA-376 part 1, 22.9.2.19: characters that XML cannot hold, and the underscore of such an escape.
_ESCAPE = re.compile("_x([0-9A-Fa-f]{4})_")


def without_escapes(text: str) -> str:
    r"""Returns a text of Office Open XML with its escapes decoded; controls are spaces.

    >>> without_escapes("a_x000D_\nb_x005F_x0041_")
    'a \nb_x0041_'
    """
    return _ESCAPE.sub(_character, text) if "_x" in text else text


def _character(escape: re.Match[str]) -> str:
    character = chr(int(escape[1], 16))
    return character if character.isprintable() else " "


def read_properties(
    archive: Archive, part: str | None, collector: Collector, metas: Mapping[str, str] = OFFICE
) -> None:
    """Takes title and language, and the metadata of elements by their names, if the part exists."""
    element = text = ""
    for kind, value, _ in archive.events(part):
        if kind == CHARACTERS and element:
            text = (text + value)[:_MAX_CHARS]
        elif kind == START and not element and (value in metas or value in ("title", "language")):
            element, text = value, ""
        elif kind == END and value == element:
            text = without_escapes(text) if metas is OFFICE else text
            if element == "title":
                collector.set_title(text)
            elif element == "language":
                collector.set_language(text)
            else:
                collector.add_meta(metas[element], text)
            element = ""
