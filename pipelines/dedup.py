"""dedup: marks pages whose content equals, or nearly equals, that of another page.

::

    batch.outcome signatures ─ probe ─ state[signature] of those only ─ FollowTwins ─ DedupByHash
        ─ LeadNearPages ─ JoinByHash: the page that stays ─ by tablet ─ mark, revive ─▶ state'

A first step finds the pages that are no longer duplicates: their page is gone, changed or unknown.
With near duplicates this step and a second one also find the other pages to compare again: pages
near those of the batch, duplicates of these, and pages near these.
"""

import dataclasses
import functools
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import apache_beam as beam
import numpy as np
import polars as pl

from ..io.batches.batches import batch_component
from ..io.snapshots.entries import DEDUP
from ..io.snapshots.manifest import newest_manifest
from ..io.snapshots.operations import Operation
from ..io.storage.parquet_files import collect, scan
from ..io.table.opening import open_table
from ..io.tablets.resolve import Resolver, resolving
from ..io.tablets.tablets import Tablet, tablets
from ..policy.components.schema import OUTCOME, Status, conform, empty, to_frame
from ..policy.dedup.duplicates import (
    COMPARED,
    OF_STATE,
    QUESTIONED,
    SCHEME,
    SIGNATURES,
    VERDICTS,
    DedupOptions,
    Questioned,
    alive_rows,
    apply_verdicts,
    comparable_rows,
    follow_twins,
    is_returning,
    near_duplicates_of,
    near_signatures,
    order_by,
    signature_rows,
    signatures_to_compare,
    simhashes,
)
from ..policy.dedup.near_components import rounds_for
from ..transforms.apply_changes import COUNT_PLACES, RESOLVE, ApplyChanges, Target, counting_hosts
from ..transforms.dedup_by_hash import DUPLICATES, KEPT, DedupByHash
from ..transforms.elements.chunks import Chunk, to_chunks
from ..transforms.for_each import ForEach
from ..transforms.join_by_hash import JoinByHash
from ..transforms.near_pages.lead_near_pages import LeadNearPages
from ..transforms.operations import Begin, Commit
from ..transforms.partition import grouped_by_hash, partitions_of_rows
from ..transforms.tickets import Ticket, phase_of
from ..transforms.wiring.display import Displayed
from ..web.base.dataclass import dataclass
from ..web.base.options import option
from ..web.base.progress import PROGRESS
from .base.command import TABLE, Invocation
from .launch.job import run_job
from .launch.job_options import BatchOptions

_DONE = "done"
ARGUMENTS = (TABLE,)
_ROW_BYTES = 200  # size of a row in the shuffle
_STATE = "state"


@dataclass(frozen=True)
class Options(DedupOptions, BatchOptions):
    """Options of dedup."""

    batch: str = option(
        "",
        "Compare only the pages of this batch, and of batches that no dedup has compared yet, with "
        "all other pages. Without it, compare all pages with each other.",
        group="dedup",
    )


@dataclass(frozen=True)
class TabletToProbe:
    """A tablet of the state to probe.

    ``outcome`` has the files with the signatures to find; None means all rows of the tablet.
    """

    operation: Operation
    tablet: Tablet
    outcome: tuple[str, ...] | None

    def read_questions(self) -> Questioned:
        """Returns the signatures and duplicates that the batches make dedup check."""
        table = self.operation.table
        outcome_rows = scan([table / path for path in self.outcome or ()], OUTCOME).select(COMPARED)
        return signatures_to_compare(collect(outcome_rows))

    def rows(self, wanted: pl.Expr, columns: tuple[str, ...] = OF_STATE) -> pl.DataFrame:
        """Returns the wanted rows of the tablet."""
        table = self.operation.table
        return table.read(_STATE, [self.tablet], columns, lambda state: state.filter(wanted))


def run(invocation: Invocation) -> int:
    every = not invocation.options.batch
    address = open_table(str(invocation.table)).worker_address()
    return run_job(invocation, functools.partial(_build_of_table, address, every), "dedup")


def _build_of_table(
    address: str, every: bool, tickets: beam.PCollection[Ticket], options: Options
) -> beam.PCollection[Ticket]:
    manifest = newest_manifest(address)
    if options.batch in manifest.batches:
        return build_of_batch(manifest.batches[options.batch].urls)(tickets, options)
    state = manifest.components.get(_STATE)
    return build(tickets, options, state.rows if state else 0, all_pages=every)


def build_of_batch(urls: int) -> Callable[[Any, Any], Any]:
    """Returns a function that builds the job for a batch: as many other pages may be near its pages."""
    return functools.partial(build, pages=2 * urls)


def build(
    tickets: beam.PCollection[Ticket],
    options: DedupOptions,
    pages: int = 0,
    *,
    all_pages: bool = False,
) -> beam.PCollection[Ticket]:
    """Marks duplicates; the ticket that comes out is for the next job.

    Args:
        tickets: One ticket.
        options: The options.
        pages: About how many pages may be near others: many of them meet in rounds, see
            ``NearComponents``. It does not change what is found.
        all_pages: Whether the ticket has no batch, so that nothing must be found to compare.
    """
    operations = tickets | "Begin" >> Begin("dedup")
    side_inputs, reports, steps = (
        ((), (), ()) if all_pages else _parts_to_compare(operations, options)
    )
    probed = operations | "Tablets" >> ForEach(
        _tablets,
        _probe,
        (options, *side_inputs),
        Chunk,
        outputs=(_DONE,),
        step="Tablets",
        reports=_DONE,
    )
    partitions = partitions_of_rows(operations, _STATE, _ROW_BYTES)
    verdicts = probed["main"] | Judge(options, partitions, rounds_for(pages))
    written = (operations, verdicts) | ApplyChanges(
        {_STATE: Target(VERDICTS, verdict_resolver, COUNT_PLACES)}
    )
    return (operations, written, probed[_DONE], *reports) | Commit(
        reads=(_STATE,), takes_in=DEDUP, takes_all=True, whole=(*steps, "Tablets", RESOLVE)
    )


def _parts_to_compare(operations: beam.PCollection[Operation], options: DedupOptions) -> Any:
    """Finds the pages that must be compared again because of a batch.

    Returns:
        (side inputs of ``_probe``, reports, names of the steps).
    """
    common = {"element": Chunk, "outputs": (_DONE,), "reports": _DONE}
    near_pages = operations | "NearPages" >> ForEach(
        _tablets_of_batch, _near_pages, (options,), step="NearPages", **common
    )
    near = _as_list(near_pages["main"], "Near")
    if not options.near:
        return (near,), (near_pages[_DONE],), ("NearPages",)
    duplicates = operations | "DuplicatesOfNear" >> ForEach(
        _tablets_of_batch, _duplicates_of_near, (near,), step="DuplicatesOfNear", **common
    )
    reports = (near_pages[_DONE], duplicates[_DONE])
    return (
        (near, _as_list(duplicates["main"], "Duplicates")),
        reports,
        ("NearPages", "DuplicatesOfNear"),
    )


def _as_list(chunks: beam.PCollection[Chunk], name: str) -> beam.pvalue.AsList:
    """Returns chunks as a side input.

    They pass through a step of their own: BundleBasedDirectRunner mixes up the outputs of a step
    that has several, if one of them is a side input.
    """
    return beam.pvalue.AsList(chunks | name >> beam.Map(_same_chunk).with_output_types(Chunk))


def _same_chunk(chunk: Chunk) -> Chunk:
    return chunk


@dataclasses.dataclass
class Judge(Displayed):
    """Finds the page that stays of each group of pages with the same or nearly the same content.

    Input:  chunks of SIGNATURES rows.
    Output: pairs of ``state`` and a chunk of VERDICTS rows.

    Attributes:
        options: The order in which pages are better, and how near pages are duplicates.
        partitions: Number of partitions, as a side input.
        rounds: As in LeadNearPages.
    """

    options: DedupOptions
    partitions: beam.pvalue.AsSideInput
    rounds: int = 0

    def expand(self, pages: beam.PCollection[Chunk]) -> beam.PCollection[tuple[str, Chunk]]:
        options, verdict = self.options, tuple[str, Chunk]
        if SCHEME in options.compare_order:
            pages = pages | "Twins" >> FollowTwins(options, self.partitions)
        names, largest_first = order_by(options, twins=False)
        order, descending = tuple(names), tuple(largest_first)
        divided = pages | "Groups" >> DedupByHash("group", order, descending, self.partitions)
        winner = JoinByHash("group", {"key": "duplicate_of"}, self.partitions)
        named = (
            (divided[DUPLICATES], divided[KEPT])
            | "Winners" >> winner
            | "Duplicates" >> beam.Map(_verdicts).with_output_types(verdict)
        )
        if options.near:
            lead = LeadNearPages(
                options.dedup_distance, order, descending, self.partitions, self.rounds
            )
            settled = divided[KEPT] | "Near" >> lead
            judge = beam.FlatMap(_near_verdicts).with_output_types(verdict)
        else:
            settled = divided[KEPT]
            judge = beam.Map(_revive_duplicates).with_output_types(verdict)
        return (named, settled | "Settled" >> judge) | "Verdicts" >> beam.Flatten()


@dataclasses.dataclass
class FollowTwins(Displayed):
    """Ranks pages right after the page whose URL differs only by its scheme, if that decides.

    Input:  chunks of SIGNATURES rows.
    Output: the same rows.

    Cost: a shuffle of all rows.
    """

    options: DedupOptions
    partitions: beam.pvalue.AsSideInput

    def expand(self, pages: beam.PCollection[Chunk]) -> beam.PCollection[Chunk]:
        follow = beam.FlatMap(_follow, self.options).with_output_types(Chunk)
        return grouped_by_hash(pages, "twins", self.partitions, "ByUrl") | "Follow" >> follow


def _follow(grouped: tuple[int, Iterable[Chunk]], options: DedupOptions) -> Iterator[Chunk]:
    rows = pl.concat([to_frame(chunk) for chunk in grouped[1]])
    yield from to_chunks(follow_twins(rows, options), SIGNATURES)


def _verdicts(chunk: Chunk) -> tuple[str, Chunk]:
    return _STATE, conform(chunk, VERDICTS)


def _revive_duplicates(chunk: Chunk) -> tuple[str, Chunk]:
    """Returns the verdict on pages that stay though they are marked as duplicates."""
    rows = to_frame(chunk).filter(pl.col("status") == int(Status.DB_DUPLICATE)).select("key")
    return _STATE, conform(rows, VERDICTS)


def _near_verdicts(chunk: Chunk) -> Iterator[tuple[str, Chunk]]:
    """Yields the verdicts on near duplicates, on pages that have some, and on revived pages."""
    rows = to_frame(chunk)
    lost = pl.col("winner") != pl.col("key")
    revived = pl.col("status") == int(Status.DB_DUPLICATE)
    judged = rows.filter(lost | revived | pl.col("leads")).select(
        "key", duplicate_of=pl.when(lost).then("winner"), near=lost | pl.col("leads")
    )
    for part in to_chunks(judged, VERDICTS):
        yield _STATE, part


def _tablets(operation: Operation) -> Iterator[TabletToProbe]:
    probes = list(_tablets_to_probe(operation))
    PROGRESS.start("dedup", total=len(probes), unit="tablets")
    yield from probes


def _tablets_of_batch(operation: Operation) -> Iterator[TabletToProbe]:
    """Yields the tablets if there is a batch; without one all rows are compared anyway."""
    if operation.batch is not None:
        yield from _tablets_to_probe(operation)


def _tablets_to_probe(operation: Operation) -> Iterator[TabletToProbe]:
    manifest = operation.manifest()
    outcome = None
    if operation.batch is not None:
        phase_of(manifest, operation.batch, "updated", operation.job)
        # A killed crawl may leave several batches without a dedup.
        waiting = {operation.batch, *manifest.waiting_for(DEDUP)}
        files = (operation.files(batch_component(batch, "outcome")) for batch in sorted(waiting))
        outcome = tuple(file.path for batch_files in files for file in batch_files)
    for tablet in tablets(operation.files(_STATE)):
        yield TabletToProbe(operation, tablet, outcome)


def _near_pages(probed: TabletToProbe, options: DedupOptions) -> Iterator[Chunk]:
    """Yields the signatures of freed duplicates, and the keys of pages near those of the batch."""
    questions = probed.read_questions()
    back = is_returning(questions.lost)
    if not options.near or not len(questions.hashes):
        yield from _signatures(probed.rows(back, ("key", "status", "duplicate_of", "signature")))
        return
    rows = probed.rows(_near(questions.hashes, options.dedup_distance) | back)
    yield from _signatures(rows.filter(back))
    stay = alive_rows(rows)
    numbered = stay.select("key", hash=simhashes(stay.get_column("signature")))
    yield from to_chunks(numbered.drop_nulls("hash"), QUESTIONED)


def _signatures(rows: pl.DataFrame) -> Iterator[Chunk]:
    unique_rows = rows.select("signature").drop_nulls().unique(maintain_order=True)
    hashes = simhashes(unique_rows.get_column("signature"))
    yield from to_chunks(unique_rows.with_columns(hash=hashes), QUESTIONED)


def _duplicates_of_near(probed: TabletToProbe, near_pages: list[Chunk]) -> Iterator[Chunk]:
    """Yields the hashes of near duplicates of ``near_pages``, which are near pages of the batch."""
    pages = _concat_chunks(near_pages).drop_nulls("key")
    if len(pages):
        rows = probed.rows(pl.col("duplicate_of").is_in(pages.get_column("key").implode()))
        back = near_duplicates_of(rows, pages)
        hashes = back.select(hash=simhashes(back.get_column("signature"))).drop_nulls()
        yield from to_chunks(hashes, QUESTIONED)


def _probe(
    probed: TabletToProbe,
    options: DedupOptions,
    near_pages: Iterable[Chunk] = (),
    returned: Iterable[Chunk] = (),
) -> Iterator[Chunk]:
    PROGRESS.add()
    if probed.outcome == ():
        return
    wanted, lost, pages = pl.lit(value=True), None, None
    if probed.outcome is not None:
        questions = probed.read_questions()
        lost = questions.lost
        near = _concat_chunks([*near_pages, *returned])
        signatures = pl.concat([questions.signatures, near.get_column("signature").drop_nulls()])
        wanted = pl.col("signature").is_in(signatures.implode())
        pages = near.drop_nulls("key")
        hashes = np.union1d(questions.hashes, near.get_column("hash").drop_nulls().to_numpy())
        if options.near and len(hashes):
            of_page = pl.col("duplicate_of").is_in(pages.get_column("key").implode())
            wanted |= _near(hashes, options.dedup_distance)
            wanted |= of_page.fill_null(value=False) | is_returning(lost)
    rows = probed.rows(wanted)
    found_pages = comparable_rows(rows, probed.operation.now, lost)
    if pages is not None and len(pages):
        back = comparable_rows(near_duplicates_of(rows, pages), probed.operation.now)
        found_pages = pl.concat([found_pages, back]).unique("key", maintain_order=True)
    every = probed.outcome is None
    yield from to_chunks(signature_rows(found_pages, options, all_pages=every), SIGNATURES)


def _near(hashes: np.ndarray, distance: int) -> pl.Expr:
    return pl.col("signature").map_batches(
        lambda signatures: near_signatures(signatures, hashes, distance),
        return_dtype=pl.Boolean,
        is_elementwise=True,
    )


def _concat_chunks(chunks: Iterable[Chunk]) -> pl.DataFrame:
    return pl.concat([empty(QUESTIONED), *(to_frame(chunk) for chunk in chunks)])


def verdict_resolver(operation: Operation) -> Resolver:
    """Returns the resolver that marks duplicates and revives others."""
    return counting_hosts(resolving(apply_verdicts))
