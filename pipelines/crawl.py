"""crawl: inject, and rounds of generate, fetch, parse, updatedb and dedup.

A round is one pipeline: each phase commits, and its ticket starts the next.
What the loop does follows from the table alone, so a crawl that was killed is
taken up by the next one: an open batch is finished first, and counts as a round.
"""

import dataclasses
from collections.abc import Iterator, Sequence
from typing import Any

import apache_beam as beam

from ..io.manifest import Manifest
from ..io.operations import begin, new_id
from ..io.parse_pool import shared_pool
from ..io.seeds import sources
from ..policy.duplicates import DedupOptions
from ..policy.selection import GenerateOptions
from ..transforms.operations import Ticket
from ..web.agent import require_agent
from ..web.options import option
from . import dedup, fetch, generate, inject, parse, update
from .command import TABLE, Argument, Invocation
from .job import JobOptions, launch, result
from .live import live_view
from .summary import print_summary

ARGUMENTS = (
    TABLE,
    Argument("seeds", "URLs, files, folders of files, or - for standard input.", nargs="*"),
)
PHASES = (generate, fetch, parse, update, dedup)


@dataclasses.dataclass(frozen=True)
class RoundOptions(
    GenerateOptions,
    fetch.FetchPagesOptions,
    parse.ParsePagesOptions,
    update.UpdateTableOptions,
    DedupOptions,
    JobOptions,
):
    """Options of one round."""


@dataclasses.dataclass(frozen=True)
class Options(inject.InjectOptions, RoundOptions):
    """Options of crawl."""

    rounds: int = option(
        3, "How many rounds at most; -1 goes on until nothing is due.", minimum=-1, group="crawl"
    )


def run(invocation: Invocation) -> int:
    options = invocation.options
    require_agent(options)
    words = inject.seed_words(invocation.arguments["seeds"], str(invocation.table))
    shared_pool(options.parse_processes, options.parser_memory)  # starts while Beam does
    with live_view(invocation.progress):
        made = list(crawl(str(invocation.table), words, options, invocation.beam_args))
    print_summary(invocation, made)
    return 0 if any(manifest.job == "update" for manifest in made) else 1


def crawl(
    table: str, words: Sequence[str], options: Options, beam_args: Sequence[str] = ()
) -> Iterator[Manifest]:
    """Crawls; yields the snapshots that its jobs made, as they are made.

    Args:
        table: Address of the table.
        words: Seeds: URLs, files, folders.
        options: Of all jobs.
        beam_args: For Beam.
    """
    launched = options.operation or new_id()
    operation = begin(table, "crawl", f"{launched}.crawl")
    open_batches = operation.manifest().open_batches(operation.now)
    if words:
        found = sources(words)
        ticket = Ticket(table, launched)
        launch(ticket, lambda t, o: inject.build(t, o, found), options, beam_args)
        yield from _made(ticket, ("inject",))
    number = 0
    while options.rounds < 0 or number < options.rounds:
        batch = open_batches[number] if number < len(open_batches) else None
        number += 1
        ticket = Ticket(table, f"{launched}.{number}", batch)
        launch(ticket, build_round, options, beam_args)
        made = list(_made(ticket, ("generate", "fetch", "parse", "update", "dedup")))
        yield from made
        if batch is None and not _chose(made):
            return


def build_round(tickets: beam.PCollection[Ticket], options: RoundOptions) -> Any:
    """One round as one pipeline; a ticket with a batch finishes that batch instead."""
    for phase in PHASES:
        name = phase.__name__.rpartition(".")[2]
        tickets = tickets | name.capitalize() >> Phase(phase.build, options)
    return tickets


@dataclasses.dataclass
class Phase(beam.PTransform):
    """A job as a step of a pipeline."""

    make: Any
    options: Any

    def expand(self, tickets: beam.PCollection[Ticket]) -> Any:
        return self.make(tickets, self.options)


def _made(ticket: Ticket, jobs: Sequence[str]) -> Iterator[Manifest]:
    for job in jobs:
        manifest = result(ticket, job)
        if manifest is not None:
            yield manifest


def _chose(made: Sequence[Manifest]) -> bool:
    return any(m.job == "generate" and m.batch in m.batches for m in made)
