"""Finds the next record after damage, in members that have several records.

::

    … damaged ┊ text of a page: WARC/1.0 … ┊ WARC/1.0 head block CRLF CRLF WARC/1.0 head block …
                └ leads to no record        └ leads to the next record, and so on: a chain

Bytes of a page may look like a record: a page may be about archives, or an archive itself. So a line
that looks like the beginning of one counts only if records follow one another exactly from there on,
for longer than pages usually are or to the end; or if it names the warcinfo record that the records
before it name.
"""

from collections.abc import Collection
from typing import NamedTuple

from ..archives.member_codecs import BadMember
from ..archives.warc_records import RECORD_END
from .archived_records import ArchivedRecord, end_of_record_head, parse_record_head
from .members import RECORD_START, MemberReader

_LINE_START = b"\n" + RECORD_START
_WINDOW_BYTES = 1 << 20
_CHAIN_BYTES = 1 << 20
_HEAD_BYTES, _MAX_HEAD_BYTES = 1 << 13, 1 << 16
_OBLIGATORY = ("warc-type", "warc-record-id", "warc-date")  # ISO 28500 5.2, 5.4, 5.5
# Of a member, for all searches in it: to go back, it is decoded again from its beginning.
_MOST_DECODED = 8 << 30


class DecodedMember:
    """The decoded bytes of the current member of a reader, at any position in them.

    Positions begin with that of the member in the file; in an uncompressed file they are those in it.

    Args:
        members: The reader, which it moves in its member.

    Attributes:
        damage: The reason why the member cannot be decoded further; empty: nothing is known.
    """

    def __init__(self, members: MemberReader) -> None:
        self._members = members
        self._decoded = 0
        self.go_back()

    def go_back(self) -> None:
        """Goes back to the beginning of the member."""
        self.damage = ""
        self._data, self._at = b"", self._members.start
        if not self._members.is_plain:
            self._members.open(self._members.start)

    def take(self, at: int, size: int) -> bytes:
        """Returns the bytes at a position; fewer at the end or before damage, none after too much work."""
        if self._members.is_plain:
            return self._members.take_plain(at, size)
        if self._decoded > _MOST_DECODED:
            return b""
        self._decode(at, size)
        return self._data[at - self._at :][:size]

    def rest(self, at: int) -> bytes:
        """Returns what has been decoded from a position on; the reader's next piece follows it."""
        self._decode(at, 1)
        return self._data

    def _decode(self, at: int, size: int) -> None:
        """Gets the bytes at a position, as far as there are any, and forgets those before it."""
        if at < self._at:
            self.go_back()
        while self._at + len(self._data) < at + size:
            self._drop_before(at)
            try:
                piece = self._members.piece()
            except BadMember as damage:
                self.damage = str(damage)
                break
            if not piece:
                break
            self._decoded += len(piece)
            self._data += piece
        self._drop_before(at)

    def _drop_before(self, at: int) -> None:
        count = min(at - self._at, len(self._data))
        self._data, self._at = self._data[count:], self._at + count


class NextRecord(NamedTuple):
    """What follows damage.

    Attributes:
        start: Where the next record begins; None if there is none.
        line: The end of a line that is followed by what may be the beginning of a record; None: there is none.
        doubtful: Number of records before it that may be the text of a page.
    """

    start: int | None
    line: int | None
    doubtful: int


def find_next_record(member: DecodedMember, after: int, warcinfo: str) -> NextRecord:
    """Finds the first record after damage.

    Args:
        member: The member.
        after: Where to begin.
        warcinfo: What the records before name as their warcinfo record; empty: nothing.
    """
    of_pages = set[int]()
    at = line = _find_line(member, after)
    while at is not None:
        start = at + 1
        if start not in of_pages:
            chain = _chain_from(member, start, warcinfo, of_pages)
            if chain is None:
                return NextRecord(start, line, len(of_pages))
            of_pages.update(chain)
        at = _find_line(member, start)
    return NextRecord(None, line, len(of_pages))


def _find_line(member: DecodedMember, at: int) -> int | None:
    while len(data := member.take(at, _WINDOW_BYTES)) > len(_LINE_START):
        offset = data.find(_LINE_START)
        if offset >= 0:
            return at + offset
        at += len(data) - len(_LINE_START) + 1
    return None


def _chain_from(
    member: DecodedMember, start: int, warcinfo: str, of_pages: Collection[int]
) -> list[int] | None:
    """Returns where the records of a page begin that follow one another; None: they are of no page."""
    chain, at = list[int](), start
    while True:
        record, end = _record_at(member, at)
        if record is None or at in of_pages:
            return chain
        if warcinfo and record.field("warc-warcinfo-id") == warcinfo:
            return None
        chain.append(at)
        if not member.take(end - 1, 1):  # it is longer than the member
            return chain
        following = member.take(end, len(RECORD_END) + 1)
        is_end = len(following) <= len(RECORD_END) and not following.strip(b"\r\n")
        if is_end or end - start > _CHAIN_BYTES:
            return None
        if not following.startswith(RECORD_END):
            return chain
        at = end + len(RECORD_END)


def _record_at(member: DecodedMember, at: int) -> tuple[ArchivedRecord | None, int]:
    """Returns the head that begins at a position, or None, and where its block ends."""
    data = member.take(at, _HEAD_BYTES)
    if not data.startswith(RECORD_START):
        return None, at
    length = end_of_record_head(data)
    if not length:
        data = member.take(at, _MAX_HEAD_BYTES)
        length = end_of_record_head(data)
    record = parse_record_head(data[:length])
    if record is None or record.declared_size is None or not all(map(record.field, _OBLIGATORY)):
        return None, at
    return record, at + length + record.declared_size
