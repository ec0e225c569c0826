"""Reads WARC records (ISO 28500, versions 0.17 to 1.1) from a file; damage costs only its record.

A record that is compressed alone ends where its member ends. So a wrong length, a damaged member or
a broken head is not carried over to the next record.
"""

import re
from collections import Counter
from collections.abc import Collection, Iterator
from typing import IO

from .archived_records import ArchivedRecord, RecordDigests, parse_record_head
from .member_codecs import TRUNCATED_FILE, BadMember
from .members import NOWHERE, RECORD_START, MemberReader

# Reasons for which a record, or bytes between records, are left out.
BROKEN_HEAD, WRONG_LENGTH, JUNK = "broken_head", "wrong_length", "bytes_between_records"
_MAX_HEAD_BYTES = 1 << 20
_BREAKS = (b"\r", b"\n")
_END = b"\r\n\r\n"  # of a record
_INDEX = re.compile(rb"CDX |!meta |[^\s<>]+ [0-9]{14} ")  # CDX, CDXJ, and the index of one


class RecordReader:
    """Reads the records of a file, or of a part of it.

    Args:
        file: The file, which can seek.
        start: Where to begin: the position of a record, or, with ``part``, of a part.
        part: Size of the parts that a file is read in, bytes; ``start`` is a multiple of it. The parts
            of a file together read each record once. None: to read to the end of the file.
        most: How many bytes of a block to keep; None: all.
        kinds: The WARC-Types whose blocks are kept; None: all.
        checks: Whether to compare digests.
        window: How many bytes to read of the file at a time.

    Attributes:
        damages: How often something could not be read, by reason.

    >>> import io
    >>> data = b"WARC/1.0\\r\\nWARC-Type: metadata\\r\\nContent-Length: 2\\r\\n\\r\\nhi\\r\\n\\r\\n"
    >>> [(record.kind, record.block) for record in RecordReader(io.BytesIO(2 * data))]
    [('metadata', b'hi'), ('metadata', b'hi')]
    """

    def __init__(
        self,
        file: IO[bytes],
        start: int = 0,
        part: int | None = None,
        *,
        most: int | None = None,
        kinds: Collection[str] | None = None,
        checks: bool = True,
        window: int = 1 << 20,
    ) -> None:
        self._members = MemberReader(file, window)
        self._next, self._part, self._start = start, part, start
        self._most, self._kinds, self._checks = most, kinds, checks
        self.damages: Counter[str] = Counter()
        self._data = b""  # decoded, and not used yet
        self._at = 0  # position in it
        self._base = start  # position of the first of them in an uncompressed file
        self._open = False  # whether the current member may have more
        self._number = 0
        self._shares = False  # whether members have several records

    def __iter__(self) -> Iterator[ArchivedRecord]:
        if self._part:
            first = self._members.first_member(self._start, self._start + self._part)
            if first is None:
                return
            self._next = first
        while True:
            try:
                record = self._read()
            except BadMember as damage:
                self._recover(str(damage))
                continue
            if record is None:
                return
            yield record

    def read_at(self, position: int, number: int = 0, window: int = 0) -> ArchivedRecord | None:
        """Returns the record with a number in the member at a position; None if it cannot be read.

        Args:
            position: Position of the member, or of the record in a file that is not compressed.
            number: Number of the record in the member.
            window: How many bytes to read of the file at a time; 0: as before.
        """
        self._data, self._at, self._open, self._next = b"", 0, False, position
        self._members.set_window(window)
        for record in self:
            if record.offset != position or record.number > number:
                return None
            if record.number == number:
                return record
        return None

    # Bytes of members.

    def _fill(self) -> bool:
        """Gets more bytes of the current member; returns whether there were any."""
        if not self._open:
            return False
        piece = self._members.piece()
        if not piece:
            self._open, self._next = False, self._members.end
            self._shares = self._shares or self._number > 1
            return False
        self._base += self._at
        self._data, self._at = self._data[self._at :] + piece, 0
        return True

    def _advance(self) -> bool:
        """Goes on to the next member; returns whether there is one."""
        if not self._members.open(self._next):
            return False
        self._open, self._number = True, 0
        self._data, self._at, self._base = b"", 0, self._members.start
        return True

    def _recover(self, reason: str) -> None:
        """Goes on to the next member after a damaged one."""
        self.damages[reason] += 1
        self._data, self._at, self._open = b"", 0, False
        size = _size_of_record(self._members.readable_beginning(_MAX_HEAD_BYTES))
        start = self._members.start_after_damage(reason, size)
        self._next = start if start is not None else NOWHERE

    # Records.

    def _read(self) -> ArchivedRecord | None:
        """Returns the next record; None at the end."""
        while True:
            self._skip_breaks()
            if self._at == len(self._data):
                if self._is_over() or not self._advance():
                    return None
                continue
            record = self._read_record()
            if record is not None:
                return record

    def _is_over(self) -> bool:
        """Returns whether the next member is one that a later part begins with, or comes after it."""
        if self._part is None:
            return False
        position = self._members.skip_padding(self._next)
        if position < self._start + self._part or position >= NOWHERE:
            return position >= NOWHERE
        start = position // self._part * self._part
        first = self._members.first_member(start, start + self._part)
        return first is not None and first <= position

    def _skip_breaks(self) -> bool:
        """Skips the ends of lines here; returns whether there are any."""
        any_breaks = False
        while True:
            while self._data[self._at : self._at + 1] in _BREAKS:
                self._at += 1
                any_breaks = True
            if self._at < len(self._data) or not self._fill():
                return any_breaks

    def _read_record(self) -> ArchivedRecord | None:
        """Returns the record that begins here; None if it was damaged."""
        offset = self._base + self._at if self._members.is_plain else self._members.start
        head = self._take_head()
        if head is None:
            return None
        # In an uncompressed file, which may be entered anywhere, the position alone names a record.
        number = 0 if self._members.is_plain else self._number
        record = parse_record_head(head, offset, number)
        size = _size_of_block(record)
        if record is None or size is None:
            self._skip_damage(BROKEN_HEAD)
            return None
        self._number += 1
        record.size = size
        block = self._base + self._at
        if not self._take_block(record):
            if self._members.is_plain:
                self._rewind(block)
            return None
        if self._members.is_plain and not self._skip_breaks() and not self._begins_record():
            self.damages[WRONG_LENGTH] += 1
            self._rewind(block)
            return None
        self._skip_breaks()
        if self._members.is_plain:
            record.length = self._base + self._at - offset
        else:
            if self._open and not self._begins_record():
                self._skip_damage(JUNK)
            shared = self._open or record.number
            record.length = 0 if shared else self._next - offset
        return record

    def _begins_record(self) -> bool:
        """Returns whether a record begins here, or nothing is left."""
        while len(self._data) - self._at < len(RECORD_START) and self._fill():
            pass
        return self._at == len(self._data) or self._data.startswith(RECORD_START, self._at)

    def _rewind(self, position: int) -> None:
        """Goes back in an uncompressed file, to find the record after one whose length is wrong."""
        start = self._members.next_start(position)
        self._data, self._at, self._open = b"", 0, False
        self._next = start if start is not None else NOWHERE

    def _take_head(self) -> bytes | None:
        """Returns the head of a record; None if there is none, which is counted."""
        while True:
            if not self._begins_record():
                self._skip_damage(JUNK)
                return None
            end = _head_end(self._data, self._at)
            if end:
                head = self._data[self._at : end]
                self._at = end
                return head
            if len(self._data) - self._at > _MAX_HEAD_BYTES:
                self._skip_damage(BROKEN_HEAD)
                return None
            if not self._fill() and not self._fill_from_next():
                self._skip_damage(BROKEN_HEAD)
                return None

    def _fill_from_next(self) -> bool:
        """Goes on with a record in the next member, unless that begins another record."""
        if self._open or self._members.is_plain:
            return False
        data, start = self._data[self._at :], self._members.start
        try:
            if not self._members.open(self._next):
                return False
            piece = self._members.piece()
        except BadMember:
            return False
        if piece.startswith(RECORD_START):
            return False
        self._members.start = start
        self._data, self._at, self._open = data + piece, 0, True
        return True

    def _skip_damage(self, reason: str) -> None:
        """Counts damage, and goes on to what looks like the next record of this member.

        Where each record is a member of its own, the rest of the member is left out: what looks like
        a record there is the text of a page.
        """
        self.damages[reason] += 1
        if not self._shares:
            self._shares = self._members.is_plain or self._members.is_whole_file()
        while True:
            at = self._data.find(b"\n" + RECORD_START, self._at) if self._shares else -1
            if at >= 0:
                self._at = at + 1
                return
            self._at = max(self._at, len(self._data) - len(RECORD_START))
            if not self._fill():
                self._at = len(self._data)
                return

    def _take_block(self, record: ArchivedRecord) -> bool:
        """Reads the block of a record; returns whether it is whole."""
        missing, pieces, kept = record.size, list[bytes](), 0
        keeps = self._kinds is None or record.kind in self._kinds
        most = (record.size if self._most is None else self._most) if keeps else 0
        digests = RecordDigests(record) if self._checks and keeps else None
        while missing:
            if self._at == len(self._data) and not self._fill() and not self._fill_from_next():
                at_end = self._members.is_plain or not self._has_next()
                self._skip_damage(TRUNCATED_FILE if at_end else WRONG_LENGTH)
                return False
            piece = self._data[self._at : self._at + missing]
            self._at += len(piece)
            missing -= len(piece)
            if kept < most:
                pieces.append(piece[: most - kept])
                kept += len(pieces[-1])
            if digests is not None:
                digests.add(piece)
        record.block = pieces[0] if len(pieces) == 1 else b"".join(pieces)
        if digests is not None:
            record.block_is_right, record.payload_is_right = digests.compare()
        return True

    def _has_next(self) -> bool:
        try:
            return self._members.open(self._next)
        except BadMember:
            return True


def _size_of_block(record: ArchivedRecord | None) -> int | None:
    """Returns the size of a record's block, bytes; None if its head does not say it."""
    size = record.field("content-length").strip() if record else ""
    return int(size) if size.isascii() and size.isdigit() and len(size) <= 18 else None


def _size_of_record(beginning: bytes) -> int | None:
    """Returns the size of a record that begins so, bytes; None if its head is not whole."""
    end = _head_end(beginning, 0)
    size = _size_of_block(parse_record_head(beginning[:end])) if end else None
    return None if size is None else end + size + len(_END)


def _head_end(data: bytes, at: int) -> int:
    """Returns the position after the head that begins at a position; 0 if its end is not there."""
    usual = data.find(b"\n\r\n", at)
    bare = data.find(b"\n\n", at, None if usual < 0 else usual + 1)
    return bare + 2 if bare >= 0 else usual + 3 if usual >= 0 else 0


def check_beginning(file: IO[bytes]) -> None:
    """Checks that a file begins as an archive does; a damaged beginning is none of its faults.

    Raises:
        ValueError: It is no WARC file; the message says what it is, for the name of the file.
    """
    try:
        members = MemberReader(file)
        beginning = members.piece().lstrip() if members.open(0) else b""
    except BadMember:
        return
    if beginning.startswith(b"filedesc://"):
        raise ValueError("is an ARC file, from before WARC: convert it, as with warcio recompress")
    if beginning.startswith(b"PK\x03\x04"):
        raise ValueError(
            "is a ZIP file: unpack it, the WARC files of a WACZ are in its folder archive"
        )
    if _INDEX.match(beginning):
        raise ValueError(
            "is an index (CDX): give the WARC files that it names; import_warc takes it as --index"
        )
    if beginning and not beginning.startswith(RECORD_START):
        raise ValueError(f"is no WARC file, it begins with {bytes(beginning[:20])!r}")
