"""generate: chooses the URLs of the next batch.

::

    state[due, projected], tablet by tablet ─ limit per host ─ summaries ─ threshold
                                              └─ candidates, aside ─┐
    candidates above the threshold ─ host's partition ─▶ batches/ID/fetchlist

No step has all due rows. Workers read one tablet at a time, and write its best rows
into a temporary file. Only summaries of at most 4,096 ranks, and the chosen rows, are
shuffled. There are at most 1,024 summaries, for any number of tablets.
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
from ..io.snapshots.entries import Batch
from ..io.snapshots.manifest import newest_manifest
from ..io.snapshots.operations import Operation, find_commit, new_id, pinned_operation
from ..io.table.opening import open_table
from ..io.tablets.written import Written
from ..policy.components.schema import FETCHLIST, TEXT, conform, empty, to_frame
from ..policy.fetch_engines import partitions_for
from ..policy.generating.selection import DUE, LEFT_OUT, GenerateOptions, queue_names, tally_choices
from ..policy.generating.threshold import Summary, Threshold, summarize, threshold
from ..policy.hosting.host_settings import best_of_hosts
from ..policy.hosting.locate_options import LocateOptions
from ..policy.recorded_rules import recorded_options
from ..policy.scope import TargetOptions
from ..transforms.elements.chunk_flow import tagged_chunks
from ..transforms.elements.chunks import Chunk, to_chunks
from ..transforms.for_each import ForEach
from ..transforms.locate_hosts import LocateHosts
from ..transforms.operations import Begin, Commit, Together
from ..transforms.partition import GroupByHost, grouped_by_hash
from ..transforms.tickets import Ticket
from ..transforms.wiring.display import Displayed
from ..web.base.dataclass import dataclass
from ..web.base.joined_options import joined_options
from .base.command import NOTHING_TO_DO, TABLE, Invocation
from .generating.generate_candidates import CHOSEN_COLUMNS, rows_may_be_due
from .generating.generate_rules import CHOOSING
from .generating.survey import (
    CANDIDATES,
    COUNTED,
    SPANNING,
    Candidates,
    Weight,
    limits_groups,
    survey,
    tablet_groups,
)
from .launch.job import run_job
from .launch.job_options import CheckedScoringOptions, JobOptions
from .running.one_worker import Sized
from .views.endings import none_chosen, nothing_due
from .views.next_due import next_url

ARGUMENTS = (TABLE,)
# Largest size of a file of the fetch list; a shuffle groups its rows.
FILE_BYTES = 32 << 20
# Rows of groups in several tablets, with the limit of their group.
_IN_GROUPS = pa.schema(
    [("key", TEXT), ("rank", pa.uint64()), ("group", TEXT), ("most", pa.int64())]
)
_ZONE = "zone"
# The count of partitions, where it depends on the number of URLs.
PARTITION_COUNT = "partitions"
_COUNTS = "counts"


@joined_options
class Options(LocateOptions, CheckedScoringOptions, TargetOptions, JobOptions):
    """Options of generate."""


@dataclass(frozen=True)
class Criteria:
    """Decides which rows are chosen: a threshold, and a last row for each group in several tablets.

    Attributes:
        threshold: The lowest rank of chosen rows.
        last_rows: ``group``, and ``last_rank`` and ``last_key`` of the worst row within its limit.
        winners: Number of rows within the limits of these groups.
        partitions: Number of partitions.
        files: Number of files per partition.
    """

    threshold: Threshold
    last_rows: pa.Table
    winners: int
    partitions: int
    files: int


@dataclass(frozen=True)
class LimitedGroups:
    """The best rows of groups in several tablets: their last rows, as in Criteria, and their summary."""

    last_rows: pa.Table
    summary: Summary


def run(invocation: Invocation) -> int:
    options = invocation.options
    options = dataclasses.replace(options, operation=options.operation or new_id())
    invocation = dataclasses.replace(invocation, options=options)
    code = run_job(
        invocation, Sized(build, has_work=functools.partial(_may_choose, options)), "generate"
    )
    if code == NOTHING_TO_DO and invocation.format == "text":
        address = str(invocation.table)
        # Another job may have made the newest snapshot.
        pinned = pinned_operation(address, f"{options.operation}.generate")
        manifest = find_commit(pinned) if pinned else None
        counts = manifest.counts if manifest else {}
        waiting = next_url(address, options, after_now=bool(counts.get(DUE)))
        print(none_chosen(counts, waiting) if counts.get(DUE) else nothing_due(waiting))
    return code


def _may_choose(options: GenerateOptions, address: str, by_rows: bool) -> bool:
    manifest = newest_manifest(address)
    return rows_may_be_due(open_table(address), manifest, options, by_rows=by_rows)


def build(tickets: beam.PCollection[Ticket], options: LocateOptions) -> beam.PCollection[Ticket]:
    """Chooses a batch; the returned ticket contains its id, or is idle."""
    operations = tickets | "Begin" >> Begin("generate", needs="", allows=("compact",))
    surveyed = operations | "Tablets" >> ForEach(
        tablet_groups, survey, (options,),
        outputs=(CANDIDATES, SPANNING, COUNTED), step="Tablets", reports=COUNTED, at_once=True,
    )  # fmt: skip
    summaries: tuple[Any, ...] = (operations, surveyed["main"])
    if limits_groups(options):
        # Only groups in several tablets are grouped here.
        summaries += (surveyed[SPANNING] | LimitGroups(options.top_n),)
    criteria = summaries | FindThreshold(options.top_n, options)
    chosen = (surveyed[CANDIDATES], criteria) | Choose(options.top_n, options.queue_mode)
    counts = [surveyed[COUNTED]]
    if options.queue_mode == "ip" and options.num_fetchers > 1:
        chosen, located = chosen | LocateHosts(options)
        counts.append(located)
    counts.append(criteria | "Spanning" >> beam.Map(_spanning, options).with_output_types(Written))
    files = beam.pvalue.AsSingleton(
        criteria | "Files" >> beam.Map(_files_of).with_output_types(int)
    )
    partitions: Any = options.num_fetchers or 1
    if _follows_engines(options):
        counted = criteria | "Partitions" >> beam.Map(_partitions_of).with_output_types(int)
        partitions = beam.pvalue.AsSingleton(counted)
    # To limit the size of files, the rows of a host are spread over its partition's files.
    by_host = GroupByHost(partitions, "place", slot="slot", files=files, key="key", drop=("place",))
    write = beam.Map(_write, beam.pvalue.AsSingleton(operations), files)
    fetchlists = chosen | by_host | "Write" >> write.with_output_types(Written)
    committed = (operations, fetchlists, *counts) | Commit(
        reads=("state", "blocklist", "batches"),
        opens=functools.partial(_open_batch, options=options),
        tally=tally_choices,
        options=recorded_options(dataclasses.replace(options, fetch_engines=0), *CHOOSING),
        whole=("Tablets",),
    )
    return committed | "Tidy" >> beam.Map(_tidy).with_output_types(Ticket)


@dataclasses.dataclass
class LimitGroups(Displayed):
    """Keeps the best rows of each group in several tablets.

    Input:  chunks ``key``, ``rank``, ``group`` and ``most``, the limit of the group.
    Output: ``LimitedGroups``, one per partition of the groups.

    Cost: a shuffle of the best rows that each tablet has of such groups.

    Attributes:
        top_n: Number of rows to choose.
    """

    top_n: int

    def expand(self, rows: beam.PCollection[Chunk]) -> beam.PCollection[LimitedGroups]:
        limit = beam.Map(_limit_groups, self.top_n).with_output_types(LimitedGroups)
        return grouped_by_hash(rows, "group", 256, "ByGroup") | "Limit" >> limit


@dataclasses.dataclass
class FindThreshold(Displayed):
    """Computes the criteria that a row must meet to be chosen.

    Input:  (operations, summaries): summaries and weights of tablets, and chunks of the
        best rows of groups in several tablets.
    Output: one ``Criteria``.

    Attributes:
        top_n: Number of rows to choose.
        options: Options of the partitions of the fetch list.
    """

    top_n: int
    options: GenerateOptions

    def expand(self, summaries: Any) -> beam.PCollection[Criteria]:
        find_criteria = beam.Map(_criteria, self.top_n, self.options).with_output_types(Criteria)
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


def _follows_engines(options: GenerateOptions) -> bool:
    """Returns whether the number of partitions depends on the number of chosen URLs."""
    several = not options.num_fetchers and options.fetch_engines > 1
    # Queues by address would need all hosts to be looked up in advance.
    return several and options.queue_mode != "ip"


def _criteria(grouped: tuple[int, Iterable[Any]], top_n: int, options: GenerateOptions) -> Criteria:
    items = list(grouped[1])
    summaries = [item for item in items if isinstance(item, Summary)]
    weights = [item for item in items if isinstance(item, Weight)]
    groups = [item for item in items if isinstance(item, LimitedGroups)]
    groups.append(_limit_groups((0, [i for i in items if isinstance(i, pa.Table)]), top_n))
    summaries += [group.summary for group in groups]
    last_rows = pa.concat_tables(group.last_rows for group in groups)
    winners = sum(group.summary.rows for group in groups)
    partitions = options.num_fetchers or 1
    if _follows_engines(options):
        urls = min(top_n, sum(weight.rows for weight in weights))
        partitions = partitions_for(urls, options.fetch_engines)
    files = _files(weights, top_n, partitions)
    return Criteria(threshold(summaries, top_n), last_rows, winners, partitions, files)


def _limit_groups(grouped: tuple[int, Iterable[Chunk]], top_n: int) -> LimitedGroups:
    rows = pl.concat([empty(_IN_GROUPS), *(to_frame(chunk) for chunk in grouped[1])])
    best = best_of_hosts(rows)
    last = best.group_by("group", maintain_order=True).last()
    last_rows = last.select("group", last_rank="rank", last_key="key").to_arrow()
    return LimitedGroups(last_rows, summarize(best.get_column("rank"), top_n))


def _spanning(criteria: Criteria, options: GenerateOptions) -> Written:
    """Corrects the count of rows over a limit: the winners of groups in several tablets stay."""
    counts = {f"{LEFT_OUT}max_count": -criteria.winners}
    if _follows_engines(options):
        counts[PARTITION_COUNT] = criteria.partitions
    return Written(counts=counts)


def _partitions_of(criteria: Criteria) -> int:
    return criteria.partitions


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
    rows = rows.join(to_frame(criteria.last_rows), on="group", how="left", maintain_order="left")
    better, last = pl.col("rank") > pl.col("last_rank"), pl.col("rank") == pl.col("last_rank")
    within = better | (last & (pl.col("key") >= pl.col("last_key")))
    rows = rows.filter(pl.col("group").is_null() | within)
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
    rows = pl.concat(to_frame(chunk) for chunk in chunks).cast({"slot": pl.UInt16})
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
        partitions=counts.get(PARTITION_COUNT) or options.num_fetchers or 1,
        urls=counts["chosen"],
        blocks_until=operation.now + options.generate_mark_ttl * 1000,
    )


def _tidy(ticket: Ticket) -> Ticket:
    """Removes the files of candidates; the fetch list has the chosen ones."""
    if ticket.batch is not None:
        remove_aside(open_table(ticket.address), ticket.batch)
    return ticket
