"""Paths of Nutch's databases and segments, as tables and batches of nutbeam.

One table has what Nutch keeps in several databases. So the paths below one crawl folder mean one table:

* ``X/crawldb``, ``X/linkdb``, ``X/hostdb``, ``X/webgraphdb`` and ``X/segments`` mean the table ``X``.
* ``X/segments/NAME`` means the batch ``NAME`` of the table ``X``.
* Without a folder before them, they mean the table ``crawldb``.
"""

import os
import re
from pathlib import Path
from typing import NamedTuple

from ...io.storage.file_errors import NoTable
from ...io.table.opening import open_table
from ...web.base.errors import UserError
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


def find_database(word: str) -> str | None:
    """Returns the folder of Nutch's own database or segments at a path on this machine, or None.

    It is the crawl folder, if the database is in one: that has all there is to import.
    """
    path = Path(word)
    database = path.parent if path.name == "current" else path
    is_database = any((database / "current").glob("part-*/data"))
    is_segment = any((path / part).is_dir() for part in ("crawl_generate", "crawl_fetch"))
    has_segments = any(path.glob("*/crawl_generate")) or any(path.glob("*/crawl_fetch"))
    if not (is_database or is_segment or has_segments):
        return None
    return os.path.normpath(database.parent.parent if is_segment else database.parent)
