"""fetch: requests the pages of a batch.

::

    batch.fetchlist, by partition ─ one engine: queues per host, threads, robots.txt
        ─▶ batch.pages, batch.host_findings (and batch.documents, with --parse_while_fetching)

Pages are flushed to files as they arrive. If a fetch dies and is run again, it
adopts these files and does not request their pages.
"""

import contextlib
import functools
import time
from collections.abc import Iterator, Sequence

import apache_beam as beam
import polars as pl

from ..io.batches.attempts import FetchedSoFar
from ..io.batches.batches import adopted_findings, adopted_pages, batch_component
from ..io.batches.documents import Parser
from ..io.batches.known_hosts import HostRecords
from ..io.batches.leases import SITEMAP_LEASES, Lease, acquire
from ..io.batches.page_writer import PageWriter
from ..io.parsing.parse_pool import Parsed
from ..io.rows.seed_hosts import read_seed_hosts
from ..io.rows.small_components import read_blocklist, read_host_settings
from ..io.snapshots.commit import check_batch_waits
from ..io.snapshots.manifest import load_manifest
from ..io.snapshots.operations import UPKEEP, Operation, find_commit
from ..io.storage.least_free import DISK_LOW, table_room
from ..io.storage.parquet_files import collect, scan
from ..io.storage.places import Folder
from ..io.tablets.file_lists import DataFile
from ..io.tablets.written import Written, sum_counts
from ..policy.base.key_columns import host_keys
from ..policy.components.blocklist import drop_blocked
from ..policy.components.host_rows import Seeds
from ..policy.components.schema import FETCHLIST, PAGES, empty
from ..policy.components.vocabulary import FETCHED_PHASE, PARSED_PHASE
from ..policy.fetch_engines import EngineOptions
from ..policy.hosting.host_settings import without_blocked_hosts
from ..policy.parsing.documents import DocumentOptions
from ..policy.recorded_rules import recorded_rules
from ..transforms.fetch_pages import PARTITIONS, FetchBatch
from ..transforms.fetching import Fetching, LeaseOptions, in_time_left, longest_wait
from ..transforms.operations import Begin, Commit
from ..transforms.parsing import ParsePagesOptions, parser_of
from ..transforms.tickets import Ticket
from ..transforms.wiring.metrics import Throttling
from ..web.base.dataclass import dataclass
from ..web.base.joined_options import joined_options
from ..web.base.options import seconds
from ..web.base.progress import PROGRESS
from ..web.engine.engine import Engine, FetchOptions
from ..web.engine.tasks import Hop, Result, Task
from ..web.exchange.http_options import HttpOptions, WireOptions
from .base.command import TABLE, Invocation
from .fetching.fetch_list import check_undivided, list_tasks, pinned_guard
from .fetching.followed_links import (
    OutlinkOptions,
    Outlinks,
    RedirectOptions,
    Redirects,
    RequestedPages,
)
from .fetching.host_findings import HostFindings
from .launch.earlier_jobs import done_with
from .launch.job import run_job
from .launch.job_options import BatchOptions
from .launch.table_rooms import RoomOptions
from .views.rule_reports import report_one_job

ARGUMENTS = (TABLE,)
# Time between two looks at the room of the disk.
_LOOK_SECONDS = 1.0
# Files of pages that a batch has at most because of --flush_seconds; those of full size come on top.
_MOST_FILES = 100_000
_LEAST_FLUSH_SECONDS = 5.0
_DAY_SECONDS = 86_400.0


@joined_options
class FetchBatchOptions(
    FetchOptions,
    HttpOptions,
    WireOptions,
    RedirectOptions,
    OutlinkOptions,
    ParsePagesOptions,
    LeaseOptions,
    RoomOptions,
    EngineOptions,
):
    """Options of fetching, without those of launching."""

    GROUP = "fetch"

    flush_seconds: float = seconds(
        -1.0,
        "Write a page to disk at most this long after it arrived, with all pages since then. "
        "Pages that are not written are lost if the process dies. -1: 5 s, or longer if "
        "--num_fetchers workers would write more than 100,000 files until --fetch_time_limit (a day "
        "without a limit): 11 s with 100, 108 s with 1,000.",
        minimum=-1.0,
    )


@joined_options
class Options(FetchBatchOptions, BatchOptions):
    """Options of fetch."""


@dataclass(frozen=True)
class Partition:
    """The hosts that one engine fetches.

    Attributes:
        operation: The operation.
        number: Number of the partition.
        files: Files of its fetch list.
    """

    operation: Operation
    number: int
    files: tuple[DataFile, ...]


def flush_interval(time_limit: float, partitions: int) -> float:
    """Returns the time between two flushes with which a batch has a bounded number of files of pages.

    Args:
        time_limit: Longest time of the fetch, s; negative is no limit.
        partitions: Number of partitions of the batch.

    >>> flush_interval(10_800, 1), flush_interval(10_800, 1_000), flush_interval(-1, 100)
    (5.0, 108.0, 86.4)
    """
    longest = time_limit if time_limit >= 0 else _DAY_SECONDS
    return max(_LEAST_FLUSH_SECONDS, longest * partitions / _MOST_FILES)


def _flush_seconds(operation: Operation, options: FetchBatchOptions) -> float:
    if options.flush_seconds >= 0:
        return options.flush_seconds
    batch = operation.manifest().batches[str(operation.batch)]
    return flush_interval(options.fetch_time_limit, batch.partitions)


def run(invocation: Invocation) -> int:
    return run_job(invocation, build, "fetch", after=report_one_job)


def build(
    tickets: beam.PCollection[Ticket], options: FetchBatchOptions
) -> beam.PCollection[Ticket]:
    """Fetches a batch; parses it, too, with --parse_while_fetching.

    The ticket that it returns is for the next job.
    """
    operations = tickets | "Begin" >> Begin("fetch", needs="generated", allows=UPKEEP)
    written = operations | FetchBatch(
        _partitions, partition_fetching, options, max(1, options.fetch_engines)
    )
    phase = PARSED_PHASE if options.parse_while_fetching else FETCHED_PHASE
    return (operations, written) | Commit(
        reads=("batches/{batch}/fetchlist",),
        phase=phase,
        whole=(PARTITIONS,),
        over_purges=True,
        options=done_with(phase, options, DocumentOptions) if phase == PARSED_PHASE else {},
        rules=recorded_rules(options) if phase == PARSED_PHASE else None,
    )


def _partitions(operation: Operation) -> Iterator[Partition]:
    by_number: dict[int, list[DataFile]] = {}
    for file in operation.files(batch_component(str(operation.batch), "fetchlist")):
        by_number.setdefault(file.partition, []).append(file)
    total = sum(file.rows for files in by_number.values() for file in files)
    PROGRESS.start("fetch", total=total)
    for number, files in sorted(by_number.items()):
        yield Partition(operation, number, tuple(files))


@contextlib.contextmanager
def partition_fetching(part: Partition, options: FetchBatchOptions) -> Iterator[Fetching | None]:
    """Gives the fetching of one partition while its lease is held; None if it is done.

    Args:
        part: The hosts and their URLs.
        options: Options of the fetch.

    Raises:
        LeaseLost: Another attempt has taken over.
        Unavailable: Another fetch held the lease for too long.
        BatchMovedOn: Another operation has fetched the batch.
    """
    table, batch = part.operation.table, str(part.operation.batch)
    throttling = Throttling()
    others = functools.partial(_other_batches, part.operation)
    with acquire(
        table, batch, part.number, others, throttling.add, most=longest_wait(options)
    ) as lease:
        # Another attempt may have committed during the wait.
        if find_commit(part.operation) is None:
            check_batch_waits(part.operation)
            options = in_time_left(options, part.operation.until)
            yield _PartitionFetching(part, options, lease, throttling)
        else:
            yield None


def _other_batches(operation: Operation) -> list[str]:
    """Returns the batches whose requests are not yet in the host records of the pinned snapshot."""
    batches = operation.manifest().batches
    updated = {name for name, batch in batches.items() if batch.phase == "updated"}
    return [
        name
        for name in load_manifest(operation.table, operation.table.latest_snapshot()).batches
        if name != operation.batch and name not in updated
    ] + [SITEMAP_LEASES]


class _PartitionFetching(Fetching):
    """One attempt at a partition; yields each file as it is written.

    Args:
        part: The hosts and their URLs.
        options: Options of the fetch.
        lease: The lease of this attempt.
        throttling: Counter of the time that it waits for politeness.
    """

    _engine: Engine
    _findings: HostFindings

    def __init__(
        self, part: Partition, options: FetchBatchOptions, lease: Lease, throttling: Throttling
    ) -> None:
        super().__init__(options)
        self._part, self._lease, self._throttling = part, lease, throttling
        self.requested_until = lease.requested_until
        self._table, self._batch = part.operation.table, str(part.operation.batch)
        self._blocklist = blocklist = read_blocklist(part.operation)
        paths = [self._table / file.path for file in part.files]
        rows, dropped = drop_blocked(collect(scan(paths, FETCHLIST)), blocklist)
        self._settings = read_host_settings(part.operation)
        rows, left_alone = without_blocked_hosts(rows, self._settings)
        self._dropped = {**dropped, **left_alone}
        check_undivided(part.operation, rows, options.queue_mode, options)
        if options.queue_mode != "ip":  # generate may have used another mode
            rows = rows.with_columns(address=pl.lit(None, pl.String))
        self.guard = pinned_guard(rows, options)
        self._adopted = adopted_pages(self._table, self._batch, part.number, blocklist.blocks)
        have = _have(self._table, self._adopted)
        self._requested = requested = RequestedPages(rows, have)
        follows = options.follow_outlinks_depth > 0
        self._outlinks = Outlinks(options, requested, blocklist) if follows else None
        followed = options.redirect_max > 0 or options.http_cookies
        seeds = read_seed_hosts(part.operation) if followed else Seeds()
        self._redirects = Redirects(options, requested, seeds, blocklist, options.http_cookies)
        parser = _parser(part, options, self._outlinks) if options.parse_while_fetching else None
        self._writer = PageWriter(
            self._table.files,
            self._batch,
            part.number,
            _flush_seconds(part.operation, options),
            parser,
        )
        self._rows = rows.join(have, on="key", how="anti", maintain_order="left")
        # Redirects and links may lead to hosts of adopted pages.
        wide = [rows, have] if followed or self._outlinks else [self._rows]
        self._keys = pl.concat([frame.get_column("key") for frame in wide])
        self._written: list[Written] = []  # files since the last page
        self._pages = self._bytes = 0
        lease.show(self._fetched_so_far)
        self._next_look = 0.0  # at the room of the disk, on the monotonic clock

    def begin(self) -> Iterator[Written]:
        """Takes over the files of earlier attempts."""
        for file in self._adopted:
            yield from self._writer.adopt(file)
            PROGRESS.add(file.rows)
            self._pages += file.rows
        number, hit = self._part.number, self._blocklist.blocks_hosts
        for file in adopted_findings(self._table, self._batch, number, hit):
            yield Written(batch_component(self._batch, "host_findings"), (file,))
        hosts = tuple(self._part.operation.files("hosts"))
        self.known_hosts = HostRecords(
            self._table, hosts, host_keys(self._keys).unique(), self._lease.hosts
        )

    def tasks(self, engine: Engine) -> Iterator[Task | None]:
        self._engine = engine
        self._findings = HostFindings(self._part.operation, self._part.number, engine)
        self._lease.note(engine.demands)
        settings = self._settings.items()
        threads = {host: own.threads for host, own in settings if own.threads is not None}
        tasks = list_tasks(self._rows, self._requested, threads, self.options)
        return self._follow_outlinks(tasks, self._outlinks) if self._outlinks else tasks

    def add(self, result: Result) -> Iterator[Written]:
        self._pages += 1
        self._bytes += len(result.response.body) if result.response else 0
        return self._writer.add(result)

    def _fetched_so_far(self) -> FetchedSoFar:
        return FetchedSoFar(self._pages, self._bytes)

    def end(self) -> Iterator[Written]:
        self._lease.check()
        yield from self._written
        # Written before the last pages, so that the findings exist if all pages exist.
        yield from self._findings.write()
        yield from self._writer.flush()
        yield Written(counts=self._counts())

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is KeyboardInterrupt:
            list(self._writer.keep())  # fetched pages are kept; the batch can be resumed
        elif kind is not None and issubclass(kind, Exception):
            self._writer.abandon()

    def _follow_outlinks(self, tasks: Iterator[Task], outlinks: Outlinks) -> Iterator[Task | None]:
        yield from tasks
        while True:
            yield None  # all tasks so far are queued now
            idle = self._engine.is_idle()
            late = self._writer.flush() if idle else self._writer.flush_late()
            self._written.extend(late)
            following = outlinks.take()
            if idle and not following:
                break
            yield from following

    def pulse(self, waited: float) -> None:
        self._lease.check()
        self._end_on_full_disk()
        self._throttling.total(waited)
        self._written.extend(self._writer.flush_late())
        self._findings.write_if_old()

    def _end_on_full_disk(self) -> None:
        """Ends the fetch if the table's disk has too little room; the rest of the round needs it."""
        if time.monotonic() < self._next_look:
            return
        self._next_look = time.monotonic() + _LOOK_SECONDS
        room = table_room(self._table.files, self.options.least_free)
        if room is not None and room.is_low:
            self._engine.stop(DISK_LOW)

    def may_send(self) -> bool:
        return self._lease.may_send()

    def follow(self, task: Task, url: str, new_cookie: bool) -> Hop:
        return self._redirects.follow(task, url, new_cookie)

    def patience(self) -> float:
        return self._writer.due_in()

    def _counts(self) -> dict[str, int]:
        left_out = {f"dropped/{reason}": n for reason, n in self._engine.drop_counts.items() if n}
        outlinks = self._outlinks.counts if self._outlinks else {}
        odd = self._engine.odd_crawl_delays
        odd_delays = {"odd_crawl_delay": odd} if odd else {}
        return sum_counts([self._dropped, left_out, odd_delays, self._redirects.counts, outlinks])


def _have(table: Folder, adopted: Sequence[DataFile]) -> pl.DataFrame:
    """Returns the keys and depths of the pages of earlier attempts."""
    paths = [table / file.path for file in adopted]
    pages = scan(paths, PAGES) if paths else empty(PAGES).lazy()
    return collect(pages.select("key", "depth"))


def _parser(part: Partition, options: ParsePagesOptions, outlinks: Outlinks | None) -> Parser:
    def take_parsed(parsed: Parsed) -> None:
        PROGRESS.add(0, parsed=parsed.counts.get("parsed", 0))
        if outlinks is not None:
            outlinks.add(parsed.documents)

    return parser_of(part.operation, options, take_parsed)
