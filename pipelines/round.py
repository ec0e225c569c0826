"""round: one round of a crawl as one pipeline: generate, fetch, parse, updatedb, dedup.

The command is for schedulers and templates. When the pipeline runs, a worker finds in the table
the number of the round, and whether an open batch must be finished first. ``crawl`` runs it again
and again.
"""

import dataclasses
import functools
import logging
import math
from collections.abc import Sequence
from typing import Any

import apache_beam as beam

from ..io.snapshots.manifest import Manifest, load_manifest, newest_manifest
from ..io.snapshots.operations import begin, new_id, pinned_operation
from ..io.snapshots.rounds import next_round, stop_file, unfinished_batches
from ..io.storage.least_free import low_message
from ..io.table.opening import open_table
from ..io.tablets.tablets import Due
from ..policy.components.vocabulary import FETCHED_PHASE, UPDATED_PHASE
from ..policy.dedup.duplicates import DedupOptions
from ..policy.hosting.locate_options import LocateOptions
from ..policy.inlinks.edges import InvertTableOptions
from ..policy.updating.update_rules import UpdateTableOptions
from ..transforms.tickets import Ticket, check_versions
from ..web.base.clock import Clock, now_ms
from ..web.base.joined_options import joined_options
from ..web.base.options import option, shared_option
from . import dedup, fetch, generate, parse, update
from .base.command import DONE, NOTHING_FETCHED, TABLE, Invocation
from .base.live import live_view
from .generating.generate_candidates import (
    count_due_rows,
    due_at,
    rows_may_be_due,
    rows_to_survey,
)
from .launch.earlier_jobs import missing_rules_line
from .launch.heartbeat import beating_heart
from .launch.job import check_launch, prepare
from .launch.job_options import CheckedIndexOptions, JobOptions
from .launch.job_reports import report
from .launch.machine_use import show_use
from .launch.table_rooms import low_room
from .running.job_here import Build, RoundPhase
from .running.one_worker import Stages
from .running.placement import Workers, rows_of_state, rows_of_work, workers_of_rows
from .running.runner import manifests_of_launch, manifests_of_others, run_over_conflicts, waits
from .views.endings import CrawlStop, had_final_answers, work_of
from .views.summary import print_summary, summary_of

ARGUMENTS = (TABLE,)
_LOG = logging.getLogger("nutbeam")


@joined_options
class RoundOptions(
    LocateOptions,
    fetch.FetchBatchOptions,
    UpdateTableOptions,
    InvertTableOptions,
    DedupOptions,
    CheckedIndexOptions,
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

    parse_while_fetching: bool = shared_option(fetch.Options, "parse_while_fetching", default=True)

    @property
    def last_job(self) -> str:
        """The job that ends a round."""
        return "index" if self.index else "dedup"


Options = RoundOptions


def run(invocation: Invocation) -> int:
    address, options = str(invocation.table), invocation.options
    check_launch(invocation, begins_table=False)
    launched = options.operation or new_id()
    with beating_heart(invocation, launched) as heart:
        warn_of_missing_rules(invocation, options)
        stages = stages_of_round(options, rounds=1)
        pipeline = prepare(
            Ticket(address, launched), stages, options, invocation.beam_args, "round"
        )
        show_use(options, invocation.beam_args, invocation.progress)
        with live_view(invocation.progress):
            run_over_conflicts(pipeline, address, launched)
        if not waits(pipeline):
            return report(invocation, {"job": "round", "operation": launched, "submitted": True})
        pinned = pinned_operation(address, f"{launched}.crawl")
        manifests = manifests_of_launch(address, launched, pinned.snapshot) if pinned else []
        others = manifests_of_others(address, launched)
        return heart.ends_with(*finish(invocation, manifests, others))


def build(tickets: beam.PCollection[Ticket], options: RoundOptions) -> Any:
    """Builds the only round of a launch."""
    return stages_of_round(options, rounds=1)(tickets, options)


def stages_of_round(options: RoundOptions, rounds: int) -> Stages:
    """Returns the build of one round of a crawl; a worker finds its number when the pipeline runs.

    A ticket with a batch finishes that batch.
    """
    choose: Build = functools.partial(_choose, rounds=rounds)
    parts = (choose, _fetch, _parse, _update, _dedup, *([_index] if options.index else []))
    return Stages(parts, functools.partial(_rows_of_round, rounds=rounds))


def _rows_of_round(ticket: Ticket, options: RoundOptions, rounds: int) -> Sequence[float] | None:
    begin(ticket.address, "crawl", f"{ticket.operation}.crawl")  # as a worker would do
    by_rows = reads_due_times(ticket.address, options)
    upcoming = find_next_round(ticket.address, ticket.operation, options, rounds, by_rows=by_rows)
    return None if upcoming is None else _rows_of_parts(ticket.address, upcoming[1], options)


def reads_due_times(address: str, options: RoundOptions) -> bool:
    """Returns whether the launcher reads which rows are due: those that may be are few enough."""
    surveyed = _surveyed_rows(address, newest_manifest(address), options)
    return workers_of_rows(surveyed, options) is Workers.ONE


def _surveyed_rows(address: str, manifest: Manifest, options: RoundOptions) -> int:
    """Returns how many rows of a table generate weighs."""
    rows = rows_to_survey(open_table(address), manifest, options)
    return rows_of_work("generate", rows, None)


def _rows_of_parts(address: str, batch: str | None, options: RoundOptions) -> Sequence[float]:
    """Returns how many rows of a table each part of a round weighs, see ``Stages``.

    A phase that is over for the batch weighs nothing. Nor does parse, if the fetch parses.

    Args:
        address: Address of the table.
        batch: The batch that the round finishes; None if it makes one.
        options: Options of the round.
    """
    manifest = newest_manifest(address)
    rows, record = rows_of_state(manifest), manifest.batches.get(batch or "")
    phase = record.phase if record else "generated"
    urls = record.urls if record else _most_urls(address, manifest, options)
    engines = record.partitions if record else options.num_fetchers
    parses = phase == FETCHED_PHASE or (phase == "generated" and not options.parse_while_fetching)
    updates = 2 if options.links else phase != UPDATED_PHASE
    return (
        0 if record else _surveyed_rows(address, manifest, options),
        math.inf if phase == "generated" and engines > 1 else 0,
        parses * rows_of_work("parse", rows, urls),
        updates * rows_of_work("update", rows, urls),
        rows_of_work("dedup", rows, urls),
        *([rows_of_work("index", rows, None)] if options.index else []),
    )


def _most_urls(address: str, manifest: Manifest, options: RoundOptions) -> int:
    """Returns how many URLs a new batch has at most."""
    if not reads_due_times(address, options):
        return min(options.top_n, rows_of_state(manifest))
    return min(options.top_n, count_due_rows(open_table(address), manifest, options))


def _choose(tickets: beam.PCollection[Ticket], options: RoundOptions, rounds: int) -> Any:
    find = beam.Map(_round_ticket, options, rounds).with_output_types(Ticket)
    return tickets | "Round" >> find | RoundPhase("Generate", generate.build, options)


def _fetch(tickets: beam.PCollection[Ticket], options: RoundOptions) -> Any:
    return tickets | RoundPhase("Fetch", fetch.build, options)


def _parse(tickets: beam.PCollection[Ticket], options: RoundOptions) -> Any:
    return tickets | RoundPhase("Parse", parse.build, options, needs=FETCHED_PHASE)


def _update(tickets: beam.PCollection[Ticket], options: RoundOptions) -> Any:
    updated = tickets | RoundPhase("Update", update.build, options)
    if not options.links:
        return updated
    from . import invertlinks  # late, as index and sitemap: few crawls need it

    return updated | RoundPhase("Links", invertlinks.build, options)


def _dedup(tickets: beam.PCollection[Ticket], options: RoundOptions) -> Any:
    return tickets | RoundPhase("Dedup", dedup.build_of_batch(options.top_n), options)


def _index(tickets: beam.PCollection[Ticket], options: RoundOptions) -> Any:
    from .indexing import index

    return tickets | RoundPhase("Index", index.build, options)


def find_next_round(
    address: str, launched: str, options: RoundOptions, rounds: int, *, by_rows: bool = False
) -> tuple[int, str | None] | None:
    """Returns the number of the next round and its open batch, if it has one; None if there is no round.

    Args:
        address: Address of the table.
        launched: Id of the launch.
        options: Options of the round.
        rounds: How many rounds the launch has at most; -1: until nothing is due.
        by_rows: Whether rows are read to see whether one is due.
    """

    def due(clock: Clock) -> Due:
        return due_at(clock, options)

    return next_round(address, launched, rounds, due, options.last_job, by_rows=by_rows)


def _round_ticket(start: Ticket, options: RoundOptions, rounds: int) -> Ticket:
    check_versions(start)
    # Pins the batches that must be finished, unless the launcher has done so.
    began = begin(start.address, "crawl", f"{start.operation}.crawl").now
    upcoming = find_next_round(start.address, start.operation, options, rounds)
    if upcoming is None:
        return dataclasses.replace(start, idle=True)
    number, batch = upcoming
    named = f"{start.operation}.{number}"
    return dataclasses.replace(start, operation=named, batch=batch, round=number, began=began)


def warn_of_missing_rules(invocation: Invocation, options: RoundOptions) -> None:
    """Warns if a crawl lacks rules of the job before, and something waits for it."""
    table = open_table(str(invocation.table))
    manifest = load_manifest(table, table.latest_snapshot())
    waits = (
        invocation.arguments.get("seeds")
        or unfinished_batches(manifest, now_ms())
        or rows_may_be_due(table, manifest, options)
    )
    if waits and (line := missing_rules_line(invocation)):
        _LOG.warning("%s", line)


def finish(
    invocation: Invocation,
    manifests: Sequence[Manifest],
    others: Sequence[Manifest],
    *,
    time_up: bool = False,
) -> tuple[int, str, bool]:
    """Prints the summary; returns the exit code, the line that says why, and whether it ended well.

    It ended well with 0, and with 4 if the answers were final: a monitor has nothing to report then.

    0: pages were fetched, or an open batch was finished, or a stop file ended the crawl.
    1: nothing was due. 3: the disk has too little room to go on. 4: URLs were tried, or every seed
    was refused, and no page was fetched.

    Args:
        invocation: The command.
        manifests: The snapshots that its jobs made.
        others: The snapshots that others made meanwhile.
        time_up: Whether its time is over.
    """
    address = str(invocation.table)
    stop = stop_file(open_table(address))
    low = low_room(address, invocation.options.least_free)
    why_low = None if low is None else low_message(address, low)
    stopped = CrawlStop(None if stop is None else str(stop), time_up, why_low)
    record = summary_of(invocation, manifests, others, stopped)
    print_summary(invocation, record)
    code = int(record["exit_code"])
    is_final = code == NOTHING_FETCHED and had_final_answers(work_of(manifests))
    return code, str(record["message"]), code == DONE or is_final
