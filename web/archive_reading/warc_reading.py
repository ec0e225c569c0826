"""Reads WARC records (ISO 28500, versions 0.17 to 1.1) from a file; damage costs only its record.

A record that is compressed alone ends where its member ends. So a wrong length, a damaged member or
a broken head is not carried over to the next record.
"""

import re
from collections import Counter
from collections.abc import Collection, Iterator
from typing import IO

from ..archives.member_codecs import TRUNCATED_FILE, BadMember, is_compressed
from ..archives.warc_records import RECORD_END
from .archived_records import (
    ArchivedRecord,
    RecordDigests,
    end_of_record_head,
    parse_record_head,
    size_of_record,
)
from .members import NOWHERE, RECORD_START, MemberReader
from .next_record import DecodedMember, NextRecord, find_next_record

# Reasons for which a record, or bytes between records, are left out.
BROKEN_HEAD, WRONG_LENGTH, JUNK = "broken_head", "wrong_length", "bytes_between_records"
DOUBTFUL = "doubtful_record"
_MAX_HEAD_BYTES = 1 << 20
_BREAKS = (b"\r", b"\n")
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
        self._is_joined = False  # whether the current one continues a record of the one before
        self._member: DecodedMember | None = None  # the current one, once it has damage
        self._warcinfo = ""  # what the last record names as its warcinfo record

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
        self._shares = self._shares or number > 0
        for record in self:
            if record.offset != position or record.number > number:
                return None
            if record.number == number:
                return record
        return None

    def read_before(self, position: int, most: int) -> ArchivedRecord | None:
        """Returns the last record that begins before a position, and not more than some bytes before it.

        None if there is none that is compressed alone.
        """
        start = self._members.first_member(max(0, position - most), position)
        if start is None or self._members.is_plain:
            return None
        self._next, last = start, None
        for record in self:
            if record.offset >= position:
                break
            last = record
        return last

    def read_after_part(self) -> ArchivedRecord | None:
        """Returns the record after the part, which has been read; None if there is none without damage."""
        self._part = None
        try:
            return self._read()
        except BadMember:
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
        self._open, self._number, self._is_joined, self._member = True, 0, False, None
        self._data, self._at, self._base = b"", 0, self._members.start
        if not self._members.is_plain:  # so that each member is read as if it were alone
            self._warcinfo = ""
        return True

    def _recover(self, reason: str) -> None:
        """Goes on to the next member after a damaged one."""
        self.damages[reason] += 1
        self._data, self._at, self._open = b"", 0, False
        size = size_of_record(self._members.readable_beginning(_MAX_HEAD_BYTES))
        start, doubtful = self._members.start_after_damage(reason, size)
        self._count_doubtful(doubtful)
        self._next = start if start is not None else NOWHERE

    def _count_doubtful(self, number: int) -> None:
        if number:
            self.damages[DOUBTFUL] += number

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

    def _skip_breaks(self) -> None:
        """Skips the ends of lines here."""
        while True:
            while self._data[self._at : self._at + 1] in _BREAKS:
                self._at += 1
            if self._at < len(self._data) or not self._fill():
                return

    def _read_record(self) -> ArchivedRecord | None:
        """Returns the record that begins here; None if it was damaged."""
        start = self._position
        offset = start if self._members.is_plain else self._members.start
        head = self._take_head()
        if head is None:
            return None
        # In an uncompressed file, which may be entered anywhere, the position alone names a record.
        number = 0 if self._members.is_plain else self._number
        record = parse_record_head(head, offset, number)
        if record is None or record.declared_size is None:
            self._skip_damage(BROKEN_HEAD, start)
            return None
        self._number += 1
        record.size = record.declared_size
        block = self._position
        if not self._take_block(record):
            return None
        ends = self._begins(RECORD_END)
        self._skip_breaks()
        if self._members.is_plain:
            record.length = self._position - offset
        else:
            shared = self._open or record.number
            record.length = 0 if shared else self._next - offset
        if not self._begins_record():
            if record.block_is_right or (ends and record.block_is_right is None):
                self._skip_damage(JUNK, self._position)
            elif not self._mark_cut(record, block):
                return None
        self._warcinfo = record.field("warc-warcinfo-id")
        return record

    @property
    def _position(self) -> int:
        """Position in an uncompressed file, or, with that of the member added, in the decoded member."""
        return self._base + self._at

    def _begins(self, data: bytes) -> bool:
        """Returns whether some bytes are here."""
        while len(self._data) - self._at < len(data) and self._fill():
            pass
        return self._data.startswith(data, self._at)

    def _begins_record(self) -> bool:
        """Returns whether a record begins here, or nothing is left."""
        return self._begins(RECORD_START) or self._at == len(self._data)

    def _mark_cut(self, record: ArchivedRecord, block: int) -> bool:
        """Skips what follows a record whose length is wrong; returns whether it is too short.

        If it is too long, the block has bytes of other records.
        """
        following = self._skip_damage(WRONG_LENGTH, block)
        record.is_cut, record.length = True, 0
        line = following.line if following else None
        return line is None or line >= block + record.size

    def _take_head(self) -> bytes | None:
        """Returns the head of a record; None if there is none, which is counted."""
        while True:
            if not self._begins_record():
                self._skip_damage(JUNK, self._position)
                return None
            end = end_of_record_head(self._data, self._at)
            if end:
                head = self._data[self._at : end]
                self._at = end
                return head
            too_long = len(self._data) - self._at > _MAX_HEAD_BYTES
            if too_long or not (self._fill() or self._fill_from_next()):
                self._skip_damage(BROKEN_HEAD, self._position)
                return None

    def _fill_from_next(self) -> bool:
        """Goes on with a record in the next member, unless that begins another record."""
        if self._open or self._members.is_plain:
            return False
        data, start = self._data[self._at :], self._members.start
        try:
            piece = self._members.piece() if self._members.open(self._next) else RECORD_START
        except BadMember:
            return False
        finally:
            self._members.start = start
        if piece.startswith(RECORD_START):
            return False
        self._data, self._at, self._open = data + piece, 0, True
        self._is_joined = True
        return True

    def _skip_damage(self, reason: str, position: int) -> NextRecord | None:
        """Counts damage, and goes on to the next record of this member; see ``_find_next``.

        Where each record is a member of its own, the rest of the member is left out: what looks like
        a record there is the text of a page.
        """
        self.damages[reason] += 1
        return self._find_next(position)

    def _find_next(self, position: int) -> NextRecord | None:
        """Goes on to the next record of this member after a position, or to the end of the member.

        Returns:
            What was found; None: records are members of their own.
        """
        if not self._shares:
            self._shares = self._members.is_plain or self._members.is_whole_file()
        following = None
        if self._shares and not self._is_joined:
            member = self._member = self._member or DecodedMember(self._members)
            member.go_back()
            following = find_next_record(member, position, self._warcinfo)
            start = following.start
            self._count_doubtful(following.doubtful)
            self._data, self._at, self._open = b"", 0, not self._members.is_plain
            if self._members.is_plain:
                self._next = NOWHERE if start is None else start
                return following
            if start is not None:
                self._data, self._base = member.rest(start), start
                return following
            if member.damage:
                raise BadMember(member.damage)
        while self._fill():
            self._at = len(self._data)
        self._at = len(self._data)
        return following

    def _take_block(self, record: ArchivedRecord) -> bool:
        """Reads the block of a record; returns whether it is whole."""
        block, missing, pieces, kept = self._position, record.size, list[bytes](), 0
        keeps = self._kinds is None or record.kind in self._kinds
        most = (record.size if self._most is None else self._most) if keeps else 0
        digests = RecordDigests(record) if self._checks and keeps else None
        while missing:
            if self._at == len(self._data) and not self._fill() and not self._fill_from_next():
                at_end = self._members.is_plain or not self._has_next()
                following = self._find_next(block)
                breaks_off = at_end and (following is None or following.start is None)
                self.damages[TRUNCATED_FILE if breaks_off else WRONG_LENGTH] += 1
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
        start = self._members.start
        try:
            return self._members.open(self._next)
        except BadMember:
            return True
        finally:
            self._members.start = start


def check_beginning(file: IO[bytes], *, is_named: bool = False) -> None:
    """Checks that a file begins as an archive does; a damaged beginning is none of its faults.

    Args:
        file: The file, at its beginning.
        is_named: Whether its name is that of an archive. Then it is one if it has any record.

    Raises:
        ValueError: It is no WARC file; the message says what it is, for the name of the file.
    """
    raw = file.read(20)
    try:
        members = MemberReader(file)
        beginning = members.piece().lstrip() if members.open(0) else b""
    except BadMember:
        if is_compressed(raw):
            return
        beginning = raw
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
        if is_named and next(iter(RecordReader(file, most=0, checks=False)), None) is not None:
            return
        raise ValueError(f"is no WARC file, it begins with {bytes(beginning[:20])!r}")
