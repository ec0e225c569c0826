"""inject: puts seeds into the table.

::

    seeds ─ parse line ─ normalize ─ filter ─ by tablet ─ resolve ─▶ state'
                                        └─ hosts of seeds ─ by tablet ─ merge ─▶ hosts'

With ``--filter_normalize_all`` it filters and normalizes the rows of the state first, as filterdb.
"""

import functools
from collections.abc import Iterator, Sequence
from typing import Any

import apache_beam as beam
import polars as pl
import pyarrow as pa

from ..io.batches.seeds import read_seeds
from ..io.rows.small_components import read_blocklist
from ..io.snapshots.operations import Operation
from ..io.tablets.resolve import Resolved, Resolver, resolving
from ..io.tablets.written import Written
from ..policy.base.key_columns import from_keys, host_keys
from ..policy.components.blocklist import drop_blocked
from ..policy.components.host_rows import seed_host_rows
from ..policy.components.rule_counts import RuleCountOptions
from ..policy.components.schema import HOSTS, SEEDS, columns
from ..policy.filtering import REKEYED, rekey_rows
from ..policy.recorded_rules import recorded_rules
from ..policy.seeding import SeedOptions, SeedRules, inject_seeds
from ..transforms.apply_changes import (
    COUNT_PLACES,
    RESOLVE,
    ApplyChanges,
    Target,
    counting_hosts,
    merge_resolver,
)
from ..transforms.elements.chunks import Chunk, named_chunks
from ..transforms.for_each import ForEach
from ..transforms.operations import Begin, Commit
from ..transforms.tickets import Ticket
from ..transforms.wiring.plugin_groups import scorings_of
from ..web.base.errors import UsageError
from ..web.base.joined_options import joined_options
from ..web.base.progress import PROGRESS
from ..web.rules.url_rules import CheckedUrlOptions, UrlRules
from .base.command import TABLE, Argument, Invocation
from .launch.job import run_job
from .launch.job_options import CheckedScoringOptions, JobOptions
from .launch.launch import preflight, workers_elsewhere
from .launch.shipped_seeds import SourceItem, rows_of_seeds, seed_words, source_items
from .running.one_worker import Sized

ARGUMENTS = (
    TABLE,
    Argument("seeds", "URLs, files, folders (not nested), or - for standard input", nargs="*"),
)
_COUNTS = "counts"
_SEED_HOSTS = pa.schema(columns(HOSTS, "key", "seed"))  # the other columns are null
# Seeds; and rows that change their keys, or go.
_CHANGES = pa.schema([*REKEYED, SEEDS.field("order")])


@joined_options
class InjectOptions(SeedOptions, CheckedScoringOptions, CheckedUrlOptions, RuleCountOptions):
    """Options of injecting, without those of launching."""


@joined_options
class Options(InjectOptions, JobOptions):
    """Options of inject."""


def run(invocation: Invocation) -> int:
    if not invocation.arguments["seeds"] and not invocation.options.filter_normalize_all:
        raise UsageError(
            "missing argument SEEDS: URLs, files or folders; only --filter_normalize_all needs none"
        )
    preflight(str(invocation.table), invocation.options, invocation.beam_args)
    elsewhere = workers_elsewhere(invocation.beam_args)
    address = str(invocation.table)
    words = seed_words(invocation.arguments["seeds"], address, elsewhere=elsewhere)
    return run_job(invocation, build_of_seeds(words), "inject")


def build_of_seeds(words: Sequence[str]) -> Sized:
    """Returns the build of a job that injects prepared seeds, see ``seed_words``."""
    return Sized(functools.partial(build, seeds=tuple(words)), rows_of_seeds(words))


def build(
    tickets: beam.PCollection[Ticket], options: InjectOptions, seeds: Sequence[str]
) -> beam.PCollection[Ticket]:
    """Injects seeds; the ticket that comes out is for the next job.

    Args:
        tickets: One ticket.
        options: Options of inject.
        seeds: URLs, files, folders; a worker reads them when the pipeline runs.
    """
    operations = tickets | "Begin" >> Begin("inject")
    read = operations | "Read" >> ForEach(
        functools.partial(source_items, words=tuple(seeds)), _read, (options,), tuple[str, Chunk],
        outputs=(_COUNTS,), step="Read", reports=_COUNTS,
    )  # fmt: skip
    changes, counts = [read["main"]], [read[_COUNTS]]
    reads, whole = ["state", "hosts", "blocklist"], ["Read", RESOLVE]
    targets = {"hosts": Target(HOSTS, merge_resolver)}
    resolver = functools.partial(_seed_resolver, options=options)
    state = Target(SEEDS, resolver, COUNT_PLACES)
    if options.filter_normalize_all:
        from .filterdb import ENDED_LINKS, Filtering, FilterKnown  # late: it is seldom needed

        resolver = functools.partial(_filter_resolver, options=options)
        state = Target(_CHANGES, resolver, COUNT_PLACES)
        how = Filtering(functools.partial(_judge_known, options=options), family="known_dropped")
        filter_changes, filtered = operations | FilterKnown(how, "Known")
        changes, counts = [*changes, filter_changes], [*counts, filtered]
        reads, whole = [*reads, "batches", *ENDED_LINKS], [*whole, "Known"]
        targets |= ENDED_LINKS
    targets["state"] = state
    written = (operations, *changes) | ApplyChanges(targets)
    return (operations, written, *counts) | Commit(
        reads=tuple(reads), whole=tuple(whole), rules=recorded_rules(options)
    )


def _read(item: SourceItem, options: InjectOptions) -> Iterator[Any]:
    blocklist = read_blocklist(item.operation)
    for seeds, counts in read_seeds(item.source, UrlRules(options), options.count_by_rule):
        PROGRESS.add(counts["lines"])
        rows, dropped = drop_blocked(seeds, blocklist)
        yield beam.pvalue.TaggedOutput(_COUNTS, Written(counts=counts | dropped))
        yield from named_chunks("state", rows, SEEDS)
        hosts = seed_host_rows(host_keys(rows.get_column("key")))
        yield from named_chunks("hosts", hosts.select(_SEED_HOSTS.names), _SEED_HOSTS)


def _judge_known(rows: pl.DataFrame, operation: Operation, options: InjectOptions) -> pl.DataFrame:
    """Judges rows of the state by the rules for seeds, which know no scope."""
    urls = from_keys(rows.get_column("key"))
    return UrlRules(options).admit(urls, "inject", by=options.count_by_rule)


def _seed_resolver(operation: Operation, options: InjectOptions) -> Resolver:
    rules = SeedRules(operation.now, options, scorings_of(options))
    inject = functools.partial(inject_seeds, rules=rules)
    return counting_hosts(resolving(inject))


def _filter_resolver(operation: Operation, options: InjectOptions) -> Resolver:
    """Returns a resolver that first lets known rows move and go."""
    add = _seed_resolver(operation, options)

    def resolve(rows: pl.DataFrame, changes: pl.DataFrame) -> Resolved:
        is_seed = pl.col("order").is_not_null()
        remaining_rows, counts = rekey_rows(rows, changes.filter(~is_seed), operation.now)
        added = add(remaining_rows, changes.filter(is_seed).select(SEEDS.names))
        return Resolved(added.rows, counts={**added.counts, **counts}, drops=True)

    return counting_hosts(resolve)
