"""Writes tablets: rows in key order into files of about ``tablet_rows``, cut between hosts."""

import contextlib

import polars as pl
import pyarrow as pa

from ...policy.components.declaration import Kind
from ...policy.components.kinds import kind_of
from ..storage.files import new_name
from ..storage.parquet_files import ParquetWriter
from ..storage.places import Folder
from ..storage.table_sizes import table_sizes
from .file_lists import FILE_LIST, STORED_NAMES, DataFile, close_file
from .tablets import ROW_NUMBER, host_start, run_schema

# Columns whose values rarely repeat.
PLAIN = frozenset(
    {"key", "fetch_time", "last_fetch_time", "modified_time", "etag", "last_modified", "score",
     "cash", "signature", "simhash", "robots_text", "last_request_time", ROW_NUMBER}
)  # fmt: skip


class TabletWriter(contextlib.AbstractContextManager["TabletWriter"]):
    """Writes rows in key order into files of about ``tablet_rows`` (see ``TableSizes``), cut between hosts.

    A host is in one file, unless it is larger than a tablet. To complete its last
    host, a file may have up to twice as many rows.

    Attributes:
        place: Component of the files.
    """

    def __init__(self, root: Folder, place: str, schema: pa.Schema) -> None:
        self.place = place
        self._kind = kind_of(place)
        self._root = root
        self._schema = schema
        self._writer: ParquetWriter | None = None
        self._rows = 0  # number of rows in the present file
        self._pending: list[pl.DataFrame] = []  # rows that are not written yet
        self._zones: list[dict[str, object]] = []
        self._files: list[DataFile] = []
        self._host = ""  # ``host_start`` of the last row
        self._host_rows = 0  # number of its rows so far, in all files

    def write(self, rows: pl.DataFrame) -> None:
        """Appends rows; their keys must be larger than all keys written before."""
        while len(rows):
            cut, complete = self._cut(rows.get_column("key"))
            if cut:
                self._append(rows.head(cut))
            if complete:
                self._finish()
            rows = rows.slice(cut)

    def _cut(self, keys: pl.Series) -> tuple[int, bool]:
        """Returns (number of rows for the present file, whether it is complete then)."""
        tablet_rows = table_sizes().tablet_rows
        room = tablet_rows - self._rows
        new_host = host_start(keys[0]) != self._host
        if len(keys) <= room:
            return len(keys), False
        if room <= 0 and new_host:
            return 0, True
        if room > 0:
            start = int(keys.search_sorted(host_start(keys[room]), side="left"))
            if start or (self._rows and new_host):
                return start, True
        # One host fills the remaining space. It began in earlier rows, or in these.
        host_rows = 0 if new_host else self._host_rows
        most = max(room, tablet_rows - host_rows, 0)
        end = _host_end(keys)
        return (end, end < len(keys)) if end <= most else (most, True)

    def close(self) -> list[DataFile]:
        """Completes the last file; returns the descriptions of all files."""
        self._finish()
        return self._files

    def __exit__(self, *_: object) -> None:
        """Removes an incomplete file."""
        if self._writer is not None:
            self._writer.abandon()
            self._writer, self._rows, self._pending = None, 0, []

    def _append(self, rows: pl.DataFrame) -> None:
        if self._writer is None:
            path = self._root / self.place / new_name()
            self._writer = ParquetWriter(path, self._schema, PLAIN)
            self._zones = []
        self._rows += len(rows)
        self._pending.append(rows)
        self._zones.append(zone(rows, self._kind))
        # Full row groups only: otherwise each rewrite would make more and smaller groups.
        waiting = sum(len(part) for part in self._pending)
        size = table_sizes().row_group_rows
        if waiting >= size:
            together = pl.concat(self._pending)
            cut = waiting - waiting % size
            self._writer.write(together.head(cut))
            self._pending = [together.slice(cut)]
        keys = rows.get_column("key")
        host = host_start(keys[-1])
        of_host = len(keys) - int(keys.search_sorted(host, side="left"))
        self._host_rows = of_host + (self._host_rows if host == self._host else 0)
        self._host = host

    def _finish(self) -> None:
        if self._writer is None:
            return
        writer, self._writer = self._writer, None
        with writer:
            rest = pl.concat(self._pending)
            if len(rest):
                writer.write(rest)
            self._rows, self._pending = 0, []
            # Host counts of one tablet after the other are not in order: a:http is after a1:http.
            merged = pl.DataFrame(self._zones, schema=_ZONE).select(
                pl.min("first", "min_time"),
                pl.max("last", "max_time", "max_score"),
                pl.col("statuses").bitwise_or(),
            )
            self._files.append(close_file(self._root, writer, **merged.row(0, named=True)))


def write_run(
    root: Folder, component: str, base: DataFile, rows: pl.DataFrame, fresh: int, order: int
) -> DataFile:
    """Writes a run; returns its description.

    Args:
        root: The table's folder.
        component: Name of the component.
        base: The base of the run.
        rows: Its rows in key order, with their numbers.
        fresh: Number of rows that neither the base nor older runs have.
        order: Number of the snapshot that it makes; the newest run's rows count.
    """
    path = root / component / new_name()
    with ParquetWriter(path, run_schema(component), PLAIN) as writer:
        writer.write(rows)
        zone_map = zone(rows, kind_of(component))
        return close_file(root, writer, base=base.path, order=order, fresh=fresh, **zone_map)


_ZONE = {
    name: FILE_LIST[STORED_NAMES.get(name, name)]
    for name in ("first", "last", "min_time", "max_time", "max_score", "statuses")
}


def zone(rows: pl.DataFrame, kind: Kind) -> dict[str, object]:
    """Returns the zone map of rows in key order: the range of their keys, and ``Kind.zone``."""
    keys = rows.get_column("key")
    record: dict[str, object] = {"first": keys[0], "last": keys[-1]}
    if kind.zone is None:
        return record
    times = rows.get_column(kind.zone.time)
    record |= {"min_time": times.min(), "max_time": times.max()}
    if kind.zone.score:
        record["max_score"] = rows.get_column(kind.zone.score).max()
    if kind.zone.status:
        statuses = rows.get_column(kind.zone.status).unique().drop_nulls()
        record["statuses"] = sum(1 << status for status in statuses)
    return record


def _host_end(keys: pl.Series) -> int:
    """Returns how many of the sorted keys have the same host as the first key."""
    start = host_start(keys[0])
    if not start.endswith(":"):  # the key is that of a host
        return int(keys.search_sorted(start, side="right"))
    return int(keys.search_sorted(f"{start[:-1]};", side="left"))  # ";" is the character after ":"
