"""Paths of Nutch's databases and segments, as tables and batches of nutbeam.

One table has what Nutch keeps in several databases. So the paths below one crawl folder mean one table:

* ``X/crawldb``, ``X/linkdb``, ``X/hostdb``, ``X/webgraphdb`` and ``X/segments`` mean the table ``X``.
* ``X/segments/NAME`` means the batch ``NAME`` of the table ``X``.
* Without a folder before them, they mean the table ``crawldb``.
"""

import re
import shlex
from pathlib import Path
from typing import NamedTuple

from ...io.nutch.nutch_sources import SEGMENT_PARTS
from ...io.storage.file_errors import NoTable
from ...io.storage.place_addresses import place_of
from ...io.storage.places import Place
from ...io.table.opening import open_table
from ...web.base.errors import UserError
from ...web.base.wording import quote_value
from ...web.rule_files.rule_files import entries
from ..base.command import is_page
from ..batch_tools.batch_addresses import split_address

# The table of the databases that are in no folder.
BARE_TABLE = "crawldb"
_DATABASES = "crawldb|linkdb|hostdb|webgraphdb|webgraph"
_PATH = re.compile(
    rf"(?P<folder>(?:[a-z][a-z0-9+.-]*://[^/]*/*)?(?:.*/)?)"
    rf"(?:(?:{_DATABASES})(?:/+current)?|segments(?:/+(?P<batch>[^/]+))?)/*"
)
# A segment in a folder of another name.
_SEGMENT = re.compile(r"(?P<folder>.+?)(?<!batches)/+(?P<batch>\d{14})/*")
_AUTHORITY = re.compile(r"[a-z][a-z0-9+.-]*://[^/]*/*|/+|(\./+)*")
_ALL = "*"
_LOOKED_INTO = 20  # folders, of many that may be segments
_HEAD = 1 << 14  # of a file of seeds, characters


class NutchPath(NamedTuple):
    """What a path of Nutch means.

    Attributes:
        table: Address of the table.
        batch: Id of the batch; empty for the whole table.
    """

    table: str
    batch: str = ""

    @property
    def batches(self) -> str:
        """The address of the batch, or of all batches of the table."""
        return f"{self.table}/batches{'/' * bool(self.batch)}{self.batch}"


def read_nutch_path(word: str) -> NutchPath | None:
    """Returns what a path of one of Nutch's databases means; None for another word.

    >>> read_nutch_path("crawl/crawldb/"), read_nutch_path("/data/crawl/segments/20261129081500")
    (NutchPath(table='crawl', batch=''), NutchPath(table='/data/crawl', batch='20261129081500'))
    >>> read_nutch_path("./linkdb"), read_nutch_path("hdfs://node:8020/segments/2026")
    (NutchPath(table='crawldb', batch=''), NutchPath(table='hdfs://node:8020/crawldb', batch='2026'))
    >>> read_nutch_path("segs/20261129081500"), read_nutch_path("crawl/segments/*")
    (NutchPath(table='segs', batch='20261129081500'), NutchPath(table='crawl', batch=''))
    >>> read_nutch_path("mine"), read_nutch_path("http://a.org/segments"), read_nutch_path("bigtable://p/i/crawldb")
    (None, None, None)
    """
    if word.lower().startswith(("http://", "https://", "file://")):
        return None
    if word.startswith("bigtable://") and word.rstrip("/").count("/") < 5:
        return None  # it is the name of a table
    match = _PATH.fullmatch(word) or _SEGMENT.fullmatch(word)
    if match is None:
        return None
    folder, batch = match["folder"], match["batch"] or ""
    bare = _AUTHORITY.fullmatch(folder)
    table = f"{folder.removeprefix('./')}{BARE_TABLE}" if bare else folder.rstrip("/")
    return NutchPath(table, "" if batch == _ALL else batch)


def read_table_path(word: str) -> NutchPath:
    """Returns the table of a word, and its batch, if it is a path of Nutch or ``TABLE/batches/ID``.

    A table that has such a path as its own address stays what it is.
    """
    path = read_nutch_path(word)
    if path is None:
        table, batch = split_address(word)
        return NutchPath(table, batch or "")
    if path.table != word and is_table(word):
        return NutchPath(word)
    return path


def is_table(address: str) -> bool:
    """Returns whether a table is at an address."""
    try:
        return open_table(address).latest_snapshot() > 0
    except (UserError, NoTable, OSError):  # the command itself says why
        return False


def explain_folder(word: str) -> str:
    """Returns what a folder of Nutch is, and what imports it; empty for another folder.

    In a store it sends a few requests: call it when there is no table.

    Args:
        word: An address, here or in a store: a crawl, a database or segments, or one below them.
    """
    try:
        kind, folder = _kind_and_crawl(place_of(word.rstrip("*")))
    except (UserError, OSError):  # the command itself says why it cannot be read
        return ""
    crawl = shlex.quote(str(folder))
    return f"{quote_value(word)} is a {kind} of Nutch: nutbeam import_nutch TABLE {crawl}" * bool(
        kind
    )


def _kind_and_crawl(place: Place) -> tuple[str, Place]:
    """Returns what a place is, and the crawl folder that has all there is to import; or an empty text."""
    if place.name in ("current", *SEGMENT_PARTS):
        place = place.parent
    if _is_database(place / "crawldb") or _has_segments(place / "segments"):
        return "crawl", place
    if _is_segment(place):
        return "database", place.parent.parent
    return "database" * (_is_database(place) or _has_segments(place)), place.parent


def _is_database(place: Place) -> bool:
    current = place / "current"
    return any("data" in _names_in(current / name) for name in _names_in(current, "part-"))


def _is_segment(place: Place) -> bool:
    return not {"crawl_generate", "crawl_fetch"}.isdisjoint(_names_in(place))


def _has_segments(place: Place) -> bool:
    return any(_is_segment(place / name) for name in _names_in(place)[:_LOOKED_INTO])


def _names_in(place: Place, begin: str = "") -> list[str]:
    """Returns the names in a folder that have a prefix; none for a file."""
    try:
        return [name for name in place.names_and_versions() if name.startswith(begin)]
    except NotADirectoryError:
        return []


def explain_seeds(word: str, command: str) -> str:
    """Returns that the table is missing if a folder on this machine has seeds; else an empty text.

    Args:
        word: What stands in the place of the table.
        command: Our command.
    """
    folder = Path(word)
    files = sorted(file for file in folder.glob("*") if not file.name.startswith("."))
    if not files or not all(map(_begins_with_seed, files)):
        return ""
    reader = command if command == "crawl" else "inject"
    return (
        f"the table is missing: {quote_value(word)} is a folder of seeds; nutbeam {reader} TABLE "
        f"{shlex.quote(word)}"
    )


def _begins_with_seed(file: Path) -> bool:
    """Returns whether the first line of a file that is no comment is a URL."""
    if not file.is_file():
        return False
    try:
        with file.open(encoding="utf-8", errors="replace") as lines:
            first = next(entries(lines.read(_HEAD)), (0, ""))
    except OSError:
        return False
    return is_page(first[1])
