"""Reads lines of seeds, in any UTF, plain or packed with gzip; divides them into a URL and pieces.

The pieces are ``name=value``, as Nutch has them after tabs.

People also write comments after a URL, and spaces for tabs. What is surely meant is read; the other
lines with blanks are refused, because a blank would become part of another URL.
"""

import gzip
import io
import re
import zlib
from collections.abc import Iterable, Iterator
from typing import IO, NamedTuple

from ...policy.components.reasons import counted_reasons
from ...web.base.json_logs import without_login
from ...web.content.charset import encoding_as_declared

LONGEST_LINE = 1 << 16  # characters
BLOCK_CHARS = 8 << 20  # of the lines that are read at once
# A packed file may be larger when it is unpacked by this factor: lists of URLs shrink 3- to
# 30-fold. The first bytes are exempt, as small files of equal lines are harmless.
MOST_TIMES = 200
EXEMPT_BYTES = 100 << 20
_MAGIC = b"\x1f\x8b"
_MARK = "\ufeff"  # Windows writes it at the beginning
_BLOCK = 1 << 16
_START = 1 << 10  # bytes that show the encoding
BLANK_IN_URL = "blank_in_url"
# No URL is hurt: what comes after a # is a fragment, which is never requested.
_COMMENT = re.compile(r"\s+#.*", re.DOTALL)
_URL_START = re.compile(r"^[ \t]*(?:https?|ftp|file):/", re.IGNORECASE | re.MULTILINE)
# Blanks before a name of Nutch, in place of a tab.
_BLANKS = re.compile(r"\s+(?=nutch\.[\w.]+\s*=)")
_PIECE = re.compile(r"[^\s=]+=\S*")
# What is not part of a URL with blanks.
_OTHER_WORD = re.compile(r"^[\w.]+=|://")
# A host, and perhaps port and path, without a scheme.
_HOST = re.compile(
    r"(?://)?"
    r"((?:(?:[\w-]+\.)+[^\W\d_]{2,}|localhost|\d+(?:\.\d+){3})(?::\d+)?(?:[/?#]\S*)?)"
    r"(?:\s.*)?",
    re.DOTALL,
)
# ``http:/a.com/``, ``http:\\a.com``, ``http//a.com/``, ``http:a.com``.
_WRONG_SLASHES = re.compile(r"(https?)(?!://[^/])(?::[/\\]*|//+)([^\s/\\:]\S*)", re.IGNORECASE)
# What stands before a URL in lists, quotations and Markdown.
_WRAPPED = re.compile(
    r"(?:[-*+\u2022>|]|\d+[.)])\s+|[\"'<(`\u201c\u2018\u00ab]|\[[^\]]*\]\(|\w+\s*[:=]\s+"
)
_WEB_URL = re.compile(r"https?://[^\s<>\"'`\u201d\u2019\u00bb)\]]+", re.IGNORECASE)


def is_binary(start: bytes) -> bool:
    """Returns whether the first bytes of a file show that it is no text.

    A zero byte shows it, unless a line begins as a URL does: then only the lines with one are damaged.

    >>> is_binary("http://a.com/".encode("utf-16")), is_binary(b"\\x7fELF\\0\\0")
    (False, True)
    >>> is_binary(b"http://a.com/\\nhttp://b.com/\\0\\n")
    False
    """
    text = start.decode(_encoding_of(start), "replace")
    return "\0" in text and not _URL_START.search(text)


def _encoding_of(start: bytes) -> str:
    return encoding_as_declared(start[:_START], None)


def open_unpacked(file: IO[bytes]) -> io.BufferedReader:
    """Returns the content of a file, unpacked if it begins as gzip does; its name does not matter.

    Reading it raises an OSError if the packed data is damaged, incomplete, or grows too much.
    Closing it leaves ``file`` open.
    """
    head = file.read(len(_MAGIC)) or b""
    if len(head) == 1:
        head += file.read(1) or b""
    kind = _Gzip if head == _MAGIC else _Plain
    return io.BufferedReader(kind(file, head), _BLOCK)


class _Plain(io.RawIOBase):
    """A file whose first bytes were read already."""

    def __init__(self, file: IO[bytes], head: bytes) -> None:
        self._file, self._head, self.taken = file, head, 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        data = self._read(len(buffer))
        buffer[: len(data)] = data
        return len(data)

    def _read(self, size: int) -> bytes:
        data, self._head = self._head[:size], self._head[size:]
        data = data or self._file.read(size) or b""
        self.taken += len(data)
        return data


class _Gzip(_Plain):
    """Unpacks a file of gzip members; memory holds one block."""

    def __init__(self, file: IO[bytes], head: bytes) -> None:
        super().__init__(file, head)
        self._packed, self._made = _Plain(file, head), 0
        packed = io.BufferedReader(self._packed, _BLOCK)
        self._content = gzip.GzipFile(fileobj=packed)

    def _read(self, size: int) -> bytes:
        try:
            data = self._content.read1(size)
        except EOFError as error:
            raise OSError("its gzip data is incomplete") from error
        except (gzip.BadGzipFile, zlib.error) as error:
            raise OSError(f"its gzip data is damaged ({error})") from error
        self._made += len(data)
        if self._made > EXEMPT_BYTES + MOST_TIMES * self._packed.taken:
            raise OSError(f"its gzip data is more than {MOST_TIMES} times as large unpacked")
        return data


def lines(file: IO[bytes]) -> Iterator[str]:
    """Yields the lines of a file, each as soon as it is there; of a line that is too long only
    ``LONGEST_LINE`` characters.
    """
    with _open_text(file) as text:
        mark = _MARK
        while line := text.readline(LONGEST_LINE):
            line, mark = line.removeprefix(mark), ""
            yield line
            while len(line) == LONGEST_LINE and not line.endswith("\n"):
                line = text.readline(LONGEST_LINE)


def line_blocks(file: IO[bytes]) -> Iterator[str]:
    """Yields the text of a file, whole lines of about ``BLOCK_CHARS`` at a time, without the last end.

    Blocks are divided and judged in columns, which takes a fraction of the time of ``lines``. A line
    that is too long may have lost a part after its first ``LONGEST_LINE`` characters.
    """
    with _open_text(file) as text:
        rest, mark = "", _MARK
        while block := text.read(BLOCK_CHARS):
            whole_lines, end, rest = (rest + block.removeprefix(mark)).rpartition("\n")
            rest, mark = rest[:LONGEST_LINE], ""
            if end:
                yield whole_lines
        if rest:
            yield rest


def _open_text(file: IO[bytes]) -> io.TextIOWrapper:
    content = open_unpacked(file)
    start = content.read(_START)
    whole = io.BufferedReader(_Plain(content, start), _BLOCK)
    return io.TextIOWrapper(whole, encoding=_encoding_of(start), errors="replace")


class SeedLine(NamedTuple):
    """A line of seeds.

    Attributes:
        url: The text of the URL; None if the line is refused.
        pieces: The ``name=value`` pieces.
    """

    url: str | None
    pieces: list[str]


def divide_line(line: str, *, typed: bool = False) -> SeedLine:
    """Divides a line; a comment, with blanks and ``#`` before it, is not part of it.

    Args:
        line: A line of seeds.
        typed: Whether it is an argument of a command. The shell has kept its words together, so they
            are one URL with blanks, such as the name of a file, unless a further word is
            ``name=value`` or a URL.

    >>> divide_line("http://a.com/\\tnutch.score=2\\tcolour=dark red")
    SeedLine(url='http://a.com/', pieces=['nutch.score=2', 'colour=dark red'])
    >>> divide_line("http://a.com/ nutch.score=2 lang=en  # the start page")
    SeedLine(url='http://a.com/', pieces=['nutch.score=2', 'lang=en'])
    >>> divide_line("http://a.com/ lang=en"), divide_line("http://a.com/a page.html")
    (SeedLine(url=None, pieces=[]), SeedLine(url=None, pieces=[]))
    >>> divide_line("http://a.com/a page.html", typed=True)
    SeedLine(url='http://a.com/a page.html', pieces=[])
    """
    start, _, rest = line.strip().partition("\t")
    if comment := _COMMENT.search(start):
        start, rest = start[: comment.start()], ""
    url, *blanks = _BLANKS.split(start.strip(), maxsplit=1)
    words = blanks[0].split() if blanks else []
    if not all(map(_PIECE.fullmatch, words)) or url.split() != [url]:
        if typed and not blanks and not any(map(_OTHER_WORD.search, url.split()[1:])):
            return SeedLine(url, [])
        # Without a scheme it is no URL, whatever the blanks mean.
        return SeedLine(None if "://" in url else url, [])
    return SeedLine(url, [*words, *(_pieces_after_tab(rest) if rest else [])])


def hint_for(reason: str, line: str) -> str:
    """Returns advice for a line that was dropped; it may be empty.

    >>> hint_for("malformed", "example.com/a"), hint_for("malformed", "http:/a.com/")
    ('; write https://example.com/a', '; write http://a.com/')
    >>> hint_for("blank_in_url", "- http://a.com/"), hint_for("malformed", "[a](http://a.com/)")
    ('; write http://a.com/', '; write http://a.com/')
    """
    line = line.strip()
    if host := _HOST.fullmatch(line):
        return f"; write https://{host[1]}"
    if slashes := _WRONG_SLASHES.fullmatch(line):
        return f"; write {slashes[1].lower()}://{slashes[2]}"
    if (wrapped := _WRAPPED.match(line)) and (url := _WEB_URL.search(line, wrapped.end())):
        return f"; write {url[0]}"
    if reason == BLANK_IN_URL:
        return f"; {counted_reasons('inject dropped')[reason].advice}"
    return ""


def _pieces_after_tab(text: str) -> list[str]:
    """Returns the pieces after the first tab; a comment may be a piece, or follow a number."""
    pieces = []
    for piece in (part for field in text.split("\t") for part in _BLANKS.split(field.strip())):
        if piece.startswith("#"):
            break
        is_number = piece.startswith("nutch.")
        pieces.append(_COMMENT.sub("", piece) if is_number else piece)
    return pieces


class UrlLine(NamedTuple):
    """A line of a list of URLs.

    Attributes:
        where: Where it is, for messages.
        text: The line.
        url: The text of its URL; None if it is refused, because blanks are in it.
    """

    where: str
    text: str
    url: str | None


def typed_line(url: str) -> UrlLine:
    """Returns the line of a URL that is an argument of a command."""
    return UrlLine("seed", url, divide_line(url, typed=True).url)


def numbered_lines(name: str, stream: Iterable[str]) -> Iterator[UrlLine]:
    """Yields the lines of a stream as ``io.batches.seeds.url_lines`` does those of a file."""
    for number, line in without_comments(stream):
        yield UrlLine(f"{name}:{number}", line, divide_line(line).url)


def without_comments(stream: Iterable[str]) -> Iterator[tuple[int, str]]:
    """Yields (line number, line), without empty lines and comments."""
    for number, line in enumerate(stream, 1):
        stripped = line.strip() if len(line) < LONGEST_LINE else line
        if stripped and not stripped.startswith("#"):
            yield number, stripped


def dropped_line(where: str, reason: str, text: str) -> str:
    """Returns the message about a line that is dropped."""
    hint = without_login(hint_for(reason, text[:200]))
    return f"{where}: {reason}: {without_login(text[:200])!r}{hint}"
