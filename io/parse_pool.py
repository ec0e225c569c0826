"""Child processes that parse, with a time limit per page and a memory limit.

A page that stalls or kills its parser costs its time limit and one record with
a reason; the child is ended, another takes over the rest of the file.
"""

import atexit
import dataclasses
import functools
import os
import pickle
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections import deque
from collections.abc import Iterable, Iterator
from multiprocessing.connection import Connection, Pipe, wait
from pathlib import Path

import pyarrow as pa

from ..policy.documents import AFTER_ROWS
from ..web.errors import UsageError, UserError
from .parse_worker import Done, Failed, Job, read_arrow, write_arrow

# What a child gets besides a page's own limit: to start, and for the work that
# is done for all pages of a job together.
GRACE_S = 60.0


class _Child:
    def __init__(self, memory: int, scratch: str) -> None:
        ours, theirs = Pipe()
        self.connection: Connection = ours
        # One thread each: the pool is what uses the cores.
        environment = {**os.environ, "POLARS_MAX_THREADS": "1", "OMP_NUM_THREADS": "1"}
        # Imported by name, not run as __main__: what it sends pickles by that name.
        call = f"w.main({theirs.fileno()}, {memory}, {scratch!r})"
        program = f"from nutbeam.io import parse_worker as w; {call}"
        command = [sys.executable, "-c", program]
        self.process = subprocess.Popen(
            command, pass_fds=[theirs.fileno()], env=environment, stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
        )  # fmt: skip
        theirs.close()
        self.job: int | None = None
        self.row: int | None = None
        self.deadline = 0.0

    def start(self, number: int, job: Job) -> None:
        self.job, self.row = number, None
        self.deadline = time.monotonic() + GRACE_S
        self.connection.send_bytes(pickle.dumps(job))

    def end(self) -> None:
        self.process.kill()
        self.process.wait()
        self.connection.close()


class ParserDied(UserError):
    """A job's process died or stalled twice, and not at one of its pages."""


@dataclasses.dataclass(frozen=True)
class Parsed:
    """What came of a job.

    Attributes:
        documents: DOCUMENTS rows.
        rows: How many pages there were.
        counts: By counter name.
    """

    documents: pa.Table
    rows: int
    counts: dict[str, int]


def _take(done: Done) -> Parsed:
    documents = read_arrow(done.documents)
    Path(done.documents).unlink()  # what is mapped stays readable
    return Parsed(documents, done.rows, done.counts)


def _forget(job: Job) -> None:
    if job.pages is not None:
        Path(job.pages).unlink(missing_ok=True)


class ParsePool:
    """Parses jobs on several children at once. Threads may share it.

    Args:
        size: How many children.
        memory: Of each, in bytes; 0 is no limit.
    """

    def __init__(self, size: int, memory: int) -> None:
        self._memory = memory
        # Pages and documents go through files: a pipe would make both sides wait.
        self._scratch = tempfile.mkdtemp(prefix="nutbeam-parse-")
        self._children = [_Child(memory, self._scratch) for _ in range(size)]
        self._waiting: deque[tuple[int, Job]] = deque()
        self._running: dict[int, Job] = {}
        self._finished: dict[int, Parsed | UserError] = {}
        self._submitted = 0
        self._lock = threading.RLock()

    @property
    def size(self) -> int:
        """How many children there are."""
        return len(self._children)

    def submit(self, job: Job, pages: pa.Table | None = None) -> int:
        """Takes a job; returns the number under which ``result`` has its documents.

        Args:
            job: What to parse.
            pages: Its rows, where the page file is yet to be written.
        """
        if pages is not None:
            job = dataclasses.replace(job, pages=write_arrow(Path(self._scratch), pages))
        with self._lock:
            self._submitted += 1
            number = self._submitted
            self._waiting.append((number, job))
            self.pump(0.0)
        return number

    def result(self, number: int) -> Parsed:
        """Waits for a job, and forgets it.

        Raises:
            UserError: The job failed for a reason that is not one of its pages.
        """
        while number not in self._finished:
            self.pump(None)
        done = self._finished.pop(number)
        if isinstance(done, UserError):
            raise done
        return done

    def parse(self, jobs: Iterable[Job]) -> Iterator[Parsed]:
        """Parses jobs; yields their results in the order of the jobs.

        A few jobs are under way at a time, so that results that wait for an
        earlier one stay few, too.
        """
        ahead: deque[int] = deque()
        try:
            for job in jobs:
                ahead.append(self.submit(job))
                if len(ahead) > 2 * len(self._children):
                    yield self.result(ahead.popleft())
            while ahead:
                yield self.result(ahead.popleft())
        finally:
            self.abandon(ahead)

    def abandon(self, numbers: Iterable[int]) -> None:
        """Forgets jobs, whether they are done or not; children at work on them are ended."""
        forgotten = set(numbers)
        with self._lock:
            self._waiting = deque(entry for entry in self._waiting if entry[0] not in forgotten)
            for child in list(self._children):
                if child.job in forgotten:
                    _forget(self._running.pop(child.job))
                    self._replace(child)
            for number in forgotten:
                self._finished.pop(number, None)

    def pump(self, patience: float | None) -> None:
        """Hands out jobs and takes in what is done.

        Args:
            patience: How long to wait for news, s; None is until there is some,
                or a page's time is over.
        """
        with self._lock:
            self._hand_out()
            busy = [child for child in self._children if child.job is not None]
            if not busy:
                return
            deadline = max(0.0, min(child.deadline for child in busy) - time.monotonic())
            timeout = deadline if patience is None else min(patience, deadline)
            ready = wait([child.connection for child in busy], timeout)
            for child in busy:
                try:
                    if child.connection in ready:
                        self._hear(child)
                    elif time.monotonic() > child.deadline:
                        self._give_up(child)
                except (EOFError, OSError):  # it died, perhaps in the middle of an answer
                    self._give_up(child)

    def _hand_out(self) -> None:
        for child in list(self._children):
            if child.job is None and self._waiting:
                number, job = self._waiting.popleft()
                self._running[number] = job
                try:
                    child.start(number, job)
                except OSError:  # it died while idle
                    self._replace(child).start(number, job)

    def _give_up(self, child: _Child) -> None:
        """Ends a child that died or took too long; another does its job without the page."""
        number = child.job
        assert number is not None
        job = self._running.pop(number)
        self._replace(child)
        # A child that dies outside of pages gets one more chance, too.
        row = AFTER_ROWS if child.row is None else child.row
        if row in job.skip:
            where = f"{job.page_file}, row groups {list(job.row_groups)}"
            self._finished[number] = ParserDied(f"parser process failed twice at {where}")
            _forget(job)
        else:
            self._waiting.appendleft((number, dataclasses.replace(job, skip=job.skip | {row})))

    def close(self) -> None:
        """Ends all children."""
        for child in self._children:
            child.end()
        self._children = []
        shutil.rmtree(self._scratch, ignore_errors=True)

    def _hear(self, child: _Child) -> None:
        """Takes all that a child has sent: rows that it has come to, and its answer."""
        while child.job is not None and child.connection.poll():
            message = child.connection.recv()
            job = self._running[child.job]
            if isinstance(message, int):
                child.row = message
                # After the rows comes what is done for all of them.
                limit = job.options.parser_timeout if message >= 0 else GRACE_S
                child.deadline = time.monotonic() + limit
                continue
            self._running.pop(child.job)
            number, child.job = child.job, None
            _forget(job)
            if isinstance(message, Failed):
                said = f"cannot parse {job.page_file}: {message.message}"
                message = UsageError(message.message) if message.usage else UserError(said)
            else:
                message = _take(message)
            self._finished[number] = message

    def _replace(self, child: _Child) -> _Child:
        child.end()
        fresh = _Child(self._memory, self._scratch)
        self._children[self._children.index(child)] = fresh
        return fresh


@functools.cache
def shared_pool(size: int, memory: int) -> ParsePool:
    """Returns this process' pool; it starts with the first call, and ends with the process.

    Args:
        size: How many children; 0 is one for each core.
        memory: Of each, in bytes; 0 is no limit.
    """
    pool = ParsePool(size or len(os.sched_getaffinity(0)), memory)
    atexit.register(pool.close)
    return pool
