"""Runs child processes that parse, with a time limit per page and a memory limit.

If a page stalls or kills its parser, its document is a record with the reason. The child
process is ended, and another child parses the rest of the file.
"""

import contextlib
import dataclasses
import shutil
import tempfile
import threading
import time
from collections import deque
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from multiprocessing.connection import wait
from pathlib import Path

import pyarrow as pa

from ...web.base.dataclass import dataclass
from ...web.base.errors import UserError
from ...web.base.terminal import Relay
from ..storage.arrow_files import read_arrow, write_arrow
from ..storage.processes import scratch
from ..tablets.written import sum_counts
from .job_slices import rest_of_job, split_job
from .parse_worker import (
    Begun,
    Call,
    Done,
    Job,
)
from .parser_child import PARSER_GRACE_S, ParserChild
from .parser_limits import memory_of

# The reason for the end of a process, with details after a space.
OVER_TOTAL = "out_of_memory all processes that parse had more than all_parsers_memory together"
_HEARD_S = 0.1
# A smaller part of a job is not worth its own reading, writing and filtering of links.
_LEAST_BYTES = 1 << 20


class ParserDied(UserError):
    """A job's process died or took too long twice, but not while it parsed one page."""


@dataclass(frozen=True)
class Parsed:
    """The result of a job.

    Attributes:
        documents: DOCUMENTS rows.
        rows: Number of pages.
        counts: By counter name.
    """

    documents: pa.Table
    rows: int
    counts: dict[str, int]


def _take(done: Done) -> Parsed:
    documents = read_arrow(done.documents)
    Path(done.documents).unlink()  # the mapped table stays readable
    return Parsed(documents, done.rows, done.counts)


def _join_slices(slices: list[Parsed]) -> Parsed:
    if len(slices) == 1:
        return slices[0]
    counts = sum_counts(done.counts for done in slices)
    # One piece per column: polars 2 fails to join nested columns that have several.
    documents = pa.concat_tables([done.documents for done in slices]).combine_chunks()
    return Parsed(documents, sum(done.rows for done in slices), counts)


class ParsePool:
    """A pool of child processes that parse jobs; threads may share it.

    One child starts with the pool, each other one when a job finds none idle, or before, if
    ``start_all`` says that there will be much work: starting takes half a second of a core, which the
    program needs when it starts itself.

    Args:
        size: Number of children at most.
        memory: Largest address space of each, in bytes; 0 is no limit.
        module: Module that they import when they start: that of the jobs' ``ParseTask.parse``.
        total_memory: Largest memory of all together, in bytes: if they need more, the largest one is
            ended; None is no limit.
    """

    def __init__(
        self,
        size: int,
        memory: int,
        module: str = Job.__module__,
        total_memory: int | None = None,
    ) -> None:
        self._size, self._memory, self._module = size, memory, module
        self._total_memory = total_memory
        self._weighed = 0.0
        # Pages and documents are passed in files: with a pipe both sides would wait.
        self._scratch = tempfile.mkdtemp(prefix="parse-", dir=scratch())
        self._relay = Relay()  # plug-ins may print control characters from pages
        self._children = [self._child()]
        self._waiting: deque[tuple[int, Job]] = deque()
        self._shares_rest = False
        # Numbers of the first parts of jobs that were divided.
        self._parts: dict[int, list[int]] = {}
        self._running: dict[int, Job] = {}
        self._slices: dict[int, list[Parsed]] = {}
        self._finished: dict[int, Parsed | UserError] = {}
        self._submitted = 0
        self._lock = threading.RLock()

    @property
    def size(self) -> int:
        """Number of children at most."""
        return self._size

    def start_all(self) -> None:
        """Starts the children that do not run yet."""
        with self._lock:
            while len(self._children) < self._size:
                self._children.append(self._child())

    def submit(self, job: Job, pages: pa.Table | None = None) -> int:
        """Queues a job; returns its number, for ``result``.

        Args:
            job: The pages to parse.
            pages: The job's rows, if the page file is not written yet.
        """
        if pages is not None:
            file, slices = write_arrow(Path(self._scratch), pages), ((0, len(pages)),)
            job = dataclasses.replace(job, pages=file, size=pages.nbytes, slices=slices)
        with self._lock:
            self._submitted += 1
            number = self._submitted
            self._waiting.append((number, job))
            self.pump()
        return number

    def share_rest(self) -> None:
        """Divides the jobs that wait, and the next one: no more come, and all children work until the end."""
        self._shares_rest = True

    def result(self, number: int) -> Parsed:
        """Waits for a job and returns its result; can be called once per job.

        Raises:
            UserError: The job failed, and none of its pages is the reason.
        """
        while not self.is_done(number):
            self._wait()
            self.pump()
        done: list[Parsed] = []
        for part in self._parts_of(number):
            result = self._finished.pop(part)
            if isinstance(result, UserError):
                self.abandon([number])
                raise result
            done.append(result)
        self._parts.pop(number, None)
        return _join_slices(done)

    def is_done(self, number: int) -> bool:
        """Returns whether a job is done."""
        # Its own number is that of its last part.
        return number in self._finished and all(
            map(self._finished.__contains__, self._parts_of(number))
        )

    def has_idle(self) -> bool:
        """Returns whether a child has nothing to do."""
        return not self._waiting and any(child.job is None for child in self._children)

    def _parts_of(self, number: int) -> list[int]:
        return [*self._parts.get(number, ()), number]

    def parse(self, jobs: Iterable[Job]) -> Iterator[Parsed]:
        """Parses jobs; yields their results in the order of the jobs.

        It runs only a few jobs at a time, so few results wait for an earlier job.
        """
        ahead: deque[int] = deque()
        try:
            for job in jobs:
                ahead.append(self.submit(job))
                if len(ahead) > 2 * self._size:
                    yield self.result(ahead.popleft())
            while ahead:
                yield self.result(ahead.popleft())
        finally:
            self.abandon(ahead)

    @contextlib.contextmanager
    def feeding(self) -> Iterator[None]:
        """Hands out jobs in another thread, so that no child waits while the caller does other work."""
        ended = threading.Event()

        def feed() -> None:
            while not ended.is_set():
                self.pump()
                self._wait()
                if not self._busy():
                    ended.wait(_HEARD_S)

        with ThreadPoolExecutor(1, "parsers") as threads:
            fed = threads.submit(feed)
            try:
                yield
            finally:
                ended.set()
        fed.result()

    def abandon(self, numbers: Iterable[int]) -> None:
        """Drops jobs, whether they are done or not; ends the children that parse them."""
        with self._lock:
            forgotten = {part for number in numbers for part in self._parts_of(number)}
            dropped = [job for number, job in self._waiting if number in forgotten]
            self._waiting = deque(entry for entry in self._waiting if entry[0] not in forgotten)
            for child in list(self._children):
                if child.job in forgotten:
                    dropped.append(self._running.pop(child.job))
                    self._replace(child)
            for number in forgotten:
                self._finished.pop(number, None)
                self._slices.pop(number, None)
                self._parts.pop(number, None)
            for job in dropped:
                self._forget_pages(job)

    def pump(self) -> None:
        """Sends jobs to idle children and receives results; never waits."""
        with self._lock:
            self._hand_out()
            self._end_largest()
            busy = self._busy()
            ready = wait([child.connection for child in busy], 0.0)
            for child in busy:
                try:
                    if child.connection in ready:
                        self._hear(child)
                    self._note_row(child)
                    if child.job is not None and time.monotonic() > child.deadline:
                        self._give_up(child)
                except (EOFError, OSError):  # the child died, perhaps while it sent a message
                    child.connection.close()
                    self._note_row(child)
                    self._give_up(child)

    def _end_largest(self) -> None:
        """Ends the largest child if all together have too much memory; its page is the reason."""
        if self._total_memory is None or time.monotonic() < self._weighed + _HEARD_S:
            return
        sizes = [memory_of(child.process.pid) for child in self._children]
        if sum(sizes) > self._total_memory:
            largest = self._children[sizes.index(max(sizes))]
            if largest.job is None:
                self._replace(largest)  # it keeps memory of an earlier page
            else:
                self._note_row(largest)
                self._give_up(largest, OVER_TOTAL)
        self._weighed = time.monotonic()

    def _wait(self) -> None:
        """Waits a short time for a message of a child; another thread may receive it first."""
        with self._lock:
            busy = self._busy()
        seconds = min((child.deadline for child in busy), default=0.0) - time.monotonic()
        with contextlib.suppress(OSError, ValueError):  # another thread has ended that child
            wait([child.connection for child in busy], max(0.0, min(seconds, _HEARD_S)))

    def _busy(self) -> list[ParserChild]:
        return [child for child in self._children if child.job is not None]

    def _hand_out(self) -> None:
        missing = self._size - len(self._children)
        busy = len(self._busy())
        for _ in range(min(missing, busy + len(self._waiting) - len(self._children))):
            self._children.append(self._child())
        for place in range(len(self._children)):
            if self._children[place].job is None and self._waiting:
                number, job = self._take_waiting()
                self._running[number] = job
                try:
                    self._children[place].start(number, job)
                except OSError:  # the child died while idle
                    self._replace(self._children[place])
                    self._children[place].start(number, job)

    def _take_waiting(self) -> tuple[int, Job]:
        """Takes the next job; of the last ones a part, see ``share_rest``."""
        number, job = self._waiting.popleft()
        parts = None
        if self._shares_rest and len(self._children) > 1:
            size = job.size + sum(other.size for _, other in self._waiting)
            parts = split_job(job, max(_LEAST_BYTES, size // (2 * len(self._children))))
        if parts is None:
            self._shares_rest = self._shares_rest and bool(self._waiting)
            return number, job
        self._submitted += 1
        self._parts.setdefault(number, []).append(self._submitted)
        self._waiting.appendleft((number, parts[1]))
        return self._submitted, parts[0]

    def _give_up(self, child: ParserChild, reason: str = "") -> None:
        """Ends a child that died, took too long or is too large; another one parses the rest of its job."""
        number = child.job
        assert number is not None
        job = self._running.pop(number)
        why = self._replace(child)
        why = reason or why
        if child.plugin:
            why = f"{child.plugin} {why.replace(' ', ': ', 1)}"
        retry = rest_of_job(job, child.row, why)
        if retry is not None:
            self._waiting.appendleft((number, retry))
            return
        reason = why.replace(" ", ": ", 1)
        where = f"{job.page_file}, row groups {list(job.row_groups)}"
        self._end(number, job, ParserDied(f"parser process failed twice at {where}: {reason}"))

    def rest(self) -> None:
        """Ends the children that are idle; others start when there are jobs again."""
        with self._lock:
            for child in [child for child in self._children if child.job is None]:
                self._children.remove(child)
                child.end()

    def close(self) -> None:
        """Ends all children."""
        for child in self._children:
            child.end()
        self._children = []
        self._relay.close()
        shutil.rmtree(self._scratch, ignore_errors=True)

    def _note_row(self, child: ParserChild) -> None:
        if child.job is not None:
            child.note_row(self._running[child.job])

    def _hear(self, child: ParserChild) -> None:
        """Receives all messages of a child: that it begins, plug-ins at work, and results."""
        while child.job is not None and child.connection.poll():
            message = child.connection.recv()
            number, job = child.job, self._running[child.job]
            if isinstance(message, Begun):
                whole = job.slices or ((0, message.rows),)
                self._running[number] = dataclasses.replace(job, slices=whole)
            elif isinstance(message, Call):
                child.call = message
            elif isinstance(message, UserError):
                child.job = None
                self._end(number, job, message)
            else:
                self._take_slice(child, number, job, message)

    def _take_slice(self, child: ParserChild, number: int, job: Job, done: Done) -> None:
        self._slices.setdefault(number, []).append(_take(done))
        if len(job.slices) > 1:
            self._running[number] = dataclasses.replace(job, slices=job.slices[1:])
            child.row, child.deadline = None, time.monotonic() + PARSER_GRACE_S
        else:
            child.job = None
            self._end(number, job, _join_slices(self._slices[number]))

    def _end(self, number: int, job: Job, result: Parsed | UserError) -> None:
        """Stores the result of a job, and removes the job's files."""
        self._running.pop(number, None)
        self._slices.pop(number, None)
        self._finished[number] = result
        self._forget_pages(job)

    def _forget_pages(self, job: Job) -> None:
        """Removes the file of a job's pages, unless another part of the job needs it."""
        others = [*self._running.values(), *(other for _, other in self._waiting)]
        if job.pages is not None and all(other.pages != job.pages for other in others):
            Path(job.pages).unlink(missing_ok=True)

    def _replace(self, child: ParserChild) -> str:
        """Replaces a child; returns why it ended."""
        why = child.end()
        self._children[self._children.index(child)] = self._child()
        return why

    def _child(self) -> ParserChild:
        return ParserChild(self._module, self._memory, self._scratch, self._relay.stderr)
