"""A web table with state, hosts and others in rows of Bigtable, and everything else in files.

Google's libraries load slowly, so they are imported only for the first request to Bigtable.
"""

import dataclasses
import functools
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

import polars as pl

from ...policy.components.clocks import is_resting
from ...policy.components.declaration import Kind, RowLayout
from ...policy.components.kinds import SEED_HOSTS, kind_of, repeating, unknown_components
from ...policy.components.schema import empty, to_frame
from ...web.base.dataclass import dataclass
from ...web.base.errors import UserError
from ..bigtable.key_ranges import KeyRange, Samples, are_ranges, grow_ranges
from ..storage.file_errors import SnapshotTooOld
from ..storage.files import list_files
from ..storage.parquet_files import collect, scan
from ..storage.places import Place
from ..tablets.file_lists import Component, DataFile, below, load_files
from ..tablets.ranges import Range
from ..tablets.resolve import Extras, Resolution, Resolved, Resolver
from ..tablets.tablets import Due, Narrow, Tablet, tablets
from ..tablets.written import Written
from .bigtable_snapshots import BigtableSnapshots
from .edits import CountedEdit, Edit, Edited
from .folder_table import FolderTable
from .web_table import WebTable

if TYPE_CHECKING:
    from ..bigtable.stored_rows import BigtableRows

_KEYS_AT_ONCE = 50_000
_FEW_KEYS = 5_000  # rows of hosts are long


_Method = TypeVar("_Method", bound=Callable[..., Any])


def _of_rows(method: _Method) -> _Method:
    """Wraps a method for components in rows; for components in files it calls ``FolderTable``."""

    @functools.wraps(method)
    def call_method(self: "BigtableWebTable", component: str, *args: Any, **named: Any) -> Any:
        if self.in_files(component):
            return getattr(self._in_files, method.__name__)(component, *args, **named)
        return method(self, component, *args, **named)

    return call_method  # type: ignore[return-value]


@dataclass(frozen=True)
class BigtableWebTable(BigtableSnapshots, WebTable):
    """A table in Bigtable.

    Attributes:
        snapshot: Number of the snapshot whose rows are read; None if none are read.
    """

    snapshot: int | None = None
    seed_component: ClassVar[str] = SEED_HOSTS

    @property
    def _in_files(self) -> FolderTable:
        return FolderTable(self.files)

    def at(self, snapshot: int) -> "BigtableWebTable":
        return dataclasses.replace(self, snapshot=snapshot)

    def in_files(self, component: str) -> bool:
        return kind_of(component).layout is not RowLayout.ROWS

    def unknown_rows(self, components: Mapping[str, Component]) -> list[str]:
        unknown = []
        for name in unknown_components(components):
            try:
                in_rows = are_ranges(name, load_files(self, components[name]))
            except UserError:
                in_rows = True  # its list is lost: that it is in files is not known either
            if in_rows:
                unknown.append(name)
        return unknown

    def prepare_components(self) -> None:
        from ..bigtable.cell_layout import later_families

        if later := frozenset(later_families()):
            from ..bigtable.admin import add_families

            add_families(self.address, later)

    # Rows.

    @_of_rows
    def read(
        self,
        component: str,
        tablets_to_read: Sequence[Tablet],
        columns: Sequence[str],
        narrow: Narrow | None = None,
        due: Due | None = None,
    ) -> pl.DataFrame:
        needed = columns if narrow is None else None
        parts = [empty(kind_of(component).schema).select(columns)]
        for tablet in tablets_to_read:
            for rows in self._range_rows(component, tablet, needed, due):
                wanted = rows if narrow is None else narrow(rows.lazy()).collect()
                parts.append(wanted.select(columns))
        return pl.concat(parts)

    @_of_rows
    def scan(self, component: str, tablet: Tablet) -> Iterator[pl.DataFrame]:
        return self._range_rows(component, tablet)

    @_of_rows
    def read_in_frames(
        self, component: str, tablet: Tablet, columns: Sequence[str]
    ) -> Iterator[pl.DataFrame]:
        return self._range_rows(component, tablet, columns)

    def _range_rows(
        self,
        component: str,
        tablet: Tablet,
        columns: Sequence[str] | None = None,
        due: Due | None = None,
    ) -> Iterator[pl.DataFrame]:
        return self._rows(component).read(_range(tablet), columns, due)

    @_of_rows
    def find(
        self,
        component: str,
        all_tablets: Sequence[Tablet],
        keys: pl.Series,
        columns: Sequence[str] | None = None,
    ) -> pl.DataFrame:
        rows = self._rows(component).find(keys)
        return rows if columns is None else rows.select(columns)

    @_of_rows
    def read_ranges(
        self,
        component: str,
        all_tablets: Sequence[Tablet],
        ranges: Sequence[tuple[str, str]],
        columns: Sequence[str],
    ) -> Iterator[pl.DataFrame]:
        for low, high in ranges:
            for rows in self._rows(component).read(KeyRange(low, high), columns):
                yield rows.select(columns)

    @_of_rows
    def changed_since(
        self, component: str, tablet: Tablet, since: int, old_paths: Collection[str]
    ) -> Iterator[tuple[pl.Series, pl.DataFrame]]:
        for keys in self._rows(component, since).changed_keys(_range(tablet)):
            yield keys, self.find(component, (), keys)

    @_of_rows
    def changed_tablets(
        self, component: str, old_files: Sequence[DataFile], now: Sequence[DataFile]
    ) -> tuple[list[Tablet], list[tuple[str, str]]]:
        return tablets(now), []  # removed rows have keys in ``changed_since``

    def find_in_frames(
        self, component: str, all_tablets: Sequence[Tablet], keys: pl.Series, columns: Sequence[str]
    ) -> Iterator[pl.DataFrame]:
        for start in range(0, len(keys), _FEW_KEYS):
            yield self.find(component, all_tablets, keys.slice(start, _FEW_KEYS)).select(columns)

    @_of_rows
    def may_have_due(self, component: str, tablet: Tablet, due: Due) -> bool:
        return self._rows(component).may_have_due(_range(tablet), due)

    @_of_rows
    def resting_hosts(
        self,
        component: str,
        live_files: tuple[DataFile, ...],
        now: int,
        hosts: Callable[[], pl.Series],
    ) -> pl.Series:
        rows = self.find(component, (), hosts())
        return rows.filter(is_resting(now)).get_column("key")

    def resolve(self, how: Resolution, changes: pl.DataFrame) -> Iterator[Written]:
        if self.in_files(how.component):
            yield from self._in_files.resolve(how, changes)
            return
        if not len(changes):
            return
        resolver, places = how.resolver, how.places
        for kind in repeating(how.component):
            resolver = _repeating(resolver, kind)
            places = {**places, kind.name: kind.name}
        with Extras(self.files, places) as extras:
            # The commit applies the files to the rows.
            resolver = extras.taking(resolver)
            written = list(self._rows(how.component).resolve(changes, resolver))
            for part in written:
                extras.counts.update({f"dropped/{why}": n for why, n in part.dropped.items()})
            base = how.range.base.base.path if how.range.base is not None else None
            files = [part.file for part in written if part.file is not None]
            placed = (dataclasses.replace(file, base=base, order=how.order) for file in files)
            yield Written(how.component, tuple(placed), counts=extras.counts)
            yield from extras.finish()

    @_of_rows
    def load(self, component: str, frames: Iterable[pl.DataFrame]) -> Iterator[Written]:
        how = Resolution(component, Range(None, None, None), lambda _, new: Resolved(new))
        for rows in frames:
            yield from self.resolve(how, rows)

    @_of_rows
    def files_after(
        self, component: str, files_before: Sequence[DataFile], written: Sequence[Written]
    ) -> list[DataFile]:
        added = [file for part in written for file in part.files]
        return grow_ranges(component, files_before, added, self.samples)

    def samples(self) -> Samples:
        """Returns (key, bytes of the table before the key) of sampled rows, in key order."""
        return self.log.table.samples()

    @_of_rows
    def way_back(self, component: str, all_tablets: Sequence[Tablet], to: int) -> list[DataFile]:
        rows = self._rows(component, to)
        done = (written.file for tablet in all_tablets for written in rows.way_back(_range(tablet)))
        return [file for file in done if file is not None]

    # Takedown.

    @_of_rows
    def edit(self, component: str, tablet: Tablet, edit: Edit) -> Iterator[Written]:
        return self._edit(component, tablet, self._fresh_rows(component, tablet), edit)

    @_of_rows
    def edit_again(
        self, component: str, edit: Edit, earlier: Edited, now: Sequence[Tablet]
    ) -> Iterator[Written]:
        files = [file for part in earlier.written for file in part.files]
        schema = kind_of(component).schema
        edited = [collect(scan([self / f.path], schema).select("key"))["key"] for f in files]
        for tablet in now:
            key_lists = list(self._rows(component, earlier.snapshot).changed_keys(_range(tablet)))
            key_lists += [_keys_in_range(keys, tablet) for keys in edited]
            if key_lists:
                slices = pl.concat(key_lists).unique().sort().to_frame().iter_slices(_KEYS_AT_ONCE)
                rows = (self.find(component, now, keys.to_series()) for keys in slices)
                yield from self._edit(component, tablet, rows, edit)

    def needed_files(self) -> set[str]:
        """Returns the files of changes for an unfinished commit, or for versions to erase."""
        from ..bigtable.stored_rows import purged_component

        paths = [below(self, file.path) for file in list_files(self / "changes")]
        head = self.log.head()
        waiting = [change.path for change in self.log.changes(head)] if head.applying else []
        return {*waiting, *(path for path in paths if purged_component(path))}

    def erase(self, path: Place, oldest: int) -> None:
        from ..bigtable.stored_rows import purged_component

        if component := purged_component(below(self, path)):
            self._rows(component, oldest).erase_older(path)

    def _fresh_rows(self, component: str, tablet: Tablet) -> Iterator[pl.DataFrame]:
        """Yields the rows of a range, each as of the pinned snapshot or a newer one.

        Bigtable keeps few versions. If versions of the pinned snapshot are gone, this method
        continues with the newest snapshot. Rows that were changed since the pinned snapshot
        must be read again anyway.
        """
        table = self
        while True:
            try:
                for rows in table.scan(component, tablet):
                    table.log.check_fresh(table._rows(component).snapshot)
                    yield rows
                    first = f"{rows.get_column('key')[-1]}\0"
                    tablet = Tablet(dataclasses.replace(tablet.base, first=first))
                return
            except SnapshotTooOld:
                table = self.at(self.latest_snapshot())

    def _edit(
        self, component: str, tablet: Tablet, frames: Iterable[pl.DataFrame], edit: Edit
    ) -> Iterator[Written]:
        """Edits the rows of a range; writes the result as files of changes."""
        from ..bigtable.stored_rows import rows_to_write, write_changes, write_deletions

        counted = CountedEdit(edit, component)
        gone, changed = [], []
        for frame in frames:
            mentions_before = counted.mentions
            remaining_rows = to_frame(counted(frame.to_arrow()))
            if len(remaining_rows) < len(frame):
                keys = frame.get_column("key")
                gone.append(keys.filter(~keys.is_in(remaining_rows.get_column("key").implode())))
            if counted.mentions > mentions_before:
                changed.append(rows_to_write(frame, remaining_rows))
        done = [write_deletions(self.files, component, pl.concat(gone))] if gone else []
        if changed:
            rows = pl.concat(changed)
            keys = rows.get_column("key")
            done.append(write_changes(self.files, component, rows, keys, purges=True))
        files = [written.file for written in done if written.file is not None]
        if files:
            files = [dataclasses.replace(file, base=tablet.base.path) for file in files]
            yield Written(component, tuple(files), counts=counted.counts())

    def _rows(self, component: str, snapshot: int | None = None) -> "BigtableRows":
        """Returns the rows of a component as of a snapshot; None is the one whose rows are read."""
        from ..bigtable.stored_rows import BigtableRows

        snapshot = self.snapshot if snapshot is None else snapshot
        assert snapshot is not None
        return BigtableRows(self.log, component, snapshot)


def _range(tablet: Tablet) -> KeyRange:
    return KeyRange(tablet.first, tablet.last)


def _keys_in_range(keys: pl.Series, tablet: Tablet) -> pl.Series:
    """Returns the keys in a range, whose end is exclusive."""
    keys = keys.filter(keys >= (tablet.first or ""))
    return keys if tablet.last is None else keys.filter(keys < tablet.last)


def _repeating(resolver: Resolver, kind: Kind) -> Resolver:
    """Adds a frame of the rows that a further kind repeats; see ``Kind.made_from``."""
    chosen = pl.col(kind.made_where)

    def resolve(rows: pl.DataFrame, changes: pl.DataFrame) -> Resolved:
        resolved = resolver(rows, changes)
        new = resolved.rows.filter(chosen).join(rows.filter(chosen), on="key", how="anti")
        extra = {kind.name: new.sort("key")} if len(new) else {}
        return dataclasses.replace(resolved, extra={**resolved.extra, **extra})

    return resolve
