"""A web table with all its rows in files, in a folder or a store."""

import contextlib
import functools
import itertools
import re
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping, Sequence

import polars as pl
import pyarrow as pa

from ...policy.components.clocks import is_resting
from ...policy.components.kinds import folders, kind_of
from ...policy.components.schema import to_frame
from ...web.base.dataclass import dataclass
from ...web.base.errors import UsageError, UserError
from ..storage.file_errors import ConflictError, errors_as
from ..storage.files import (
    create_exclusive,
    list_files,
    names,
    names_of_table,
    read_bytes,
    remove_file,
)
from ..storage.parquet_files import batches, collect, columns_with_values, scan
from ..storage.place_addresses import note_root
from ..storage.places import Place
from ..tablets.checksums import verify_tablets
from ..tablets.file_lists import DataFile
from ..tablets.fold import fold_tablet, folded_ranges, stored_schema
from ..tablets.resolve import Resolution, apply_changes, write_bases
from ..tablets.tablets import (
    Due,
    Narrow,
    Tablet,
    has_keys,
    read_tablets,
    tablets,
    tablets_of_keys,
)
from ..tablets.written import Written
from .edits import CountedEdit, Edit, Edited, is_touched
from .web_table import WebTable

# Marker files, one per snapshot, so that a lost manifest is noticed; a store loses no files.
MADE = "manifest/made"
_MANIFEST = re.compile(r"([0-9]{8}|[1-9][0-9]{8,11})\.json")
_MARKER = re.compile(r"[0-9]{8,12}")
# Names that the folder of a table may have before its first snapshot, besides those of rows.
_KNOWN = frozenset({"exports", "manifest", "operations", "seeds"})
# Versions of manifests in stores, from the last listing. A manifest is read after a listing, so
# its version need not be requested again.
_LISTED: dict[Place, Mapping[str, str]] = {}


def manifest_path(root: Place, snapshot: int) -> Place:
    """Returns the place of a snapshot's manifest."""
    return root / "manifest" / f"{snapshot:08d}.json"


@dataclass(frozen=True)
class FolderTable(WebTable):
    """A table of files.

    Attributes:
        files: The folder, or the name in a store.
    """

    files: Place

    def __post_init__(self) -> None:
        note_root(self.files)

    def __reduce__(self) -> tuple[type, tuple[Place]]:
        return FolderTable, (self.files,)  # also where it is unpickled, no link leads out of it

    def __str__(self) -> str:
        return str(self.files)

    def worker_address(self) -> str:
        return str(self.files.absolute())

    def why_unshared(self) -> str:
        local = self.files.needs_shared_path
        return f"the table {str(self)!r} is a folder of this machine" if local else ""

    def check_place(self) -> None:
        entry_names = set(names_of_table(self.files, str(self)))
        strange = sorted(
            name for name in entry_names.difference(_KNOWN, folders()) if not name.startswith(".")
        )
        if "manifest" not in entry_names and strange:
            raise UsageError(
                f"no web table in folder {str(self)!r}, and it is not empty: it has {strange[0]!r}"
            )

    def why_empty(self) -> str:
        hint = "it has no manifest" if self.files.exists() else "it does not exist"
        return f"no web table at {str(self)!r}: {hint}"

    # Snapshots.

    def snapshots(self) -> list[int]:
        with errors_as(f"cannot read table {self}"):
            versions_by_name = (self.files / "manifest").names_and_versions()
        _LISTED[self.files] = versions_by_name
        return sorted(int(name[:-5]) for name in versions_by_name if _MANIFEST.fullmatch(name))

    def latest_snapshot(self) -> int:
        return max(self.snapshots(), default=0)

    def record(self, snapshot: int) -> bytes:
        return read_bytes(manifest_path(self.files, snapshot))

    def record_version(self, snapshot: int, reader: Hashable = None) -> Hashable:
        path = manifest_path(self.files, snapshot)
        return path.version(reader or _LISTED.get(self.files, {}).get(path.name))

    def stored_version(self, snapshot: int) -> Hashable:
        return self.record_version(snapshot) if self.files.has_cheap_seeks else None

    def record_name(self, snapshot: int) -> str:
        return f"manifest/{snapshot:08d}.json"

    def store(
        self, snapshot: int, record: bytes, changes: Mapping[str, Iterable[DataFile]]
    ) -> bool:
        if not create_exclusive(manifest_path(self.files, snapshot), record):
            return False
        if self.files.may_lose_files:
            with contextlib.suppress(UserError):  # the commit counts, even without a marker
                create_exclusive(self / MADE / f"{snapshot:08d}", b"", durable=False)
        return True

    def made_snapshots(self) -> list[int]:
        markers = names(self / MADE) if self.files.may_lose_files else []
        return [int(name) for name in markers if _MARKER.fullmatch(name)]

    def commit_times(self) -> list[tuple[int, float]]:
        folder = self / "manifest"
        return sorted(
            (int(file.path.stem), file.changed)
            for file in list_files(folder)
            if file.path.parent == folder and _MANIFEST.fullmatch(file.path.name)
        )

    def written_at(self, snapshot: int, lists: Collection[str]) -> float:
        return dict(self.commit_times()).get(snapshot, 0.0)

    def forget_snapshots(self, oldest: int) -> tuple[int, int]:
        old = [number for number, _ in self.commit_times() if number < oldest]
        return len(old), sum(remove_file(manifest_path(self.files, number)) for number in old)

    # Rows.

    def read(
        self,
        component: str,
        tablets_to_read: Sequence[Tablet],
        columns: Sequence[str],
        narrow: Narrow | None = None,
        due: Due | None = None,
    ) -> pl.DataFrame:
        return read_tablets(self.files, component, tablets_to_read, columns, narrow)

    def scan(self, component: str, tablet: Tablet) -> Iterator[pl.DataFrame]:
        return fold_tablet(self.files, stored_schema(self.files, component, tablet), tablet)

    def find(
        self,
        component: str,
        all_tablets: Sequence[Tablet],
        keys: pl.Series,
        columns: Sequence[str] | None = None,
    ) -> pl.DataFrame:
        columns = columns or kind_of(component).schema.names
        near = tablets_of_keys(all_tablets, keys)
        return self.read(component, near, columns, lambda rows: rows.filter(has_keys(keys)))

    def find_in_frames(
        self, component: str, all_tablets: Sequence[Tablet], keys: pl.Series, columns: Sequence[str]
    ) -> Iterator[pl.DataFrame]:
        schema, are_sought = kind_of(component).schema, has_keys(keys)
        # The base first, then its runs, oldest first: the last row of a key counts.
        paths = (path for tablet in tablets_of_keys(all_tablets, keys) for path in tablet.paths)
        for path in paths:
            for rows in batches(self / path, schema, columns):
                if len(matches := to_frame(rows).filter(are_sought)):
                    yield to_frame(matches.to_arrow())  # a copy, which keeps no texts of other rows

    def read_ranges(
        self,
        component: str,
        all_tablets: Sequence[Tablet],
        ranges: Sequence[tuple[str, str]],
        columns: Sequence[str],
    ) -> Iterator[pl.DataFrame]:
        schema = pa.schema([kind_of(component).schema.field(name) for name in columns])
        for tablet in all_tablets:
            yield from folded_ranges(self.files, schema, tablet, ranges)

    def changed_since(
        self, component: str, tablet: Tablet, since: int, old_paths: Collection[str]
    ) -> Iterator[tuple[pl.Series, pl.DataFrame]]:
        schema = kind_of(component).schema
        if tablet.base.path not in old_paths:
            for rows in fold_tablet(self.files, schema, tablet):
                yield rows.get_column("key"), rows
            return
        # A row that has changed since then is in one of these runs, and its newest form, too.
        new = [self / run.path for run in tablet.runs if run.path not in old_paths]
        if new:
            rows = collect(scan(new, schema)).unique("key", keep="last", maintain_order=True)
            yield rows.get_column("key"), rows

    def changed_tablets(
        self, component: str, old_files: Sequence[DataFile], now: Sequence[DataFile]
    ) -> tuple[list[Tablet], list[tuple[str, str]]]:
        old, new = ({file.path for file in files} for files in (old_files, now))
        changed = [tablet for tablet in tablets(now) if not old.issuperset(tablet.paths)]
        gone = [tablet for tablet in tablets(old_files) if tablet.base.path not in new]
        return changed, [(str(t.first), str(t.last)) for t in gone if t.first is not None]

    def columns_with_values(self, tablet: Tablet, columns: Collection[str]) -> set[str]:
        # In a store, finding columns of nulls takes more requests than reading them.
        if not self.files.has_cheap_seeks:
            return set(columns)
        return {c for path in tablet.paths for c in columns_with_values(self / path, columns)}

    def may_have_due(self, component: str, tablet: Tablet, due: Due) -> bool:
        return not kind_of(component).due or tablet.may_have(due)

    def resting_hosts(
        self,
        component: str,
        live_files: tuple[DataFile, ...],
        now: int,
        hosts: Callable[[], pl.Series],
    ) -> pl.Series:
        return _resting_hosts(self.files, component, live_files, now)

    def resolve(self, how: Resolution, changes: pl.DataFrame) -> Iterator[Written]:
        return apply_changes(self.files, how, changes)

    def load(self, component: str, frames: Iterable[pl.DataFrame]) -> Iterator[Written]:
        frames = iter(frames)
        for first in frames:
            schema = kind_of(component).schema
            added = first.drop(schema.names, strict=False).to_arrow().schema
            schema = pa.schema([*schema, *added])
            rows = itertools.chain([first], frames)
            yield Written(component, write_bases(self.files, component, rows, schema))

    def files_after(
        self, component: str, files_before: Sequence[DataFile], written: Sequence[Written]
    ) -> list[DataFile]:
        replaced = {path for part in written for path in part.replaced}
        live = {file.path: file for file in files_before if file.path not in replaced}
        live |= {file.path: file for part in written for file in part.files}
        missing = replaced - {file.path for file in files_before}
        missing |= {file.base for file in live.values() if file.base and file.base not in live}
        if missing:
            # Another operation has moved the same rows to other files.
            raise ConflictError(
                f"{component} was compacted in the meantime; nothing was written: run it again"
            )
        return list(live.values())

    # Takedown.

    def edit(
        self, component: str, tablet: Tablet, edit: Edit, clean: Collection[str] = ()
    ) -> Iterator[Written]:
        # Each file separately: the base still has rows that a run supersedes.
        unknown = [path for path in tablet.paths if path not in clean]
        if not any(is_touched(self / path, component, edit) for path in unknown):
            return
        verify_tablets(self.files, tablet)
        counted, schema = CountedEdit(edit, component), stored_schema(self.files, component, tablet)
        frames = fold_tablet(self.files, schema, tablet)
        remaining_rows = (to_frame(counted(frame.to_arrow())) for frame in frames)
        files = write_bases(self.files, component, remaining_rows, schema)
        yield Written(component, files, tablet.paths, counted.counts())

    def edit_again(
        self, component: str, edit: Edit, earlier: Edited, now: Sequence[Tablet]
    ) -> Iterator[Written]:
        edited = {part.replaced: part for part in earlier.written}
        seen = {tablet.paths for tablet in earlier.tablets}
        clean = {path for paths in seen for path in paths}.difference(*edited)
        for tablet in now:
            if tablet.paths in edited:
                yield edited[tablet.paths]
            elif tablet.paths not in seen:
                yield from self.edit(component, tablet, edit, clean)

    def erase(self, path: Place, oldest: int) -> None:
        """Does nothing, because older snapshots have their own files."""


@functools.lru_cache(maxsize=4)
def _resting_hosts(root: Place, component: str, files: tuple[DataFile, ...], now: int) -> pl.Series:
    rests = is_resting(now)
    rows = read_tablets(root, component, tablets(files), ["key"], lambda rows: rows.filter(rests))
    return rows.get_column("key")
