"""fetch: asks for the pages of a batch.

::

    batch.fetchlist, by partition ─ one engine: queues per host, threads, robots.txt
        ─▶ batch.pages, batch.learnt

What is fetched is flushed to files as it comes. A fetch that died is run
again: it adopts the files that are there and asks for nothing that they hold.
"""

import dataclasses
import secrets
import time
from collections.abc import Iterator, Mapping

import apache_beam as beam
import polars as pl
import pyarrow as pa

from ..io.batches import adopted_pages, batch_files, page_order, place, write_file
from ..io.files import collect, scan
from ..io.hosts import read_hosts
from ..io.manifest import DataFile
from ..io.operations import Operation, Written
from ..policy.schema import FETCHLIST, HOSTS, PAGES
from ..transforms.operations import Begin, Commit, ForEach, Ticket
from ..web.engine import Engine, FetchOptions
from ..web.hosts import HostRecord
from ..web.http import Client, HttpOptions, Response
from ..web.options import option
from ..web.progress import PROGRESS
from ..web.protocol import FETCH_RETRY, FETCH_SUCCESS, classify
from ..web.rules import host_keys
from ..web.tasks import Result, Task
from ..web.urls import from_host_key, from_key, host_key
from .command import TABLE, Invocation
from .job import BatchOptions, run_job

ARGUMENTS = (TABLE,)
HELP = "Fetch the pages of a batch"
FLUSH_BYTES = 64 << 20
GROUP_BYTES = 2 << 20


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


def build(tickets: beam.PCollection[Ticket], options: FetchPagesOptions) -> beam.PCollection[Ticket]:
    """Fetches a batch; the ticket that comes out is for the next job."""
    operations = tickets | "Begin" >> Begin("fetch", needs="generated")
    written = operations | "Partitions" >> ForEach(
        _partitions, fetch_partition, (options,), Written
    )
    return (operations, written) | Commit(reads=("batches/{batch}/fetchlist",), phase="fetched")


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


def fetch_partition(part: Partition, options: FetchPagesOptions) -> Iterator[Written]:
    """Fetches one partition; yields each file of pages as it is written."""
    root, batch = part.operation.root, str(part.operation.batch)
    adopted = adopted_pages(root, batch, part.number)
    for file in adopted:
        yield Written(place(batch, "pages"), (file,), (), {"adopted": file.rows})
    rows = collect(scan([root / file.path for file in part.files], FETCHLIST))
    if adopted:
        have = scan([root / file.path for file in adopted], PAGES).select("key")
        rows = rows.join(collect(have), on="key", how="anti", maintain_order="left")
        PROGRESS.add(sum(file.rows for file in adopted))
    engine = Engine(options, Client(options), _known(part, rows))
    pages = _Pages(part, options.flush_seconds)
    for result in engine.run(_tasks(rows)):
        yield from pages.add(result)
    yield from pages.flush()
    learnt = [_host_row(record) for record in engine.hosts()]
    if learnt:
        table = pa.Table.from_pylist(learnt, schema=HOSTS).sort_by("key")
        file = write_file(root, batch, "learnt", [table], partition=part.number)
        yield Written(place(batch, "learnt"), (file,))
    yield Written(counts={f"dropped/{reason}": n for reason, n in engine.dropped.items() if n})


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


class _Pages:
    """Collects results and writes them as files, by size and by time."""

    def __init__(self, part: Partition, flush_seconds: float) -> None:
        self._part = part
        self._flush_seconds = flush_seconds
        # Attempts are told apart by their start: readers keep the first.
        self._started = int(time.time() * 1000)
        self._attempt = f"p{part.number:05d}-{self._started:013d}-{secrets.token_hex(4)}"
        self._files = 0
        self._clear()

    def _clear(self) -> None:
        self._rows: list[dict[str, object]] = []
        self._bytes = 0
        self._since = time.monotonic()

    def add(self, result: Result) -> Iterator[Written]:
        row = _page_row(result)
        self._rows.append(row)
        self._bytes += len(row["body"] or b"") + 1_000  # type: ignore[arg-type]
        late = time.monotonic() - self._since > self._flush_seconds
        if self._bytes > FLUSH_BYTES or late:
            yield from self.flush()

    def flush(self) -> Iterator[Written]:
        """Writes what there is; from then on it is safe."""
        if not self._rows:
            return
        operation, number = self._part.operation, self._part.number
        counts: dict[str, int] = {"pages": len(self._rows)}
        for row in self._rows:
            name = f"protocol/{row['protocol_status']}"
            counts[name] = counts.get(name, 0) + 1
        file = write_file(
            operation.root, str(operation.batch), "pages", _groups(self._rows),
            partition=number, order=page_order(self._started, self._files),
            name=f"{self._attempt}-{self._files:05d}.parquet",
        )  # fmt: skip
        self._files += 1
        self._clear()
        yield Written(place(str(operation.batch), "pages"), (file,), (), counts)


def _page_row(result: Result) -> dict[str, object]:
    task, response = result.task, result.response
    row: dict[str, object] = {
        "key": task.key,
        "score": task.score,
        "distance": task.distance,
        "fetch_status": result.fetch_status,
        "protocol_status": result.protocol_status,
        "protocol_message": result.message or None,
        "fetch_time": result.fetched_at,
        "redirect": result.redirect,
        "retry_after": _retry_after(result),
        "body": None,
    }
    if response is None:
        return row
    success = result.fetch_status == FETCH_SUCCESS
    return row | {
        "http_code": response.status or None,
        "response_ms": response.elapsed_ms,
        "content_type": response.header("content-type"),
        "etag": response.header("etag"),
        "last_modified": response.header("last-modified"),
        "ip": response.ip,
        "request": response.request,
        "status_line": _status_line(response),
        "headers": [{"name": name, "value": value} for name, value in response.headers],
        "truncated": response.truncated,
        "body": response.body if success or result.redirect else None,
    }


def _retry_after(result: Result) -> int | None:
    if result.response is None or result.fetch_status != FETCH_RETRY:
        return None
    seconds = classify(result.response).retry_after_s
    return None if seconds is None else int(seconds)


def _status_line(response: Response) -> str | None:
    words = (response.http_version, str(response.status), response.reason)
    return " ".join(words).rstrip() if response.status else None


def _groups(rows: list[dict[str, object]]) -> Iterator[pa.Table]:
    """Cuts rows into row groups: what one parser process gets at a time."""
    group: list[dict[str, object]] = []
    size = 0
    for row in rows:
        group.append(row)
        size += len(row["body"] or b"")  # type: ignore[arg-type]
        if size > GROUP_BYTES:
            yield pa.Table.from_pylist(group, schema=PAGES)
            group, size = [], 0
    if group:
        yield pa.Table.from_pylist(group, schema=PAGES)
