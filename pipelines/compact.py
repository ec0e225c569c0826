"""compact: folds tablets, drops what was superseded, deletes what nobody can read any more.

::

    tablets with runs, tiny neighbours ─ fold ─▶ state', hosts'
    tablets ─ which bodies do rows name ─ the rest of old batches is dropped ─▶ batches'
    then: old snapshots, files that no kept snapshot names, old operations ─ deleted

It changes nothing that the table says, so it disturbs nobody: tablets that
somebody changes meanwhile are left as they are, and all of them while an
inject, update or dedup is under way.
"""

import dataclasses
from collections.abc import Iterable, Iterator
from typing import Any

import apache_beam as beam
import polars as pl

from ..io.snapshots.commit import commit
from ..io.snapshots.operations import Operation
from ..io.tablets.tablets import Tablet, tablets
from ..io.tablets.written import Written
from ..io.upkeep.compaction import fold, merge_seeds, plan_folds, spent_batches, superseded
from ..io.upkeep.retention import changes_under_way, sweep
from ..policy.kinds import kind_of, kinds_in_tablets
from ..transforms.display import Displayed
from ..transforms.metrics import count
from ..transforms.operations import Begin, ForEach, Ticket, Together, gathered, ticket_after
from ..web.base.options import option
from ..web.base.progress import PROGRESS
from .command_line.command import TABLE, Invocation
from .launch.job import JobOptions, run_job

ARGUMENTS = (TABLE,)
NAMED = "named"


@dataclasses.dataclass(frozen=True)
class CompactOptions:
    """What compacting needs to know."""

    full: bool = option(
        False, "Write all tablets anew, not only those with runs on them.", group="compact"
    )
    snapshot_retention: int = option(
        604_800,
        "How long a snapshot can be read after it was replaced; then its files go. Longer than "
        "any export takes.",
        unit="s",
        minimum=0,
        group="compact",
    )
    keep_batches: int = option(
        1,
        "How many of the newest batches keep all their files. Of older ones, files of which all "
        "pages were fetched again go when the retention is over.",
        minimum=0,
        group="compact",
    )


@dataclasses.dataclass(frozen=True)
class Options(CompactOptions, JobOptions):
    """Options of compact."""


@dataclasses.dataclass(frozen=True)
class Folding:
    """Tablets that are written anew together."""

    operation: Operation
    component: str
    group: tuple[Tablet, ...]


@dataclasses.dataclass(frozen=True)
class Survey:
    """A tablet of the state whose rows may name files of old batches."""

    operation: Operation
    tablet: Tablet


def run(invocation: Invocation) -> int:
    return run_job(invocation, build, "compact")


def build(tickets: beam.PCollection[Ticket], options: CompactOptions) -> beam.PCollection[Ticket]:
    """Compacts a table; the ticket that comes out is for the next job."""
    operations = tickets | "Begin" >> Begin("compact")
    done = operations | "Work" >> ForEach(_Items(options), _work, outputs=(NAMED,), step="Work")
    named = done[NAMED] | "Unite" >> beam.CombineGlobally(_unite).without_defaults()
    return (operations, done["main"], named) | "Finish" >> Finish(options)


@dataclasses.dataclass
class Finish(Displayed):
    """Commits, and deletes.

    Input:  (operations, written, names of files that rows name).
    Output: one ticket for the next job.

    Cost: a shuffle of descriptors onto one key.
    """

    options: CompactOptions

    def expand(self, inputs: Any) -> beam.PCollection[Ticket]:
        finish = beam.Map(_finish, self.options).with_output_types(Ticket)
        return inputs | Together() | "Commit" >> finish


@dataclasses.dataclass(frozen=True)
class _Items:
    options: CompactOptions

    def __call__(self, operation: Operation) -> Iterator[Folding | Survey]:
        items: list[Folding | Survey] = []
        for component in kinds_in_tablets():
            known = tablets(operation.files(component))
            foldable = known if operation.root.in_files(component) else ()
            folds = plan_folds(foldable, full=self.options.full)
            items += [Folding(operation, component, group) for group in folds]
            if component == "state" and _spent(operation, self.options):
                items += [Survey(operation, tablet) for tablet in known]
        PROGRESS.start("compact", total=len(items), unit="tablets")
        yield from items


def _spent(operation: Operation, options: CompactOptions) -> list[str]:
    return spent_batches(
        operation.manifest(), operation.now, options.snapshot_retention, options.keep_batches
    )


def _work(item: Folding | Survey) -> Iterator[Any]:
    PROGRESS.add()
    if isinstance(item, Folding):
        yield fold(item.operation, item.component, item.group)
        return
    rows = item.operation.root.read("state", [item.tablet], ("page", "document"))
    names = pl.concat([rows.get_column("page"), rows.get_column("document")]).unique().drop_nulls()
    yield beam.pvalue.TaggedOutput(NAMED, frozenset(names))


def _beside_others(operation: Operation, written: list[Written]) -> list[Written]:
    """Leaves tablets as they are while somebody changes some: theirs would be gone."""
    folds = [part for part in written if kind_of(part.component).in_tablets]
    if not folds or not changes_under_way(operation.root):
        return written
    skipped = sum(part.counts.get("tablets/folded", 0) for part in folds)
    rest = [part for part in written if not kind_of(part.component).in_tablets]
    return [*rest, Written(counts={"tablets/in_use": skipped})]


def _unite(parts: Iterable[frozenset[str]]) -> frozenset[str]:
    return frozenset().union(*parts)


def _finish(grouped: tuple[int, Iterable[Any]], options: CompactOptions) -> Ticket:
    operation, written, named_in = gathered(grouped, ["Work"])
    if operation.idle:
        return ticket_after(operation, nothing=operation.idle == "nothing")
    named = _unite(named_in)
    spent = _spent(operation, options)
    written += [*superseded(operation, spent, named), *merge_seeds(operation)]
    root = operation.root
    # Before the commit, so that it tells what went; what it replaces is kept for a while anyway.
    written.append(Written(counts=sweep(root, options.snapshot_retention)))
    written = _beside_others(operation, written)
    made = commit(operation, written, forgets=frozenset(spent))
    if options.snapshot_retention == 0:
        sweep(root, 0)
    count(operation.job, made.counts)
    PROGRESS.finish()
    return ticket_after(operation, nothing=False)
