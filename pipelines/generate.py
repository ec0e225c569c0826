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
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import apache_beam as beam
import numpy as np
import polars as pl
import pyarrow as pa

from ..io.batches.batches import (
    batch_component,
    claimed_keys,
    put_aside,
    remove_aside,
    take_up,
    write_file,
)
from ..io.parsing.plugins import scorings_of
from ..io.reading.host_rows import find_hosts
from ..io.rows.blocklist import read_blocklist
from ..io.rows.host_settings import read_host_settings
from ..io.snapshots.manifest import Batch
from ..io.snapshots.operations import Operation
from ..io.snapshots.table_clock import clock_of
from ..io.table.opening import open_table
from ..io.tablets.tablets import Due, Tablet, tablets
from ..io.tablets.written import Written
from ..policy.blocklist import drop_blocked
from ..policy.hosting.host_limits import (
    HostLimits,
    best_of_hosts,
    host_expressions,
    host_limits_of,
    with_limits,
    with_own_limits,
)
from ..policy.schedules.schedule import Clock
from ..policy.schema import FETCHLIST, HOSTS, STATE, conform, empty, to_frame
from ..policy.selection import (
    GenerateOptions,
    delayed,
    eligible,
    later,
    queue_names,
    ranked,
    sorted_out,
    spanning,
)
from ..policy.threshold import Leaders, Summary, Threshold, score_of, summarize, threshold
from ..transforms.elements.chunks import Chunk, to_chunks
from ..transforms.for_each import ForEach
from ..transforms.locate_hosts import LocateHosts, LocateOptions
from ..transforms.operations import Begin, Commit, Ticket, Together
from ..transforms.partition import PartitionByHost
from ..transforms.top_n_per_key import TopNPerKey, top_n_per_key
from ..transforms.wiring.display import Displayed
from ..web.base.progress import PROGRESS
from ..web.rules.url_rules import host_keys
from ..web.urls.schemes import allowed_keys
from .command_line.command import NOTHING_TO_DO, TABLE, Invocation
from .launch.job import JobOptions, run_job
from .views.endings import nothing_due
from .views.next_due import next_url

ARGUMENTS = (TABLE,)
# Largest size of a file of the fetch list; a shuffle groups its rows.
FILE_BYTES = 32 << 20
OF_STATE = tuple(name for name in FETCHLIST.names if name in STATE.names)
CHOSEN = (*OF_STATE, "delay")
# Of these the columns that are null in most tables; then they are not read.
RARE = ("document", "fixed_interval", "metadata", "repr_url")
STATE_TYPES = empty(STATE).schema
SPANNING = "spanning"
CANDIDATES = "candidates"
ZONE = "zone"
_COUNTS = "counts"
_DONE = "done"


@dataclasses.dataclass(frozen=True)
class Options(LocateOptions, JobOptions):
    """Options of generate."""


@dataclasses.dataclass(frozen=True)
class Surveyed:
    """A tablet of the state, and the nearest keys of the adjacent tablets."""

    operation: Operation
    tablet: Tablet
    last_before: str | None
    first_after: str | None


@dataclasses.dataclass(frozen=True)
class Candidates:
    """A file with the rows of a tablet that may be chosen."""

    operation: Operation
    path: str


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


@dataclasses.dataclass(frozen=True)
class Weight:
    """Size of a tablet's candidates: rows, bytes, and the number of rows of the largest host."""

    rows: int
    bytes: int
    host: str
    host_rows: int


def run(invocation: Invocation) -> int:
    code = run_job(invocation, build, "generate")
    if code == NOTHING_TO_DO and invocation.format == "text":
        print(nothing_due(next_url(str(invocation.table), invocation.options)))
    return code


def build(tickets: beam.PCollection[Ticket], options: LocateOptions) -> beam.PCollection[Ticket]:
    """Chooses a batch; the returned ticket contains its id, or is idle."""
    operations = tickets | "Begin" >> Begin("generate", needs="", allows=("compact",))
    surveyed = operations | "Tablets" >> ForEach(
        _tablets, _survey, (options,),
        outputs=(CANDIDATES, SPANNING, _DONE), step="Tablets", receipts=_DONE, at_once=True,
    )  # fmt: skip
    summaries: tuple[Any, ...] = (operations, surveyed["main"])
    if options.max_count > 0:
        # Only groups in several tablets are grouped here.
        best = TopNPerKey(options.max_count, "group", ("rank", "key"), partitions=16)
        summaries += (surveyed[SPANNING] | best,)
    criteria = summaries | FindThreshold(options.top_n, options.num_fetchers)
    chosen = (surveyed[CANDIDATES], criteria) | Choose(options.top_n, options.queue_mode)
    counts = [surveyed[_DONE]]
    if options.queue_mode == "ip" and options.num_fetchers > 1:
        chosen, located = chosen | LocateHosts(options)
        counts.append(located)
    files = beam.pvalue.AsSingleton(
        criteria | "Files" >> beam.Map(_files_of).with_output_types(int)
    )
    by_host = PartitionByHost(options.num_fetchers, host="place", slot="slot")
    write = beam.Map(_write, beam.pvalue.AsSingleton(operations), files)
    fetchlists = (
        chosen
        # To limit the size of files, the rows of a host are spread over its partition's files.
        | by_host.grouped(files, key="key", drop=("place",))
        | "Write" >> write.with_output_types(Written)
    )
    committed = (operations, fetchlists, *counts) | Commit(
        reads=("state", "blocklist", "batches"),
        opens=functools.partial(_open_batch, options=options),
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
        found = beam.Map(_criteria, self.top_n, self.partitions).with_output_types(Criteria)
        return summaries | "Gather" >> Together() | "Find" >> found


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
            ZONE, _COUNTS, main="main"
        )
        settle = beam.FlatMap(_settle, self.top_n).with_output_types(Chunk)
        settled = (chosen[ZONE], chosen[_COUNTS]) | "Meet" >> Together() | "Settle" >> settle
        return (chosen["main"], settled) | "Chosen" >> beam.Flatten()


def _tablets(operation: Operation) -> Iterator[Surveyed]:
    known = tablets(operation.files("state"))
    PROGRESS.start("generate", total=len(known), unit="tablets")
    for at, tablet in enumerate(known):
        before = known[at - 1].last if at else None
        after = known[at + 1].first if at + 1 < len(known) else None
        yield Surveyed(operation, tablet, before, after)


def _eligible(
    surveyed: Surveyed, options: GenerateOptions
) -> tuple[pl.DataFrame, dict[str, int], Mapping[str, int]]:
    """Returns due rows with ranks, counts, and own limits of hosts.

    Rows of open batches, of resting hosts and of blocked ones are left out.
    """
    operation, tablet = surveyed.operation, surveyed.tablet
    clock, scorings = _clock(operation), scorings_of(options)
    settings = read_host_settings(operation)
    boosted = any(own.boost is not None for own in settings.values())
    by_score = scorings.sorts_by_score and not boosted
    least = _leaders(operation, options).least if by_score else 0

    def narrow(state: pl.LazyFrame) -> pl.LazyFrame:
        rows = eligible(state, clock, options, scorings)
        return rows.filter(pl.col("score") >= score_of(least)) if least else rows

    due = due_at(clock, options)
    absent = set(RARE) - operation.root.columns_with_values(tablet, RARE)
    wanted = dict.fromkeys((*OF_STATE, *scorings.sort_columns))
    columns = [name for name in wanted if name not in absent]
    rows = operation.root.read("state", [tablet], columns, narrow, due)
    rows, counts = delayed(sorted_out(rows, options, scorings))
    manifest = operation.manifest()
    claimed = claimed_keys(
        operation.root, manifest, manifest.open_batches(operation.now), tablet.first, tablet.last
    )
    if len(claimed):
        rows = rows.join(claimed.to_frame(), on="key", how="anti", maintain_order="left")
    hosts, keys = tuple(operation.files("hosts")), rows.get_column("key")
    resting = operation.root.resting_hosts(hosts, operation.now, keys)
    if len(resting):
        rows = rows.filter(~host_keys(keys).is_in(resting.implode()))
    limits = _limits(operation, options, rows.get_column("key"))
    rows, more = with_limits(rows, limits)
    return ranked(rows, options), {**counts, **more}, limits.max_counts


def _limits(operation: Operation, options: GenerateOptions, keys: pl.Series) -> HostLimits:
    """Returns the limits of the hosts of some rows."""
    expressions = host_expressions(options)
    hosts = empty(HOSTS)
    if expressions:  # then a part of the host table is read for each tablet
        hosts = find_hosts(operation, host_keys(keys).unique())
    return host_limits_of(read_host_settings(operation), hosts, expressions)


@functools.lru_cache(maxsize=2)
def _leaders(operation: Operation, options: GenerateOptions) -> Leaders:
    """Returns the best ranks of the tablets that this process has read for an operation."""
    return Leaders(options.top_n)


def _divide(
    rows: pl.DataFrame, tablet: Surveyed, options: GenerateOptions
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Applies the limit per group; returns (groups only in this tablet, groups in several)."""
    if options.max_count <= 0:
        return rows, rows.clear()
    names = rows.get_column("group").unique()
    wide = names.filter(spanning(names, options.count_mode, tablet.last_before, tablet.first_after))
    apart = rows.get_column("group").is_in(wide.implode())
    inside, outside = (
        top_n_per_key(rows.filter(part), options.max_count, "group", ("rank", "key"))
        for part in (~apart, apart)
    )
    return inside, outside


def _divide_limited(limited: pl.DataFrame, tablet: Surveyed) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Applies the own limits of hosts; returns (hosts only in this tablet, hosts in several)."""
    if limited.is_empty():
        return limited, limited
    best = best_of_hosts(limited)
    names = best.get_column("group").unique()
    wide = names.filter(spanning(names, "host", tablet.last_before, tablet.first_after))
    apart = best.get_column("group").is_in(wide.implode())
    return best.filter(~apart), best.filter(apart)


def _clock(operation: Operation) -> Clock:
    return clock_of(operation.manifest(), operation.now)._replace(began=operation.began)


def due_at(clock: Clock, options: GenerateOptions) -> Due:
    """Returns the times at which a row may be due."""
    far = clock.now + options.max_fetch_interval * 1000
    until = max(later(clock, options).now, min(clock.latest, far))
    return Due(until, max(until, far))


def _survey(surveyed: Surveyed, options: GenerateOptions) -> Iterator[Any]:
    """Reads a tablet once: summarizes its ranks, and writes its best rows to a temporary file."""
    operation = surveyed.operation
    PROGRESS.add()
    if not surveyed.tablet.may_have(due_at(_clock(operation), options)):
        # The zone map suffices: the tablet is not read.
        return
    rows, counts, max_counts = _eligible(surveyed, options)
    rows, dropped = drop_blocked(rows, read_blocklist(operation))
    taken = allowed_keys(rows.get_column("key"), options.schemes)
    if not taken.all():
        counts = {**counts, "dropped/scheme_not_allowed": int((~taken).sum())}
        rows = rows.filter(taken)
    if counts or dropped:
        yield beam.pvalue.TaggedOutput(_DONE, Written(counts=counts | dropped))
    rows, limited = with_own_limits(rows, max_counts)
    inside, apart = _divide(rows, surveyed, options)
    alone, several = _divide_limited(limited, surveyed)
    inside = pl.concat([inside, alone.select(inside.columns)])
    leaders = _leaders(operation, options)
    leaders.add(surveyed.tablet.base.path, inside.get_column("rank"))
    inside = inside.filter(pl.col("rank") >= leaders.least)
    yield summarize(inside.get_column("rank"), options.top_n)
    for chunk in to_chunks(apart.select("key", "rank", *(("group",) if len(apart) else ()))):
        yield beam.pvalue.TaggedOutput(SPANNING, chunk)
    # Of a host with a limit of its own, the best rows of each of its tablets meet at the criteria.
    yield from to_chunks(
        several.select("key", "rank", "group", "most") if len(several) else several
    )
    apart = pl.concat([apart, several.select(apart.columns)])
    nulls = [name for name in RARE if name not in rows.columns]
    best = (
        _best(part, options.top_n)
        .with_columns(pl.lit(None, STATE_TYPES[name]).alias(name) for name in nulls)
        .select(*CHOSEN, "rank", spans=pl.lit(part is apart))
        for part in (inside, apart)
    )
    rows = pl.concat(best, rechunk=False)
    if rows.is_empty():
        return
    yield _weight(rows)
    path = put_aside(operation.root, str(operation.batch), rows)
    yield beam.pvalue.TaggedOutput(CANDIDATES, Candidates(operation, path))


def _weight(rows: pl.DataFrame) -> Weight:
    texts = rows.select(pl.col(pl.String).str.len_bytes().sum()).row(0)
    hosts = host_keys(rows.get_column("key")).alias("host").value_counts()
    host, number = hosts.row(hosts.get_column("count").arg_max() or 0)
    return Weight(len(rows), sum(texts) + 100 * len(rows), host, number)


def _best(rows: pl.DataFrame, n: int) -> pl.DataFrame:
    """Returns the ``n`` rows with the highest ranks, and all rows that equal the last, in order."""
    if len(rows) <= n:
        return rows
    ranks = rows.get_column("rank")
    least = np.partition(ranks.to_numpy(), len(rows) - n)[len(rows) - n]
    return rows.filter(ranks >= least)


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
    rows = take_up(operation.root, candidates.path).filter(pl.col("rank") >= at.least)
    won = pl.Series("key", list(criteria.winners), dtype=pl.String)
    rows = rows.filter(~pl.col("spans") | pl.col("key").is_in(won.implode()))
    places = queue_names(str(operation.batch), rows.get_column("key"), mode)
    rows = rows.select(*CHOSEN, "rank", places.alias("place"))
    sure = pl.lit(False) if at.sure is None else pl.col("rank") >= at.sure
    certain = rows.filter(sure)
    yield beam.pvalue.TaggedOutput(_COUNTS, len(certain))
    yield from to_chunks(certain)
    for chunk in to_chunks(rows.filter(~sure)):
        yield beam.pvalue.TaggedOutput(ZONE, chunk)


def _settle(grouped: tuple[int, Iterable[Any]], top_n: int) -> Iterator[Chunk]:
    items = list(grouped[1])
    left = top_n - sum(item for item in items if isinstance(item, int))
    chunks = [to_frame(item) for item in items if isinstance(item, pa.Table)]
    if chunks and left > 0:
        best = pl.concat(chunks).sort("rank", "key", descending=True).head(left)
        yield from to_chunks(best)


def _write(part: tuple[int, Iterable[Chunk]], operation: Operation, files: int) -> Written:
    number, chunks = part
    rows = pl.concat(to_frame(chunk) for chunk in chunks)
    tables, batch = [conform(rows.sort("key"), FETCHLIST)], str(operation.batch)
    root, partition = operation.root, number // files
    file = write_file(root, batch, "fetchlist", tables, partition=partition, order=number)
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
        remove_aside(open_table(ticket.table), ticket.batch)
    return ticket
