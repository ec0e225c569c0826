"""dedup: marks pages whose content equals that of another page.

::

    batch.outcome signatures ─ probe ─ state[signature] of those only ─ DedupByHash
        ─ JoinByHash: the page that stays ─ route to tablets ─ mark, revive ─▶ state'
"""

import dataclasses
from collections.abc import Iterator

import apache_beam as beam
import polars as pl

from ..io.batches.batches import batch_component
from ..io.snapshots.operations import Operation
from ..io.storage.parquet_files import collect, scan
from ..io.tablets.resolve import Resolved, Resolver
from ..io.tablets.tablets import Tablet, tablets
from ..policy.duplicates import (
    COMPARED,
    OF_STATE,
    SCHEME,
    DedupOptions,
    apply_verdicts,
    comparable,
    order_by,
    questioned,
)
from ..policy.schema import OUTCOME, SIGNATURES, VERDICTS, Status, conform, to_frame
from ..policy.selection import groups
from ..transforms.apply_changes import RESOLVE, ApplyChanges, Target
from ..transforms.dedup_by_hash import DUPLICATES, KEPT, DedupByHash
from ..transforms.elements.chunks import Chunk, to_chunks
from ..transforms.for_each import ForEach
from ..transforms.join_by_hash import JoinByHash
from ..transforms.operations import Begin, Commit, Ticket, check_phase
from ..transforms.wiring.display import Displayed
from ..web.base.progress import PROGRESS
from .command_line.command import TABLE, Invocation
from .launch.job import BatchOptions, run_job

_DONE = "done"
ARGUMENTS = (TABLE,)
# Limit of a partition in a shuffle, and size of a row, in bytes.
PARTITION_BYTES = 32 << 20
_ROW_BYTES = 200


@dataclasses.dataclass(frozen=True)
class Options(DedupOptions, BatchOptions):
    """Options of dedup. Without a batch, all pages are compared."""


@dataclasses.dataclass(frozen=True)
class Probed:
    """A tablet of the state to probe.

    ``outcome`` has the files with the signatures to find; None means all rows of the tablet.
    """

    operation: Operation
    tablet: Tablet
    outcome: tuple[str, ...] | None


def run(invocation: Invocation) -> int:
    return run_job(invocation, build, "dedup")


def build(tickets: beam.PCollection[Ticket], options: DedupOptions) -> beam.PCollection[Ticket]:
    """Marks duplicates; the ticket that comes out is for the next job."""
    operations = tickets | "Begin" >> Begin("dedup")
    probed = operations | "Tablets" >> ForEach(
        _tablets, _probe, (options,), Chunk, outputs=(_DONE,), step="Tablets", receipts=_DONE
    )
    partitions = beam.pvalue.AsSingleton(
        operations | "Partitions" >> beam.Map(_partitions).with_output_types(int)
    )
    verdicts = probed["main"] | Judge(options, partitions)
    written = (operations, verdicts) | ApplyChanges({"state": Target(VERDICTS, verdict_resolver)})
    return (operations, written, probed[_DONE]) | Commit(
        reads=("state",), dedups=True, whole=("Tablets", RESOLVE)
    )


@dataclasses.dataclass
class Judge(Displayed):
    """Finds the page that stays of each group of pages with the same content.

    Input:  chunks of SIGNATURES rows.
    Output: pairs of ``state`` and a chunk of VERDICTS rows.

    Attributes:
        options: The order in which pages are better.
        partitions: Number of partitions, as a side input.
    """

    options: DedupOptions
    partitions: beam.pvalue.AsSideInput

    def expand(self, pages: beam.PCollection[Chunk]) -> beam.PCollection[tuple[str, Chunk]]:
        losers = []
        if SCHEME in self.options.compare_order:
            # The scheme counts only between two URLs that are the same otherwise.
            divided = pages | "Twins" >> self._divide("twins")
            pages, twins = divided[KEPT], divided[DUPLICATES]
            losers.append(twins)
        divided = pages | "Groups" >> self._divide("group")
        losers.append(divided[DUPLICATES])
        lost = losers | "Losers" >> beam.Flatten()
        winner = JoinByHash("group", {"key": "duplicate_of"}, self.partitions)
        verdict = beam.Map(_verdicts).with_output_types(tuple[str, Chunk])
        named = (lost, divided[KEPT]) | "Winners" >> winner | "Duplicates" >> verdict
        revive = beam.Map(_revived).with_output_types(tuple[str, Chunk])
        return (named, divided[KEPT] | "Revived" >> revive) | "Verdicts" >> beam.Flatten()

    def _divide(self, group: str) -> DedupByHash:
        order, descending = order_by(self.options, twins=group == "twins")
        return DedupByHash(group, tuple(order), tuple(descending), self.partitions)


def _verdicts(chunk: Chunk) -> tuple[str, Chunk]:
    return "state", conform(chunk, VERDICTS)


def _revived(chunk: Chunk) -> tuple[str, Chunk]:
    """Returns the verdict on pages that stay though they are marked as duplicates."""
    rows = to_frame(chunk).filter(pl.col("status") == int(Status.DB_DUPLICATE)).select("key")
    return "state", conform(rows, VERDICTS)


def _partitions(operation: Operation) -> int:
    """Returns the number of partitions that keeps each small even if all rows are shuffled."""
    if operation.idle:
        return 1
    rows = sum(file.live_rows for file in operation.files("state"))
    return 1 + rows * _ROW_BYTES // PARTITION_BYTES


def _tablets(operation: Operation) -> Iterator[Probed]:
    manifest = operation.manifest()
    outcome = None
    if operation.batch is not None:
        check_phase(operation, "updated")
        # A killed crawl may leave several batches without a dedup.
        waiting = {operation.batch, *manifest.without_dedup()}
        files = (operation.files(batch_component(batch, "outcome")) for batch in sorted(waiting))
        outcome = tuple(file.path for some in files for file in some)
    known = tablets(operation.files("state"))
    PROGRESS.start("dedup", total=len(known), unit="tablets")
    for tablet in known:
        yield Probed(operation, tablet, outcome)


def _probe(probed: Probed, options: DedupOptions) -> Iterator[Chunk]:
    root = probed.operation.root
    PROGRESS.add()
    if probed.outcome == ():
        return
    wanted, lost = pl.lit(True), None
    if probed.outcome is not None:
        scanned = scan([root / path for path in probed.outcome], OUTCOME).select(COMPARED)
        signatures, lost = questioned(collect(scanned))
        wanted = pl.col("signature").is_in(signatures.implode())
    rows = root.read("state", [probed.tablet], OF_STATE, lambda state: state.filter(wanted))
    pages = comparable(rows, probed.operation.now, lost)
    group = pl.col("signature").bin.encode("hex")
    if options.dedup_group != "none":
        names = groups(pages.get_column("key"), options.dedup_group)
        pages = pages.with_columns(names.alias("name"))
        group = group + "/" + pl.col("name")
    pages = pages.with_columns(group=group, twins=group + "/" + pl.col("plain"))
    yield from to_chunks(pages, SIGNATURES)


def verdict_resolver(operation: Operation) -> Resolver:
    """Returns the resolver that marks duplicates and revives others."""

    def resolve(rows: pl.DataFrame, changes: pl.DataFrame) -> Resolved:
        marked, counts = apply_verdicts(rows, changes)
        return Resolved(marked, counts=counts)

    return resolve
