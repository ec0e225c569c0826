"""sitemap: adds the URLs of sitemaps to the table.

::

    given URLs, hosts, robots.txt that fetch recorded ─ by site ─ an engine per partition: queues
        per host, robots.txt ─ indexes ─▶ further sitemaps; those of other sites ─ by site ─ again
        ├─ entries ─ normalize ─ filter ─ scope ─ place of the sitemap ─ by tablet ─ resolve ─▶ state'
        └─ findings about hosts ─ by tablet ─ merge ─▶ hosts'

A sitemap of another site waits for the next turn, since an engine of this turn may request its site.
In the last turn there is one engine for all. What an attempt has done, no later one does again: see
``io/batches/sitemap_parts.py``.
"""

import dataclasses
import functools
import itertools
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import apache_beam as beam
import polars as pl

from ...io.batches.leases import SITEMAP_LEASES, acquire
from ...io.batches.sitemap_parts import SitemapPart, SitemapParts, forget_parts
from ...io.reading.sitemap_sources import (
    GROUPS_OF_HOSTS,
    RECORDED,
    listed_sitemaps,
    origins_of_hosts,
)
from ...io.snapshots.manifest import load_manifest
from ...io.snapshots.operations import Operation
from ...io.storage.file_errors import NoTable
from ...io.table.opening import open_table
from ...io.tablets.resolve import Resolver, resolving
from ...io.tablets.written import Written
from ...io.updating.page_facts import read_table_facts
from ...policy.components.page_facts import FactNeeds
from ...policy.components.schema import HOSTS, StateRows
from ...policy.hosting.merit import merits_of_table
from ...policy.recorded_rules import recorded_rules
from ...policy.sitemaps.sitemap_urls import (
    SITEMAP_URLS,
    SitemapFacts,
    SitemapRules,
    add_sitemap_urls,
)
from ...transforms.apply_changes import (
    COUNT_PLACES,
    RESOLVE,
    ApplyChanges,
    Target,
    counting_hosts,
    merge_resolver,
    read_domain_room,
)
from ...transforms.elements.chunks import Chunk, named_chunks, to_chunks
from ...transforms.fetching import LeaseOptions, fetch_pages, in_time_left, longest_wait
from ...transforms.for_each import REPORTS
from ...transforms.operations import Begin, Commit
from ...transforms.tickets import Ticket
from ...transforms.wiring.display import Displayed
from ...transforms.wiring.in_process import flat_map
from ...transforms.wiring.phase_logs import logs_of
from ...transforms.wiring.plugin_groups import scorings_of
from ...web.base.dataclass import dataclass
from ...web.base.errors import UsageError
from ...web.base.options import option
from ...web.base.progress import PROGRESS
from ..base.command import TABLE, Argument, Invocation
from ..launch.job import check_launch, run_job
from ..launch.job_options import CheckedScoringOptions, JobOptions
from ..launch.launch import workers_elsewhere
from ..launch.shipped_seeds import check_seeds, seed_words
from .sitemap_fetch import EarlierRequests, SitemapFetching, SitemapFetchOptions
from .sitemap_partitions import (
    ELSEWHERE_ROWS,
    STARTS,
    TURNS,
    SitemapPartition,
    lists_of_sitemaps,
    rules_text,
    split_by_partition,
)

ARGUMENTS = (
    TABLE,
    Argument(
        "sitemaps",
        "URLs of sitemaps, files with URLs of sitemaps or names of hosts, or - for standard input",
        nargs="*",
    ),
)
# Of these the findings, and the sitemaps that were met, are in memory.
HOSTS_AT_ONCE = 20_000
NEXT_TURN = "next_turn"  # tag of sitemaps for the next turn
SITEMAPS = TURNS[
    0
]  # Commit gets the numbers of sitemaps to begin with, and of those in other sites
_ROWS = 100_000
_Change = tuple[str, Chunk]
_OfPartition = tuple[tuple[int, int], Chunk]
_HOST = re.compile(r"(\[[0-9A-Fa-f:.]+\]|[^\s/?#@:\[\]]+)(:[0-9]{1,5})?")


@dataclass(frozen=True)
class SitemapTableOptions(SitemapFetchOptions, CheckedScoringOptions, LeaseOptions):
    """Options of reading sitemaps, without those of launching."""


@dataclass(frozen=True)
class Options(SitemapTableOptions, JobOptions):
    """Options of sitemap."""

    sitemap_hosts: tuple[str, ...] = option(
        (),
        "Read the sitemaps of these hosts: names of hosts, or a group of the host table: all, "
        "seeds, or recorded (those whose robots.txt names sitemaps). The default is recorded, if no "
        "sitemaps are given either.",
        nutch="sitemap -hostdb",
        group="sitemaps",
    )


def run(invocation: Invocation) -> int:
    options: Options = invocation.options
    for name in options.sitemap_hosts:
        if not _HOST.fullmatch(name):
            raise UsageError(f"--sitemap_hosts must be names of hosts, or {_GROUPS}, got {name!r}")
    elsewhere = workers_elsewhere(invocation.beam_args)
    words = invocation.arguments["sitemaps"]
    check_seeds(words)
    try:
        check_launch(invocation, begins_table=bool(words))
    except NoTable as error:
        raise UsageError(
            f"{error}; hosts are those of a table: inject or crawl first, or name a sitemap"
        ) from error
    seeds = seed_words(words, str(invocation.table), elsewhere=elsewhere)
    hosts = options.sitemap_hosts or (() if seeds else (RECORDED,))
    return run_job(invocation, lambda tickets, o: build(tickets, o, seeds, hosts), "sitemap")


_GROUPS = ", ".join(GROUPS_OF_HOSTS)


def build(
    tickets: beam.PCollection[Ticket],
    options: SitemapTableOptions,
    words: Sequence[str] = (),
    hosts: Sequence[str] = (),
) -> beam.PCollection[Ticket]:
    """Reads sitemaps; the ticket that comes out is for the next job.

    Args:
        tickets: One ticket.
        options: Options of sitemap.
        words: URLs of sitemaps, and files of them; a worker reads them when the pipeline runs.
        hosts: Names of hosts, and words of ``GROUPS_OF_HOSTS``.
    """
    operations = tickets | "Begin" >> Begin("sitemap")
    starts = flat_map(_list_starts, (tuple(words), tuple(hosts)), _OfPartition, (REPORTS,))
    listed = operations | "Hosts" >> starts
    sitemaps, reports, changes = listed["main"], [listed[REPORTS]], []
    for turn, step in enumerate(TURNS):
        done = (operations, sitemaps) | step >> SitemapTurn(turn, options)
        changes.append(done["main"])
        reports.append(done[REPORTS])
        sitemaps = done[NEXT_TURN]
    targets = {
        "state": Target(SITEMAP_URLS, functools.partial(_resolver, options=options), COUNT_PLACES),
        "hosts": Target(HOSTS, merge_resolver),
    }
    written = (operations, *changes) | ApplyChanges(targets)
    commit = Commit(
        reads=("state", "hosts", "blocklist"),
        whole=(SITEMAPS, RESOLVE),
        rules=recorded_rules(options),
    )
    return (operations, written, *reports) | commit | "Tidy" >> beam.Map(_tidy)


@dataclasses.dataclass
class SitemapTurn(Displayed):
    """Reads the sitemaps of each partition with one engine.

    Input:  (operations, sitemaps): one operation; pairs of a partition and a chunk of sitemaps.
    Output: changes, reports, and sitemaps for the next turn, as pairs like those of the input.

    Cost: a shuffle of the sitemaps. Politeness needs all of a site on one worker, and the end of the
    turn before.

    Attributes:
        turn: Number of the turn.
        options: Options of sitemap.
    """

    turn: int
    options: Any

    def expand(self, inputs: Any) -> Any:
        operations, sitemaps = inputs
        args = (beam.pvalue.AsSingleton(operations), self.turn, self.options)
        read = flat_map(_read, args, _Change, (REPORTS, NEXT_TURN))
        done = sitemaps | beam.GroupByKey() | "Read" >> read
        following = done[NEXT_TURN] | "Next" >> beam.Map(_same).with_output_types(_OfPartition)
        return {"main": done["main"], REPORTS: done[REPORTS], NEXT_TURN: following}


def _same(item: _OfPartition) -> _OfPartition:
    return item


def _tidy(ticket: Ticket) -> Ticket:
    """Removes the parts; their rows are in the table now."""
    forget_parts(open_table(ticket.address))
    return ticket


def _list_starts(
    operation: Operation, words: tuple[str, ...], hosts: tuple[str, ...]
) -> Iterator[Any]:
    """Yields the sitemaps to begin with: pairs of a partition and a chunk of STARTS."""
    if operation.idle:
        return
    rows = 0
    with logs_of(operation), operation.reading():
        PROGRESS.start("sitemap", unit="sitemaps")
        partitions = _number_of_partitions(operation, words, hosts)
        for frame in _start_frames(operation, words, hosts):
            rows += len(frame)
            for number, part in split_by_partition(frame, partitions):
                yield from (((partitions, number), chunk) for chunk in to_chunks(part, STARTS))
    yield beam.pvalue.TaggedOutput(REPORTS, Written(due={SITEMAPS: rows}, done={SITEMAPS: 0}))


def _number_of_partitions(
    operation: Operation, words: tuple[str, ...], hosts: tuple[str, ...]
) -> int:
    """Returns the number of partitions: most have no more than ``HOSTS_AT_ONCE`` hosts."""
    names = [word for word in hosts if word not in GROUPS_OF_HOSTS]
    number = len(names) + sum(1 for _ in listed_sitemaps(words))
    if len(names) < len(hosts):
        number += sum(file.live_rows for file in operation.files("hosts"))
    return 1 + number // HOSTS_AT_ONCE


def _start_frames(
    operation: Operation, words: tuple[str, ...], hosts: tuple[str, ...]
) -> Iterator[pl.DataFrame]:
    """Yields STARTS rows: given sitemaps, then hosts."""
    groups = [word for word in hosts if word in GROUPS_OF_HOSTS]
    names = [word for word in hosts if word not in GROUPS_OF_HOSTS]
    given: list[str] = []
    for word in listed_sitemaps(words):
        # What is no URL either is counted as malformed.
        (names if _HOST.fullmatch(word) else given).append(word)
    starts = itertools.chain(
        ((url, True) for url in given),
        ((origin, False) for origin in origins_of_hosts(operation, names, groups)),
    )
    while rows := list(itertools.islice(starts, _ROWS)):
        yield pl.DataFrame(rows, schema={"url": pl.String, "is_given": pl.Boolean}, orient="row")


def _read(
    grouped: tuple[tuple[int, int], Iterable[Chunk]],
    operation: Operation,
    turn: int,
    options: Any,
) -> Iterator[Any]:
    """Fetches and reads the sitemaps of a partition; yields changes by component, and counts."""
    (partitions, number), chunks = grouped[0], list(grouped[1])
    partition = SitemapPartition(operation, turn, partitions, number)
    with logs_of(operation), operation.reading():
        for part in _parts(partition, chunks, options):
            yield from named_chunks("state", part.urls, SITEMAP_URLS)
            yield from named_chunks("hosts", part.hosts, HOSTS)
            for following, rows in partition.split_elsewhere(part.elsewhere):
                for chunk in to_chunks(rows, ELSEWHERE_ROWS):
                    yield beam.pvalue.TaggedOutput(NEXT_TURN, (following, chunk))
            due = {SITEMAPS: len(part.elsewhere)}
            yield beam.pvalue.TaggedOutput(REPORTS, Written(counts=+Counter(part.counts), due=due))
    yield beam.pvalue.TaggedOutput(REPORTS, Written(done={SITEMAPS: sum(map(len, chunks))}))


def _parts(
    partition: SitemapPartition, chunks: Sequence[Chunk], options: SitemapTableOptions
) -> Iterator[SitemapPart]:
    """Yields what earlier attempts have done of a partition, and then does the rest."""
    operation = partition.operation
    others, most = functools.partial(_open_batches, operation), longest_wait(options)
    with acquire(
        operation.table,
        SITEMAP_LEASES,
        partition.lease,
        others,
        most=most,
        rivals=partition.excludes,
    ) as lease:
        parts = SitemapParts(
            operation, partition.name, rules_text(options), SITEMAP_URLS, ELSEWHERE_ROWS
        )
        done: set[str] = set()
        for part in parts.read():
            yield part
            done.update(part.sources)
        earlier_requests = EarlierRequests(lease.requested_until, lease.hosts)
        for sitemaps in lists_of_sitemaps(chunks, options, frozenset(done), HOSTS_AT_ONCE):
            time_options = in_time_left(options, operation.until)
            fetching = SitemapFetching(
                parts, sitemaps, time_options, lease, earlier_requests, partition.are_own
            )
            yield from fetch_pages(fetching)
            earlier_requests = fetching.requests_so_far()


def _open_batches(operation: Operation) -> list[str]:
    """Returns the batches whose fetches may send requests."""
    latest = load_manifest(operation.table, operation.table.latest_snapshot())
    return [name for name, batch in latest.batches.items() if batch.phase != "updated"]


def _resolver(operation: Operation, options: SitemapTableOptions) -> Resolver:
    rules = SitemapRules(options, scorings_of(options))
    by_merit = options.scope == "any" and options.domain_budget >= 0
    merits = merits_of_table(read_table_facts(operation, FactNeeds(domains=by_merit)), options)

    def add(rows: StateRows, urls: pl.DataFrame) -> tuple[StateRows, dict[str, int]]:
        room = read_domain_room(operation, rows, urls, merits)
        return add_sitemap_urls(rows, urls, SitemapFacts(operation.now, room), rules)

    return counting_hosts(resolving(add))
