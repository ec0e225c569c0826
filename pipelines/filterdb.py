"""filterdb: applies today's rules to the URLs that the table has.

::

    state[key, status, distance, times] ─ normalize ─ filter ─ scope ─ age
        ├─ rows that move, keys that go ─ by tablet ─ drop, move, merge ─▶ state'
        ├─ duplicates of pages that leave ─ by tablet ─ the next dedup compares them ─▶ state'
        ├─ pages that leave ─ their documents ─ links ─ by tablet ─ end ─▶ links'
        ├─ hosts that seeds move to ─ by tablet ─ merge ─▶ hosts'
        └─ keys that go ─▶ removed' of each open batch

With ``--dry_run`` it counts what it would do, and writes nothing.
"""

import dataclasses
import functools
import logging
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import apache_beam as beam
import polars as pl

from ..io.batches.batches import note_removed
from ..io.rows.small_components import read_blocklist
from ..io.snapshots.operations import Operation
from ..io.tablets.resolve import Resolver, resolving
from ..io.tablets.written import Written
from ..policy.components.schema import HOSTS, to_frame
from ..policy.filtering import (
    JUDGED,
    KEPT_PAGE,
    LEAVING,
    REKEYED,
    DropOptions,
    FilterOptions,
    RowRules,
    arrivals,
    departures,
    filter_rows,
    hosts_of_seeds,
    kept_pages,
    leaving_pages,
    questioned_duplicates,
    rekey_rows,
)
from ..policy.inlinks.edges import LINK_CHANGES, LINKS_COMPONENT
from ..policy.recorded_rules import recorded_rules
from ..transforms.apply_changes import (
    COUNT_PLACES,
    RESOLVE,
    ApplyChanges,
    Target,
    counting_hosts,
    merge_resolver,
)
from ..transforms.elements.chunk_flow import tagged_chunks
from ..transforms.elements.chunks import MAX_ROWS, Chunk, named_chunks, to_chunks
from ..transforms.for_each import ForEach, TabletItem, tablet_items
from ..transforms.invert_links import EndLinks
from ..transforms.join_by_hash import JoinByHash
from ..transforms.operations import Begin, Commit
from ..transforms.partition import partitions_of_rows
from ..transforms.tickets import Ticket
from ..transforms.wiring.display import Displayed
from ..web.base.dataclass import dataclass
from ..web.base.options import option
from ..web.base.progress import PROGRESS
from .base.command import TABLE, Invocation
from .generating.generate_rules import judge_today
from .invertlinks import link_resolver
from .launch.job import run_job
from .launch.job_options import JobOptions
from .upkeep.dry_run import BeginDryRun, EndDryRun, Example, run_dry

ARGUMENTS = (TABLE,)
_LOG = logging.getLogger("nutbeam.filterdb")
_OPEN = (
    "batch %s is not updated yet: its update adds no URL again that is removed now, but it may add "
    "others by the rules of its time: run filterdb again after its updatedb"
)
_COUNTS = "counts"
_SOURCES = "sources"
_KEPT, _LEAVING = "kept", "leaving"
_ROW_BYTES = 150  # size of a row in the shuffle of duplicates
ENDED_LINKS = {LINKS_COMPONENT: Target(LINK_CHANGES, link_resolver)}
# Judges rows of the state; see ``judge_today``.
RowJudge = Callable[[pl.DataFrame, Operation], pl.DataFrame]


@dataclass(frozen=True)
class Options(FilterOptions, JobOptions):
    """Options of filterdb."""

    dry_run: bool = option(False, "Change nothing: count what would be done, and show examples.")


@dataclass(frozen=True)
class Filtering:
    """How the rows of a tablet are filtered.

    Attributes:
        judge: What the rules say of rows.
        ages: Which rows go because of their age; None for none.
        family: Under which name dropped rows are counted.
        examples: Whether to show examples of them, and to note nothing for open batches.
    """

    judge: RowJudge
    ages: DropOptions | None = None
    family: str = "dropped"
    examples: bool = False


def run(invocation: Invocation) -> int:
    return (run_dry if invocation.options.dry_run else run_job)(invocation, build, "filterdb")


def build(tickets: beam.PCollection[Ticket], options: Options) -> beam.PCollection[Ticket]:
    """Filters the rows of the state; returns the ticket for a next job."""
    trial = options.dry_run
    begins = BeginDryRun("filterdb") if trial else Begin("filterdb")
    operations = tickets | "Begin" >> begins
    judge = functools.partial(judge_today, options=options)
    changes, counts = operations | FilterKnown(Filtering(judge, options, examples=trial))
    targets = {
        "state": Target(REKEYED, _resolver, COUNT_PLACES), "hosts": Target(HOSTS, merge_resolver), **ENDED_LINKS,
    }  # fmt: skip
    written = (operations, changes) | ApplyChanges(targets, trial)
    whole = ("Tablets", RESOLVE)
    reads = ("state", "hosts", "blocklist", "batches", LINKS_COMPONENT)
    ends = (
        EndDryRun(whole)
        if trial
        else Commit(reads=reads, whole=whole, rules=recorded_rules(options))
    )
    return (operations, written, counts) | "Commit" >> ends


@dataclasses.dataclass
class FilterKnown(Displayed):
    """Filters the rows of the state, and calls duplicates of pages that leave into question.

    The links of pages that leave end.

    Input:  operations.
    Output: (changes, counts).

    Cost: a shuffle of the keys of duplicates, and two of those of leaving pages.

    Attributes:
        how: How rows are filtered.
        step: Name under which ``Commit`` gets the numbers of tablets.
    """

    how: Filtering
    step: str = "Tablets"

    def expand(self, operations: beam.PCollection[Operation]) -> Any:
        filtered = operations | "Tablets" >> ForEach(
            _tablets, _filter, (self.how,), tuple[str, Chunk],
            outputs=(_COUNTS, _KEPT, _LEAVING, _SOURCES), step=self.step, reports=_COUNTS,
        )  # fmt: skip
        filtered[_SOURCES].element_type = beam.typehints.Tuple[str, Chunk]
        ended = (operations, filtered[_SOURCES]) | "EndLinks" >> EndLinks()
        partitions = partitions_of_rows(operations, "state", _ROW_BYTES)
        joined = (filtered[_KEPT], filtered[_LEAVING]) | "KeptPages" >> JoinByHash(
            "kept", {"leaves": "leaves"}, partitions
        )
        questioned = joined | "Questioned" >> beam.FlatMap(_question_duplicates).with_output_types(
            tuple[str, Chunk]
        )
        return (filtered["main"], questioned, ended) | "Changes" >> beam.Flatten(), filtered[
            _COUNTS
        ]


def _question_duplicates(joined: Chunk) -> Iterator[tuple[str, Chunk]]:
    yield from named_chunks("state", questioned_duplicates(to_frame(joined)))


def _tablets(operation: Operation) -> list[TabletItem]:
    if operation.job == "inject":  # which counts lines
        return tablet_items(operation, "state")
    for name, batch in operation.manifest().batches.items():
        if batch.phase != "updated":
            _LOG.warning(_OPEN, name)
    return tablet_items(operation, "state", phase="filterdb")


def _filter(item: TabletItem, how: Filtering) -> Iterator[Any]:
    operation, tablet = item.operation, item.tablet
    linked = LINKS_COMPONENT in operation.manifest().components
    columns = (*JUDGED, "duplicate_of", *(["document"] if linked else []))
    rows = operation.table.read("state", [tablet], columns).sort("key")
    rules = RowRules(read_blocklist(operation), operation.now, how.ages, how.family)
    counts = Counter[str]()
    leaving = []
    for part in rows.iter_slices(MAX_ROWS):
        judged = how.judge(part, operation)
        leaving_rows, numbers = filter_rows(part, judged, rules)
        leaving.append(leaving_rows)
        counts.update(numbers)
    if operation.job != "inject":
        PROGRESS.add()
    yield beam.pvalue.TaggedOutput(_COUNTS, Written(counts=counts))
    yield from tagged_chunks(_KEPT, kept_pages(rows), KEPT_PAGE)
    if sum(map(len, leaving)):
        yield from _changes(item, pl.concat(leaving), how)
        yield from _sources(rows, pl.concat(leaving)) if linked else ()


def _changes(item: TabletItem, leaving: pl.DataFrame, how: Filtering) -> Iterator[Any]:
    yield from named_chunks("state", departures(leaving))
    yield from tagged_chunks(_LEAVING, leaving_pages(leaving), LEAVING)
    if leaving.get_column("reason").null_count():
        for rows in item.operation.table.scan("state", item.tablet):
            arrived = arrivals(rows, leaving)
            yield from named_chunks("state", arrived, REKEYED)
            yield from named_chunks("hosts", hosts_of_seeds(arrived), HOSTS)
    if how.examples:
        noted: Any = [Example(*row) for row in leaving.group_by("reason").head(3).iter_rows()]
    else:
        noted = note_removed(item.operation, leaving.get_column("key"))
    yield from (beam.pvalue.TaggedOutput(_COUNTS, note) for note in noted)


def _sources(rows: pl.DataFrame, leaving: pl.DataFrame) -> Iterator[Any]:
    """Yields the keys of pages that leave, by the file of their documents."""
    named = rows.join(leaving.select("key"), on="key", how="semi").drop_nulls("document")
    for (document,), pages in named.group_by("document", maintain_order=True):
        for chunk in to_chunks(pages.select("key")):
            yield beam.pvalue.TaggedOutput(_SOURCES, (str(document), chunk))


def _resolver(operation: Operation) -> Resolver:
    rekey = functools.partial(rekey_rows, now=operation.now)
    return counting_hosts(resolving(rekey, drops=True))
