"""fetch: asks for the pages of a batch.

::

    batch.fetchlist, by partition ─ one engine: queues per host, threads, robots.txt
        ─▶ batch.pages, batch.learnt (and batch.documents, if parsed meanwhile)

What is fetched is flushed to files as it comes. A fetch that died is run
again: it adopts the files that are there and asks for nothing that they hold.
"""

import contextlib
import dataclasses
import secrets
import time
from collections.abc import Iterator, Mapping

import apache_beam as beam
import polars as pl
import pyarrow as pa
from apache_beam.metrics import Metrics

from ..io.bars import read_bars
from ..io.batches import adopted_learnt, adopted_pages, page_name, place, write_file
from ..io.file_lists import DataFile
from ..io.hosts import read_hosts, read_seeds_hosts, seed_files
from ..io.leases import Lease, acquire
from ..io.manifest import latest_snapshot, load_manifest
from ..io.operations import Operation, committed
from ..io.pages import PageWriter, Parser
from ..io.parquet_files import collect, scan
from ..io.parse_pool import shared_pool
from ..io.written import Written, check_batch
from ..policy.bars import without
from ..policy.schema import FETCHLIST, HOSTS, PAGES
from ..policy.selection import place_of
from ..transforms.metrics import NAMESPACES
from ..transforms.operations import Begin, Commit, ForEach, Ticket
from ..transforms.partition import SLOTS, hash_buckets
from ..web.engine import Engine, FetchOptions
from ..web.errors import UserError
from ..web.hosts import HostRecord
from ..web.http import Client, HttpOptions
from ..web.options import option
from ..web.progress import PROGRESS
from ..web.rules import host_keys
from ..web.tasks import Task
from ..web.urls import from_host_key, from_key, host_key
from .command import TABLE, Invocation
from .job import BatchOptions, run_job
from .parse import ParsePagesOptions, document_options
from .redirects import RedirectOptions, Redirects

ARGUMENTS = (TABLE,)
LEARNT_SECONDS = 30.0  # how old what was learnt about hosts may get before it is on disk
HELP = "Fetch the pages of a batch"


@dataclasses.dataclass(frozen=True)
class FlushOptions:
    """When fetched pages are written to disk."""

    flush_seconds: float = option(
        5.0,
        "Write what is fetched at least so often; what is not written is lost with the process.",
        unit="s",
        minimum=0.0,
        group="fetch",
    )


@dataclasses.dataclass(frozen=True)
class FetchPagesOptions(FetchOptions, HttpOptions, FlushOptions, RedirectOptions):
    """What fetching needs to know."""


@dataclasses.dataclass(frozen=True)
class Options(FetchPagesOptions, BatchOptions):
    """Options of fetch."""


@dataclasses.dataclass(frozen=True)
class Partition:
    """The hosts that one engine fetches.

    Attributes:
        operation: The operation.
        number: Of the partition.
        files: Its part of the fetch list.
        hosts: Files of the host table.
    """

    operation: Operation
    number: int
    files: tuple[DataFile, ...]
    hosts: tuple[DataFile, ...]


def run(invocation: Invocation) -> int:
    return run_job(invocation, build, "fetch")


def build(
    tickets: beam.PCollection[Ticket],
    options: FetchPagesOptions,
    parsing: ParsePagesOptions | None = None,
) -> beam.PCollection[Ticket]:
    """Fetches a batch; the ticket that comes out is for the next job.

    Args:
        tickets: One ticket.
        options: How to fetch.
        parsing: How to parse what is fetched meanwhile; None leaves it to parse.
    """
    operations = tickets | "Begin" >> Begin("fetch", needs="generated")
    written = operations | "Partitions" >> ForEach(
        _partitions, fetch_partition, (options, parsing), Written, step="Partitions"
    )
    phase = "fetched" if parsing is None else "parsed"
    return (operations, written) | Commit(
        reads=("batches/{batch}/fetchlist",), phase=phase, whole=("Partitions",)
    )


def _partitions(operation: Operation) -> Iterator[Partition]:
    hosts = tuple(operation.files("hosts"))
    by_number: dict[int, list[DataFile]] = {}
    for file in operation.files(place(str(operation.batch), "fetchlist")):
        by_number.setdefault(file.partition, []).append(file)
    total = sum(file.rows for files in by_number.values() for file in files)
    PROGRESS.start("fetch", total=total)
    for number, files in sorted(by_number.items()):
        yield Partition(operation, number, tuple(files), hosts)


def fetch_partition(
    part: Partition, options: FetchPagesOptions, parsing: ParsePagesOptions | None = None
) -> Iterator[Written]:
    """Fetches one partition; yields each file of pages as it is written.

    Args:
        part: The hosts and their URLs.
        options: How to fetch.
        parsing: How to parse what is fetched meanwhile; None is not to.

    Raises:
        LeaseLost: Another attempt has taken over.
        ConflictError: Another operation has fetched the batch.
    """
    root, batch = part.operation.root, str(part.operation.batch)
    throttling = _Throttling()
    with acquire(
        root, batch, part.number, lambda: _other_batches(part.operation), throttling.add
    ) as lease:
        # Waiting may have taken long: is there still something to do?
        if committed(part.operation) is None:
            check_batch(part.operation, load_manifest(root, latest_snapshot(root)))
            yield from _fetch(part, options, parsing, lease, throttling)


def _other_batches(operation: Operation) -> list[str]:
    """Returns the batches of which the pinned snapshot does not know yet whom they asked when."""
    known = operation.manifest().batches
    return [
        name
        for name in load_manifest(operation.root, latest_snapshot(operation.root)).batches
        if name != operation.batch and not (name in known and known[name].phase == "updated")
    ]


def _fetch(
    part: Partition,
    options: FetchPagesOptions,
    parsing: ParsePagesOptions | None,
    lease: Lease,
    throttling: "_Throttling",
) -> Iterator[Written]:
    root, batch = part.operation.root, str(part.operation.batch)
    parser = _parser(part, parsing) if parsing is not None else None
    writer = PageWriter(root, batch, part.number, options.flush_seconds, parser)
    bars = read_bars(part.operation)
    adopted = adopted_pages(root, batch, part.number, bars.hit)
    for file in adopted:
        yield from writer.adopt(file)
        PROGRESS.add(file.rows)
    for file in adopted_learnt(root, batch, part.number, bars.hosts_hit):
        yield Written(place(batch, "learnt"), (file,))
    rows = collect(scan([root / file.path for file in part.files], FETCHLIST))
    rows, dropped = without(rows, bars)
    _check_dealt(part, rows, options)
    keys = rows.get_column("key")
    if adopted:
        have = collect(scan([root / file.path for file in adopted], PAGES).select("key"))
        rows = rows.join(have, on="key", how="anti", maintain_order="left")
        keys = pl.concat([keys, have.get_column("key")])
    redirects = None
    if options.redirect_max:
        seeds = read_seeds_hosts(root, seed_files(part.operation))
        redirects = Redirects(options, keys, seeds, bars)

    def pulse(waited: float) -> None:
        lease.check()
        throttling.total(waited)

    client = Client(options, gate=lease.may_send)
    known = _known(part, keys if redirects else rows.get_column("key"), lease)
    engine = Engine(options, client, known, lease.asked_until, pulse, follow=redirects)
    lease.note(engine.demands)
    learnt = _Learnt(part, engine)
    try:
        with contextlib.closing(engine.run(_tasks(rows))) as results:
            for result in results:
                yield from writer.add(result)
                learnt.now_and_then()
    except KeyboardInterrupt:
        list(writer.flush())  # what is done is kept; the batch can be taken up again
        raise
    finally:
        client.close()
    lease.check()
    # Before the last pages: when they are all there, so is this.
    yield from learnt.write()
    yield from writer.flush()
    left_out = {f"dropped/{reason}": n for reason, n in engine.dropped.items() if n}
    followed = dict(redirects.counts) if redirects else {}
    yield Written(counts=dropped | left_out | followed)


class _Learnt:
    """Writes what an engine has learnt about hosts, for an attempt that takes over, too.

    Of an attempt only the last file counts: the one that was told to the commit,
    or the one that a later attempt finds.
    """

    def __init__(self, part: Partition, engine: Engine) -> None:
        self._part, self._engine = part, engine
        self._started, self._attempt = int(time.time() * 1000), secrets.token_hex(4)
        self._files, self._since = 0, time.monotonic()

    def now_and_then(self) -> None:
        """Writes what is known so far, if that was long ago."""
        if time.monotonic() - self._since > LEARNT_SECONDS:
            list(self.write())

    def write(self) -> Iterator[Written]:
        """Writes what is known; yields the file, if there is anything to tell."""
        operation, number = self._part.operation, self._part.number
        rows = [_host_row(record) for record in self._engine.hosts()]
        if rows:
            table = pa.Table.from_pylist(rows, schema=HOSTS).sort_by("key")
            name = page_name(number, self._started, self._attempt, self._files)
            batch = str(operation.batch)
            file = write_file(operation.root, batch, "learnt", [table], partition=number, name=name)
            yield Written(place(batch, "learnt"), (file,))
        self._files += 1
        self._since = time.monotonic()


class _Throttling:
    """Tells the runner for how long politeness made us wait.

    Dataflow adds workers where work lies waiting; those would have to wait, too.
    """

    def __init__(self) -> None:
        self._counter = Metrics.counter(NAMESPACES["fetch"], "cumulativeThrottlingSeconds")
        self._before = self._engine = 0.0
        self._told = 0

    def add(self, seconds: float) -> None:
        """Adds what was waited before the engine began."""
        self._before += seconds
        self._tell()

    def total(self, seconds: float) -> None:
        """Says how long the engine has waited so far."""
        self._engine = seconds
        self._tell()

    def _tell(self) -> None:
        whole = int(self._before + self._engine)
        if whole > self._told:
            self._counter.inc(whole - self._told)
            self._told = whole


def _parser(part: Partition, options: ParsePagesOptions) -> Parser:
    return Parser(
        shared_pool(options.parse_processes, options.parser_memory),
        document_options(options),
        seed_files(part.operation),
        lambda done: PROGRESS.add(0, parsed=done.counts.get("parsed", 0)),
    )


def _tasks(rows: pl.DataFrame) -> Iterator[Task]:
    # The best first: of what a limit cuts off, the least is lost.
    for row in rows.sort("score", "key", descending=[True, False]).iter_rows(named=True):
        yield Task(
            url=from_key(row["key"]),
            key=row["key"],
            score=row["score"],
            distance=row["distance"] or 0,
            # Without a stored body a 304 would leave nothing to show.
            etag=row["etag"] if row["signature"] else None,
            last_modified=row["last_modified"] if row["signature"] else None,
            modified_time=(row["modified_time"] or 0) if row["signature"] else 0,
        )


def _check_dealt(part: Partition, rows: pl.DataFrame, options: FetchPagesOptions) -> None:
    """Checks that no queue has tasks in another partition, too.

    Raises:
        UserError: generate has dealt the hosts of a domain to several partitions.
    """
    batch = str(part.operation.batch)
    many = part.operation.manifest().batches[batch].partitions > 1
    if not many or options.queue_mode == "host":
        return
    if options.queue_mode == "ip":
        raise UserError(
            f"batch {batch!r} is dealt to several partitions, and hosts at one address may be in "
            "several: fetch it with --queue_mode host, or generate with --num_fetchers 1"
        )
    keys = rows.get_column("key")
    slots = hash_buckets(place_of(batch, keys, options.queue_mode), SLOTS)
    if (slots != rows.get_column("slot")).any():
        raise UserError(
            f"batch {batch!r} was generated for queues by host, and its hosts are dealt to several "
            f"partitions: fetch it with --queue_mode host, or generate with --queue_mode "
            f"{options.queue_mode}, too"
        )


def _known(part: Partition, keys: pl.Series, lease: Lease) -> Mapping[str, HostRecord]:
    found = read_hosts(part.operation.root, part.hosts, host_keys(keys).unique())
    known = {
        host: HostRecord(
            host=host,
            robots_origin=row["robots_origin"] or "",
            robots_status=row["robots_status"],
            robots_text=row["robots_text"] or "",
            robots_fetched_at=row["robots_time"] or 0,
            crawl_delay=row["crawl_delay"],
            backoff_until=row["backoff_until"] or 0,
            last_request_end=row["last_request_time"] or 0,
            robots_failing_since=row["robots_failing_since"] or 0,
            sitemaps=tuple((row["sitemaps"] or "").split()),
            backoff_level=row["backoff_level"] or 0,
        )
        for row in found.iter_rows(named=True)
        for host in [from_host_key(row["key"])]
    }
    for host, note in lease.hosts.items():  # newer than the table
        record = known.setdefault(host, HostRecord(host))
        record.crawl_delay = note.crawl_delay or record.crawl_delay
        record.backoff_until = max(note.backoff_until, record.backoff_until)
    return known


def _host_row(record: HostRecord) -> dict[str, object]:
    asked = record.robots_status is not None
    return {
        "key": host_key(record.host),
        "robots_origin": record.robots_origin if asked else None,
        "robots_status": record.robots_status,
        "robots_text": record.robots_text if asked else None,
        "robots_time": record.robots_fetched_at if asked else None,
        "crawl_delay": record.crawl_delay,
        "exceptions": record.exceptions,
        "backoff_until": record.backoff_until,
        "requests": sum(record.counts.values()),
        "last_request_time": record.last_request_end,
        "robots_failing_since": record.robots_failing_since or None,
        "sitemaps": "\n".join(record.sitemaps) or None,
        "backoff_level": record.backoff_level,
    }
