"""compact: folds tablets, drops superseded files, deletes files that no reader needs.

::

    tablets with runs, tiny neighbours ─ fold ─▶ state', hosts'
    shards of an index, more than a few ─ merge ─▶ shards'
    tablets ─ files of batches that rows name ─ other files of old batches are dropped ─▶ batches'
                                              └ those with few such rows are written again ─▶ batches'
    then: old snapshots, files that no kept snapshot names, old operations ─ deleted

It changes no row, so readers are not disturbed; with ``--keep_inlinks`` it leaves out links, and
with ``--keep_bodies`` old bodies. It skips tablets that another job has changed in the meantime. It skips all tablets while a job is
under way that changes tablets.
"""

import dataclasses
import functools
import logging
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import apache_beam as beam
import polars as pl
from rich.filesize import decimal

from ..io.indexing.shard_merging import merge_shards, plan_merges
from ..io.indexing.shards import with_orders
from ..io.snapshots.commit import CommitTerms, commit
from ..io.snapshots.manifest import Manifest, load_manifest
from ..io.snapshots.operations import UPKEEP, Operation
from ..io.storage.file_errors import is_no_room
from ..io.storage.least_free import DiskLow, table_room
from ..io.table.opening import open_table
from ..io.table.web_table import WebTable
from ..io.tablets.file_lists import DataFile, load_files
from ..io.tablets.tablets import Tablet, tablets
from ..io.tablets.written import Written, sum_counts
from ..io.upkeep.compaction import fold, merge_files, plan_folds, spent_batches, superseded_files
from ..io.upkeep.retention import RetentionOptions, delete_expired, disturbed_by
from ..io.upkeep.thinning import FileToThin, files_to_thin, thin_file
from ..policy.components.declaration import RowLayout
from ..policy.components.kinds import KINDS, components_in_tablets, components_of, kind_of
from ..policy.components.lost_files import STATE_FILES
from ..transforms.for_each import ForEach, Spread, TabletItem
from ..transforms.operations import Begin, Finish
from ..transforms.tickets import Ticket
from ..web.base.errors import UsageError, UserError
from ..web.base.options import option, seconds
from ..web.base.progress import PROGRESS
from .base.command import TABLE, Invocation
from .launch.job import run_job
from .launch.job_options import JobOptions

_LOG = logging.getLogger("nutbeam")
ARGUMENTS = (TABLE,)
NAMED = "named"
_SMALL_FILES = 1_000_000  # lists, manifests and records of a job take less, bytes
# Columns of components that name files of batches: these files are kept.
REFERRING = {"state": tuple(STATE_FILES)}


@dataclasses.dataclass(frozen=True)
class Options(RetentionOptions, JobOptions):
    """Options of compact."""

    full: bool = option(
        False,
        "Rewrite all tablets, and merge all shards of indexes. Without it, compact rewrites only "
        "tablets that have runs, are very small or too large, and merges only many small shards.",
    )
    keep_inlinks: int = option(
        0,
        "Number of inlinks of a page that a rewritten tablet of the link table keeps: the best, as "
        "readers choose them; 0 keeps all. Ranks use all links that are kept.",
        minimum=0,
    )
    keep_batches: int = option(
        1,
        "How many of the newest batches keep all their files. A file of an older batch is deleted "
        "after the retention if all its pages were fetched again, and written again without these "
        "if at least half of them were.",
        minimum=0,
    )
    keep_bodies: float = seconds(
        -1.0,
        "How long the body of a page is kept after its fetch, but not shorter than the retention. Then "
        "compact deletes bodies of older batches; answers, titles, texts and links stay. -1: as long "
        "as the page.",
        minimum=-1.0,
    )


@dataclasses.dataclass(frozen=True)
class Folding:
    """Tablets that are rewritten together."""

    operation: Operation
    component: str
    group: tuple[Tablet, ...]


@dataclasses.dataclass(frozen=True)
class Merging:
    """Shards of an index that are merged; ``every`` are all of the index."""

    operation: Operation
    component: str
    group: tuple[DataFile, ...]
    every: tuple[DataFile, ...]


def run(invocation: Invocation) -> int:
    table = open_table(str(invocation.table))
    if invocation.options.keep_inlinks and not table.in_files("links"):
        raise UsageError(
            "--keep_inlinks is for link tables in files; in Bigtable compact rewrites no rows, got "
            f"{invocation.options.keep_inlinks}"
        )
    try:
        _make_room(table, invocation.options.snapshot_retention)
        return run_job(invocation, build, "compact")
    except UserError as error:
        if not is_no_room(error):
            raise
        raise DiskLow(_needed_room(table, invocation.options)) from error


def _needed_room(table: WebTable, options: Options) -> str:
    """Returns how much room compact needs on a full disk, and what to do."""
    manifest = load_manifest(table, table.latest_snapshot())
    in_files = filter(table.in_files, components_in_tablets(manifest.components))
    listed = (tablets(load_files(table, manifest.components.get(name))) for name in in_files)
    rewritten = sum(
        file.bytes
        for all_tablets in listed
        for group in plan_folds(all_tablets, full=options.full)
        for tablet in group
        for file in (tablet.base, *tablet.runs)
    )
    return (
        f"the disk of {str(table)!r} is full, and compact writes up to {decimal(rewritten + _SMALL_FILES)} "
        "before it deletes what it replaces: delete or move other files of the disk, or give a shorter "
        "--snapshot_retention, then run the same again; no row was changed"
    )


def _make_room(table: WebTable, retention_s: float) -> None:
    """Deletes expired files before any is written, if the disk is nearly full; ``_commit`` is too late."""
    room = table_room(table.files, -1)
    if room is not None and room.is_low and table.snapshots():
        freed = delete_expired(table, retention_s).get("deleted/bytes", 0)
        what = f"{decimal(freed)} of old files are" if freed else "there is nothing old that can be"
        _LOG.warning("the disk is nearly full: %s deleted first", what)


def build(tickets: beam.PCollection[Ticket], options: Options) -> beam.PCollection[Ticket]:
    """Compacts a table; the ticket that comes out is for the next job."""
    operations = tickets | "Begin" >> Begin("compact", allows=UPKEEP)
    items = functools.partial(_items, options=options)
    done = operations | "Work" >> ForEach(
        items, _work, (options.keep_inlinks,), outputs=(NAMED,), step="Work"
    )
    named = done[NAMED] | "Unite" >> beam.CombineGlobally(_unite).without_defaults()
    thinned = (
        named
        | "Old" >> beam.FlatMap(_files_to_thin, beam.pvalue.AsSingleton(operations), options)
        .with_output_types(tuple[int, Any])
        | Spread()
        | "Thin" >> beam.FlatMap(_thin).with_output_types(Written)
    )  # fmt: skip
    commit = functools.partial(_commit, options=options)
    return (operations, done["main"], named, thinned) | Finish(commit, whole=("Work",))


def _items(operation: Operation, options: Options) -> Iterator[Folding | TabletItem | Merging]:
    items: list[Folding | TabletItem | Merging] = []
    components = operation.manifest().components
    for component in components_in_tablets(components):
        all_tablets = tablets(operation.files(component))
        foldable = all_tablets if operation.table.in_files(component) else ()
        folds = plan_folds(foldable, full=options.full)
        items += [Folding(operation, component, group) for group in folds]
        if component in REFERRING and _spent_batches(operation, options):
            items += [TabletItem(operation, component, tablet) for tablet in all_tablets]
    of_shards = [kind for kind in KINDS.values() if kind.layout is RowLayout.SHARDS]
    for component in [name for kind in of_shards for name in components_of(kind, components)]:
        shards = tuple(with_orders(operation.table, operation.files(component)))
        groups = plan_merges(shards, full=options.full)
        items += [Merging(operation, component, group, shards) for group in groups]
    PROGRESS.start("compact", total=len(items), unit="tablets")
    yield from items


def _spent_batches(operation: Operation, options: Options) -> list[str]:
    return spent_batches(
        operation.manifest(), operation.now, options.snapshot_retention, options.keep_batches
    )


def _work(item: Folding | TabletItem | Merging, most_inlinks: int) -> Iterator[Any]:
    PROGRESS.add()
    if isinstance(item, Merging):
        yield merge_shards(item.operation.table, item.component, item.group, item.every)
        return
    if isinstance(item, Folding):
        yield fold(item.operation, item.component, item.group, most_inlinks)
        return
    columns = REFERRING[item.component]
    rows = item.operation.table.read(item.component, [item.tablet], columns)
    names = pl.concat([rows.get_column(name) for name in columns]).drop_nulls()
    yield beam.pvalue.TaggedOutput(NAMED, dict(names.alias("file").value_counts().iter_rows()))


def _beside_others(operation: Operation, written: list[Written]) -> list[Written]:
    """Drops the folded tablets if another job is changing tablets, whose commit would fail."""
    folds = [part for part in written if kind_of(part.component).in_tablets]
    if not folds or not disturbed_by(operation.table, "compact"):
        return written
    skipped = sum(part.counts.get("tablets/folded", 0) for part in folds)
    rest = [part for part in written if not kind_of(part.component).in_tablets]
    return [*rest, Written(counts={"tablets/in_use": skipped})]


def _unite(parts: Iterable[Mapping[str, int]]) -> dict[str, int]:
    return sum_counts(parts)


def _files_to_thin(
    live_rows: Mapping[str, int], operation: Operation, options: Options
) -> Iterator[tuple[int, FileToThin]]:
    ages = options.keep_bodies >= 0
    before = operation.now - int(1000 * options.keep_bodies) if ages else 0
    spent = _spent_batches(operation, options)
    yield from enumerate(files_to_thin(operation, spent, live_rows, before))


def _thin(numbered: tuple[int, FileToThin]) -> Iterator[Written]:
    yield from thin_file(numbered[1])


def _commit(
    operation: Operation, written: list[Written], named: list[Any], options: Options
) -> Manifest:
    """Commits folded tablets, drops old files of batches, and deletes old snapshots."""
    table, spent = operation.table, _spent_batches(operation, options)
    dropped = superseded_files(operation, spent, frozenset(_unite(named)))
    # Deletes old files before the commit, which records their number. Files that this commit
    # replaces are kept until the retention is over.
    swept = Written(counts=delete_expired(table, options.snapshot_retention))
    written = [*written, *dropped, *merge_files(operation), swept]
    terms = CommitTerms(forgets=frozenset(spent), not_rolled_back=bool(spent))
    manifest = commit(operation, _beside_others(operation, written), terms)
    if options.snapshot_retention == 0:
        delete_expired(table, 0)
    return manifest
