"""fetch: asks for the pages of a batch.

::

    batch.fetchlist, by partition ─ one engine: queues per host, threads, robots.txt
        ─▶ batch.pages, batch.learnt (and batch.documents, if parsed meanwhile)

What is fetched is flushed to files as it comes. A fetch that died is run
again: it adopts the files that are there and asks for nothing that they hold.
"""

import contextlib
import dataclasses
import functools
import math
from collections.abc import Iterator, Sequence

import apache_beam as beam
import polars as pl
from apache_beam.metrics import Metrics

from ..io.batches.batches import adopted_learnt, adopted_pages, place
from ..io.batches.document_queue import Parser
from ..io.batches.known_hosts import KnownHosts
from ..io.batches.leases import Lease, acquire
from ..io.batches.page_writer import PageWriter
from ..io.parsing.parse_pool import Parsed, shared_pool
from ..io.rows.bars import read_bars
from ..io.rows.hosts import read_seeds_hosts, seed_files
from ..io.snapshots.commit import Written, check_batch, sum_counts
from ..io.snapshots.manifest import load_manifest
from ..io.snapshots.operations import Operation, committed
from ..io.storage.parquet_files import collect, scan
from ..io.table.web_table import WebTable
from ..io.tablets.file_lists import DataFile
from ..policy.bars import without
from ..policy.schema import FETCHLIST, PAGES, empty
from ..policy.selection import place_of
from ..transforms.metrics import NAMESPACES
from ..transforms.operations import Begin, Commit, ForEach, Ticket
from ..transforms.partition import SLOTS, hash_buckets
from ..web.base.errors import UserError
from ..web.base.options import option
from ..web.base.progress import PROGRESS
from ..web.clients.open_client import client_of
from ..web.engine.engine import Engine, FetchOptions
from ..web.engine.tasks import Task
from ..web.exchange.addresses import Addresses, PinnedGuard, endpoints
from ..web.exchange.http_options import HttpOptions
from ..web.rules.url_rules import host_keys
from ..web.urls.row_keys import from_host_key, from_key
from .command_line.command import TABLE, Invocation
from .fetching.asked import Asked
from .fetching.learnt import Learnt
from .fetching.outlinks import OutlinkOptions, Outlinks
from .fetching.redirects import RedirectOptions, Redirects
from .launch.job import BatchOptions, run_job
from .parse import ParsePagesOptions, document_options

ARGUMENTS = (TABLE,)
HELP = "Fetch the pages of a batch"


@dataclasses.dataclass(frozen=True)
class FlushOptions:
    """When fetched pages are written to disk."""

    flush_seconds: float = option(
        5.0,
        "Write a page at most so long after it came, with what came since; what is not written is "
        "lost with the process.",
        unit="s",
        minimum=0.0,
        group="fetch",
    )


@dataclasses.dataclass(frozen=True)
class LeaseOptions:
    """How fetches of one table get on with each other."""

    max_lease_wait: float = option(
        3600.0,
        "Wait so long for another fetch of this table that is under way, then fail; -1 is no "
        "limit. One that has died is waited for no longer than a minute.",
        unit="s",
        minimum=-1.0,
        group="fetch",
    )


@dataclasses.dataclass(frozen=True)
class FetchPagesOptions(
    FetchOptions,
    HttpOptions,
    FlushOptions,
    LeaseOptions,
    RedirectOptions,
    OutlinkOptions,
    ParsePagesOptions,
):
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
    tickets: beam.PCollection[Ticket], options: FetchPagesOptions
) -> beam.PCollection[Ticket]:
    """Fetches a batch, and parses it if asked to; the ticket that comes out is for the next job."""
    operations = tickets | "Begin" >> Begin("fetch", needs="generated")
    written = operations | "Partitions" >> ForEach(
        _partitions, fetch_partition, (options,), Written, step="Partitions"
    )
    phase = "parsed" if options.parse_while_fetching else "fetched"
    return (operations, written) | Commit(
        reads=("batches/{batch}/fetchlist",), phase=phase, whole=("Partitions",), over_purges=True
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


def fetch_partition(part: Partition, options: FetchPagesOptions) -> Iterator[Written]:
    """Fetches one partition; yields each file of pages as it is written.

    Args:
        part: The hosts and their URLs.
        options: How to fetch.

    Raises:
        LeaseLost: Another attempt has taken over.
        Unavailable: Another fetch went on for too long.
        ConflictError: Another operation has fetched the batch.
    """
    root, batch = part.operation.root, str(part.operation.batch)
    throttling = _Throttling()
    most = options.max_lease_wait if options.max_lease_wait >= 0 else math.inf
    others = functools.partial(_other_batches, part.operation)
    with acquire(root, batch, part.number, others, throttling.add, most=most) as lease:
        # Waiting may have taken long: is there still something to do?
        if committed(part.operation) is None:
            check_batch(part.operation, load_manifest(root, root.latest_snapshot()))
            yield from _fetch(part, options, lease, throttling)


def _other_batches(operation: Operation) -> list[str]:
    """Returns the batches of which the pinned snapshot does not know yet whom they asked when."""
    known = operation.manifest().batches
    return [
        name
        for name in load_manifest(operation.root, operation.root.latest_snapshot()).batches
        if name != operation.batch and not (name in known and known[name].phase == "updated")
    ]


def _fetch(
    part: Partition, options: FetchPagesOptions, lease: Lease, throttling: "_Throttling"
) -> Iterator[Written]:
    root, batch = part.operation.root, str(part.operation.batch)
    bars = read_bars(part.operation)
    rows, dropped = without(
        collect(scan([root / file.path for file in part.files], FETCHLIST)), bars
    )
    _check_dealt(part, rows, options)
    if options.queue_mode != "ip":  # whatever generate took for a queue
        rows = rows.with_columns(address=pl.lit(None, pl.String))
    guard = _pinned(rows, options)
    adopted = adopted_pages(root, batch, part.number, bars.hit)
    have = _have(root, adopted)
    asked = Asked(rows, have)
    outlinks = Outlinks(options, asked, bars) if options.follow_outlinks_depth > 0 else None
    parser = _parser(part, options, outlinks) if options.parse_while_fetching else None
    writer = PageWriter(root.files, batch, part.number, options.flush_seconds, parser)
    for file in adopted:
        yield from writer.adopt(file)
        PROGRESS.add(file.rows)
    for file in adopted_learnt(root, batch, part.number, bars.hosts_hit):
        yield Written(place(batch, "learnt"), (file,))
    keys = pl.concat([rows.get_column("key"), have.get_column("key")])
    rows = rows.join(have, on="key", how="anti", maintain_order="left")
    redirects = None
    if options.redirect_max:
        seeds = read_seeds_hosts(root, seed_files(part.operation))
        redirects = Redirects(options, asked, seeds, bars)

    written: list[Written] = []  # while no page came

    def pulse(waited: float) -> None:
        lease.check()
        throttling.total(waited)
        written.extend(writer.flush_late())
        learnt.now_and_then()

    client = client_of(options, guard, lease.may_send)
    sought = keys if redirects or outlinks else rows.get_column("key")
    known = KnownHosts(root, part.hosts, host_keys(sought).unique(), lease.hosts)
    engine = Engine(
        options, client, known, lease.asked_until, pulse,
        follow=redirects, patience=writer.due_in,
    )  # fmt: skip
    lease.note(engine.demands)
    learnt = Learnt(part.operation, part.number, engine)

    def tasks() -> Iterator[Task | None]:
        yield from _tasks(rows, asked)
        while outlinks is not None:
            yield None  # what was yielded is queued now
            idle = engine.idle()
            written.extend(writer.flush() if idle else writer.flush_late())
            following = outlinks.take()
            if idle and not following:
                break
            yield from following

    try:
        with contextlib.closing(engine.run(tasks())) as results:
            for result in results:
                yield from writer.add(result)
    except KeyboardInterrupt:
        list(writer.keep())  # what is done is kept; the batch can be taken up again
        raise
    except Exception:
        writer.abandon()
        raise
    finally:
        client.close()
    lease.check()
    yield from written
    # Before the last pages: when they are all there, so is this.
    yield from learnt.write()
    yield from writer.flush()
    left_out = {f"dropped/{reason}": n for reason, n in engine.dropped.items() if n}
    followed = [counts.counts for counts in (redirects, outlinks) if counts]
    yield Written(counts=sum_counts([dropped, left_out, *followed]))


def _have(root: WebTable, adopted: Sequence[DataFile]) -> pl.DataFrame:
    """Returns what earlier attempts have: keys and depths of pages."""
    if not adopted:
        return empty(PAGES).select("key", "depth")
    return collect(scan([root / file.path for file in adopted], PAGES).select("key", "depth"))


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


def _parser(part: Partition, options: ParsePagesOptions, outlinks: Outlinks | None) -> Parser:
    def done(parsed: Parsed) -> None:
        PROGRESS.add(0, parsed=parsed.counts.get("parsed", 0))
        if outlinks is not None:
            outlinks.add(parsed.documents)

    return Parser(
        shared_pool(options.parse_processes, options.parser_memory),
        document_options(options),
        seed_files(part.operation),
        done,
    )


def _tasks(rows: pl.DataFrame, asked: Asked) -> Iterator[Task]:
    # The best first: of what a limit cuts off, the least is lost.
    for row in rows.sort("score", "key", descending=[True, False]).iter_rows(named=True):
        delay, address = asked.wait(row["key"])
        yield Task(
            url=from_key(row["key"]),
            key=row["key"],
            score=row["score"],
            distance=row["distance"] or 0,
            # Without a stored body a 304 would leave nothing to show.
            etag=row["etag"] if row["signature"] else None,
            last_modified=row["last_modified"] if row["signature"] else None,
            modified_time=(row["modified_time"] or 0) if row["signature"] else 0,
            delay=delay,
            address=address,
        )


def _check_dealt(part: Partition, rows: pl.DataFrame, options: FetchPagesOptions) -> None:
    """Checks that no queue has tasks in another partition, too.

    Raises:
        UserError: generate has dealt what is one queue to several partitions.
    """
    batch, mode = str(part.operation.batch), options.queue_mode
    many = part.operation.manifest().batches[batch].partitions > 1
    if not many or mode == "host":
        return
    addresses = rows.get_column("address") if mode == "ip" else None
    slots = hash_buckets(place_of(batch, rows.get_column("key"), mode, addresses), SLOTS)
    if (slots != rows.get_column("slot")).any() or (mode == "ip" and _unlocated(rows, options)):
        raise UserError(
            f"batch {batch!r} was not generated for queues by {mode}, and what is one of them is "
            "dealt to several partitions: fetch it with --queue_mode host, or generate with "
            f"--queue_mode {mode}, too"
        )


def _unlocated(rows: pl.DataFrame, options: FetchPagesOptions) -> bool:
    """Returns whether the list has hosts that are asked at an address which it does not tell."""
    addresses = Addresses(options)
    untold = rows.filter(pl.col("address").is_null()).get_column("key")
    hosts = endpoints(untold).items()
    return any(ports and not addresses.by_name(from_host_key(key), ports) for key, ports in hosts)


def _pinned(rows: pl.DataFrame, options: FetchPagesOptions) -> PinnedGuard | None:
    """Returns a guard that has each host asked at the address of its queue, where that counts."""
    told = rows.filter(pl.col("address").is_not_null())
    if not len(told):
        return None
    hosts = told.select(key=host_keys(told.get_column("key")), address="address").unique()
    return PinnedGuard(options, {from_host_key(key): at for key, at in hosts.iter_rows()})
