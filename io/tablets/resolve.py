"""Applies changes to tablets: adds a small run, or writes a new base.

A resolver computes the new rows from the old rows and the changes of the same keys.
"""

# A run (``rows_of_run``) on a tablet of 5 rows, a to e. The resolver changes b, leaves d, adds f:
#
# old rows     b  d          new rows   b' d  f          run          b' f
# row_number   1  3          number     1  3  null       row_number   1  5
#
# A rewrite (``_pairs``) goes through the pieces of a tablet, which end at the keys c, f and h:
#
# changes      b  g  i  d    piece      0  2  3  1       3 is after the last piece
# in order     b  d  g  i    edges      0  1  2  3  4    piece n has the changes from edge n to n + 1

import contextlib
import dataclasses
import functools
import itertools
import operator
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Protocol

import polars as pl
import pyarrow as pa

from ...policy.components.kinds import kind_of
from ...policy.components.schema import conform_frame, empty
from ...web.base.columns import gather, stable_order
from ...web.base.dataclass import dataclass
from ..storage.files import remove_file
from ..storage.places import Folder
from ..storage.table_sizes import table_sizes
from .checksums import verify_tablets
from .file_lists import DataFile
from .fold import Groups, fold_tablet, group_bounds, newest_rows
from .ranges import Range, merges, past_limits
from .tablet_writer import TabletWriter, write_run
from .tablets import ROW_NUMBER, Tablet, rows_with_keys
from .written import Written


@dataclass(frozen=True)
class Resolved:
    """The result of a resolver.

    Attributes:
        rows: The old rows after the changes, and new rows, in key order.
        extra: Further frames by component, such as the outcome.
        counts: By counter name.
        drops: Whether old rows that are not in ``rows`` are to be deleted. If not, all of them
            must be there.
    """

    rows: pl.DataFrame
    extra: Mapping[str, pl.DataFrame] = dataclasses.field(default_factory=dict)
    counts: Mapping[str, int] = dataclasses.field(default_factory=dict)
    drops: bool = False

    def deleted_keys(self, old: pl.DataFrame) -> pl.Series:
        """Returns the keys, in order, of the old rows to delete."""
        keys = old.get_column("key")
        if not self.drops:
            return keys.clear()
        return keys.filter(~keys.is_in(self.rows.get_column("key").implode()))


class Resolver(Protocol):
    """Applies changes to the rows of their keys; the given rows may include other keys."""

    def __call__(self, rows: pl.DataFrame, changes: pl.DataFrame) -> Resolved: ...


def resolving(
    work: Callable[..., tuple[pl.DataFrame, Mapping[str, int]]], *, drops: bool = False
) -> Resolver:
    """Returns the resolver that calls a function of (rows, changes) for new rows and counts."""

    def resolve(rows: pl.DataFrame, changes: pl.DataFrame) -> Resolved:
        resolved_rows, counts = work(rows, changes)
        return Resolved(resolved_rows, counts=counts, drops=drops)

    return resolve


@dataclass(frozen=True)
class Resolution:
    """A range, its resolver, and where the results belong.

    Attributes:
        component: Name of a component in tablets.
        range: The range of keys.
        resolver: Computes the new rows.
        places: Components of the resolver's further frames, by the resolver's names:
            ``{"outcome": "batches/ID/outcome"}``.
        order: Number of the snapshot that the operation makes.
    """

    component: str
    range: Range
    resolver: Resolver
    places: Mapping[str, str] = dataclasses.field(default_factory=dict)
    order: int = 1

    @property
    def schema(self) -> pa.Schema:
        """Declared columns of the component."""
        return kind_of(self.component).schema


def apply_changes(root: Folder, how: Resolution, changes: pl.DataFrame) -> Iterator[Written]:
    """Resolves the changes of one range, and writes the changed rows.

    Args:
        root: The table's folder.
        how: The range and the resolver.
        changes: The changes of the range, in any order.
    """
    part = how.range
    if not len(changes) and part.whole:
        return
    with Extras(root, how.places) as extras:
        if part.base is None or not part.whole or _changes_most_rows(part.base, changes):
            written = _rewrite(root, how, changes, extras)
        else:
            written = _add_run(root, how, part.base, changes, extras)
        yield dataclasses.replace(written, counts=extras.counts)
        yield from extras.finish()


def _changes_most_rows(tablet: Tablet, changes: pl.DataFrame) -> bool:
    most = table_sizes().run_share * tablet.base.rows
    return len(changes) > most and changes.get_column("key").n_unique() > most


class Extras(contextlib.ExitStack):
    """Collects the further frames and the counts of resolvers, and writes the frames.

    Attributes:
        counts: By counter name.
    """

    def __init__(self, root: Folder, places: Mapping[str, str]) -> None:
        super().__init__()
        self.counts = Counter[str]()
        self._root = root
        self._places = places
        self._writers: dict[str, TabletWriter] = {}

    def take(self, resolved: Resolved) -> pl.DataFrame:
        """Collects the further frames and counts of a result; returns its rows."""
        for name, frame in resolved.extra.items():
            if name not in self._writers:
                writer = TabletWriter(self._root, self._places[name], kind_of(name).schema)
                self._writers[name] = self.enter_context(writer)
            self._writers[name].write(frame)
        self.counts.update(resolved.counts)
        return resolved.rows

    def taking(self, resolver: Resolver) -> Resolver:
        """Returns a resolver whose further frames and counts are collected."""

        def resolve(rows: pl.DataFrame, changes: pl.DataFrame) -> Resolved:
            resolved = resolver(rows, changes)
            self.take(resolved)
            return resolved

        return resolve

    def finish(self) -> Iterator[Written]:
        """Completes the files of further frames, and yields them."""
        for writer in self._writers.values():
            yield Written(writer.place, tuple(writer.close()))


def _rewrite(root: Folder, how: Resolution, changes: pl.DataFrame, extras: Extras) -> Written:
    """Rewrites a range as new bases, one row group at a time, with its changes applied.

    A whole tablet stays as it is if its rows are the same afterwards.
    """
    base = how.range.base
    if base is not None:
        verify_tablets(root, base)
    changed = base is None or not how.range.whole

    def rewritten() -> Iterator[pl.DataFrame]:
        nonlocal changed
        for rows, piece_changes in _pairs(root, how, changes):
            new = extras.take(how.resolver(rows, piece_changes)) if len(piece_changes) else rows
            changed = changed or (len(piece_changes) > 0 and not _are_equal(rows, new, how.schema))
            yield new

    files = write_bases(root, how.component, rewritten())
    if not changed:
        for file in files:
            remove_file(root / file.path)
        return Written(how.component)
    return Written(how.component, files, base.paths if base is not None else ())


def _are_equal(rows: pl.DataFrame, new: pl.DataFrame, schema: pa.Schema) -> bool:
    return len(rows) == len(new) and conform_frame(rows, schema).equals(conform_frame(new, schema))


def write_bases(
    root: Folder, component: str, frames: Iterable[pl.DataFrame], schema: pa.Schema | None = None
) -> tuple[DataFile, ...]:
    """Writes rows, in key order, as new bases, with the declared columns or ``schema``.

    Rows that do not count are left out.
    """
    counting = kind_of(component).counting
    with TabletWriter(root, component, schema or kind_of(component).schema) as writer:
        for rows in frames:
            writer.write(rows.filter(counting))
        return tuple(writer.close())


def _add_run(
    root: Folder, how: Resolution, tablet: Tablet, changes: pl.DataFrame, extras: Extras
) -> Written:
    """Writes changed rows as a run.

    It writes new bases instead if a row is deleted, because a run cannot say so, or if the tablet
    must be folded and is allowed to be.
    """
    component = how.component
    old = rows_with_keys(root, component, tablet, changes.get_column("key"))
    resolved = how.resolver(old.drop(ROW_NUMBER), changes)
    new = conform_frame(extras.take(resolved), how.schema)
    deleted_keys = resolved.deleted_keys(old)
    if len(deleted_keys):
        old_rows = old.filter(~pl.col("key").is_in(deleted_keys.implode()))
        rows = rows_of_run(old_rows, new, tablet.rows)
        verify_tablets(root, tablet)
        frames = fold_tablet(root, how.schema, tablet, rows)
        remaining_frames = (
            frame.filter(~pl.col("key").is_in(deleted_keys.implode())) for frame in frames
        )
        return Written(component, write_bases(root, component, remaining_frames), tablet.paths)
    rows = rows_of_run(old, new, tablet.rows)
    if not len(rows):
        return Written(component)
    row_total, replaced = tablet.rows, tuple[str, ...]()
    if how.range.fold and past_limits(tablet, len(rows)):
        verify_tablets(root, tablet)
        if not merges(tablet, len(rows)):
            files = write_bases(root, component, fold_tablet(root, how.schema, tablet, rows))
            return Written(component, files, tablet.paths)
        rows = newest_rows(root, how.schema, tablet, rows)
        row_total, replaced = tablet.base.rows, tablet.paths[1:]
    fresh = int((rows.get_column(ROW_NUMBER) >= row_total).sum())
    run = write_run(root, component, tablet.base, rows, fresh, how.order)
    return Written(component, (run,), replaced)


def rows_of_run(old: pl.DataFrame, new: pl.DataFrame, row_total: int) -> pl.DataFrame:
    """Returns the rows that are new or changed, in key order, with their numbers.

    Args:
        old: The old rows in key order, with their numbers.
        new: The same rows after the changes, and new rows, in key order.
        row_total: Number of rows of the tablet; numbers of new rows start there.

    Raises:
        ValueError: A row is missing in ``new``.
    """
    names = [name for name in old.columns if name != ROW_NUMBER]
    numbers = old.select("key", ROW_NUMBER)
    new = new.select(names).join(numbers, on="key", how="left", maintain_order="left")
    added = pl.col(ROW_NUMBER).is_null()
    kept_rows = new.filter(~added)
    if len(kept_rows) != len(old):
        raise ValueError(f"a resolver must keep all rows: of {len(old)} there are {len(kept_rows)}")
    # Both frames are in key order and have the same keys.
    same = (kept_rows.get_column(name).eq_missing(old.get_column(name)) for name in names)
    changed = kept_rows.filter(~functools.reduce(operator.and_, same)).get_column(ROW_NUMBER)
    rows = new.filter(added | pl.col(ROW_NUMBER).is_in(changed.implode()))
    number = (row_total + added.cast(pl.UInt32).cum_sum() - 1).cast(pl.UInt32)
    return rows.with_columns(pl.when(added).then(number).otherwise(ROW_NUMBER).alias(ROW_NUMBER))


def _pairs(
    root: Folder, how: Resolution, changes: pl.DataFrame
) -> Iterator[tuple[pl.DataFrame, pl.DataFrame]]:
    """Yields pieces of rows in key order, each with the changes in its key range."""
    part, schema = how.range, how.schema
    if part.base is None:
        yield empty(schema), changes
        return
    bounds = group_bounds(root, part.base)
    # The pieces of the tablet that overlap the range; the tablet has ``len(bounds) + 1`` pieces.
    start = 0 if part.low is None else int(bounds.search_sorted(part.low, side="left"))
    stop = len(bounds)
    if part.high is not None:
        stop = min(stop, int(bounds.search_sorted(part.high, side="left")) + 1)
    after = bounds[start - 1] if start else ""
    # The changes are not sorted, because comparing them with a few bounds is much cheaper.
    piece = bounds.search_sorted(changes.get_column("key"), side="left")
    order = stable_order(piece)
    changes, piece = gather([changes], order), piece.gather(order)
    pieces = [*range(start, stop), len(bounds), len(bounds) + 1]
    edges = piece.search_sorted(pl.Series(pieces, dtype=pl.UInt32)).to_list()
    frames = fold_tablet(root, schema, part.base, None, Groups(start, stop, after))
    for begin, end in itertools.pairwise(edges):
        rows = next(frames, None)
        rows = empty(schema) if rows is None else rows_in_range(rows, part.low, part.high)
        yield rows, changes.slice(begin, end - begin)


def rows_in_range(rows: pl.DataFrame, low: str | None, high: str | None) -> pl.DataFrame:
    """Returns the rows with keys in [low, high); ``rows`` must be in key order."""
    keys = rows.get_column("key")
    start = 0 if low is None else int(keys.search_sorted(low, side="left"))
    end = len(rows) if high is None else int(keys.search_sorted(high, side="left"))
    return rows.slice(start, end - start)
