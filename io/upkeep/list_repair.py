"""Rebuilds lost file lists from the files, their names, and the lists of other snapshots."""

import contextlib
import dataclasses
from collections.abc import Iterator

import polars as pl

from ...policy.components.component_names import folders_of
from ...policy.components.declaration import Flushed
from ...policy.components.kinds import kind_of
from ...web.base.errors import UserError
from ..batches.batches import batch_component, page_order
from ..snapshots.manifest import Manifest, readable_manifests
from ..storage.files import list_files
from ..storage.parquet_files import collect, scan, schema_of
from ..storage.places import Place, below
from ..table.web_table import WebTable
from ..tablets.file_lists import DataFile, load_files, totals
from ..tablets.tablet_writer import zone
from ..tablets.tablets import ROW_NUMBER, run_schema
from .fsck import describe_file, list_problem


def rebuilt_lists(table: WebTable, manifest: Manifest) -> dict[str, list[DataFile] | None]:
    """Returns the live files of components with broken lists; None where they are uncertain."""
    return {
        name: _Rebuild(table, manifest, name).files()
        for name, component in manifest.components.items()
        if table.in_files(name) and list_problem(table, component)
    }


@dataclasses.dataclass(frozen=True)
class _Rebuild:
    """Finds the live files of a component whose list is lost."""

    table: WebTable
    manifest: Manifest
    name: str

    def files(self) -> list[DataFile] | None:
        others = self._described_elsewhere()
        files: list[DataFile] = []  # newest first
        runs: list[Place] = []  # runs whose base is in no list
        files_there = [
            file for name in folders_of(self.name) for file in list_files(self.table / name)
        ]
        for file in sorted(files_there, key=lambda file: -file.changed):
            if file.path.suffix != ".parquet" or file.path.name.startswith("."):
                continue
            path = below(self.table, file.path)
            try:
                if path not in others and ROW_NUMBER in schema_of(file.path).names:
                    runs.append(file.path)
                    continue
                description = others.get(path) or self._describe(file.path)
            except UserError:
                continue  # the file is damaged
            if description is None:
                return None
            files.append(description)
        new = [file for file in files if file.path not in others]
        bases = list(_newest([file for file in files if file.base is None]))
        try:
            layered = self._layer_runs(bases, [file for file in files if file.base], runs)
        except UserError:
            return None  # one of the files is damaged
        wanted = self.manifest.components[self.name].totals
        return next((c for c in (files, bases, new, *layered) if totals(c) == wanted), None)

    def _described_elsewhere(self) -> dict[str, DataFile]:
        """Returns the files' descriptions in the lists of other snapshots, by path."""
        others = [other.components.get(self.name) for other in readable_manifests(self.table)]
        lists = {component.list: component for component in reversed(others) if component}
        lists.pop(self.manifest.components[self.name].list, None)
        descriptions: dict[str, DataFile] = {}
        for component in lists.values():
            with contextlib.suppress(UserError):
                descriptions |= {file.path: file for file in load_files(self.table, component)}
        return descriptions

    def _describe(self, path: Place) -> DataFile | None:
        """Returns a file's description from its content and name; None if these do not suffice."""
        file, kind = describe_file(self.table, path), kind_of(self.name)
        if kind.in_tablets:
            return self._with_zone(file)
        if kind.adopted:
            words = path.stem.split("-")
            if len(words) != 4 or not words[0][1:].isdigit():
                return None
            order = (
                page_order(int(words[1]), int(words[3])) if kind.flushed is Flushed.ADOPTED else 0
            )
            return dataclasses.replace(file, partition=int(words[0][1:]), order=order)
        if kind.name == "fetchlist":  # only the list knows the partition of a file
            batch = self.manifest.batches.get(self.name.split("/")[1])
            return file if batch is not None and batch.partitions == 1 else None
        return self._pair_with(file, "pages") if kind.name == "documents" else file

    def _with_zone(self, file: DataFile) -> DataFile:
        if not file.rows:
            return file
        kind = kind_of(self.name)
        columns = ("key", *(kind.zone.columns if kind.zone else ()))
        rows = collect(scan([self.table / file.path], kind.schema).select(columns))
        return dataclasses.replace(file, **zone(rows, kind))  # type: ignore[arg-type]

    def _pair_with(self, file: DataFile, other: str) -> DataFile | None:
        """Sets the order of a file to that of the file of another kind with its first key."""
        others = self.manifest.components.get(batch_component(self.name.split("/")[1], other))
        with contextlib.suppress(UserError):
            files = load_files(self.table, others)
            for candidate in files:
                keys = scan([self.table / candidate.path], kind_of(other).schema).select("key")
                # A file without rows can only belong to the only other file.
                alone = file.first is None and len(files) == 1
                if alone or len(collect(keys.filter(pl.col("key") == file.first))):
                    return dataclasses.replace(
                        file, partition=candidate.partition, order=candidate.order
                    )
        return None

    def _layer_runs(
        self, bases: list[DataFile], known_runs: list[DataFile], runs: list[Place]
    ) -> list[list[DataFile]]:
        """Returns two sets of files: new runs are added to the known runs, or replace them.

        Args:
            bases: Bases that may be live.
            known_runs: Runs that lists of other snapshots describe.
            runs: New runs, at most one per base; their rows show the base.
        """
        new: dict[str, tuple[Place, pl.DataFrame]] = {}
        for path in runs:
            rows = collect(scan([path], run_schema(self.name)).select("key", ROW_NUMBER))
            for base in bases:
                if base.path not in new and self._lies_on(base, rows):
                    new[base.path] = (path, rows)
                    break
        above, alone = list[DataFile](), list[DataFile]()
        for base in bases:
            older = [base, *(run for run in known_runs if run.base == base.path)]
            older.sort(key=lambda file: (file.base is not None, file.order))
            if base.path in new:
                above += [*older, self._run(older, *new[base.path])]
                alone += [base, self._run([base], *new[base.path])]
            else:
                above += older
                alone += older
        return [above, alone]

    def _run(self, older: list[DataFile], path: Place, rows: pl.DataFrame) -> DataFile:
        fresh = int((rows.get_column(ROW_NUMBER) >= totals(older)[1]).sum())
        run, order = describe_file(self.table, path), self.manifest.snapshot
        run = dataclasses.replace(run, base=older[0].path, order=order, fresh=fresh)
        return self._with_zone(run)

    def _lies_on(self, base: DataFile, rows: pl.DataFrame) -> bool:
        """Returns whether a run replaces rows of a base; False for a run that only adds rows."""
        changed = rows.filter(pl.col(ROW_NUMBER) < base.rows)
        path = self.table / base.path
        keys = collect(scan([path], kind_of(self.name).schema).select("key")).get_column("key")
        right = keys.gather(changed.get_column(ROW_NUMBER))
        return bool(len(changed)) and right.equals(changed.get_column("key"))


def _newest(files: list[DataFile]) -> Iterator[DataFile]:
    """Yields the files, newest first; skips files whose keys are in a newer file."""
    taken: list[tuple[str, str]] = []
    for file in files:
        low, high = file.first or "", file.last or ""
        if all(high < first or last < low for first, last in taken):
            taken.append((low, high))
            yield file
