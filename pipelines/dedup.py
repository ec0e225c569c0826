"""dedup: marks pages whose content equals that of another page.

::

    batch.outcome signatures ─ probe ─ state[signature] of those only ─ DedupByHash
        ─ route to tablets ─ mark ─▶ state'
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
from ..policy.duplicates import DedupOptions, comparable, mark_duplicates, order_by
from ..policy.schema import OUTCOME, SIGNATURES
from ..policy.selection import groups
from ..transforms.apply_changes import RESOLVE, ApplyChanges, Target
from ..transforms.chunks import Chunk, to_chunks
from ..transforms.dedup_by_hash import DUPLICATES, DedupByHash
from ..transforms.operations import Begin, Commit, ForEach, Ticket, check_phase
from ..web.base.progress import PROGRESS
from .command_line.command import TABLE, Invocation
from .launch.job import BatchOptions, run_job

_DONE = "done"
ARGUMENTS = (TABLE,)
_COLUMNS = ("key", "status", "signature", "score", "last_fetch_time")
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
    order, descending = order_by(options)
    probed = operations | "Tablets" >> ForEach(
        _tablets, _probe, (options,), Chunk, outputs=(_DONE,), step="Tablets", receipts=_DONE
    )
    partitions = beam.pvalue.AsSingleton(
        operations | "Partitions" >> beam.Map(_partitions).with_output_types(int)
    )
    divided = probed["main"] | DedupByHash("group", tuple(order), tuple(descending), partitions)
    to_state = beam.Map(_to_state).with_output_types(tuple[str, Chunk])
    losers = divided[DUPLICATES] | "ToState" >> to_state
    written = (operations, losers) | ApplyChanges({"state": Target(SIGNATURES, mark_resolver)})
    return (operations, written, probed[_DONE]) | Commit(
        reads=("state",), dedups=True, whole=("Tablets", RESOLVE)
    )


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
    wanted = pl.lit(True)
    if probed.outcome is not None:
        new = collect(scan([root / path for path in probed.outcome], OUTCOME).select("signature"))
        wanted = pl.col("signature").is_in(new["signature"].drop_nulls().implode())
    rows = root.read("state", [probed.tablet], _COLUMNS, lambda state: state.filter(wanted))
    pages = comparable(rows, probed.operation.now)
    group = pl.col("signature").bin.encode("hex")
    if options.dedup_group != "none":
        names = groups(pages.get_column("key"), options.dedup_group)
        pages = pages.with_columns(names.alias("name"))
        group = group + "/" + pl.col("name")
    yield from to_chunks(pages.with_columns(group=group), SIGNATURES)


def _to_state(chunk: Chunk) -> tuple[str, Chunk]:
    return "state", chunk


def mark_resolver(operation: Operation) -> Resolver:
    """Returns the resolver that marks duplicates."""

    def resolve(rows: pl.DataFrame, changes: pl.DataFrame) -> Resolved:
        marked, number = mark_duplicates(rows, changes)
        return Resolved(marked, counts={"duplicates": number} if number else {})

    return resolve
