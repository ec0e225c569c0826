"""A child process that parses pages.

It is spawned, never forked, knows no Beam, and dies with its parent: the pipe
closes. What it answers is read by ``io/parse_pool.py``.
"""

import contextlib
import dataclasses
import pickle
import resource
import signal
from multiprocessing.connection import Connection
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from ..policy.documents import NEEDED, DocumentOptions, documents_of
from .hosts import read_seeds_hosts


@dataclasses.dataclass(frozen=True)
class Job:
    """Some of the pages of one file.

    Attributes:
        root: The table's folder.
        page_file: Below it.
        row_group: Which rows of the file.
        pages: The rows themselves, as an Arrow stream, where the file is yet
            to be written.
        hosts: Files of the host table, which knows the seeds.
        options: What is taken.
        skip: Rows that a parser stalled at before.
    """

    root: str
    page_file: str
    row_group: int
    hosts: tuple[str, ...]
    options: DocumentOptions
    skip: frozenset[int] = frozenset()
    pages: bytes | None = None


@dataclasses.dataclass(frozen=True)
class Done:
    """The documents of a job, as an Arrow stream, and what was counted.

    Attributes:
        documents: DOCUMENTS rows.
        rows: How many pages the job had.
        counts: By counter name.
    """

    documents: bytes
    rows: int
    counts: dict[str, int]


@dataclasses.dataclass(frozen=True)
class Failed:
    """A job failed for a reason that is not a page's."""

    message: str


def work(job: Job, connection: Connection) -> Done:
    """Parses one job's pages; tells which row is at hand before it is parsed."""
    if job.pages is not None:
        pages = pa.ipc.open_stream(job.pages).read_all()
    else:
        with pq.ParquetFile(Path(job.root) / job.page_file) as file:
            pages = file.read_row_group(job.row_group, columns=list(NEEDED))
    seeds = read_seeds_hosts(Path(job.root), job.hosts)
    documents, counts = documents_of(pages, job.options, seeds, job.skip, connection.send)
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, documents.schema) as writer:
        writer.write_table(documents)
    return Done(sink.getvalue().to_pybytes(), len(pages), counts)


def main(descriptor: int, memory: int) -> None:
    """Serves jobs until the parent closes the pipe."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent decides
    if memory > 0:
        with contextlib.suppress(ValueError, OSError):
            resource.setrlimit(resource.RLIMIT_AS, (memory, memory))
    with Connection(descriptor) as connection, contextlib.suppress(EOFError, OSError):
        while True:
            job = pickle.loads(connection.recv_bytes())
            try:
                answer: Done | Failed = work(job, connection)
            except MemoryError:
                return  # as if killed: the parent goes on without the page
            except Exception as error:  # noqa: BLE001 - the parent says it, in one line
                first = (str(error).splitlines() or [""])[0]
                answer = Failed(f"{type(error).__name__}: {first}")
            connection.send(answer)
