"""Tablets: a component's key space cut into ranges, each kept in its own file.

Nothing here sorts or shuffles the table: changes find their range by binary
search, and a range is rewritten row group by row group.
"""

import dataclasses
import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Protocol

import numpy as np
import polars as pl
import pyarrow as pa

from ..policy.schema import COMPONENTS, conform, empty, to_frame
from ..web.urls import host_of
from .files import ROW_GROUP_ROWS, ParquetWriter, new_name, row_groups
from .manifest import DataFile
from .places import Place, below

TABLET_ROWS = 1_000_000
# Of the changes that one worker gets for one range: a GroupByKey's values stay
# under 64 MB a key, and what a sample promises may be off by half.
RANGE_BYTES = 32 << 20
SAMPLES_PER_CHUNK = 256


@dataclasses.dataclass(frozen=True)
class Sample:
    """Where the keys of a chunk of changes lie: every so many rows one key."""

    keys: tuple[str, ...]
    bytes_per_key: float


@dataclasses.dataclass(frozen=True)
class Range:
    """Keys from ``low`` (inclusive) to ``high`` (exclusive); None is open.

    Attributes:
        base: The tablet that holds them now, or None.
        whole: Whether the range is all that the tablet answers for. Parts of
            a tablet are rewritten even if nothing changes in some of them.
    """

    low: str | None
    high: str | None
    base: DataFile | None
    whole: bool = True


@dataclasses.dataclass(frozen=True)
class Resolved:
    """What resolving changes against rows gives.

    Attributes:
        rows: All rows that the table has from now on, in key order.
        extra: Further frames by component, such as the outcome.
        counts: By counter name.
    """

    rows: pl.DataFrame
    extra: Mapping[str, pl.DataFrame] = dataclasses.field(default_factory=dict)
    counts: Mapping[str, int] = dataclasses.field(default_factory=dict)


class Resolver(Protocol):
    """Decides what changes do to the rows that they fall among."""

    def __call__(self, rows: pl.DataFrame, changes: pl.DataFrame) -> Resolved: ...


def sample_keys(chunk: pa.Table) -> Sample:
    """Returns about ``SAMPLES_PER_CHUNK`` keys that stand for the chunk's bytes."""
    keys = to_frame(chunk.select(["key"])).get_column("key").sort()
    every = max(1, len(keys) // SAMPLES_PER_CHUNK)
    taken = keys.gather_every(every).to_list()
    return Sample(tuple(taken), chunk.nbytes / max(1, len(taken)))


def plan_ranges(
    tablets: Sequence[DataFile], samples: Iterable[Sample], range_bytes: int = RANGE_BYTES
) -> list[Range]:
    """Cuts the key space where the tablets begin, and finer where changes would swamp one.

    Args:
        tablets: In key order, with disjoint ranges.
        samples: Of the changes to come.
        range_bytes: How many bytes of changes a range may get, about.

    Returns:
        Ranges in key order that cover all keys. No cut goes through a host
        that is smaller than a range.
    """
    samples = list(samples)
    keys = np.array([key for sample in samples for key in sample.keys], dtype=object)
    weights = np.array([sample.bytes_per_key for sample in samples for _ in sample.keys])
    order = np.argsort(keys, kind="stable")
    keys, weights = keys[order], weights[order]
    lows = [None, *(_low(*pair) for pair in itertools.pairwise(tablets))]
    ranges: list[Range] = []
    for at, low in enumerate(lows):
        high = lows[at + 1] if at + 1 < len(lows) else None
        base = tablets[at] if tablets else None
        start = 0 if low is None else int(np.searchsorted(keys, low))
        end = len(keys) if high is None else int(np.searchsorted(keys, high))
        cuts = _cuts(keys[start:end], weights[start:end], low, range_bytes)
        edges = [low, *cuts, high]
        ranges += [
            Range(edges[i], edges[i + 1], base, whole=not cuts) for i in range(len(edges) - 1)
        ]
    return ranges


def _cuts(keys: np.ndarray, weights: np.ndarray, low: str | None, limit: int) -> list[str]:
    last, host = low or "", ""
    cuts: list[str] = []
    filled = of_host = 0.0  # what the range holds, and of that what its last host does
    for key, weight in zip(keys, weights, strict=True):
        start = host_start(key)
        if start != host:
            host, of_host = start, 0.0
        if filled + weight > limit and of_host < filled and start > last:
            last, filled = start, of_host
            cuts.append(last)
        # A host that is larger than a range is cut itself.
        if filled and filled + weight > limit and key > last:
            last, filled, of_host = key, 0.0, 0.0
            cuts.append(last)
        filled += weight
        of_host += weight
    return cuts


def _low(before: DataFile, tablet: DataFile) -> str | None:
    """Returns where the range of a tablet begins: with its first host, if that is its alone."""
    if before.last is None or tablet.first is None:
        return tablet.first
    start = host_start(tablet.first)
    return start if before.last < start else tablet.first


def host_start(key: str) -> str:
    """Returns the smallest key of the host of ``key``.

    >>> host_start("com.foo:http/a"), host_start("[::1]:http/"), host_start("com.foo")
    ('com.foo:', '[::1]:', 'com.foo')
    """
    return key[: len(host_of(key)) + 1]


def route(keys: pl.Series, ranges: Sequence[Range]) -> pl.Series:
    """Returns the number of each key's range."""
    lows = pl.Series("low", [r.low for r in ranges[1:]], dtype=pl.String)
    return lows.search_sorted(keys, side="right").cast(pl.Int32).alias("range")


def split_by_range(chunk: pa.Table, ranges: Sequence[Range]) -> Iterator[tuple[int, pa.Table]]:
    """Cuts a chunk of changes into parts of one range each."""
    frame = to_frame(chunk)
    if len(ranges) == 1:
        yield 0, chunk
        return
    number = route(frame.get_column("key"), ranges)
    for (at,), rows in frame.with_columns(number).group_by("range"):
        yield int(str(at)), conform(rows, chunk.schema)


def resolve_range(
    root: Place,
    component: str,
    part: Range,
    changes: pl.DataFrame,
    resolver: Resolver,
    places: Mapping[str, str],
) -> Iterator[tuple[str, list[DataFile], dict[str, int]]]:
    """Rewrites one range: its rows, row group by row group, with its changes.

    Args:
        root: The table's folder.
        component: ``state`` or ``hosts``.
        part: The range.
        changes: Its changes, in any order.
        resolver: Decides.
        places: Component names of what the resolver gives besides, by its name
            for it: ``{"outcome": "batches/ID/outcome"}``.

    Yields:
        (component, new files, counts).
    """
    counts: dict[str, int] = {}
    writers = {component: TabletWriter(root, component, component)}
    try:
        for rows, some in _pairs(root, component, part, changes.sort("key", maintain_order=True)):
            resolved = resolver(rows, some) if len(some) else Resolved(rows)
            writers[component].write(resolved.rows)
            for name, frame in resolved.extra.items():
                if name not in writers:
                    writers[name] = TabletWriter(root, places[name], name)
                writers[name].write(frame)
            for name, number in resolved.counts.items():
                counts[name] = counts.get(name, 0) + number
        for name, writer in writers.items():
            yield writer.place, writer.close(), counts if name == component else {}
    except BaseException:
        for writer in writers.values():
            writer.abandon()
        raise


def _pairs(
    root: Place, component: str, part: Range, changes: pl.DataFrame
) -> Iterator[tuple[pl.DataFrame, pl.DataFrame]]:
    schema = COMPONENTS[component]
    keys = changes.get_column("key")
    done = 0
    groups: Iterable[pa.Table] = ()
    if part.base is not None:
        groups = row_groups(root / part.base.path, schema)
    for group in groups:
        rows = within(to_frame(group), part.low, part.high)
        if len(rows):
            upto = int(keys.search_sorted(rows.get_column("key")[-1], side="right"))
            yield rows, changes.slice(done, upto - done)
            done = upto
    if done < len(changes):
        yield empty(schema), changes.slice(done)


def within(rows: pl.DataFrame, low: str | None, high: str | None) -> pl.DataFrame:
    """Returns the rows, in key order, whose key is in [low, high)."""
    keys = rows.get_column("key")
    start = 0 if low is None else int(keys.search_sorted(low, side="left"))
    end = len(rows) if high is None else int(keys.search_sorted(high, side="left"))
    return rows.slice(start, end - start)


class TabletWriter:
    """Writes rows in key order into files of about ``TABLET_ROWS``, cut between hosts.

    Only a host that is larger than a tablet is cut. A file is larger than a
    tablet, up to twice as large, where its last host does not end in time.

    Attributes:
        place: Component that the files belong to.
    """

    def __init__(self, root: Place, place: str, kind: str) -> None:
        self.place = place
        self._root = root
        self._schema = COMPONENTS[kind]
        self._writer: ParquetWriter | None = None
        self._rows = 0  # of the file at hand,
        self._pending: list[pl.DataFrame] = []  # and those that are not yet written
        self._zones: list[dict[str, object]] = []
        self._files: list[DataFile] = []
        self._host = ""  # of the last row, as ``host_start`` names it
        self._host_rows = 0  # that it has so far, in all files

    def write(self, rows: pl.DataFrame) -> None:
        """Appends rows, all behind those that were written before."""
        while len(rows):
            cut, complete = self._cut(rows.get_column("key"))
            if cut:
                self._append(rows.head(cut))
            if complete:
                self._finish()
            rows = rows.slice(cut)

    def _cut(self, keys: pl.Series) -> tuple[int, bool]:
        """Returns how many rows go into the file at hand, and whether it is then complete."""
        room = TABLET_ROWS - self._rows
        new_host = host_start(keys[0]) != self._host
        if len(keys) <= room:
            return len(keys), False
        if room <= 0 and new_host:
            return 0, True
        if room > 0:
            start = int(keys.search_sorted(host_start(keys[room]), side="left"))
            if start or (self._rows and new_host):
                return start, True
        # One host fills the room. It began earlier, or here.
        known = 0 if new_host else self._host_rows
        most = max(room, TABLET_ROWS - known, 0)
        end = _host_end(keys)
        return (end, end < len(keys)) if end <= most else (most, True)

    def close(self) -> list[DataFile]:
        """Completes the last file and describes all."""
        self._finish()
        return self._files

    def abandon(self) -> None:
        """Leaves no half-written file behind."""
        if self._writer is not None:
            self._writer.__exit__(RuntimeError)
            self._writer, self._rows, self._pending = None, 0, []

    def _append(self, rows: pl.DataFrame) -> None:
        if self._writer is None:
            self._writer = ParquetWriter(self._root / self.place / new_name(), self._schema)
            self._zones = []
        self._rows += len(rows)
        self._pending.append(rows)
        self._zones.append(zone(rows))
        # Whole row groups: else each rewrite would leave more and smaller ones.
        waiting = sum(len(part) for part in self._pending)
        if waiting >= ROW_GROUP_ROWS:
            together = pl.concat(self._pending)
            cut = waiting - waiting % ROW_GROUP_ROWS
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
        rest = pl.concat(self._pending)
        if len(rest):
            writer.write(rest)
        self._rows, self._pending = 0, []
        size = writer.close()
        zones = pl.DataFrame(self._zones, schema=ZONE)
        self._files.append(
            DataFile(
                path=below(self._root, writer.path),
                rows=writer.rows,
                bytes=size,
                first=zones.get_column("first")[0],
                last=zones.get_column("last")[-1],
                min_fetch_time=zones.get_column("min_fetch_time").min(),  # type: ignore[arg-type]
                max_fetch_time=zones.get_column("max_fetch_time").max(),  # type: ignore[arg-type]
                max_score=zones.get_column("max_score").max(),  # type: ignore[arg-type]
                statuses=_union(zones.get_column("statuses")),
                crc32=writer.crc32,
            )
        )


ZONE = {
    "first": pl.String, "last": pl.String, "min_fetch_time": pl.Int64,
    "max_fetch_time": pl.Int64, "max_score": pl.Float64, "statuses": pl.Int64,
}  # fmt: skip


def zone(rows: pl.DataFrame) -> dict[str, object]:
    """Returns the zone map of rows in key order: key range, earliest due time, best score."""
    keys = rows.get_column("key")
    record: dict[str, object] = {"first": keys[0], "last": keys[-1]}
    if "fetch_time" in rows.columns and "status" in rows.columns:
        record["min_fetch_time"] = rows.get_column("fetch_time").min()
        record["max_fetch_time"] = rows.get_column("fetch_time").max()
        record["max_score"] = rows.get_column("score").max()
        record["statuses"] = sum(1 << s for s in rows.get_column("status").unique().drop_nulls())
    return record


def _union(bits: pl.Series) -> int | None:
    known = bits.drop_nulls().to_list()
    return int(np.bitwise_or.reduce(known)) if known else None


def _host_end(keys: pl.Series) -> int:
    """Returns how many of the keys, which are in order, are of the first one's host."""
    start = host_start(keys[0])
    if not start.endswith(":"):  # the key is a host itself
        return int(keys.search_sorted(start, side="right"))
    return int(keys.search_sorted(f"{start[:-1]};", side="left"))  # ";" is what follows ":"
