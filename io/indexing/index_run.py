"""Plans one run of ``index``: the last run, and which rows to read.

It is planned from the pinned operation alone, so each worker finds the same run.
"""

import contextlib
import dataclasses
import functools
from collections.abc import Iterable

import polars as pl

from ...policy.components.index_routes import IndexRoutes, WriterRule
from ...policy.components.index_schema import INDEX_RUNS, index_component
from ...web.base.dataclass import dataclass
from ...web.base.errors import UserError
from ..disk.record_checks import check_count
from ..disk.table_names import checked_part
from ..snapshots.lineage import lineage
from ..snapshots.manifest import Manifest, load_manifest
from ..snapshots.operations import Operation
from ..storage.files import size_of
from ..storage.parquet_files import collect, scan
from ..storage.places import Folder
from ..table.table_snapshots import TableSnapshots
from ..tablets.file_lists import Component, DataFile, load_files
from ..tablets.resolve import write_bases
from ..tablets.tablets import Tablet, tablets
from ..tablets.written import Written
from .index_writer import IndexTarget, IndexWriter
from .run_receipts import RunReceipts
from .writer_kinds import open_writer, writer_class


@dataclass(frozen=True)
class LastRun:
    """The operation that was the last to write an index. All fields are empty for a new index.

    Attributes:
        operation: Its id.
        snapshot: The snapshot of the table that the index shows.
        version: Its number; later operations have larger ones.
        full: Whether it has built the index from the beginning.
        writers: ``NAME:KIND`` of each writer.
        places: Where each of them wrote, in the same order, as ``writer_places`` says it.
    """

    operation: str = ""
    snapshot: int = 0
    version: int = 0
    full: bool = False
    writers: tuple[str, ...] = ()
    places: tuple[str, ...] = ()

    def place_of(self, rule: WriterRule) -> str | None:
        """Returns the place of a writer: empty if unknown, None if it was not in the run."""
        name = writer_label(rule)
        if name not in self.writers:
            return None
        return dict(zip(self.writers, self.places, strict=False)).get(name, "")


@dataclass(frozen=True)
class IndexRun:
    """One run of the job.

    Attributes:
        operation: The operation.
        index: Name of the index.
        routes: Its writers.
        last: The run before.
        version: Number of this run.
        full: Whether it builds the index from the beginning.
        since: The snapshot whose rows the index shows; 0: all rows are looked at.
        batch: The batch to which this run is limited; empty: no limit.
        cleans: Whether this run only deletes.
        retries_refused: Whether it sends documents again that writers have refused.
        journal: Name of the component that is the journal of the index.
        reads: The components that no other operation may change while this run works.
    """

    operation: Operation
    index: str
    routes: IndexRoutes
    last: LastRun
    version: int
    full: bool = False
    since: int = 0
    batch: str = ""
    cleans: bool = False
    retries_refused: bool = False
    journal: str = dataclasses.field(init=False)
    reads: frozenset[str] = dataclasses.field(init=False)

    def __post_init__(self) -> None:
        journal, runs = self.component("indexed"), self.component("index_runs")
        object.__setattr__(self, "journal", journal)
        object.__setattr__(self, "reads", frozenset({journal, runs, "blocklist"}))

    @functools.cached_property
    def journal_tablets(self) -> list[Tablet]:
        """The tablets of the journal."""
        return tablets(self.operation.files(self.journal))

    def component(self, kind: str) -> str:
        """Returns the name of a component of the index."""
        return index_component(self.index, kind)

    def files(self, kind: str) -> list[DataFile]:
        """Returns the live files of a component of the index."""
        return self.operation.files(self.component(kind))

    def target(self, rule: WriterRule, part: str = "") -> IndexTarget:
        """Returns the parameters of a writer for this run, or for one part of its work."""
        table = self.operation.table
        return IndexTarget(
            self.index, rule.name, rule.parameters, table, self.version, self.operation.id,
            self.full, part,
        )  # fmt: skip

    def open_writer(self, rule: WriterRule, part: str = "") -> IndexWriter:
        """Returns a writer for this run, or for one part of its work."""
        return open_writer(rule, self.target(rule, part))

    def writers(self, part: str = "") -> dict[str, IndexWriter]:
        """Returns the writers by name."""
        return {rule.name: self.open_writer(rule, part) for rule in self.routes.writers}

    @functools.cached_property
    def receipts(self) -> RunReceipts:
        """What this run and those before it have sent."""
        return RunReceipts(self.operation, self.index, self.version, self.last.version, self.reads)

    @property
    def outside(self) -> list[str]:
        """Names of the writers whose index is not in the table."""
        return [rule.name for rule in self.routes.writers if not writer_class(rule).component]

    def finish_last(self, rules: Iterable[WriterRule]) -> None:
        """Finishes the run before, whose process may have died after its commit.

        Args:
            rules: The writers that took part in it, and write where they wrote.
        """
        for rule in rules:
            target = dataclasses.replace(
                self.target(rule), version=self.last.version, full=self.last.full,
                operation=self.last.operation,
            )  # fmt: skip
            open_writer(rule, target).finish()

    def record(self, places: Iterable[str] = ()) -> Written:
        """Writes the record of this run, which replaces that of the run before.

        Args:
            places: Where each writer writes; empty: this is not known.
        """
        whole = not (self.batch or self.cleans)
        shown = self.operation.snapshot if whole else self.last.snapshot
        row = {
            "key": self.operation.id, "snapshot": shown, "version": self.version,
            "rebuilt": self.full, "writers": _writer_names(self.routes), "places": list(places),
            "time": self.operation.now,
        }  # fmt: skip
        frame = pl.DataFrame([row], schema=pl.Schema(INDEX_RUNS))
        name = self.component("index_runs")
        files = write_bases(self.operation.table.files, name, [frame])
        return Written(name, files, tuple(file.path for file in self.files("index_runs")))

    def replaced_files(self) -> Iterable[Written]:
        """Yields the files that a full run replaces: dead letters, and those of writers."""
        kinds = {writer_class(rule).component for rule in self.routes.writers} | {"dead_letters"}
        for kind in sorted(kinds - {""}) if self.full else ():
            if old := tuple(file.path for file in self.files(kind)):
                yield Written(self.component(kind), (), old)


def plan_run(
    operation: Operation,
    index: str,
    routes: IndexRoutes,
    *,
    full: bool = False,
    batch: str = "",
    cleans: bool = False,
    retries_refused: bool = False,
) -> IndexRun:
    """Returns the run of an operation.

    Args:
        operation: The pinned operation.
        index: Name of the index.
        routes: Its writers.
        full: Whether to build the index from the beginning.
        batch: The batch to which the run is limited.
        cleans: Whether the run only deletes.
        retries_refused: Whether the run sends documents again that writers have refused.

    Raises:
        UserError: Other writers have written the index.
    """
    last = last_run(operation, index)
    names = _writer_names(routes)
    if last.writers and not full and sorted(last.writers) != sorted(names):
        raise UserError(
            f"index {index!r} was written by {', '.join(last.writers)}, not by "
            f"{', '.join(names)}: give another --index, or --full"
        )
    task = IndexRun(operation, index, routes, last, max(operation.now, last.version + 1))
    history = _history(operation, index, last)
    if task.outside and not cleans:
        journal_lost = not history.has_journal and _was_purged(operation, history)
        # After a rollback, writers outside the table hold more than the journal says.
        full |= (
            history.undone or (bool(last.operation) and journal_lost) or task.receipts.were_lost()
        )
    full = full and not cleans
    since = last.snapshot if history.readable and not full else 0
    return dataclasses.replace(
        task, full=full, since=since, batch=batch, cleans=cleans, retries_refused=retries_refused
    )


def writer_label(rule: WriterRule) -> str:
    """Returns the name of a writer with its kind."""
    return f"{rule.name}:{rule.kind}"


def _writer_names(routes: IndexRoutes) -> list[str]:
    return [writer_label(rule) for rule in routes.writers]


def waits_for_index(table: TableSnapshots, manifest: Manifest, index: str) -> bool:
    """Returns whether rows of the state have changed since an index was written."""
    last = _read_last_run(table, manifest, index)
    with contextlib.suppress(UserError):
        indexed_manifest = load_manifest(table, last.snapshot)
        return indexed_manifest.content_of("state") != manifest.content_of("state")
    return True


def last_run(operation: Operation, index: str) -> LastRun:
    """Returns the last run of an index in the pinned snapshot."""
    with operation.reading():
        return _read_last_run(operation.table, operation.manifest(), index)


def _read_last_run(table: Folder, manifest: Manifest, index: str) -> LastRun:
    component = manifest.components.get(index_component(index, "index_runs"))
    files = load_files(table, component)
    if not files:
        return LastRun()
    rows = collect(scan([table / file.path for file in files], INDEX_RUNS))
    if not len(rows):
        return LastRun()
    row = rows.sort("version").row(-1, named=True)
    try:
        check_count(row["version"])
        check_count(row["snapshot"])
        return LastRun(
            checked_part(row["key"]), row["snapshot"], row["version"], bool(row["rebuilt"]),
            tuple(row["writers"] or ()), tuple(row["places"] or ()),
        )  # fmt: skip
    except ValueError as error:
        raise UserError(f"record of index {index!r} is damaged: {error}"[:300]) from error


@dataclass(frozen=True)
class _History:
    """What the history says since the last run.

    Attributes:
        undone: Whether a rollback has undone a run of the index.
        last_manifest: The snapshot that the last run has made; None: it has expired.
        readable: Whether the lists of the snapshot that the index shows can be read.
        has_journal: Whether the journal after the last run can be compared with that of today.
    """

    undone: bool = False
    last_manifest: Manifest | None = None
    readable: bool = False
    has_journal: bool = False


def _history(operation: Operation, index: str, last: LastRun) -> _History:
    run_manifest, undone, name = None, False, index_component(index, "index_runs")
    current_runs = operation.manifest().components.get(name)
    with contextlib.suppress(UserError):
        for manifest in lineage(operation.table, last.snapshot):
            if last.operation and manifest.operation == last.operation:
                run_manifest = manifest
                break
            if manifest.restores is not None:
                undone |= _has_run(operation, manifest, name, current_runs)
    if run_manifest is None:
        return _History(undone)
    readable = False
    with contextlib.suppress(UserError):
        shown = load_manifest(operation.table, last.snapshot)
        load_files(operation.table, shown.components.get("state"))
        readable = True
    return _History(undone, run_manifest, readable, _has_journal(operation, index, run_manifest))


def _has_run(
    operation: Operation, rollback: Manifest, name: str, current_runs: Component | None
) -> bool:
    """Returns whether a snapshot that a rollback has undone has another run of the index."""
    table, first = operation.table, (rollback.restores or 0) + 1
    for number in table.snapshots():
        if first <= number < rollback.snapshot:
            with contextlib.suppress(UserError):
                other_runs = load_manifest(table, number).components.get(name)
                if other_runs is not None and (
                    current_runs is None or other_runs.list != current_runs.list
                ):
                    return True
    return False


def _has_journal(operation: Operation, index: str, run_manifest: Manifest) -> bool:
    name = index_component(index, "indexed")
    component = run_manifest.components.get(name)
    with contextlib.suppress(UserError):
        live_paths = {file.path for file in operation.files(name)}
        files = load_files(operation.table, component)
        gone_paths = [file.path for file in files if file.path not in live_paths]
        return all(size_of(operation.table / path) is not None for path in gone_paths)
    return False


def _was_purged(operation: Operation, history: _History) -> bool:
    blocklist_now = operation.manifest().content_of("blocklist")
    last_manifest = history.last_manifest
    blocklist_then = None if last_manifest is None else last_manifest.content_of("blocklist")
    return blocklist_then != blocklist_now


@functools.lru_cache(maxsize=8)
def journal_before(operation: Operation, index: str) -> tuple[DataFile, ...]:
    """Returns the files of the journal that were live after the last run and are not any more.

    Only a purge removes rows from the journal; compact folds them into other files.
    """
    name = index_component(index, "indexed")
    run_manifest = _history(operation, index, last_run(operation, index)).last_manifest
    component = run_manifest.components.get(name) if run_manifest is not None else None
    if component is None:
        return ()
    live_paths = {file.path for file in operation.files(name)}
    files = load_files(operation.table, component)
    return () if all(file.path in live_paths for file in files) else tuple(files)
