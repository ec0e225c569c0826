"""Reads the members of an archive one after the other, and finds the next one after damage.

Bytes of a page may look like a member: a page may be an archive itself, and what cannot be compressed
is stored as it is. But such bytes are interrupted every 64 KiB, where deflate and zstd begin a new
block. So a place in the middle of a file counts as the beginning of a member only if members follow
one another from there on for longer than that (``first_member``).
"""

import contextlib
from typing import IO

from ..archives.member_codecs import (
    GZIP_MAGIC,
    SKIPPABLE,
    TRUNCATED_FILE,
    ZSTD_MAGIC,
    BadMember,
    MemberCodec,
    codec_of,
    dictionary_in,
    dictionary_length,
)

RECORD_START = b"WARC/"
_WINDOW_BYTES = 1 << 20
_CHAIN_BYTES = 128 << 10
_DAMAGED_BYTES = 256  # of a damaged member, at a time: what is before the damage can be decoded
NOWHERE = 1 << 62  # a position after the end of any file; systems may refuse to seek there
_PADDING_BYTES = 1 << 12
_SKIPPABLE_STARTS = tuple(magic[:1] for magic in SKIPPABLE)
_MAX_DICTIONARY_BYTES = 16 << 20
_DAMAGED_LEAD_BYTES = 16 << 20


class _Window:
    """Bytes of a file, read in large pieces.

    Args:
        file: The file, which can seek.
        size: How many bytes to read at a time.
    """

    def __init__(self, file: IO[bytes], size: int) -> None:
        self._file, self.size = file, size
        self._start, self._data = 0, b""

    def take(self, at: int, size: int) -> bytes:
        """Returns the bytes at a position, at most ``size``; fewer at the end of what was read."""
        if at >= NOWHERE:
            return b""
        if not 0 <= at - self._start < len(self._data):
            self._file.seek(at)
            self._start, self._data = at, self._file.read(max(size, self.size))
        return self._data[at - self._start : at - self._start + size]

    def take_all(self, at: int, size: int) -> bytes:
        """Returns the bytes at a position; fewer only at the end of the file."""
        pieces = list[bytes]()
        while size and (piece := self.take(at, size)):
            pieces.append(piece)
            at, size = at + len(piece), size - len(piece)
        return b"".join(pieces)


class MemberReader:
    """Reads the decoded bytes of members.

    Args:
        file: The file, which can seek.
        window: How many bytes to read of it at a time.

    Attributes:
        start: Position of the current member.
        end: Position of the first byte after it, once ``piece`` has returned nothing.
        is_plain: Whether the file is not compressed, and so is one member.

    Raises:
        BadMember: The dictionary of a zstd file is damaged.
    """

    def __init__(self, file: IO[bytes], window: int = _WINDOW_BYTES) -> None:
        self._window = _Window(file, window)
        beginning = self._window.take_all(0, 16)
        self._lead = length = dictionary_length(beginning)
        if length > _MAX_DICTIONARY_BYTES:
            raise BadMember("broken_compression")
        dictionary = dictionary_in(self._window.take_all(0, length)) if length else b""
        self._set_codec(codec_of(beginning, dictionary))
        self.start = self.end = 0
        if self.is_plain and not beginning.lstrip(b"\r\n").startswith(RECORD_START):
            self._set_codec(self._codec_after_damage())

    def _set_codec(self, codec: MemberCodec) -> None:
        self._codec = codec
        self.is_plain = not codec.magics
        self._decoder = codec.decoder()

    def _codec_after_damage(self) -> MemberCodec:
        """Returns the codec of a file whose first bytes may be damaged: that of its first whole member."""
        plain = self._codec
        for magic in (GZIP_MAGIC, ZSTD_MAGIC):
            self._set_codec(codec_of(magic))
            at = self.first_member(1, _DAMAGED_LEAD_BYTES)
            if at is not None and b"\n" + RECORD_START not in self._window.take_all(0, at):
                return self._codec
        return plain

    def set_window(self, size: int) -> None:
        """Sets how many bytes are read of the file at a time; 0: as before."""
        self._window.size = size or self._window.size

    def take_plain(self, at: int, size: int) -> bytes:
        """Returns bytes of the file at a position; fewer at its end."""
        return self._window.take_all(at, size)

    def open(self, at: int) -> bool:
        """Begins the member at a position; returns whether there is one, and not the end of the file.

        Raises:
            BadMember: No member begins there.
        """
        at = self.skip_padding(at)
        self.start = self.end = at
        beginning = self._window.take(at, 4)
        if not beginning:
            return False
        if not self.is_plain:
            beginning = self._window.take_all(at, 4)
            if not beginning.startswith(self._codec.magics):
                raise BadMember("broken_compression")
        self._decoder = self._codec.decoder()
        return True

    def skip_padding(self, at: int) -> int:
        """Returns the position after zeros, and after frames that decoders of zstd skip, at a position."""
        at = max(at, self._lead)
        while not self.is_plain:
            if self._window.take(at, 4).startswith(self._codec.magics):
                return at
            data = self._window.take(at, _PADDING_BYTES)
            zeros = len(data) - len(data.lstrip(b"\0"))
            if zeros:
                at += zeros
            elif ZSTD_MAGIC in self._codec.magics and data.startswith(_SKIPPABLE_STARTS):
                frame = self._window.take_all(at, 8)
                if len(frame) < 8 or not frame.startswith(SKIPPABLE):
                    return at
                at += 8 + int.from_bytes(frame[4:], "little")
            else:
                return at
        return at

    def piece(self) -> bytes:
        """Returns the next decoded bytes of the current member; none at its end.

        Raises:
            BadMember: The member is damaged, or its end is missing.
        """
        decoder = self._decoder
        while not decoder.ended:
            data = b"" if decoder.has_more else self._window.take(self.end, decoder.input_bytes)
            if not data and not decoder.has_more:
                decoder.finish()
                break
            piece = decoder.feed(data)
            self.end += len(data) - decoder.unused
            if piece:
                return piece
        return b""

    def is_whole_file(self) -> bool:
        """Returns whether the file has no other member than the current one, which may break off."""
        if self.start > self._lead:
            return False
        position = self.end, self._decoder
        try:
            self.open(self.start)
            while self.piece():
                pass
            return not self._window.take(self.skip_padding(self.end), 1)
        except BadMember as damage:
            return str(damage) == TRUNCATED_FILE
        finally:
            self.end, self._decoder = position

    def next_start(self, after: int, before: int | None = None) -> int | None:
        """Returns the first position that looks like a member whose content begins as a record does.

        Args:
            after: Where to begin.
            before: Where to stop; None: at the end of the file.
        """
        magic, at = self._codec.magics[0], after
        while before is None or at < before:
            data = self._window.take(at, _WINDOW_BYTES)
            if len(data) < len(magic):
                data = self._window.take_all(at, _WINDOW_BYTES)
                if len(data) < len(magic):
                    return None
            offset = data.find(magic)
            if offset < 0:
                at += len(data) - len(magic) + 1
                continue
            at += offset
            if before is not None and at >= before:
                return None
            if self._begins_record(at):
                return at
            at += 1
        return None

    def first_member(self, after: int, before: int) -> int | None:
        """Returns where the first member begins between two positions; None if none does.

        An uncompressed file has one member, at 0.
        """
        if after <= self._lead:
            return 0
        if self.is_plain:
            return None
        at = self.next_start(after, before)
        while at is not None and not self._is_chain(at):
            at = self.next_start(at + 1, before)
        return at

    def readable_beginning(self, most: int) -> bytes:
        """Returns the beginning of the current member, which is damaged, as far as it can be decoded.

        Args:
            most: How many decoded bytes are enough.
        """
        decoder, at, data = self._codec.decoder(), self.start, b""
        with contextlib.suppress(BadMember):
            while len(data) < most and not decoder.ended:
                piece = b"" if decoder.has_more else self._window.take(at, _DAMAGED_BYTES)
                if not piece and not decoder.has_more:
                    break
                at += len(piece)
                data += decoder.feed(piece)
        return data

    def start_after_damage(self, reason: str, size: int | None) -> tuple[int | None, int]:
        """Returns where the first member after the current one, which is damaged, begins; None if none does.

        And how many before it may be bytes of a page.

        Args:
            reason: The reason of its damage.
            size: Size that it has, decoded, if it is known; a member of gzip ends with it.
        """
        end = b"" if size is None else (size & 0xFFFFFFFF).to_bytes(4, "little")
        # What is in a member that breaks off may break off, too.
        may_break_off = reason != TRUNCATED_FILE
        at, doubtful = self.next_start(self.start + 1), 0
        while at is not None:
            if end and self._window.take_all(at - len(end), len(end)) == end:
                break
            if self._is_chain(at, may_break_off=may_break_off):
                break
            at, doubtful = self.next_start(at + 1), doubtful + 1
        return at, doubtful

    def _begins_record(self, at: int) -> bool:
        try:
            return self.open(at) and self.piece().startswith(RECORD_START)
        except BadMember:
            return False

    def _is_chain(self, at: int, *, may_break_off: bool = False) -> bool:
        """Returns whether members follow one another for long enough, or to the end of the file."""
        limit, position = at + _CHAIN_BYTES, at
        try:
            while position < limit and self.open(position):
                while self.piece():
                    if self.end > limit:
                        return True
                position = self.end
        except BadMember as damage:
            return may_break_off and str(damage) == TRUNCATED_FILE and position > at
        return True
