"""A child process that parses pages.

It is spawned, never forked, knows no Beam, and dies with its parent: the pipe
closes. What it answers is read by ``io/parsing/parse_pool.py``.
"""

import contextlib
import dataclasses
import errno
import os
import pickle
import resource
import signal
import threading
import time
from collections.abc import Iterator, Mapping
from multiprocessing.connection import Connection
from pathlib import Path

import pyarrow as pa

from ...policy.documents import NEEDED, DocumentOptions, documents_of
from ...web.base.errors import UsageError, UserError
from ...web.base.memory import collect_seldom
from ..rows.hosts import read_seeds_hosts
from ..storage.files import new_name
from ..storage.parquet_files import parquet_file
from ..storage.places import place_of
from ..storage.scratch import ScratchFull, sweep_one, writing_scratch
from ..storage.store_errors import StoreError
from .plugins import load_filters

# Exit code of a process that ran out of memory.
OUT_OF_MEMORY = 117
# Of one whose pipe is broken while its parent lives: what runs in it has closed it.
PIPE_CLOSED = 118
# The parent ends a process that is late; where there is none any more, the process itself does.
_LATE_S = 5.0
# The pipe of a parent that dies closes a moment before its children have another.
_ORPHANED_S = 5.0
_LOOK_S = 0.5


@dataclasses.dataclass(frozen=True)
class Job:
    """Some of the pages of one file.

    Attributes:
        root: The table's folder.
        page_file: Below it.
        row_groups: Which rows of the file.
        pages: An Arrow file of the rows, where the page file is yet to be written.
        hosts: Files of the host table, which knows the seeds.
        options: What is taken.
        skip: Why rows ended their processes before, by number; see ``documents_of``.
        parts: (first, last + 1) of the rows that are to be done together, part by part; none is
            all rows. What is done of a part is safe from what comes in the next.
        again: Whether a process was lost, and not at one row.
    """

    root: str
    page_file: str
    row_groups: tuple[int, ...]
    hosts: tuple[str, ...]
    options: DocumentOptions
    skip: Mapping[int, str] = dataclasses.field(default_factory=dict)
    pages: str | None = None
    parts: tuple[tuple[int, int], ...] = ()
    again: bool = False


@dataclasses.dataclass(frozen=True)
class Begun:
    """The pages of a job are read; says how many there are."""

    rows: int


@dataclasses.dataclass(frozen=True)
class Done:
    """The documents of a part of a job, and what was counted.

    Attributes:
        documents: An Arrow file of DOCUMENTS rows; whoever reads it removes it.
        rows: How many pages the part had.
        counts: By counter name.
    """

    documents: str
    rows: int
    counts: dict[str, int]


@dataclasses.dataclass(frozen=True)
class Failed:
    """A job failed for a reason that is not a page's.

    Attributes:
        message: The reason.
        usage: Whether it is bad configuration.
        full: Whether it is that TMPDIR is full.
    """

    message: str
    usage: bool = False
    full: bool = False


def write_arrow(folder: Path, table: pa.Table) -> str:
    """Writes a table for another process on this machine; returns the path."""
    path = folder / new_name(".arrow")
    with (
        writing_scratch(path),
        pa.OSFile(str(path), "wb") as sink,
        pa.ipc.new_file(sink, table.schema) as writer,
    ):
        writer.write_table(table)
    return str(path)


def read_arrow(path: str) -> pa.Table:
    """Reads what ``write_arrow`` wrote, without a copy."""
    return pa.ipc.open_file(pa.memory_map(path)).read_all()


def work(job: Job, connection: Connection, scratch: Path) -> Iterator[Done]:
    """Parses one job's pages, part by part; tells which row is at hand before it is parsed."""
    if job.pages is not None:
        pages = read_arrow(job.pages)
    else:
        with parquet_file(place_of(job.root) / job.page_file) as file:
            pages = file.read_row_groups(list(job.row_groups), columns=list(NEEDED))
    filters = load_filters(job.options.parse_filters)
    seeds = read_seeds_hosts(place_of(job.root), job.hosts)
    connection.send(Begun(len(pages)))
    for start, stop in job.parts or ((0, len(pages)),):

        def at_row(row: int, start: int = start) -> None:
            limit = job.options.parser_timeout + _LATE_S if row >= 0 else 0.0
            signal.setitimer(signal.ITIMER_REAL, limit)
            connection.send(start + row if row >= 0 else row)

        skip = {row - start: why for row, why in job.skip.items() if start <= row < stop}
        part = pages.slice(start, stop - start)
        documents, counts = documents_of(part, job.options, seeds, skip, at_row, filters)
        yield Done(write_arrow(scratch, documents), len(part), counts)


def main(descriptor: int, memory: int, folder: str, parent: int) -> None:
    """Serves jobs until the parent closes the pipe.

    Args:
        descriptor: Of the pipe to the parent.
        memory: How much this process may ask for, bytes; 0 is no limit.
        folder: For what is too large for the pipe. That around it is the pool's, and that around
            that the parent's, which is removed when the parent is gone.
        parent: Its process id.
    """
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)  # the parent decides
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    if memory > 0:
        with contextlib.suppress(ValueError, OSError):
            resource.setrlimit(resource.RLIMIT_AS, (memory, memory))
    collect_seldom()
    arguments = (parent, Path(folder).parents[1])
    threading.Thread(target=_end_with, args=arguments, name="parent", daemon=True).start()
    connection = Connection(descriptor)
    broken = None
    try:
        _serve(connection, Path(folder))
    except (EOFError, OSError) as error:
        broken = error
    # The parent died, for it ends its children otherwise. Or a parse filter has closed the pipe,
    # and then the folder is still needed.
    closed_here = isinstance(broken, OSError) and broken.errno == errno.EBADF
    if not closed_here and _is_orphaned(parent):
        sweep_one(Path(folder).parents[1])
    # At once: what is left of the filter's work could fail, and print it.
    os._exit(PIPE_CLOSED)


def _end_with(parent: int, scratch: Path) -> None:
    """Ends this process, and what it has started, when the parent is gone: in a thread."""
    while os.getppid() == parent:
        time.sleep(_LOOK_S)
    time.sleep(_LOOK_S)  # it sees by itself that the pipe is closed, unless it is at a page
    sweep_one(scratch)
    os.killpg(0, signal.SIGKILL)


def _is_orphaned(parent: int) -> bool:
    """Tells whether the parent is gone, or going."""
    end = time.monotonic() + _ORPHANED_S
    while os.getppid() == parent:
        if time.monotonic() > end:
            return False
        time.sleep(0.01)
    return True


def _working_folder() -> str:
    try:
        return str(Path.cwd())
    except FileNotFoundError:
        return "/"


def _serve(connection: Connection, scratch: Path) -> None:
    home = _working_folder()
    while True:
        job = pickle.loads(connection.recv_bytes())
        try:
            os.chdir(home)  # a job's paths may be relative, and parse filters go where they like
            for done in work(job, connection, scratch):
                connection.send(done)
        except MemoryError:
            os._exit(OUT_OF_MEMORY)  # the parent goes on without the page
        except ScratchFull as error:
            connection.send(Failed(str(error), full=True))
        except (UserError, StoreError) as error:
            connection.send(Failed(str(error), usage=isinstance(error, UsageError)))
        except (BrokenPipeError, ConnectionError):
            raise  # the parent is gone
        except Exception as error:  # noqa: BLE001 - the parent says it, in one line
            first = (str(error).splitlines() or [""])[0]
            connection.send(Failed(f"{type(error).__name__}: {first}"))
