"""Reads rule files: lines with their numbers, names of hosts, sorted names, XML, a cache of files."""

import functools
import os
import pathlib
import re
from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple, TypeVar
from xml.etree import ElementTree

import polars as pl

from ..base.columns import zeros
from ..urls.row_keys import BadUrl, host

_Entry = TypeVar("_Entry")
# Not splitlines(): it also splits at characters that a pattern may contain.
_END = re.compile(r"\r\n|\r|\n")
# Names in normal form. A last label that begins with a digit may belong to an IP address.
_PLAIN = re.compile(r"(?:[a-z0-9_-]++\.)*+(?![0-9])[a-z0-9_-]++")
_ADDRESS = re.compile(r"\[[0-9A-Fa-f:.]+\]")
# Characters that a URL parser would not read as part of a name.
_STRANGE = re.compile(r"[\s/\\?#@:*%<>^|\[\]]")


def lines_of(text: str) -> list[str]:
    """Returns the lines of a file, without a byte order mark.

    >>> lines_of("a\\r\\nb\\n")
    ['a', 'b', '']
    """
    return _END.split(text.removeprefix("\ufeff"))


def entries(text: str) -> Iterator[tuple[int, str]]:
    """Yields (line number from 1, stripped line) of each line with an entry.

    Skips empty lines and lines that begin with ``#``.

    >>> list(entries("# hosts\\n\\n a \\n"))
    [(3, 'a')]
    """
    for number, line in enumerate(lines_of(text), start=1):
        line = line.strip()
        if line and not line.startswith("#"):
            yield number, line


def line_at(text: str, number: int) -> str:
    """Returns a line of a file, stripped, by its number from 1."""
    return _lines(text)[number - 1].strip()


@functools.lru_cache(maxsize=16)
def _lines(text: str) -> list[str]:
    return lines_of(text)


class RuleFile(NamedTuple):
    """A file of rules.

    Attributes:
        name: Its name in messages and counts.
        text: Its text; empty for XML.
        xml: Bytes of XML, which declares its encoding.
        source: Its path, or "built-in …".
    """

    name: str
    text: str = ""
    xml: bytes = b""
    source: str = ""


def read_rule_file(
    path: str | pathlib.Path, name: str = "", source: str = "", xml: bool = False, *, flag: str = ""
) -> RuleFile:
    """Returns a file of rules; reads it again only if it has changed.

    Args:
        path: The file.
        name: Its name in messages; the path by default.
        source: The source to report instead of the path.
        xml: Whether it is XML.
        flag: The option that names it.

    Raises:
        ValueError: It cannot be read, or is neither XML nor UTF-8 text.
    """
    try:
        file_stat = os.stat(path)  # noqa: PTH116 - path may be either
        text, data = _read(str(path), file_stat.st_mtime_ns, file_stat.st_size, xml)
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or "it is not utf-8 text"
        what = (
            f"{flag} must name a file that can be read"
            if flag
            else "a file of rules must be readable"
        )
        raise ValueError(f"{what}, got {str(path)!r}: {why}") from error
    return RuleFile(name or str(path), text, data, source or str(path))


@functools.lru_cache(maxsize=64)
def _read(path: str, changed: int, size: int, xml: bool) -> tuple[str, bytes]:
    data = pathlib.Path(path).read_bytes()
    return ("", data) if xml else (data.decode(), b"")


class NameLines:
    """Names with the numbers of their lines, for binary search.

    A million names take some 30 MB. A column of texts is looked up at once.

    Args:
        names: (name, line number), any order; of equal names the first line counts.

    >>> table = NameLines([("org", 1), ("be", 3), ("org", 7)])
    >>> table.lines(pl.Series(["org", "com"])).to_list(), len(table)
    ([1, 0], 2)
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

    def lines(self, names: pl.Series) -> pl.Series:
        """Returns the line of each name; 0 for missing names and nulls."""
        at = self._names.search_sorted(names.fill_null(""), side="left")
        return self._lines_at(pl.Series(at), names, pl.col("text") == pl.col("name"))

    def prefix_lines(self, texts: pl.Series) -> pl.Series:
        """Returns the line of the name that each text begins with; 0 if there is none.

        No name may begin with another name; see ``without_longer``.
        """
        # The name that a text begins with is the last name that is not greater than the text.
        at = pl.Series(self._names.search_sorted(texts.fill_null(""), side="right")).cast(pl.Int64)
        return self._lines_at(at - 1, texts, pl.col("text").str.starts_with(pl.col("name")))

    def _lines_at(self, at: pl.Series, texts: pl.Series, fits: pl.Expr) -> pl.Series:
        """Returns the lines of the names at some places, 0 where a name does not fit its text."""
        if not len(self):
            return zeros(len(texts)).alias("line")
        inside = (at >= 0) & (at < len(self))
        index = at.cast(pl.Int64).clip(0, len(self) - 1)
        names, lines = self._names.gather(index), self._lines.gather(index)
        frame = pl.DataFrame({"text": texts, "name": names, "line": lines, "inside": inside})
        line_or_zero = pl.when((pl.col("inside") & fits).fill_null(False)).then("line").otherwise(0)
        return frame.select(line_or_zero.cast(pl.UInt32).alias("line")).to_series()


def without_longer(names: Iterable[tuple[str, int]]) -> list[tuple[str, int]]:
    """Leaves out names that begin with another name, which decides already.

    >>> without_longer([("http://a", 1), ("http:", 2), ("ftp:", 3), ("http:", 4)])
    [('ftp:', 3), ('http:', 2)]
    """
    shortest_names: list[tuple[str, int]] = []
    for name, line in sorted(names):
        if not shortest_names or not name.startswith(shortest_names[-1][0]):
            shortest_names.append((name, line))
    return shortest_names


def host_name(text: str) -> str | None:
    """Returns a host, a domain or a suffix in the form of URLs; None if it is invalid.

    That is in lower case and punycode, by the same parser (WHATWG), without a dot at the end.

    >>> host_name("B\\u00fccher.DE."), host_name("[0:0::1]"), host_name("0x7f.1")
    ('xn--bcher-kva.de', '[::1]', '127.0.0.1')
    >>> [host_name(text) for text in ("*.foo.com", ".com", "foo.com:80", "http://foo.com", "")]
    [None, None, None, None, None]
    """
    if _PLAIN.fullmatch(text):
        return text  # the frequent case, in files of a million names
    name = text.lower().removesuffix(".")
    if _PLAIN.fullmatch(name):
        return name
    if _STRANGE.search(text) and not _ADDRESS.fullmatch(text):
        return None
    try:
        name = host(f"http://{text}/").removesuffix(".")
    except BadUrl:
        return None
    return name if all(name.split(".")) else None


def pattern_name(text: str) -> str | None:
    """Returns a host, or a ``*.DOMAIN``, in the form of URLs; None if it is neither.

    >>> pattern_name("*.Foo.com"), pattern_name("*foo.com"), pattern_name("*")
    ('*.foo.com', None, None)
    """
    star = "*." if text.startswith("*.") else ""
    name = host_name(text.removeprefix(star))
    return None if name is None else f"{star}{name}"


def read_xml(file: RuleFile) -> ElementTree.Element:
    """Returns the root of a file, names without namespaces; declarations of entities are refused.

    Raises:
        ValueError: It is not XML; the message names the file and the place.

    >>> read_xml(RuleFile("a.xml", "<a><b/></a>")).tag
    'a'
    """
    if "<!ENTITY" in file.text or "<!DOCTYPE" in file.text:
        raise ValueError(f"{file.name} must be XML without a document type")
    try:
        root = ElementTree.fromstring(file.text.encode())
    except ElementTree.ParseError as error:
        raise ValueError(f"{file.name} must be XML: {error}") from None
    for element in root.iter():
        element.tag = element.tag.rpartition("}")[2]
    return root


def read_elements(
    file: RuleFile,
    tag: str,
    read: Callable[[RuleFile, ElementTree.Element], _Entry],
    faults: list[str],
) -> tuple[_Entry, ...]:
    """Returns what the elements of a file mean that have a tag.

    Args:
        file: The file, in XML.
        tag: Their tag.
        read: Returns what one means; it raises ``ValueError``.
        faults: Gets what is wrong with the file, or with elements.
    """
    read_entries = []
    try:
        elements = list(read_xml(file).iter(tag))
    except ValueError as error:
        faults.append(str(error))
        elements = []
    for number, element in enumerate(elements, 1):
        try:
            read_entries.append(read(file, element))
        except ValueError as error:
            faults.append(f"{error} ({tag} {number})")
    return tuple(read_entries)
