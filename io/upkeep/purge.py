"""Purges names from a table's files, and commits that while other jobs commit.

It removes names from rows, writes the blocklist, and deletes the files that may still have the
names: those that only older snapshots need, and leftovers that no snapshot names. A new try of a
commit only reads the changes of other jobs.

Each try has less work than the one before, and no job begins under a hold (``hold``). So the
number of tries is at most the number of jobs under way plus one.
"""

import contextlib
import dataclasses
import itertools
import json
import logging
import time
from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple, Protocol

import polars as pl

from ...policy.components.declaration import Flushed, RowLayout
from ...policy.components.kinds import folders, kind_of, unknown_components
from ...policy.components.schema import BLOCKLIST, empty
from ...web.base.dataclass import dataclass
from ...web.base.errors import UserError
from ...web.base.safe_json import json_object
from ...web.urls.row_keys import host_key
from ..indexing.run_receipts import is_intent, is_mark, note_lost
from ..rows.small_components import BLOCKLIST_COMPONENT
from ..snapshots.commit import CommitTerms, commit_once
from ..snapshots.hold import pause_in_hold
from ..snapshots.manifest import Manifest, load_manifest
from ..snapshots.operations import (
    Operation,
    find_commit,
    has_committed,
    has_ended,
    note_loss,
    pinned_operation,
)
from ..storage.file_errors import ConflictError, SnapshotTooOld
from ..storage.files import (
    LARGEST_BYTES,
    list_files,
    new_name,
    overwrite_bytes,
    read_bytes,
    remove_file,
)
from ..storage.parquet_files import collect, scan
from ..storage.places import Found, Place
from ..table.edits import CountedEdit, Edited, NameEdit, edit_file, is_touched, rewrite
from ..table.table_snapshots import TableSnapshots
from ..table.web_table import WebTable
from ..tablets.file_lists import below
from ..tablets.report_files import REPORTS_FOLDER, load_reports
from ..tablets.resolve import write_bases
from ..tablets.tablets import Tablet, tablets_of_component
from ..tablets.written import Written
from .retention import disturbed_by, is_cleaned, named_files, own_files

_LOG = logging.getLogger(__name__)
# Largest number of tries: there are always fewer jobs under way.
_TRIES = 20


class BlocklistChange(Protocol):
    """Returns the BLOCKLIST rows after a change, in key order, from those before and the time, ms."""

    def __call__(self, rows: pl.DataFrame, now: int, /) -> pl.DataFrame: ...


def update_blocklist(operation: Operation, change: BlocklistChange) -> Written:
    """Reads the blocklist, changes it, and writes the new list."""
    table, files = operation.table, operation.files(BLOCKLIST_COMPONENT)
    rows = collect(scan([table / f.path for f in files], BLOCKLIST)) if files else empty(BLOCKLIST)
    after = change(rows, operation.now)
    added = len(after) - len(rows)
    if not added:
        return Written()
    written = write_bases(table, BLOCKLIST_COMPONENT, [after])
    counts = {"blocked": added} if added > 0 else {"unblocked": -added}
    return Written(BLOCKLIST_COMPONENT, written, tuple(f.path for f in files), counts)


def unnamed_files(table: TableSnapshots, named: set[str], changed_before: float) -> Iterator[Found]:
    """Yields the lists and data files that are in no snapshot, and that no operation is writing.

    Args:
        table: The table.
        named: Paths from ``named_files``.
        changed_before: Time of the store's clock, s. Files that were written later are
            skipped, because an operation may be about to commit them.
    """
    for folder in (*folders(), "changes", "exports", "manifest/lists", REPORTS_FOLDER):
        for file in own_files(table, folder):
            inside = below(table, file.path)
            if inside not in named and file.changed < changed_before and "/leases/" not in inside:
                yield file


def delete_purged(table: WebTable, since: int, purge: NameEdit) -> dict[str, int]:
    """Deletes files that only older snapshots need, and files that may contain purged names.

    Manifests stay, because they have no URLs, only numbers and names of files. Flushed
    pages of an open batch also stay, without purged rows.

    Args:
        table: The table.
        since: Number of the snapshot that the purge has made.
        purge: Removes the purged names.

    Returns:
        Numbers of deleted ``files`` and ``bytes``.
    """
    root = table.files
    table.settled_snapshot()  # files of changes are needed until they are applied
    components = load_manifest(table, since).components
    purge_time = table.written_at(since, {component.list for component in components.values()})
    changed_before = root.limit_after(purge_time)
    manifests = [load_manifest(table, number) for number in table.snapshots() if number >= since]
    named = named_files(table, manifests)
    unfinished = manifests[-1].unfinished.items()
    waiting = {name for name, batch in unfinished if batch.phase == "generated"}
    gone = []
    for file in unnamed_files(table, named, changed_before):
        if not is_mark(file.path) and not _is_spared(root, file.path, waiting, purge):
            if is_intent(file.path):
                note_lost(file.path)
            table.erase(file.path, since)
            gone.append(remove_file(file.path))
    for file in own_files(table, "seeds"):
        data = read_bytes(file.path, LARGEST_BYTES)
        lines = pl.Series(data.decode("utf-8", "replace").lower().splitlines())
        if len(lines) and lines.str.contains(purge.pattern).any():
            gone.append(remove_file(file.path))
    if is_cleaned(table, "batches"):
        forget_in_leases(root / "batches", purge)
    return {"files": len(gone), "bytes": sum(gone)}


def _is_spared(root: Place, path: Place, waiting: set[str], purge: NameEdit) -> bool:
    """Returns whether a leftover file is of an open batch, so that a fetch will adopt or commit it."""
    parts = below(root, path).split("/")
    if parts[:2] == ["manifest", "reports"]:
        return _is_spared_report(root, "/".join(parts), waiting, purge)
    # A running fetch may be about to commit documents.
    flushed = len(parts) == 4 and parts[1] in waiting and kind_of(parts[2]).flushed is not None
    if not flushed or path.name.startswith("."):
        return False
    component = "/".join(parts[:3])
    if not is_touched(path, component, purge):
        return True
    if kind_of(parts[2]).flushed is Flushed.ADOPTED:  # under a new name of the same attempt
        head, _, number = path.stem.rpartition("-")
        new = path.with_name(f"{head}{new_name('')[:4]}-{number}.parquet")
        rewrite(path, new, CountedEdit(purge, component))
    return False


def _is_spared_report(root: Place, path: str, waiting: set[str], purge: NameEdit) -> bool:
    """Returns whether a file of reports is of a running fetch, and names no purged row."""
    try:
        reports = list(load_reports(root, [Written(listed=path)]))
    except UserError:
        return False
    files = [file for report in reports for file in report.files]
    keys = pl.Series(
        [key for file in files for key in (file.first, file.last) if key], dtype=pl.String
    )
    batches = {report.component.split("/")[1] for report in reports if "/" in report.component}
    return bool(batches) and batches <= waiting and not purge.blocklist.blocks(keys).any()


def forget_in_leases(folder: Place, purge: NameEdit) -> None:
    """Removes purged hosts from the lease files of attempts in a folder."""
    for file in list_files(folder):
        if file.path.suffix != ".beat":
            continue
        with contextlib.suppress(ValueError, KeyError, TypeError, UserError):  # the file is damaged
            record = json_object(read_bytes(file.path))
            hosts: Mapping[str, object] = record["hosts"]
            keys = pl.Series([host_key(host) for host in hosts], dtype=pl.String)
            gone = purge.blocklist.blocks_hosts(keys).to_list()
            if any(gone):
                remaining_hosts = {
                    h: v for (h, v), bad in zip(hosts.items(), gone, strict=True) if not bad
                }
                overwrite_bytes(
                    file.path, json.dumps({**record, "hosts": remaining_hosts}).encode()
                )


@dataclass(frozen=True)
class PurgeItem:
    """One item of the work of a purge.

    Attributes:
        operation: The purge.
        component: The component of the tablet.
        tablet: A tablet, or one that stands for a single file; None means the blocklist.
    """

    operation: Operation
    component: str
    tablet: Tablet | None = None


@dataclass(frozen=True)
class PurgeTask:
    """The task of a purge.

    Attributes:
        change_blocklist: Changes the blocklist.
        edit: Removes names from rows; None: only the blocklist is changed.
    """

    change_blocklist: BlocklistChange
    edit: NameEdit | None = None

    def items(self, operation: Operation) -> Iterator[PurgeItem]:
        """Yields the items of the work on a table."""
        yield PurgeItem(operation, BLOCKLIST_COMPONENT)
        for component in self.components(operation):
            if component != BLOCKLIST_COMPONENT:
                component_tablets = tablets_of_component(component, operation.files(component))
                yield from (PurgeItem(operation, component, tablet) for tablet in component_tablets)

    def components(self, operation: Operation) -> Iterable[str]:
        """Returns the components to purge.

        Raises:
            UserError: A component is of a newer version: it is not known what to remove from it.
        """
        components = () if self.edit is None else operation.manifest().components
        if unknown := unknown_components(components):
            raise UserError(
                f"purge: {unknown[0]} belongs to a newer nutbeam; this version does not know what "
                "to remove from it: upgrade nutbeam"
            )
        return components

    def __call__(self, item: PurgeItem) -> Iterator[Written]:
        """Purges an item."""
        if item.tablet is None:
            yield update_blocklist(item.operation, self.change_blocklist)
        elif self.edit is not None:
            yield from _edit(item.operation.table, item.component, item.tablet, self.edit)


def _edit(table: WebTable, component: str, tablet: Tablet, edit: NameEdit) -> Iterator[Written]:
    """Edits a tablet, or the single file that it stands for."""
    kind = kind_of(component)
    if kind.in_tablets:
        return table.edit(component, tablet, edit)
    if kind.layout is not RowLayout.SHARDS:
        return edit_file(table.files, component, tablet.base, edit)
    from ..indexing.shard_merging import edit_shard  # late: only a purge of an index needs it

    return edit_shard(table.files, component, tablet.base, edit)


class PurgedFiles(NamedTuple):
    """Files without the purged names, and the purge operation, pinned to their snapshot."""

    operation: Operation
    written: tuple[Written, ...]


def prepare_purge(operation: Operation, written: Iterable[Written], task: PurgeTask) -> PurgedFiles:
    """Returns purged files of the newest snapshot, if it can be read.

    It is called before the hold, so that jobs wait only for the rest of the work.
    """
    purged = PurgedFiles(operation, tuple(written))
    if not operation.idle:
        with contextlib.suppress(SnapshotTooOld):
            return rebase(purged, task)
    return purged


def commit_purge(
    operation: Operation, purged: PurgedFiles, task: PurgeTask, wait_s: float
) -> Manifest:
    """Makes the next snapshot, once. The caller must have a hold.

    Args:
        operation: The pinned operation of the purge.
        purged: The purged files so far.
        task: The task of the purge.
        wait_s: Longest wait for jobs under way, s. Later jobs fail and must be run again.

    Raises:
        ConflictError: Other operations have committed during each try.
    """
    until, newest = time.monotonic() + wait_s, None
    for _ in range(_TRIES):
        done = find_commit(operation)
        if done is not None:
            return done
        wait_for_jobs(operation, until)
        try:
            purged = rebase(purged, task)
            terms = CommitTerms(reads=frozenset({"*"}))
            return commit_once(purged.operation, list(purged.written), terms)
        except (ConflictError, SnapshotTooOld) as error:
            previous, newest = newest, operation.table.latest_snapshot()
            if newest == previous:  # nobody has committed: the same error would come again
                note_loss(operation)
                raise
            _LOG.info("purge %r begins its commit again: %s", operation.id, error)
    note_loss(operation)
    raise ConflictError(f"purge: others have committed {_TRIES} times meanwhile: run it again")


def wait_for_jobs(operation: Operation, until: float) -> None:
    """Waits for the jobs that would fail if the purge committed now; logs their names.

    Args:
        operation: The purge.
        until: Moment on the monotonic clock at which waiting ends.
    """
    names: list[str] = []
    with contextlib.suppress(UserError):  # a damaged record is no reason to wait
        names = disturbed_by(operation.table, "purge")
    for name in names:
        with contextlib.suppress(UserError):
            job = pinned_operation(operation.address, name)
            if job is not None and not has_committed(job):
                _wait_for(operation, job, until)


def _wait_for(operation: Operation, job: Operation, until: float) -> None:
    logged = False
    while not has_ended(job) and (seconds_left := until - time.monotonic()) > 0:
        if not logged:
            logged = True
            _LOG.warning(
                "purge %r waits for %s %r to commit, for %d s at most",
                operation.id, job.job, job.id, seconds_left,
            )  # fmt: skip
        pause_in_hold()


def rebase(purged: PurgedFiles, task: PurgeTask) -> PurgedFiles:
    """Returns purged files of the newest snapshot; reads only files that are new in it."""
    newest = purged.operation.table.settled_snapshot()
    if newest == purged.operation.snapshot:
        return purged
    now = dataclasses.replace(purged.operation, snapshot=newest)
    written: list[Written] = []
    for component in sorted({BLOCKLIST_COMPONENT, *task.components(now)}):
        written += _rebase_component(purged, now, component, task)
    return PurgedFiles(now, tuple(written))


def _rebase_component(
    purged: PurgedFiles, now: Operation, component: str, task: PurgeTask
) -> Iterable[Written]:
    parts = [part for part in purged.written if part.component == component]
    was, is_now = (op.manifest().components.get(component) for op in (purged.operation, now))
    if was == is_now:
        return parts
    if component == BLOCKLIST_COMPONENT or task.edit is None:
        return task(PurgeItem(now, BLOCKLIST_COMPONENT))
    old_tablets, new_tablets = (
        tablets_of_component(component, op.files(component)) for op in (purged.operation, now)
    )
    if kind_of(component).in_tablets:
        edited = Edited(purged.operation.snapshot, old_tablets, parts)
        return now.table.edit_again(component, task.edit, edited, new_tablets)
    old_paths, new_paths = ({tablet.paths for tablet in t} for t in (old_tablets, new_tablets))
    added = [tablet for tablet in new_tablets if tablet.paths not in old_paths]
    edits = (_edit(now.table, component, tablet, task.edit) for tablet in added)
    return [part for part in parts if part.replaced in new_paths] + [*itertools.chain(*edits)]
