"""sitemap: adds the URLs of sitemaps to the table.

::

    given URLs, hosts, robots.txt that fetch recorded ─ one engine: queues per host, robots.txt
        ─ indexes ─▶ further sitemaps
        ├─ entries ─ normalize ─ filter ─ scope ─ place of the sitemap ─ by tablet ─ resolve ─▶ state'
        └─ findings about hosts ─ by tablet ─ merge ─▶ hosts'
"""

import dataclasses
import functools
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

import apache_beam as beam
import polars as pl

from ...io.batches.leases import SITEMAP_LEASES, acquire
from ...io.reading.sitemap_sources import (
    GROUPS_OF_HOSTS,
    RECORDED,
    listed_sitemaps,
    origins_of_hosts,
)
from ...io.snapshots.manifest import load_manifest
from ...io.snapshots.operations import Operation
from ...io.storage.file_errors import NoTable
from ...io.tablets.resolve import Resolver, resolving
from ...io.tablets.written import Written
from ...io.updating.page_facts import read_table_facts
from ...policy.components.page_facts import FactNeeds
from ...policy.components.schema import HOSTS, StateRows
from ...policy.hosting.merit import merits_of_table
from ...policy.recorded_rules import recorded_rules
from ...policy.sitemaps.sitemap_list import SitemapList, SitemapOptions
from ...policy.sitemaps.sitemap_urls import (
    SITEMAP_URLS,
    SitemapFacts,
    SitemapRules,
    add_sitemap_urls,
)
from ...transforms.apply_changes import (
    COUNT_PLACES,
    Target,
    change_rows,
    counting_hosts,
    merge_resolver,
    read_domain_room,
)
from ...transforms.fetching import LeaseOptions, fetch_pages, in_time_left, longest_wait
from ...transforms.for_each import REPORTS
from ...transforms.operations import Begin
from ...transforms.tickets import Ticket
from ...transforms.wiring.plugin_groups import scorings_of
from ...web.base.errors import UsageError
from ...web.base.options import option
from ...web.base.progress import PROGRESS
from ..base.command import TABLE, Argument, Invocation
from ..launch.job import check_launch, run_job
from ..launch.job_options import CheckedScoringOptions, JobOptions
from ..launch.launch import workers_elsewhere
from ..launch.shipped_seeds import check_seeds, seed_words
from .sitemap_fetch import EarlierRequests, SitemapFetching, SitemapFetchOptions

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
_HOST = re.compile(r"(\[[0-9A-Fa-f:.]+\]|[^\s/?#@:\[\]]+)(:[0-9]{1,5})?")


@dataclasses.dataclass(frozen=True)
class SitemapTableOptions(SitemapFetchOptions, CheckedScoringOptions, LeaseOptions):
    """Options of reading sitemaps, without those of launching."""


@dataclasses.dataclass(frozen=True)
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
    divide = functools.partial(_single_source, words=tuple(words), hosts=tuple(hosts))
    targets = {
        "state": Target(SITEMAP_URLS, functools.partial(_resolver, options=options), COUNT_PLACES),
        "hosts": Target(HOSTS, merge_resolver),
    }
    return change_rows(
        operations, "Sitemaps", (divide, _read, (options,)), targets,
        reads=("state", "hosts", "blocklist"), rules=recorded_rules(options),
    )  # fmt: skip


@dataclasses.dataclass(frozen=True)
class _Sources:
    operation: Operation
    words: tuple[str, ...]
    hosts: tuple[str, ...]


def _single_source(
    operation: Operation, words: tuple[str, ...], hosts: tuple[str, ...]
) -> Iterator[_Sources]:
    # One engine for all: robots.txt and redirects lead from host to host.
    PROGRESS.start("sitemap", unit="sitemaps")
    yield _Sources(operation, words, hosts)


def _read(item: _Sources, options: SitemapTableOptions) -> Iterator[Any]:
    """Fetches and reads all sitemaps; yields changes by component, and counts."""
    operation, counts = item.operation, Counter[str]()
    others = functools.partial(_open_batches, operation)
    most = longest_wait(options)
    with acquire(operation.table, SITEMAP_LEASES, 0, others, most=most) as lease:
        earlier_requests = EarlierRequests(lease.requested_until, lease.hosts)
        for sitemaps in lists_of_sitemaps(operation, item.words, item.hosts, options):
            time_options = in_time_left(options, operation.until)
            fetching = SitemapFetching(operation, sitemaps, time_options, lease, earlier_requests)
            yield from fetch_pages(fetching)
            counts.update(fetching.counts)
            earlier_requests = fetching.requests_so_far()
    yield beam.pvalue.TaggedOutput(REPORTS, Written(counts=+counts))


def lists_of_sitemaps(
    operation: Operation, words: Sequence[str], hosts: Sequence[str], options: SitemapOptions
) -> Iterator[SitemapList]:
    """Yields lists of sitemaps to begin with: given ones, then those of some hosts at a time."""
    sitemaps = SitemapList(options)
    groups = [word for word in hosts if word in GROUPS_OF_HOSTS]
    names = [word for word in hosts if word not in GROUPS_OF_HOSTS]
    for word in listed_sitemaps(words):
        if _HOST.fullmatch(word):
            names.append(word)
        else:  # what is no URL either is counted as malformed
            sitemaps.add_given([word])
    for number, origin in enumerate(origins_of_hosts(operation, names, groups), 1):
        sitemaps.add_host(origin)
        if number % HOSTS_AT_ONCE == 0:
            yield sitemaps
            sitemaps = SitemapList(options)
    yield sitemaps


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
