"""Converts rows of the host table into host records for the fetch engine, and back.

A partition may have 100,000 hosts, and a robots.txt may have 500,000 bytes. So texts stay
compressed until they are needed, and rows are made in small tables.
"""

import bisect
import threading
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import polars as pl
import pyarrow as pa

from ...policy.components.clocks import RightTimes, set_right
from ...policy.components.schema import HOSTS, HOSTS_COLUMNS, empty
from ...web.base.clock import now_ms
from ...web.engine.tasks import HostRecord
from ...web.urls.row_keys import from_host_key, host_key
from ..table.web_table import TableRows
from ..tablets.file_lists import DataFile
from ..tablets.tablets import tablets
from .attempts import Note

_TEXT = "robots_text"
# Columns that a record has under the same names, and takes over from an earlier fetch.
_SAME = ("robots_origin", "robots_status", "robots_time", "robots_failing_since", "crawl_delay",
         "backoff_until", "backoff_level", "last_request_time", "cookies")  # fmt: skip
_COLUMNS = ("key", "sitemaps", *_SAME)
# In rows by key, the older before the newer.
_NEWEST = pl.col("key").ne_missing(pl.col("key").shift(-1))
# A host without a fetch has none.
_FINDINGS = pl.any_horizontal(pl.exclude("key").is_not_null())
_ROWS = 5_000
_GROUP_CHARS = 8 << 20


class HostRecords:
    """Host records of earlier fetches; each record is made when it is requested.

    Safe to use in any thread.

    Args:
        table: The table.
        files: Files of the host table.
        keys: The hosts (reversed).
        notes: Newer findings of other attempts, by host.
    """

    def __init__(
        self,
        table: TableRows,
        files: Sequence[DataFile],
        keys: pl.Series,
        notes: Mapping[str, Note],
    ) -> None:
        self._table, self._files, self._notes = table, files, notes
        self._texts: dict[str, bytes] = {}
        self._lock, self._read_keys = threading.Lock(), pl.Series(dtype=pl.String)
        self._rows = empty(HOSTS).select(_COLUMNS)
        self.add(keys)

    def add(self, keys: pl.Series) -> None:
        """Reads the records of more hosts (reversed)."""
        with self._lock:
            new = keys.unique().sort()
            new = new.filter(~new.is_in(self._read_keys.implode()))
            if not len(new):
                return
            self._read_keys = pl.concat([self._read_keys, new])
            rows = self._merge(self._read(new)).sort("key", maintain_order=True).filter(_NEWEST)
            # Other threads see the rows before, or all.
            self._rows, _ = set_right(HOSTS_COLUMNS, rows, RightTimes(now_ms()))

    def get(self, host: str, /) -> HostRecord | None:
        """Returns the record of a host, or None."""
        key, note = host_key(host), self._notes.get(host)
        rows = self._rows
        keys = rows.get_column("key")
        at = bisect.bisect_left(keys, key)
        record = None
        if at < len(keys) and keys[at] == key:
            packed = self._texts.get(key)
            text = zlib.decompress(packed).decode() if packed else ""
            record = _record(rows.row(at, named=True), text)
        if note is not None:  # the note is newer than the table
            record = record or HostRecord(host)
            record.crawl_delay = note.crawl_delay or record.crawl_delay
            record.backoff_until = max(note.backoff_until, record.backoff_until)
        return record

    def _merge(self, pieces: Iterable[pl.DataFrame]) -> pl.DataFrame:
        """Returns all rows but those without findings, of which a first crawl has very many."""
        parts = [self._rows]
        for rows in pieces:
            older = pl.concat(part.get_column("key") for part in parts)
            parts.append(rows.filter(_FINDINGS | pl.col("key").is_in(older.implode())))
        return pl.concat(parts)

    def _read(self, keys: pl.Series) -> Iterator[pl.DataFrame]:
        host_tablets = tablets(self._files)
        for rows in self._table.find_in_frames("hosts", host_tablets, keys, (*_COLUMNS, _TEXT)):
            self._keep(rows.select("key", _TEXT).to_arrow())
            yield rows.select(_COLUMNS)

    def _keep(self, rows: pa.Table) -> None:
        for key, text in zip(rows["key"].to_pylist(), rows[_TEXT].to_pylist(), strict=True):
            if text:
                self._texts[key] = zlib.compress(text.encode(), 1)
            else:
                self._texts.pop(key, None)


def host_tables(records: Iterable[HostRecord]) -> Iterator[pa.Table]:
    """Yields the HOSTS rows of records, in tables of bounded size."""
    rows: list[dict[str, Any]] = []
    size = 0
    for record in records:
        rows.append(_row(record))
        size += len(record.robots_text)
        if len(rows) >= _ROWS or size > _GROUP_CHARS:
            yield pa.Table.from_pylist(rows, schema=HOSTS)
            rows, size = [], 0
    if rows:
        yield pa.Table.from_pylist(rows, schema=HOSTS)


def _record(row: Mapping[str, Any], text: str) -> HostRecord:
    fields = {name: row[name] for name in _SAME if row[name] is not None}
    sitemaps = tuple((row["sitemaps"] or "").split())
    return HostRecord(from_host_key(row["key"]), robots_text=text, sitemaps=sitemaps, **fields)


def _row(record: HostRecord) -> dict[str, Any]:
    row = {name: getattr(record, name) for name in (*_SAME, _TEXT, "exceptions")}
    if record.robots_status is None:
        row |= dict.fromkeys(("robots_origin", _TEXT, "robots_time"))
    return row | {
        "key": host_key(record.host),
        "requests": sum(record.counts.values()),
        "robots_failing_since": record.robots_failing_since or None,
        "sitemaps": "\n".join(record.sitemaps) or None,
    }
