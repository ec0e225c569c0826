"""crawl: inject, and rounds of generate, fetch, parse, updatedb, invertlinks, dedup and index.

A round is one pipeline: each phase commits, and its ticket starts the next phase.
The loop depends only on the table, so the next crawl resumes a killed crawl:
it finishes an open batch first, and counts that as a round. A file
``.STOP`` in the table ends the loop after the current round.
"""

import dataclasses
import logging
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import apache_beam as beam

from ..io.parsing.parse_pool import shared_pool
from ..io.reading.sitemap_sources import ALL_HOSTS
from ..io.snapshots.manifest import Manifest, load_manifest, purged_since
from ..io.snapshots.operations import begin, new_id
from ..io.snapshots.rounds import next_round, stop_file
from ..io.storage.errors import ConflictError, NoTable, PurgedMeanwhile
from ..io.table.opening import open_table
from ..io.tablets.tablets import Due
from ..policy.duplicates import DedupOptions
from ..policy.schedules.schedule import Clock
from ..policy.sitemaps.sitemap_options import SitemapLimits
from ..transforms.locate_hosts import LocateOptions
from ..transforms.operations import Ticket, check_versions
from ..web.base import json_logs
from ..web.base.errors import UsageError
from ..web.base.options import also, option
from ..web.base.progress import PROGRESS
from . import dedup, fetch, generate, inject, invertlinks, parse, update
from .checkers.obstacles import check_obstacles, is_local
from .command_line.command import TABLE, Argument, Invocation
from .command_line.live import live_view
from .generating.survey import due_at
from .indexing import index
from .launch.job import JobOptions, check_launch, prepare
from .launch.launch import workers_elsewhere
from .launch.runner import run_pipeline
from .launch.seed_words import check_seeds, seed_words
from .sitemaps import sitemap
from .views.summary import print_summary, summary_of

ARGUMENTS = (
    TABLE,
    Argument("seeds", "URLs, files, folders, or - for standard input.", nargs="*"),
)
_LOG = logging.getLogger("nutbeam")


@dataclasses.dataclass(frozen=True)
class RoundOptions(
    LocateOptions,
    fetch.FetchBatchOptions,
    update.UpdateTableOptions,
    invertlinks.InvertTableOptions,
    DedupOptions,
    index.IndexTableOptions,
    JobOptions,
):
    """Options of one round."""

    links: bool = option(
        False, "Add the links of each round to the link table, as invertlinks does.",
        group="links",
    )  # fmt: skip

    index: str = option(
        "", "Add the pages of each round to the index of this name, as index does; empty: do not.",
        pattern="[A-Za-z0-9_-]*", group="index",
    )  # fmt: skip

    parse_while_fetching: bool = also(fetch.Options, "parse_while_fetching", default=True)

    @property
    def last_job(self) -> str:
        """The job that ends a round."""
        return "index" if self.index else "dedup"


@dataclasses.dataclass(frozen=True)
class Options(inject.InjectOptions, SitemapLimits, RoundOptions):
    """Options of crawl."""

    sitemaps: str = option(
        "never",
        "Add the URLs in the sitemaps of all hosts of the table: never, once before the first round, or "
        "always before each round.",
        choices=("never", "once", "always"),
        nutch="crawl --sitemaps-from-hostdb",
        group="crawl",
    )
    rounds: int = option(
        3, "How many rounds at most; -1 goes on until nothing is due.", minimum=-1, group="crawl"
    )


def run(invocation: Invocation) -> int:
    options = invocation.options
    table, beam_args = str(invocation.table), invocation.beam_args
    seeds = invocation.arguments["seeds"]
    if seeds and seeds[-1].isdigit() and not Path(seeds[-1]).exists():
        raise UsageError(f"a seed is a URL, a file or a folder, got {seeds[-1]!r}; the number of "
                         f"rounds is --rounds {seeds[-1]}")  # fmt: skip
    check_seeds(seeds)
    check_obstacles(invocation, seeds)
    local = bool(seeds) and all(map(is_local, seeds))
    try:
        check_launch(invocation, begins_table=bool(seeds), local=local)
    except NoTable as error:
        raise UsageError(
            f"{error}; a first crawl needs seeds: nutbeam crawl {table} URL"
        ) from error
    words = seed_words(seeds, table, elsewhere=workers_elsewhere(beam_args))
    if not workers_elsewhere(beam_args):
        shared_pool(options.parse_processes, options.parser_memory)  # starts together with Beam
    PROGRESS.reset()  # the summary is only for this crawl
    with live_view(invocation.progress):
        made = list(crawl(table, words, options, beam_args))
    return finish(invocation, made)


def finish(invocation: Invocation, made: Sequence[Manifest]) -> int:
    """Prints the summary; returns the exit code.

    0: pages were fetched, or an open batch was finished, or a stop file ended the crawl.
    1: nothing was due. 4: URLs were tried, or every seed was refused, and no page was fetched.
    """
    stop = stop_file(open_table(str(invocation.table)))
    record = summary_of(invocation, made, None if stop is None else str(stop))
    print_summary(invocation, record)
    return int(record["exit_code"])


def crawl(
    table: str, words: Sequence[str], options: Options, beam_args: Sequence[str] = ()
) -> Iterator[Manifest]:
    """Crawls; yields the manifest of each snapshot as soon as a job has made it.

    If the same operation was launched before, its earlier snapshots come first.

    Args:
        table: Address of the table.
        words: Seeds: URLs, files, folders.
        options: Options of all jobs.
        beam_args: Arguments for Beam.
    """
    launched = options.operation or new_id()
    json_logs.launched(launched)
    # Pins the batches that must be finished.
    seen = begin(table, "crawl", f"{launched}.crawl").snapshot
    ticket = Ticket(table, launched)
    if words:
        injecting = prepare(
            ticket, lambda t, o: inject.build(t, o, words), options, beam_args, "inject"
        )
        run_over_conflicts(injecting, table, launched)
    if options.sitemaps != "never":
        read_sitemaps(ticket, 1, options, beam_args)
    # Built once: the graph contains the table and the launch id; each run finds its round.
    pipeline = prepare(ticket, lambda t, o: build_crawl(t, o, options.rounds), options, beam_args)
    made = made_by(table, launched, seen)
    yield from made
    while (upcoming := _next_round(table, launched, options, options.rounds)) is not None:
        if options.sitemaps == "always" and upcoming[0] > 1:
            read_sitemaps(ticket, upcoming[0], options, beam_args)
        PROGRESS.begin_round(upcoming[0], options.rounds)
        run_over_conflicts(pipeline, table, launched)
        seen = made[-1].snapshot if made else seen
        made = made_by(table, launched, seen)
        yield from made
        if not made or fetched_nothing(made):
            break


def read_sitemaps(ticket: Ticket, number: int, options: Options, beam_args: Sequence[str]) -> None:
    """Adds the URLs in the sitemaps of all hosts, before round ``number``."""
    # Not the id of a round: what it names has begun then.
    named = dataclasses.replace(ticket, operation=f"{ticket.operation}.sitemaps{number}")
    reading = prepare(
        named, lambda t, o: sitemap.build(t, o, hosts=(ALL_HOSTS,)), options, beam_args, "sitemap"
    )
    run_over_conflicts(reading, ticket.table, ticket.operation)


def fetched_nothing(made: Sequence[Manifest]) -> bool:
    """Returns whether a round requested URLs without any result; the next would do the same."""
    fetches = [manifest for manifest in made if manifest.job == "fetch"]
    return bool(fetches) and not any(manifest.counts.get("pages") for manifest in fetches)


def run_over_conflicts(pipeline: beam.Pipeline, table: str, launched: str) -> None:
    """Runs a pipeline; repeats it if a phase has failed because of a purge or of another crawl.

    The failed phase has changed nothing. It starts again on the changed table, and is skipped if
    the other crawl has done its work.

    Args:
        pipeline: The pipeline.
        table: Address of the table.
        launched: Id of the launch, to recognize commits of others.
    """
    root = open_table(table)
    while True:
        seen = root.latest_snapshot()
        try:
            run_pipeline(pipeline)
            return
        except (ConflictError, PurgedMeanwhile) as error:
            if purged_since(root, seen):
                other = "a purge"
            elif _others_since(table, launched, seen):
                other = "another crawl or job"
            else:
                raise
            _LOG.warning("%s has committed first, the phase is run again: %s", other, error)


def _others_since(table: str, launched: str, seen: int) -> bool:
    """Returns whether other launches have made snapshots after snapshot ``seen``."""
    made = open_table(table).latest_snapshot() - seen
    return made > len(made_by(table, launched, seen))


def build_crawl(tickets: beam.PCollection[Ticket], options: RoundOptions, rounds: int) -> Any:
    """Builds one round of a crawl; a worker finds its number when the pipeline runs.

    A ticket with a batch finishes that batch.
    """
    updated = (
        tickets
        | "Round" >> beam.Map(_round_ticket, options, rounds).with_output_types(Ticket)
        | "Generate" >> _Phase(generate.build, options)
        | "Fetch" >> _Phase(fetch.build, options)
        | "Parse" >> _Phase(parse.build, options)
        | "Update" >> _Phase(update.build, options)
    )
    if options.links:
        updated |= "Links" >> _Phase(invertlinks.build, options)
    deduped = updated | "Dedup" >> _Phase(dedup.build, options)
    return deduped | "Index" >> _Phase(index.build, options) if options.index else deduped


def _next_round(
    table: str, launched: str, options: RoundOptions, rounds: int
) -> tuple[int, str | None] | None:
    def due(clock: Clock) -> Due:
        return due_at(clock, options)

    return next_round(table, launched, rounds, due, options.last_job)


def _round_ticket(start: Ticket, options: RoundOptions, rounds: int) -> Ticket:
    check_versions(start)
    # Pins the batches that must be finished, unless the launcher has done so.
    began = begin(start.table, "crawl", f"{start.operation}.crawl").now
    found = _next_round(start.table, start.operation, options, rounds)
    if found is None:
        return dataclasses.replace(start, idle=True)
    number, batch = found
    named = f"{start.operation}.{number}"
    return dataclasses.replace(start, operation=named, batch=batch, round=number, began=began)


@dataclasses.dataclass
class _Phase(beam.PTransform):
    """A job as a step of a pipeline."""

    make: Any
    options: RoundOptions

    def expand(self, tickets: beam.PCollection[Ticket]) -> Any:
        return self.make(tickets, self.options)


def made_by(table: str, launched: str, seen: int) -> list[Manifest]:
    """Returns the manifests of a launch's snapshots after snapshot ``seen``."""
    root = open_table(table)
    numbers = range(seen + 1, root.latest_snapshot() + 1)
    manifests = [load_manifest(root, number) for number in numbers]
    return [m for m in manifests if m.operation.startswith(f"{launched}.")]
