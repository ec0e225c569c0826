"""Reads rule files: lines with their numbers, sorted names, a cache of files."""

import functools
import os
import pathlib
import re
from collections.abc import Iterable, Iterator
from typing import NamedTuple

import polars as pl

from ..base.columns import zeros

# Not splitlines(): it also cuts at characters that a pattern may hold.
_END = re.compile(r"\r\n|\r|\n")


def lines_of(text: str) -> list[str]:
    """Returns the lines of a file, without a byte order mark.

    >>> lines_of("a\\r\\nb\\n")
    ['a', 'b', '']
    """
    return _END.split(text.removeprefix("\ufeff"))


def entries(text: str) -> Iterator[tuple[int, str]]:
    """Yields (line number from 1, line without space around it) of lines that say something.

    Empty lines and those that begin with ``#`` do not.

    >>> list(entries("# hosts\\n\\n a \\n"))
    [(3, 'a')]
    """
    for number, line in enumerate(lines_of(text), start=1):
        line = line.strip()
        if line and not line.startswith("#"):
            yield number, line


def line_at(text: str, number: int) -> str:
    """Returns a line of a file by its number from 1, without space around it."""
    return _lines(text)[number - 1].strip()


@functools.lru_cache(maxsize=16)
def _lines(text: str) -> list[str]:
    return lines_of(text)


class RuleFile(NamedTuple):
    """A file of rules.

    Attributes:
        name: Its name in messages and counts.
        text: Its text; empty for XML.
        xml: Bytes of XML, which says itself how they are to be read.
        source: Which file it is: its path, or that it is built in.
    """

    name: str
    text: str = ""
    xml: bytes = b""
    source: str = ""


def read_rules(
    path: str | pathlib.Path, name: str = "", source: str = "", xml: bool = False
) -> RuleFile:
    """Returns a file of rules; one that has not changed is not read again.

    Args:
        path: Where it is.
        name: Its name in messages; the path by default.
        source: Name of the file to report in place of its path.
        xml: Whether it is XML.

    Raises:
        ValueError: It cannot be read, or is neither XML nor UTF-8 text.
    """
    try:
        known = os.stat(path)  # noqa: PTH116 - path may be either
        return _read(str(path), known.st_mtime_ns, known.st_size, name, source, xml)
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or "it is not utf-8 text"
        raise ValueError(
            f"a file of url rules must be readable, got {str(path)!r}: {why}"
        ) from error


@functools.lru_cache(maxsize=64)
def _read(path: str, changed: int, size: int, name: str, source: str, xml: bool) -> RuleFile:
    data = pathlib.Path(path).read_bytes()
    text = "" if xml else data.decode()
    return RuleFile(name or path, text, data if xml else b"", source or path)


class NameLines:
    """Many names, each with the number of its line; looked up by binary search.

    A million of them take some 30 MB, and a column of URLs is looked up at once.

    Args:
        names: (name, line number), any order; of equal names the first line counts.

    >>> table = NameLines([("org", 1), ("be", 3), ("org", 7)])
    >>> table.line("org"), table.line("com"), len(table)
    (1, 0, 2)
    """

    def __init__(self, names: Iterable[tuple[str, int]]) -> None:
        pairs = list(names)
        frame = pl.DataFrame(
            {"name": [name for name, _ in pairs], "line": [line for _, line in pairs]},
            schema={"name": pl.String, "line": pl.UInt32},
        )
        frame = frame.sort("name", "line").unique("name", keep="first", maintain_order=True)
        self._names, self._lines = frame.get_column("name"), frame.get_column("line")

    def __len__(self) -> int:
        return len(self._names)

    def line(self, name: str) -> int:
        """Returns the line of a name; 0 where it is not there."""
        return int(self.lines(pl.Series([name], dtype=pl.String)).item())

    def lines(self, names: pl.Series) -> pl.Series:
        """Returns the line of each name, 0 where it is not there, or null."""
        if not len(self):
            return zeros(len(names)).alias("line")
        at = self._names.search_sorted(names.fill_null(""), side="left")
        return self._taken(pl.Series(at), names, equal=True)

    def prefix_lines(self, texts: pl.Series) -> pl.Series:
        """Returns the line of the name that each text begins with, 0 where none does.

        The names must be free of such as begin with another; see ``without_longer``.
        """
        if not len(self):
            return zeros(len(texts)).alias("line")
        # What a text begins with is the last name that is not greater than it.
        at = pl.Series(self._names.search_sorted(texts.fill_null(""), side="right")).cast(pl.Int64)
        return self._taken(at - 1, texts, equal=False)

    def _taken(self, at: pl.Series, texts: pl.Series, equal: bool) -> pl.Series:
        inside = (at >= 0) & (at < len(self))
        index = at.cast(pl.Int64).clip(0, len(self) - 1)
        frame = pl.DataFrame(
            {
                "text": texts,
                "name": self._names.gather(index),
                "line": self._lines.gather(index),
                "inside": inside,
            }
        )
        same = (
            pl.col("text") == pl.col("name")
            if equal
            else pl.col("text").str.starts_with(pl.col("name"))
        )
        found = pl.when((pl.col("inside") & same).fill_null(False)).then("line").otherwise(0)
        return frame.select(found.cast(pl.UInt32).alias("line")).to_series()


def without_longer(names: Iterable[tuple[str, int]]) -> list[tuple[str, int]]:
    """Leaves out names that begin with another one, which decides before them.

    >>> without_longer([("http://a", 1), ("http:", 2), ("ftp:", 3), ("http:", 4)])
    [('ftp:', 3), ('http:', 2)]
    """
    kept: list[tuple[str, int]] = []
    for name, line in sorted(names):
        if not kept or not name.startswith(kept[-1][0]):
            kept.append((name, line))
    return kept
