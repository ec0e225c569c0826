"""Parses folder listings of FTP servers: MLSD (RFC 3659), and LIST as of Unix and Windows."""

import re
from collections.abc import Iterator

from .index_page import Entry

_MAX_LINE = 4096
# drwxr-xr-x 2 owner group 4096 Jan  1 12:00 name; some servers leave owner or group out.
_UNIX = re.compile(
    rb"([-dl])[-a-zA-Z]{9}[-+.@]?[ ]+[0-9]+[ ]+(?:[^ ]+[ ]+){0,2}([0-9]{1,18})[ ]+"
    rb"([A-Za-z]{3}[ ]+[0-9]{1,2}[ ]+[0-9:]{4,5})[ ](.+)",
    re.DOTALL,
)
# 01-31-26  12:00PM  <DIR>  name
_WINDOWS = re.compile(
    rb"([0-9-]{8,10}[ ]+[0-9]{1,2}:[0-9]{2}(?:[AP]M)?)[ ]+(<DIR>|[0-9]{1,18})[ ]+(.+)", re.DOTALL
)
# No name may contain these: they would change the path, or end the command.
_NO_NAME = re.compile(rb"[\x00\r\n/]")


def read_mlsd(data: bytes) -> Iterator[Entry]:
    """Yields the entries of an MLSD listing; other lines are skipped.

    >>> list(read_mlsd(b"type=dir;modify=20260102030405; a b\\r\\ntype=cdir; .\\r\\n"))
    [Entry(name=b'a b', folder=True, size=None, changed='20260102030405')]
    """
    for line in _lines(data):
        facts, space, name = line.partition(b" ")
        parts = (fact.partition(b"=") for fact in facts.split(b";"))
        known = {fact.lower(): value for fact, _, value in parts}
        kind = known.get(b"type", b"").lower()
        if not space or not _is_name(name) or kind in (b"cdir", b"pdir", b""):
            continue
        digits, changed = known.get(b"size", b""), known.get(b"modify", b"").decode("latin-1")
        size = int(digits) if digits.isdigit() and len(digits) <= 18 else None
        yield Entry(name, kind == b"dir", size, changed)


def read_list(data: bytes) -> Iterator[Entry]:
    """Yields the entries of a LIST listing; other lines are skipped.

    >>> line = b"lrwxrwxrwx 1 ftp ftp 7 Jan  1  2026 a -> b c"
    >>> list(read_list(line))
    [Entry(name=b'a', folder=False, size=7, changed='Jan  1  2026')]
    """
    for line in _lines(data):
        unix = _UNIX.fullmatch(line)
        windows = None if unix else _WINDOWS.fullmatch(line)
        if unix:
            name = unix[4].partition(b" -> ")[0] if unix[1] == b"l" else unix[4]
            entry = Entry(name, unix[1] == b"d", int(unix[2]), unix[3].decode())
        elif windows:
            folder = windows[2] == b"<DIR>"
            size = None if folder else int(windows[2])
            entry = Entry(windows[3], folder, size, windows[1].decode())
        else:
            continue
        if _is_name(entry.name):
            yield entry


def _lines(data: bytes) -> Iterator[bytes]:
    start = 0
    while start < len(data):
        end = data.find(b"\n", start)
        end = len(data) if end < 0 else end
        if end - start <= _MAX_LINE:
            yield data[start:end].removesuffix(b"\r")
        start = end + 1


def _is_name(name: bytes) -> bool:
    return name not in (b"", b".", b"..") and not _NO_NAME.search(name)
