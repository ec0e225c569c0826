"""fetch: asks for the pages of a batch.

::

    batch.fetchlist, by partition ─ one engine: queues per host, threads, robots.txt
        ─▶ batch.pages, batch.learnt (and batch.documents, if parsed meanwhile)

What is fetched is flushed to files as it comes. A fetch that died is run
again: it adopts the files that are there and asks for nothing that they hold.
"""

import dataclasses
from collections.abc import Iterator, Mapping

import apache_beam as beam
import polars as pl
import pyarrow as pa

from ..io.batches import adopted_pages, batch_files, place, write_file
from ..io.files import collect, scan
from ..io.hosts import read_hosts
from ..io.manifest import DataFile
from ..io.operations import Operation, Written
from ..io.pages import PageWriter, Parser
from ..io.parse_pool import shared_pool
from ..policy.schema import FETCHLIST, HOSTS, PAGES
from ..transforms.operations import Begin, Commit, ForEach, Ticket
from ..web.engine import Engine, FetchOptions
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

ARGUMENTS = (TABLE,)
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
class FetchPagesOptions(FetchOptions, HttpOptions, FlushOptions):
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
        _partitions, fetch_partition, (options, parsing), Written
    )
    phase = "fetched" if parsing is None else "parsed"
    return (operations, written) | Commit(reads=("batches/{batch}/fetchlist",), phase=phase)


def _partitions(operation: Operation) -> Iterator[Partition]:
    manifest = operation.manifest()
    hosts = tuple(operation.files("hosts"))
    by_number: dict[int, list[DataFile]] = {}
    for file in batch_files(operation.root, manifest, str(operation.batch), "fetchlist"):
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
    """
    root, batch = part.operation.root, str(part.operation.batch)
    parser = _parser(part, parsing) if parsing is not None else None
    writer = PageWriter(root, batch, part.number, options.flush_seconds, parser)
    adopted = adopted_pages(root, batch, part.number)
    for file in adopted:
        yield from writer.adopt(file)
        PROGRESS.add(file.rows)
    rows = collect(scan([root / file.path for file in part.files], FETCHLIST))
    if adopted:
        have = scan([root / file.path for file in adopted], PAGES).select("key")
        rows = rows.join(collect(have), on="key", how="anti", maintain_order="left")
    client = Client(options)
    engine = Engine(options, client, _known(part, rows))
    try:
        for result in engine.run(_tasks(rows)):
            yield from writer.add(result)
    except KeyboardInterrupt:
        list(writer.flush())  # what is done is kept; the batch can be taken up again
        raise
    finally:
        client.close()
    yield from writer.flush()
    learnt = [_host_row(record) for record in engine.hosts()]
    if learnt:
        table = pa.Table.from_pylist(learnt, schema=HOSTS).sort_by("key")
        file = write_file(root, batch, "learnt", [table], partition=part.number)
        yield Written(place(batch, "learnt"), (file,))
    yield Written(counts={f"dropped/{reason}": n for reason, n in engine.dropped.items() if n})


def _parser(part: Partition, options: ParsePagesOptions) -> Parser:
    return Parser(
        shared_pool(options.parse_processes, options.parser_memory),
        document_options(options),
        tuple(file.path for file in part.hosts),
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


def _known(part: Partition, rows: pl.DataFrame) -> Mapping[str, HostRecord]:
    keys = host_keys(rows.get_column("key")).unique()
    found = read_hosts(part.operation.root, list(part.hosts), keys)
    return {
        host: HostRecord(
            host=host,
            robots_origin=row["robots_origin"] or "",
            robots_status=row["robots_status"],
            robots_text=row["robots_text"] or "",
            robots_fetched_at=row["robots_time"] or 0,
            crawl_delay=row["crawl_delay"],
            backoff_until=row["backoff_until"] or 0,
            last_request_end=row["last_request_time"] or 0,
        )
        for row in found.iter_rows(named=True)
        for host in [from_host_key(row["key"])]
    }


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
    }
