"""generate: chooses what the next batch fetches.

::

    state[due, projected], tablet by tablet ─ limit per host ─ summaries ─ threshold
    state again, above the threshold ─ PartitionByHost ─▶ batches/ID/fetchlist

No step holds what is due: a tablet at a time is read, summaries of 4,096 ranks
travel, and of the rows only those that are chosen.
"""

import dataclasses
from collections.abc import Iterable, Iterator
from typing import Any

import apache_beam as beam
import polars as pl

from ..io.batches import claimed_keys, write_file
from ..io.files import collect, scan
from ..io.manifest import Batch, DataFile
from ..io.operations import Operation, Written
from ..policy.schema import FETCHLIST, STATE, conform, to_frame
from ..policy.selection import GenerateOptions, eligible, ranked, spanning
from ..policy.threshold import Summary, Threshold, summarize, threshold
from ..transforms.chunks import Chunk, to_chunks
from ..transforms.operations import Begin, Commit, Items, Ticket, Together, WorkOn
from ..transforms.partition import SLOTS, PartitionByHost, hash_buckets
from ..transforms.top_n_per_key import TopNPerKey, top_n_per_key
from ..web.rules import host_keys
from ..web.progress import PROGRESS
from .command import TABLE, Invocation
from .job import JobOptions, run_job

ARGUMENTS = (TABLE,)
HELP = "Choose what to fetch next: a new batch"
# What a partition's rows may weigh in a shuffle, and what one weighs, in bytes.
PARTITION_BYTES = 32 << 20
ROW_BYTES = 200
SPANNING = "spanning"
ZONE = "zone"
COUNTS = "counts"


@dataclasses.dataclass(frozen=True)
class Options(GenerateOptions, JobOptions):
    """Options of generate."""


@dataclasses.dataclass(frozen=True)
class Tablet:
    """A tablet of the state, and what its neighbours' keys are."""

    operation: Operation
    file: DataFile
    last_before: str | None
    first_after: str | None


@dataclasses.dataclass(frozen=True)
class Bar:
    """What a row must reach: a rank and, of groups in several tablets, the list."""

    threshold: Threshold
    winners: frozenset[str]


def run(invocation: Invocation) -> int:
    return run_job(invocation, build, "generate")


def build(tickets: beam.PCollection[Ticket], options: GenerateOptions) -> beam.PCollection[Ticket]:
    """Chooses a batch; the ticket that comes out names it, or is idle."""
    operations = tickets | "Begin" >> Begin("generate", needs="")
    tablets = operations | "Tablets" >> Items(_tablets)
    bars = _raise_bar(operations, tablets, options)
    chosen = tablets | "Choose" >> WorkOn(
        _choose, (beam.pvalue.AsSingleton(bars), options), Chunk, outputs=(ZONE, COUNTS)
    )
    settled = (
        # A few rows of like rank: here a count decides.
        (chosen[ZONE], chosen[COUNTS])
        | "Meet" >> Together()
        | "Settle" >> beam.FlatMap(_settle, options.top_n).with_output_types(Chunk)
    )
    partitions = _shuffle_partitions(options)
    fetchlists = (
        (chosen["main"], settled)
        | "Chosen" >> beam.Flatten()
        | PartitionByHost(partitions, host="place")
        | "Write"
        >> beam.Map(
            _write, beam.pvalue.AsSingleton(operations), partitions // options.num_fetchers
        ).with_output_types(Written)
    )
    return (operations, fetchlists) | Commit(
        reads=("state", "batches"), opens=_Opener(options.num_fetchers, options.generate_mark_ttl)
    )


def _raise_bar(
    operations: beam.PCollection[Operation],
    tablets: beam.PCollection[Tablet],
    options: GenerateOptions,
) -> beam.PCollection[Bar]:
    surveyed = tablets | "Survey" >> WorkOn(_survey, (options,), outputs=(SPANNING,))
    gathered = [operations, surveyed["main"]]
    if options.max_count > 0:
        # Only groups that lie in several tablets meet.
        best = surveyed[SPANNING] | TopNPerKey(
            options.max_count, key="group", order_by=("rank", "key"), partitions=1
        )
        gathered.append(best)
    return (
        tuple(gathered)
        | "Gather" >> Together()
        | "RaiseBar" >> beam.Map(_bar, options.top_n).with_output_types(Bar)
    )


def _tablets(operation: Operation) -> Iterator[Tablet]:
    files = operation.files("state")
    PROGRESS.start("generate", total=len(files), unit="tablets")
    for at, file in enumerate(files):
        before = files[at - 1].last if at else None
        after = files[at + 1].first if at + 1 < len(files) else None
        yield Tablet(operation, file, before, after)


def _candidates(
    tablet: Tablet, options: GenerateOptions, columns: tuple[str, ...]
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Returns the tablet's due rows after the limit per group, and those of spanning groups."""
    operation, file = tablet.operation, tablet.file
    if not _may_be_due(file, operation.now, options):
        none = ranked(pl.DataFrame(schema=_schema(columns)), options)
        return none, none
    state = eligible(scan([operation.root / file.path], STATE), operation.now, options)
    rows = collect(state.select(*columns))
    manifest = operation.manifest()
    claimed = claimed_keys(
        operation.root, manifest, manifest.open_batches(operation.now), file.first, file.last
    )
    if len(claimed):
        rows = rows.join(claimed.to_frame(), on="key", how="anti", maintain_order="left")
    rows = ranked(rows, options)
    if options.max_count < 0:
        return rows, rows.clear()
    names = rows.get_column("group").unique()
    wide = names.filter(spanning(names, options.count_mode, tablet.last_before, tablet.first_after))
    apart = rows.get_column("group").is_in(wide.implode())
    inside = top_n_per_key(rows.filter(~apart), options.max_count, "group", ("rank", "key"))
    return inside, rows.filter(apart)


def _schema(columns: tuple[str, ...]) -> dict[str, Any]:
    frame = to_frame(STATE.empty_table())
    return {name: frame.schema[name] for name in columns}


def _may_be_due(file: DataFile, now: int, options: GenerateOptions) -> bool:
    """Asks the zone map; a tablet of which nothing can be due is not read."""
    if file.min_fetch_time is None or file.max_fetch_time is None:
        return True
    until = now + int(options.add_days * 86_400_000)
    far = until + options.max_fetch_interval * 1000
    return file.min_fetch_time <= until or file.max_fetch_time > far


def _survey(tablet: Tablet, options: GenerateOptions) -> Iterator[Any]:
    inside, apart = _candidates(tablet, options, ("key", "score"))
    yield summarize(inside.get_column("rank"), options.top_n)
    if len(apart):
        best = top_n_per_key(apart, options.max_count, "group", ("rank", "key"))
        for chunk in to_chunks(best.select("key", "rank", "group")):
            yield beam.pvalue.TaggedOutput(SPANNING, chunk)


def _bar(grouped: tuple[int, Iterable[Any]], top_n: int) -> Bar:
    items = list(grouped[1])
    summaries = [item for item in items if isinstance(item, Summary)]
    winners: set[str] = set()
    for item in items:
        if isinstance(item, Chunk):
            frame = to_frame(item)
            summaries.append(summarize(frame.get_column("rank"), top_n))
            winners.update(frame.get_column("key"))
    return Bar(threshold(summaries, top_n), frozenset(winners))


def _choose(tablet: Tablet, bar: Bar, options: GenerateOptions) -> Iterator[Any]:
    needed = tuple(name for name in FETCHLIST.names if name != "slot")
    inside, apart = _candidates(tablet, options, needed)
    if bar.winners and len(apart):
        won = pl.Series("key", list(bar.winners), dtype=pl.String)
        inside = pl.concat([inside, apart.filter(pl.col("key").is_in(won.implode()))])
    at = bar.threshold
    over = inside.filter(pl.col("rank") >= at.least)
    hosts = host_keys(over.get_column("key"))
    # The batch is part of the place: the same hosts do not meet every time.
    over = over.with_columns(place=f"{tablet.operation.batch}/" + hosts)
    sure = pl.lit(False) if at.sure is None else pl.col("rank") >= at.sure
    certain = over.filter(sure)
    kept = [*needed, "rank", "place"]
    PROGRESS.add()
    yield beam.pvalue.TaggedOutput(COUNTS, len(certain))
    for chunk in to_chunks(certain.select(kept)):
        yield chunk
    for chunk in to_chunks(over.filter(~sure).select(kept)):
        yield beam.pvalue.TaggedOutput(ZONE, chunk)


def _settle(grouped: tuple[int, Iterable[Any]], top_n: int) -> Iterator[Chunk]:
    items = list(grouped[1])
    left = top_n - sum(item for item in items if isinstance(item, int))
    chunks = [to_frame(item) for item in items if isinstance(item, Chunk)]
    if chunks and left > 0:
        best = pl.concat(chunks).sort("rank", "key", descending=True).head(left)
        yield from to_chunks(best)


def _shuffle_partitions(options: GenerateOptions) -> int:
    """Returns a multiple of the fetch partitions that keeps a shuffle's keys small."""
    needed = -(-options.top_n * ROW_BYTES // PARTITION_BYTES)
    return options.num_fetchers * min(
        -(-needed // options.num_fetchers), max(1, SLOTS // options.num_fetchers)
    )


def _write(part: tuple[int, Chunk], operation: Operation, per_fetcher: int) -> Written:
    number, chunk = part
    rows = to_frame(chunk)
    slot = hash_buckets(rows.get_column("place"), SLOTS).alias("slot")
    table = conform(rows.with_columns(slot).sort("key"), FETCHLIST)
    assert operation.batch is not None
    file = write_file(
        operation.root,
        operation.batch,
        "fetchlist",
        [table],
        partition=number // per_fetcher,
        order=number,
    )
    return Written(f"batches/{operation.batch}/fetchlist", (file,), (), {"chosen": len(rows)})


@dataclasses.dataclass(frozen=True)
class _Opener:
    partitions: int
    ttl_s: int

    def __call__(self, operation: Operation, counts: dict[str, int]) -> Batch | None:
        if not counts.get("chosen"):
            return None
        return Batch(
            phase="generated",
            created=operation.now,
            partitions=self.partitions,
            urls=counts["chosen"],
            blocks_until=operation.now + self.ttl_s * 1000,
        )
