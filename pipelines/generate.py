"""generate: chooses the URLs of the next batch.

::

    state[due, projected], tablet by tablet ─ limit per host ─ summaries ─ threshold
                                              └─ candidates, aside ─┐
    candidates above the threshold ─ host's partition ─▶ batches/ID/fetchlist

No step has all due rows. Workers read one tablet at a time, and write its best rows
into a temporary file. Only summaries of 4,096 ranks, and the chosen rows, are
shuffled.
"""

import dataclasses
import functools
import math
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any

import apache_beam as beam
import polars as pl
import pyarrow as pa

from ..io.batches.batches import batch_component, remove_aside, take_up, write_file
from ..io.snapshots.manifest import Batch
from ..io.snapshots.operations import Operation, find_commit, new_id, pinned_operation
from ..io.table.opening import open_table
from ..io.tablets.written import Written
from ..policy.components.schema import FETCHLIST, conform, to_frame
from ..policy.generating.selection import DUE, LEFT_OUT, GenerateOptions, queue_names, tally_choices
from ..policy.generating.threshold import Summary, Threshold, summarize, threshold
from ..policy.hosting.host_settings import best_of_hosts
from ..policy.recorded_rules import recorded_options
from ..policy.scope import TargetOptions
from ..transforms.elements.chunk_flow import tagged_chunks
from ..transforms.elements.chunks import Chunk, to_chunks
from ..transforms.for_each import ForEach
from ..transforms.locate_hosts import LocateHosts, LocateOptions
from ..transforms.operations import Begin, Commit, Ticket, Together
from ..transforms.partition import GroupByHost
from ..transforms.top_n_per_key import TopNPerKey
from ..transforms.wiring.display import Displayed
from .base.command import NOTHING_TO_DO, TABLE, Invocation
from .generating.generate_rules import CHOOSING
from .generating.survey import (
    CANDIDATES,
    CHOSEN_COLUMNS,
    COUNTED,
    SPANNING,
    Candidates,
    Weight,
    survey,
    tablets_of_state,
)
from .launch.job import CheckedScoringOptions, JobOptions, run_job
from .launch.launch import workers_elsewhere
from .launch.placement import fits_one_worker
from .views.endings import none_chosen, nothing_due
from .views.next_due import next_url, rows_may_be_due

ARGUMENTS = (TABLE,)
# Largest size of a file of the fetch list; a shuffle groups its rows.
FILE_BYTES = 32 << 20
_ZONE = "zone"
_COUNTS = "counts"


@dataclasses.dataclass(frozen=True)
class Options(LocateOptions, CheckedScoringOptions, TargetOptions, JobOptions):
    """Options of generate."""


@dataclasses.dataclass(frozen=True)
class Criteria:
    """Decides which rows are chosen: a threshold, and a list of keys for groups in several tablets.

    Attributes:
        threshold: The lowest rank of chosen rows.
        winners: Keys of the chosen rows of groups in several tablets.
        files: Number of files per partition.
    """

    threshold: Threshold
    winners: frozenset[str]
    files: int


def run(invocation: Invocation) -> int:
    options = invocation.options
    options = dataclasses.replace(options, operation=options.operation or new_id())
    beam_args, address = invocation.beam_args, str(invocation.table)
    if workers_elsewhere(beam_args):
        small = fits_one_worker(address, options)
        if not rows_may_be_due(open_table(address), options, by_rows=small):
            beam_args = []  # a cluster has nothing to do
    invocation = dataclasses.replace(invocation, options=options, beam_args=beam_args)
    code = run_job(invocation, build, "generate")
    if code == NOTHING_TO_DO and invocation.format == "text":
        # Another job may have made the newest snapshot.
        pinned = pinned_operation(address, f"{options.operation}.generate")
        manifest = find_commit(pinned) if pinned else None
        counts = manifest.counts if manifest else {}
        waiting = next_url(address, options, after_now=bool(counts.get(DUE)))
        print(none_chosen(counts, waiting) if counts.get(DUE) else nothing_due(waiting))
    return code


def build(tickets: beam.PCollection[Ticket], options: LocateOptions) -> beam.PCollection[Ticket]:
    """Chooses a batch; the returned ticket contains its id, or is idle."""
    operations = tickets | "Begin" >> Begin("generate", needs="", allows=("compact",))
    surveyed = operations | "Tablets" >> ForEach(
        tablets_of_state, survey, (options,),
        outputs=(CANDIDATES, SPANNING, COUNTED), step="Tablets", reports=COUNTED, at_once=True,
    )  # fmt: skip
    summaries: tuple[Any, ...] = (operations, surveyed["main"])
    if options.max_count > 0:
        # Only groups in several tablets are grouped here.
        best = TopNPerKey(options.max_count, "group", ("rank", "key"), partitions=16)
        summaries += (surveyed[SPANNING] | best,)
    criteria = summaries | FindThreshold(options.top_n, options.num_fetchers)
    chosen = (surveyed[CANDIDATES], criteria) | Choose(options.top_n, options.queue_mode)
    counts = [surveyed[COUNTED]]
    if options.queue_mode == "ip" and options.num_fetchers > 1:
        chosen, located = chosen | LocateHosts(options)
        counts.append(located)
    counts.append(criteria | "Spanning" >> beam.Map(_spanning).with_output_types(Written))
    files = beam.pvalue.AsSingleton(
        criteria | "Files" >> beam.Map(_files_of).with_output_types(int)
    )
    # To limit the size of files, the rows of a host are spread over its partition's files.
    by_host = GroupByHost(
        options.num_fetchers, "place", slot="slot", files=files, key="key", drop=("place",)
    )
    write = beam.Map(_write, beam.pvalue.AsSingleton(operations), files)
    fetchlists = chosen | by_host | "Write" >> write.with_output_types(Written)
    committed = (operations, fetchlists, *counts) | Commit(
        reads=("state", "blocklist", "batches"),
        opens=functools.partial(_open_batch, options=options),
        tally=tally_choices,
        options=recorded_options(options, *CHOOSING),
        whole=("Tablets",),
    )
    return committed | "Tidy" >> beam.Map(_tidy).with_output_types(Ticket)


@dataclasses.dataclass
class FindThreshold(Displayed):
    """Computes the criteria that a row must meet to be chosen.

    Input:  (operations, summaries): summaries and weights of tablets, and chunks of the
        best rows of groups in several tablets.
    Output: one ``Criteria``.

    Attributes:
        top_n: Number of rows to choose.
        partitions: Number of partitions of the fetch list.
    """

    top_n: int
    partitions: int

    def expand(self, summaries: Any) -> beam.PCollection[Criteria]:
        find_criteria = beam.Map(_criteria, self.top_n, self.partitions).with_output_types(Criteria)
        return summaries | "Gather" >> Together() | "Find" >> find_criteria


@dataclasses.dataclass
class Choose(Displayed):
    """Chooses the candidates that meet the criteria.

    Input:  (candidates, criteria): files of candidates, and one ``Criteria``.
    Output: chunks of chosen rows, with ``place``.

    Cost: a shuffle of the few rows with a rank near the threshold, whose number is limited.

    Attributes:
        top_n: Number of rows to choose.
        mode: The queue mode: host, domain or ip.
    """

    top_n: int
    mode: str

    def expand(self, inputs: Any) -> beam.PCollection[Chunk]:
        candidates, criteria = inputs
        choose = beam.FlatMap(_choose, beam.pvalue.AsSingleton(criteria), self.mode)
        chosen = candidates | "Compare" >> choose.with_output_types(Chunk).with_outputs(
            _ZONE, _COUNTS, main="main"
        )
        settle = beam.FlatMap(_settle, self.top_n).with_output_types(Chunk)
        settled = (chosen[_ZONE], chosen[_COUNTS]) | "Meet" >> Together() | "Settle" >> settle
        return (chosen["main"], settled) | "Chosen" >> beam.Flatten()


def _criteria(grouped: tuple[int, Iterable[Any]], top_n: int, partitions: int) -> Criteria:
    items = list(grouped[1])
    summaries = [item for item in items if isinstance(item, Summary)]
    weights = [item for item in items if isinstance(item, Weight)]
    tables = [to_frame(item) for item in items if isinstance(item, pa.Table)]
    groups = [table for table in tables if "most" not in table.columns]
    if limited := [table for table in tables if "most" in table.columns]:
        groups.append(best_of_hosts(pl.concat(limited)))
    summaries += [summarize(group.get_column("rank"), top_n) for group in groups]
    winners = frozenset(key for group in groups for key in group.get_column("key"))
    return Criteria(threshold(summaries, top_n), winners, _files(weights, top_n, partitions))


def _spanning(criteria: Criteria) -> Written:
    """Corrects the count of rows over a limit: the winners of groups in several tablets stay."""
    return Written(counts={f"{LEFT_OUT}max_count": -len(criteria.winners)})


def _files_of(criteria: Criteria) -> int:
    return criteria.files


def _files(weights: list[Weight], top_n: int, partitions: int) -> int:
    """Returns the number of files per partition that keeps each file small."""
    rows = sum(weight.rows for weight in weights)
    if not rows:
        return 1
    largest: Counter[str] = Counter()
    for weight in weights:
        largest[weight.host] += weight.host_rows
    # A partition has up to twice its share, and perhaps the largest host.
    worst = min(rows, top_n, 2 * min(rows, top_n) / partitions + max(largest.values()))
    row_bytes = sum(weight.bytes for weight in weights) / rows
    return math.ceil(worst * row_bytes / FILE_BYTES)


def _choose(candidates: Candidates, criteria: Criteria, mode: str) -> Iterator[Any]:
    operation, at = candidates.operation, criteria.threshold
    rows = take_up(operation.table, candidates.path).filter(pl.col("rank") >= at.least)
    won = pl.Series("key", list(criteria.winners), dtype=pl.String)
    rows = rows.filter(~pl.col("spans") | pl.col("key").is_in(won.implode()))
    places = queue_names(str(operation.batch), rows.get_column("key"), mode)
    rows = rows.select(*CHOSEN_COLUMNS, "rank", places.alias("place"))
    sure = pl.lit(False) if at.sure is None else pl.col("rank") >= at.sure
    certain = rows.filter(sure)
    yield beam.pvalue.TaggedOutput(_COUNTS, len(certain))
    yield from to_chunks(certain)
    yield from tagged_chunks(_ZONE, rows.filter(~sure))


def _settle(grouped: tuple[int, Iterable[Any]], top_n: int) -> Iterator[Chunk]:
    items = list(grouped[1])
    places_left = top_n - sum(item for item in items if isinstance(item, int))
    chunks = [to_frame(item) for item in items if isinstance(item, pa.Table)]
    if chunks and places_left > 0:
        best = pl.concat(chunks).sort("rank", "key", descending=True).head(places_left)
        yield from to_chunks(best)


def _write(part: tuple[int, Iterable[Chunk]], operation: Operation, files: int) -> Written:
    number, chunks = part
    rows = pl.concat(to_frame(chunk) for chunk in chunks)
    tables, batch = [conform(rows.sort("key"), FETCHLIST)], str(operation.batch)
    table, partition = operation.table, number // files
    file = write_file(table, batch, "fetchlist", tables, partition=partition, order=number)
    return Written(batch_component(batch, "fetchlist"), (file,), counts={"chosen": len(rows)})


def _open_batch(
    operation: Operation, counts: dict[str, int], options: GenerateOptions
) -> Batch | None:
    if not counts.get("chosen"):
        return None
    return Batch(
        phase="generated",
        created=operation.now,
        partitions=options.num_fetchers,
        urls=counts["chosen"],
        blocks_until=operation.now + options.generate_mark_ttl * 1000,
    )


def _tidy(ticket: Ticket) -> Ticket:
    """Removes the files of candidates; the fetch list has the chosen ones."""
    if ticket.batch is not None:
        remove_aside(open_table(ticket.address), ticket.batch)
    return ticket
