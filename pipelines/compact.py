"""compact: folds tablets, drops superseded files, deletes files that no reader needs.

::

    tablets with runs, tiny neighbours ─ fold ─▶ state', hosts'
    shards of an index, more than a few ─ merge ─▶ shards'
    tablets ─ files of old batches that rows name ─ by batch ─ other files are dropped ─▶ batches'
                                                            └ those with few such rows are written again ─▶ batches'
    then: old snapshots, files that no kept snapshot names, old operations ─ deleted

It changes no row, so readers are not disturbed; with ``--keep_inlinks`` it leaves out links, and
with ``--keep_bodies`` old bodies. It skips tablets that another job has changed in the meantime. It skips all tablets while a job is
under way that changes tablets.
"""

import functools
import itertools
import logging
from collections.abc import Iterable, Iterator
from typing import Any

import apache_beam as beam
import polars as pl
import pyarrow.compute as pc
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
from ..io.tablets.written import Written, check_whole
from ..io.upkeep.compaction import fold, merge_files, plan_folds, spent_batches, superseded_files
from ..io.upkeep.file_shares import (
    NAMED_FILES,
    LiveRows,
    Share,
    count_named_files,
    share_batches,
    sum_rows,
)
from ..io.upkeep.retention import RetentionOptions, delete_expired, disturbed_by
from ..io.upkeep.thinning import FileToThin, files_to_thin, thin_file
from ..policy.components.declaration import RowLayout
from ..policy.components.kinds import KINDS, components_in_tablets, components_of, kind_of
from ..policy.components.lost_files import STATE_FILES
from ..transforms.elements.chunks import Chunk
from ..transforms.for_each import ForEach, Spread, TabletItem, with_address
from ..transforms.operations import Begin, Finish
from ..transforms.tickets import Ticket
from ..web.base.dataclass import dataclass
from ..web.base.errors import UsageError, UserError
from ..web.base.options import option, seconds
from ..web.base.progress import PROGRESS
from .base.command import TABLE, Invocation
from .launch.job import run_job
from .launch.job_options import JobOptions

_LOG = logging.getLogger("nutbeam")
ARGUMENTS = (TABLE,)
NAMED, THIN = "named", "thin"
_GROUP = 16  # files that one worker writes again, one after the other
_SMALL_FILES = 1_000_000  # lists, manifests and records of a job take less, bytes
# Columns of components that name files of batches: these files are kept.
REFERRING = {"state": tuple(STATE_FILES)}


@dataclass(frozen=True)
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


@dataclass(frozen=True)
class Folding:
    """Tablets that are rewritten together."""

    operation: Operation
    component: str
    group: tuple[Tablet, ...]


@dataclass(frozen=True)
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
    done = operations | "Work" >> ForEach(items, _work, (options,), outputs=(NAMED,), step="Work")
    # Beam does not know the types of tagged outputs.
    done[NAMED].element_type = beam.typehints.Tuple[tuple[int, int], Chunk]
    summed = (
        done[NAMED]
        | "ByPart" >> beam.GroupByKey()
        | "Sum" >> beam.Map(_sum_part).with_output_types(tuple[int, Chunk])
    )
    shares = operations | "Shares" >> beam.FlatMap(_shares, options).with_output_types(
        tuple[int, Chunk]
    )
    judge = beam.FlatMap(_judge_files, beam.pvalue.AsSingleton(operations), options)
    old = (
        (summed, shares)
        | "Named" >> beam.Flatten()
        | "ByShare" >> beam.GroupByKey()
        | "Old" >> judge.with_outputs(THIN, main="main")
    )
    old[THIN].element_type = beam.typehints.Tuple[int, Any]
    thinned = old[THIN] | Spread() | "Thin" >> beam.FlatMap(_thin).with_output_types(Written)
    commit = functools.partial(_commit, options=options)
    return (operations, done["main"], old["main"], thinned) | Finish(commit, whole=("Work",))


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


def _work(item: Folding | TabletItem | Merging, options: Options) -> Iterator[Any]:
    PROGRESS.add()
    if isinstance(item, Merging):
        yield merge_shards(item.operation.table, item.component, item.group, item.every)
    elif isinstance(item, Folding):
        yield fold(item.operation, item.component, item.group, options.keep_inlinks)
    else:
        yield from _named_in(item, options)


def _named_in(item: TabletItem, options: Options) -> Iterator[Any]:
    """Yields which files the rows of a tablet name, by share and part; see ``file_shares``."""
    columns = REFERRING[item.component]
    rows = item.operation.table.read(item.component, [item.tablet], columns)
    names = pl.concat([rows.get_column(name) for name in columns])
    number = 0
    for key, counted in count_named_files(names, _shares_of(item.operation, options)):
        number += pc.sum(counted["rows"]).as_py()
        yield beam.pvalue.TaggedOutput(NAMED, (key, counted))
    yield Written(due={NAMED: number})


def _shares_of(operation: Operation, options: Options) -> dict[str, Share]:
    return share_batches(operation.manifest(), _spent_batches(operation, options))


def _sum_part(grouped: tuple[tuple[int, int], Iterable[Chunk]]) -> tuple[int, Chunk]:
    (number, _), chunks = grouped
    return number, sum_rows(chunks)


def _shares(operation: Operation, options: Options) -> Iterator[tuple[int, Chunk]]:
    """Yields each share without rows: if no row names a file of its batches, all of them go."""
    if not operation.idle:
        for number in {share.number for share in _shares_of(operation, options).values()}:
            yield number, NAMED_FILES.empty_table()


def _judge_files(
    share: tuple[int, Iterable[Chunk]], operation: Operation, options: Options
) -> Iterator[Any]:
    """Yields the files of a share that are dropped, and groups of those to write again."""
    number, chunks = share
    live_rows = LiveRows(sum_rows(chunks))
    shares = _shares_of(operation, options)
    batches = [batch for batch, own in shares.items() if own.number == number]
    bodies_before = (
        operation.now - int(1000 * options.keep_bodies) if options.keep_bodies >= 0 else 0
    )
    with operation.reading():
        for dropped in superseded_files(operation, batches, live_rows):
            yield with_address(dropped, operation)
        thin = files_to_thin(operation, batches, live_rows, bodies_before)
        for at, group in enumerate(iter(lambda: list(itertools.islice(thin, _GROUP)), [])):
            yield beam.pvalue.TaggedOutput(THIN, (number << 32 | at, group))
    yield Written(done={NAMED: live_rows.total})


def _thin(numbered: tuple[int, list[FileToThin]]) -> Iterator[Written]:
    for item in numbered[1]:
        for thinned in thin_file(item):
            yield with_address(thinned, item.operation)


def _beside_others(operation: Operation, written: list[Written]) -> list[Written]:
    """Drops the folded tablets if another job is changing tablets, whose commit would fail."""
    folds = [part for part in written if kind_of(part.component).in_tablets]
    if not folds or not disturbed_by(operation.table, "compact"):
        return written
    skipped = sum(part.counts.get("tablets/folded", 0) for part in folds)
    rest = [part for part in written if not kind_of(part.component).in_tablets]
    return [*rest, Written(counts={"tablets/in_use": skipped})]


def _commit(
    operation: Operation, written: list[Written], _: list[Any], options: Options
) -> Manifest:
    """Commits folded tablets and the rest of old batches, and deletes old snapshots."""
    # A name of a file that got lost on the way would cost the file.
    check_whole(operation.job, [Written(due={NAMED: 0}), *written], (NAMED,))
    table, spent = operation.table, _spent_batches(operation, options)
    # Deletes old files before the commit, which records their number. Files that this commit
    # replaces are kept until the retention is over.
    swept = Written(counts=delete_expired(table, options.snapshot_retention))
    written = [*written, *merge_files(operation), swept]
    terms = CommitTerms(forgets=frozenset(spent), not_rolled_back=bool(spent))
    manifest = commit(operation, _beside_others(operation, written), terms)
    if options.snapshot_retention == 0:
        delete_expired(table, 0)
    return manifest
