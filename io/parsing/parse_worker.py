"""The program of a child process that parses pages.

The process is spawned, never forked, and does not import Beam. It ends when its parent
ends, because the pipe closes then. ``io/parsing/parse_pool.py`` reads its messages.
"""

import contextlib
import dataclasses
import errno
import functools
import os
import pickle
import resource
import signal
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa

from ...web.base.dataclass import dataclass
from ...web.base.errors import UsageError, UserError, one_line
from ...web.base.memory import collect_seldom, keep_modules
from ...web.plugins.plugin_calls import report_calls
from ...web.plugins.plugins import PARSE_FILTERS, load_plugins
from ..rows.seed_hosts import map_seed_hosts
from ..storage.arrow_files import read_arrow, write_arrow
from ..storage.parquet_files import parquet_file
from ..storage.place_addresses import root_at
from ..storage.processes import ScratchFull, remove_left_folder
from ..storage.store_clients import StoreError

# Exit code of a process that ran out of memory.
OUT_OF_MEMORY = 117
# Exit code if the pipe broke although the parent lives: a parse filter has closed the pipe.
PIPE_CLOSED = 118
# The parent ends a process that takes too long; without a parent the process ends itself.
_LATE_S = 5.0
# When a parent dies, its pipe closes shortly before its children get another parent.
_ORPHANED_S = 5.0
_LOOK_S = 0.5
_ROW_BYTES = 8


class ParseTask(NamedTuple):
    """What the processes do with pages; the same for many jobs.

    Attributes:
        parse: Returns (DOCUMENTS rows, counts) of PAGES rows; see ``documents_of`` for its
            arguments. The processes import it by its name.
        rules: Returns the rules of parsing, given the hosts of seeds and the loaded filters.
        columns: The columns of PAGES that it needs.
        filters: Parse filters of plug-ins that it applies.
        page_timeout: Longest time for a page, s.
    """

    parse: Callable[..., tuple[pa.Table, dict[str, int]]]
    rules: Callable[..., Any]
    columns: tuple[str, ...]
    filters: tuple[str, ...]
    page_timeout: float


@dataclass(frozen=True)
class Job:
    """Message: some pages of one file to parse.

    Attributes:
        root: The table's folder.
        page_file: Path of the file, relative to the table's folder.
        row_groups: Row groups of the file.
        pages: An Arrow file of the rows, if the page file is not written yet.
        hosts: File with the hosts of seeds; see ``seed_hosts_file``.
        task: What is done with them.
        skip: Rows that have ended a process before, with the reason, by row number.
        slices: (first, last + 1) of the rows of each slice. Rows of a slice are parsed
            together; empty means one slice with all rows. A failure in one slice does not
            lose the slices before it.
        again: Whether an earlier process was lost, but not while it parsed one row.
        size: Size of its rows, bytes; 0: not known.
    """

    root: str
    page_file: str
    row_groups: tuple[int, ...]
    hosts: str
    task: ParseTask
    skip: Mapping[int, str] = dataclasses.field(default_factory=dict)
    pages: str | None = None
    slices: tuple[tuple[int, int], ...] = ()
    again: bool = False
    size: int = 0


@dataclass(frozen=True)
class Begun:
    """Message: the pages of a job are read; has the number of rows."""

    rows: int


@dataclass(frozen=True)
class Done:
    """Message: a slice of a job is done; has its documents and counts.

    Attributes:
        documents: An Arrow file of DOCUMENTS rows; its reader removes it.
        rows: Number of pages in the slice.
        counts: By counter name.
    """

    documents: str
    rows: int
    counts: dict[str, int]


@dataclass(frozen=True)
class Call:
    """Message: a plug-in begins or ends its work on a row.

    Attributes:
        row: Number of the row.
        reason: See ``report_calls``; empty at the end.
    """

    row: int
    reason: str


class RowMark:
    """The number of the row at work, in a file that parent and child have open.

    A message for each row would cost a tenth of the time that its page needs.

    Args:
        descriptor: File descriptor of the file.

    Attributes:
        row: The number that this process wrote last.
    """

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self.row = -1

    def write(self, row: int) -> None:
        """Writes the number of a row; -1: no row was begun."""
        self.row = row
        os.pwrite(self._descriptor, row.to_bytes(_ROW_BYTES, "big", signed=True), 0)

    def read(self) -> int | None:
        """Returns the number that either process wrote last; None: no row was begun."""
        row = int.from_bytes(os.pread(self._descriptor, _ROW_BYTES, 0), "big", signed=True)
        return None if row < 0 else row


def work(job: Job, connection: Connection, mark: RowMark, scratch: Path) -> Iterator[Done]:
    """Parses a job's pages, slice by slice; marks each row before parsing it."""
    if job.pages is not None:
        pages = read_arrow(job.pages)
    else:
        with parquet_file(root_at(job.root) / job.page_file) as file:
            pages = file.read_row_groups(list(job.row_groups), columns=list(job.task.columns))
    filters = load_plugins(PARSE_FILTERS, job.task.filters)
    seeds = map_seed_hosts(job.hosts)
    rules = job.task.rules(seeds, filters)
    connection.send(Begun(len(pages)))
    for start, stop in job.slices or ((0, len(pages)),):

        def at_row(row: int, start: int = start, stop: int = stop) -> None:
            limit = job.task.page_timeout + _LATE_S if start + row < stop else 0.0
            signal.setitimer(signal.ITIMER_REAL, limit)
            mark.write(start + row)

        mark.write(-1)
        skip = {row - start: why for row, why in job.skip.items() if start <= row < stop}
        part = pages.slice(start, stop - start)
        documents, counts = job.task.parse(part, rules, skip, at_row)
        yield Done(write_arrow(scratch, documents), len(part), counts)


def main(descriptor: int, marked: int, memory: int, folder: str, parent: int) -> None:
    """Serves jobs until the parent closes the pipe.

    Args:
        descriptor: File descriptor of the pipe to the parent.
        marked: File descriptor of the file of ``RowMark``.
        memory: Largest address space of this process, bytes; 0 is no limit.
        folder: Folder for files that are too large for the pipe. It is in the pool's folder,
            below the parent's folder, which is removed after the parent has ended.
        parent: Process id of the parent.
    """
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)  # the parent decides when this process ends
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    if memory > 0:
        with contextlib.suppress(ValueError, OSError):
            resource.setrlimit(resource.RLIMIT_AS, (memory, memory))
    collect_seldom()
    keep_modules()
    arguments = (parent, Path(folder).parents[1])
    threading.Thread(target=_end_with, args=arguments, name="parent", daemon=True).start()
    connection, mark = Connection(descriptor), RowMark(marked)
    report_calls(functools.partial(_send_call, connection, mark))
    broken = None
    try:
        _serve(connection, mark, Path(folder))
    except (EOFError, OSError) as error:
        broken = error
    # If a parse filter has closed the pipe, the parent lives and still needs the folder.
    closed_here = isinstance(broken, OSError) and broken.errno == errno.EBADF
    if not closed_here and _is_orphaned(parent):
        remove_left_folder(Path(folder).parents[1])
    # End at once: further work of the filter could fail and print errors.
    os._exit(PIPE_CLOSED)


def _send_call(connection: Connection, mark: RowMark, reason: str) -> None:
    """Sends which plug-in works; a pipe that is broken shows itself at the next message."""
    with contextlib.suppress(OSError):
        connection.send(Call(mark.row, reason))


def _end_with(parent: int, scratch: Path) -> None:
    """Waits in a thread for the end of the parent, then ends this process and its children."""
    while os.getppid() == parent:
        time.sleep(_LOOK_S)
    time.sleep(_LOOK_S)  # unless it is parsing a page, the main thread ends by itself
    remove_left_folder(scratch)
    os.killpg(0, signal.SIGKILL)


def _is_orphaned(parent: int) -> bool:
    """Returns whether the parent has ended or is about to end."""
    end = time.monotonic() + _ORPHANED_S
    while os.getppid() == parent:
        if time.monotonic() > end:
            return False
        time.sleep(0.01)
    return True


def working_folder() -> str:
    """Returns the working folder of this process; ``/`` if it is removed."""
    try:
        return str(Path.cwd())
    except FileNotFoundError:
        return "/"


def _serve(connection: Connection, mark: RowMark, scratch: Path) -> None:
    while True:
        folder, job = pickle.loads(connection.recv_bytes())
        try:
            # A job's paths may be relative; the parent and parse filters may change the folder.
            os.chdir(folder)
            for done in work(job, connection, mark, scratch):
                connection.send(done)
        except MemoryError:
            os._exit(OUT_OF_MEMORY)  # the parent continues without the page
        except ConnectionError:
            raise  # the parent has ended
        except Exception as error:  # noqa: BLE001 - the parent raises it, as one line
            if isinstance(error.__cause__, MemoryError):  # while it read a file
                os._exit(OUT_OF_MEMORY)
            connection.send(_failure(job, error))


def _failure(job: Job, error: Exception) -> UserError:
    """Returns the error of a job that failed for a reason other than a page."""
    for kind in (ScratchFull, UsageError):
        if isinstance(error, kind):
            return kind(str(error))
    is_ours = isinstance(error, UserError | StoreError)
    reason = str(error) if is_ours else one_line(f"{type(error).__name__}: {error}", 200)
    return UserError(f"cannot parse {job.page_file}: {reason}")
