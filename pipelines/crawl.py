"""crawl: inject, and rounds of generate, fetch, parse, updatedb, invertlinks, dedup and index.

A round is one pipeline: each phase commits, and its ticket starts the next phase.
The loop depends only on the table, so the next crawl resumes a killed crawl:
it finishes an open batch first, and counts that as a round. A file
``.STOP`` in the table ends the loop after the current round.
"""

import dataclasses
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import apache_beam as beam

from ..io.reading.sitemap_sources import ALL_HOSTS
from ..io.snapshots.manifest import Manifest, load_manifest
from ..io.snapshots.operations import begin, new_id, pinned_operation
from ..io.snapshots.rounds import stop_file
from ..io.storage.file_errors import NoTable
from ..io.table.opening import open_table
from ..policy.sitemaps.sitemap_list import SitemapLimits
from ..transforms.parsing import parse_pool
from ..transforms.tickets import Ticket
from ..web.archives.warc_options import WarcOptions
from ..web.base import json_logs
from ..web.base.clock import now_ms
from ..web.base.errors import UsageError
from ..web.base.joined_options import joined_options
from ..web.base.options import option, seconds
from ..web.base.progress import PROGRESS
from . import inject
from .base.command import TABLE, Argument, Invocation
from .base.live import live_view
from .checkers.reasons import check_obstacles, is_local
from .launch.heartbeat import beating_heart
from .launch.job import check_launch, prepare
from .launch.launch import workers_elsewhere
from .launch.machine_use import show_use
from .launch.shipped_seeds import check_seeds, seed_words
from .launch.table_rooms import RoomOfRounds, low_room
from .round import (
    RoundOptions,
    find_next_round,
    finish,
    reads_due_times,
    stages_of_round,
    warn_of_missing_rules,
)
from .running.runner import manifests_of_launch, manifests_of_others, run_over_conflicts
from .views.next_due import wait_for_due

# It takes longer to parse this number of pages than to start a process.
_MANY_URLS = 1_000
ARGUMENTS = (
    TABLE,
    Argument("seeds", "URLs, files, folders, or - for standard input.", nargs="*"),
)


@joined_options
class Options(inject.InjectOptions, SitemapLimits, RoundOptions, WarcOptions):
    """Options of crawl."""

    warc: str = option(
        "",
        "After each round, write its pages into the archive in this folder, as nutbeam warc does, and "
        "what the archive lacks of earlier rounds; empty: do not. --store_wire keeps answers as they "
        "came.",
        group="warc",
        takes="path",
    )

    sitemaps: str = option(
        "never",
        "Add the URLs in the sitemaps of all hosts of the table: never, once before the first "
        "round, or always before each round.",
        choices=("never", "once", "always"),
        nutch="crawl --sitemaps-from-hostdb",
    )
    rounds: int = option(3, "Rounds at most; -1: until nothing is due.", minimum=-1)
    wait: bool = option(
        False,
        "Wait until pages are due. Waiting does not count as a round. .STOP or a signal ends it.",
        nutch="crawl -w, crawl --wait",
    )
    time_limit: float = seconds(
        -1.0,
        "Time after which the whole crawl begins no request; waiting pages stay due. -1: no limit.",
        minimum=None,
    )


def run(invocation: Invocation) -> int:
    options = invocation.options
    address, beam_args = str(invocation.table), invocation.beam_args
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
            f"{error}; a first crawl needs seeds: nutbeam crawl {address} URL"
        ) from error
    PROGRESS.reset()  # the summary is only for this crawl
    launched = options.operation or new_id()
    with beating_heart(invocation, launched) as heart:
        archive_rounds = _archive_writer(address, options, beam_args)
        words = seed_words(seeds, address, elsewhere=workers_elsewhere(beam_args))
        if not workers_elsewhere(beam_args):
            _start_parsers(address, options)  # together with Beam
        warn_of_missing_rules(invocation, options)
        until = _end_of(options)
        show_use(options, beam_args, invocation.progress)
        with live_view(invocation.progress):
            named = dataclasses.replace(options, operation=launched)
            manifests = []
            is_typed = invocation.take_record is None
            for manifest in crawl(address, words, named, beam_args, announce=is_typed):
                manifests.append(manifest)
                if archive_rounds and manifest.job == options.last_job:
                    archive_rounds()
            if archive_rounds:  # what a crawl before has left out
                archive_rounds(complete=True)
        time_up = until is not None and now_ms() >= until
        others = manifests_of_others(address, launched)
        return heart.ends_with(*finish(invocation, manifests, others, time_up=time_up))


def _start_parsers(address: str, options: Options) -> None:
    """Starts a process that parses, or all of them if the table has URLs for all."""
    pool = parse_pool(options)
    table = open_table(address)
    state = load_manifest(table, table.latest_snapshot()).components.get("state")
    if state and state.rows >= _MANY_URLS:
        pool.start_all()


def _archive_writer(
    address: str, options: Options, beam_args: Sequence[str]
) -> Callable[..., None] | None:
    """Returns the function that writes the archive of ``--warc``; None without one."""
    if not options.warc:
        return None
    from .archives.archiving import round_archiver  # late, as index: few crawls need it

    return round_archiver(address, options.warc, options, beam_args)


def crawl(
    address: str,
    words: Sequence[str],
    options: Options,
    beam_args: Sequence[str] = (),
    *,
    announce: bool = True,
) -> Iterator[Manifest]:
    """Crawls; yields the manifest of each snapshot as soon as a job has made it.

    If the same operation was launched before, its earlier snapshots come first.

    Args:
        address: Address of the table.
        words: Seeds: URLs, files, folders.
        options: Options of all jobs.
        beam_args: Arguments for Beam.
        announce: Whether to print when it waits.
    """
    launched = options.operation or new_id()
    json_logs.set_logged_operation(launched)
    # Pins the batches that must be finished.
    seen = begin(address, "crawl", f"{launched}.crawl").snapshot
    ticket = Ticket(address, launched, until=_end_of(options))
    if words:
        build = inject.build_of_seeds(words)
        injecting = prepare(ticket, build, options, beam_args, "inject")
        run_over_conflicts(injecting, address, launched)
    if options.sitemaps != "never" and options.rounds and _goes_on(ticket, options):
        read_sitemaps(ticket, 1, options, beam_args)
    manifests = manifests_of_launch(address, launched, seen)
    yield from manifests
    seen = manifests[-1].snapshot if manifests else seen
    yield from _stretches(ticket, manifests, seen, options, beam_args, announce=announce)


def _stretches(
    ticket: Ticket,
    manifests: Sequence[Manifest],
    seen: int,
    options: Options,
    beam_args: Sequence[str],
    *,
    announce: bool,
) -> Iterator[Manifest]:
    """Runs rounds; with ``wait``, again and again, as soon as pages are due.

    After a round that found nothing, the rounds of its operation are over. So each stretch of
    rounds has an operation of its own, with the rounds that are left.

    Args:
        ticket: The launch.
        manifests: The snapshots that it has made before.
        seen: The newest of them, or the one before.
        options: Options of all jobs.
        beam_args: Arguments for Beam.
        announce: Whether to print when it waits.
    """
    number, idle = _stretch_under_way(ticket), 0
    own = f"{_stretch(ticket, number).operation}."
    of_earlier_stretches = [m for m in manifests if not m.operation.startswith(own)]
    rounds_left = options.rounds - _rounds_of(of_earlier_stretches, options)
    while True:
        part = _stretch(ticket, number)
        begin(ticket.address, "crawl", f"{part.operation}.crawl")
        stretch_manifests = []
        within = dataclasses.replace(options, rounds=rounds_left)
        for manifest in _rounds(part, seen, within, beam_args, first=not number):
            stretch_manifests.append(manifest)
            yield manifest
        seen = stretch_manifests[-1].snapshot if stretch_manifests else seen
        rounds_left -= _rounds_of(stretch_manifests, options)
        idle = idle + 1 if _in_vain(stretch_manifests) else 0
        if not (options.wait and rounds_left and _goes_on(ticket, options)):
            return
        if not wait_for_due(ticket.address, options, ticket.until, idle, announce=announce):
            return
        number += 1


def _stretch_under_way(ticket: Ticket) -> int:
    """Returns the number of the last stretch that has begun, perhaps before the launch died."""
    number = 0
    while pinned_operation(ticket.address, f"{_stretch(ticket, number + 1).operation}.crawl"):
        number += 1
    return number


def _in_vain(manifests: Sequence[Manifest]) -> bool:
    """Returns whether pages seemed to be due, and none was fetched."""
    pages = any(m.job == "fetch" and m.counts.get("pages") for m in manifests)
    return not pages and any(manifest.job == "generate" for manifest in manifests)


def _stretch(ticket: Ticket, number: int) -> Ticket:
    """Returns the ticket of a stretch of rounds; the first one is that of the launch."""
    named = f"{ticket.operation}.wait{number}" if number else ticket.operation
    return dataclasses.replace(ticket, operation=named)


def _rounds_of(manifests: Sequence[Manifest], options: Options) -> int:
    """Returns how many rounds have ended."""
    return sum(manifest.job == options.last_job for manifest in manifests)


def _rounds(
    ticket: Ticket, seen: int, options: Options, beam_args: Sequence[str], *, first: bool
) -> Iterator[Manifest]:
    """Runs rounds until none can begin; yields the snapshots after ``seen``.

    Before the ``first`` round of all, sitemaps were read already.
    """
    # Built once: the graph contains the table and the launch id; a run finds its round. For a cluster
    # it is built for the work of each round.
    pipeline: beam.Pipeline | None = None
    address, launched = ticket.address, ticket.operation
    room, elsewhere = RoomOfRounds(address, options.least_free), workers_elsewhere(beam_args)
    while _in_time(ticket) and room.suffices():
        by_rows = elsewhere and reads_due_times(address, options)
        upcoming = find_next_round(address, launched, options, options.rounds, by_rows=by_rows)
        if upcoming is None:
            return
        if options.sitemaps == "always" and (upcoming[0] > 1 or not first):
            read_sitemaps(ticket, upcoming[0], options, beam_args)
        PROGRESS.begin_round(upcoming[0], options.rounds)
        if pipeline is None or elsewhere:
            stages = stages_of_round(options, options.rounds)
            pipeline = prepare(ticket, stages, options, beam_args)
        run_over_conflicts(pipeline, address, launched)
        manifests = manifests_of_launch(address, launched, seen)
        yield from manifests
        seen = manifests[-1].snapshot if manifests else seen
        if not manifests or fetched_nothing(manifests):
            return


def _end_of(options: Options) -> int | None:
    """Returns the time at which a crawl ends that begins now, ms; None is no limit."""
    return now_ms() + int(1000 * options.time_limit) if options.time_limit >= 0 else None


def _in_time(ticket: Ticket) -> bool:
    return ticket.until is None or now_ms() < ticket.until


def _goes_on(ticket: Ticket, options: Options) -> bool:
    """Returns whether a crawl may begin something new: no stop file, and time and room are left."""
    no_file = stop_file(open_table(ticket.address)) is None
    return _in_time(ticket) and no_file and low_room(ticket.address, options.least_free) is None


def read_sitemaps(ticket: Ticket, number: int, options: Options, beam_args: Sequence[str]) -> None:
    """Adds the URLs in the sitemaps of all hosts, before round ``number``."""
    from .sitemaps import sitemap

    # Not the id of a round: what it names has begun then.
    named = dataclasses.replace(ticket, operation=f"{ticket.operation}.sitemaps{number}")
    reading = prepare(
        named, lambda t, o: sitemap.build(t, o, hosts=(ALL_HOSTS,)), options, beam_args,
        "sitemap",
    )  # fmt: skip
    run_over_conflicts(reading, ticket.address, ticket.operation)


def fetched_nothing(manifests: Sequence[Manifest]) -> bool:
    """Returns whether a round requested URLs without any result; the next would do the same."""
    fetches = [manifest for manifest in manifests if manifest.job == "fetch"]
    return bool(fetches) and not any(manifest.counts.get("pages") for manifest in fetches)
