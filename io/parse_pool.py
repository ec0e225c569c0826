"""Child processes that parse, with a time limit per page and a memory limit.

A page that stalls or kills its parser costs its time limit and one record with
a reason; the child is ended, another takes over the rest of the file.
"""

import atexit
import dataclasses
import functools
import os
import pickle
import subprocess
import sys
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from multiprocessing.connection import Connection, Pipe, wait

from ..web.errors import UserError
from .parse_worker import Done, Failed, Job

# What a child gets besides a page's own limit: to start, and for the work that
# is done for all pages of a job together.
GRACE_S = 60.0


class _Child:
    def __init__(self, memory: int) -> None:
        ours, theirs = Pipe()
        self.connection: Connection = ours  # type: ignore[assignment]
        # One thread each: the pool is what uses the cores.
        environment = {**os.environ, "POLARS_MAX_THREADS": "1", "OMP_NUM_THREADS": "1"}
        # Imported by name, not run as __main__: what it sends pickles by that name.
        program = f"from nutbeam.io import parse_worker as w; w.main({theirs.fileno()}, {memory})"
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


class ParsePool:
    """Parses jobs on several children at once.

    Args:
        size: How many children.
        memory: Of each, in bytes; 0 is no limit.
    """

    def __init__(self, size: int, memory: int) -> None:
        self._memory = memory
        self._children = [_Child(memory) for _ in range(size)]

    def parse(
        self, jobs: Sequence[Job], on_page: Callable[[int], None] = lambda pages: None
    ) -> Iterator[Done]:
        """Parses jobs; yields their results in the order of the jobs.

        Raises:
            UserError: A job fails for a reason that is not one of its pages.
        """
        waiting = deque(enumerate(jobs))
        running: dict[int, Job] = {}
        finished: dict[int, Done] = {}
        following = 0
        try:
            while following < len(jobs):
                self._hand_out(waiting, running, ahead=len(finished))
                for number, done in self._collect(waiting, running, on_page):
                    finished[number] = done
                while following in finished:
                    yield finished.pop(following)
                    following += 1
        finally:
            for child in self._children:
                if child.job is not None:  # abandoned in the middle
                    self._replace(child)

    def close(self) -> None:
        """Ends all children."""
        for child in self._children:
            child.end()
        self._children = []

    def _hand_out(self, waiting: deque[tuple[int, Job]], running: dict[int, Job], ahead: int) -> None:
        for child in list(self._children):
            # Results that wait for an earlier one are bounded, too.
            if child.job is None and waiting and ahead < 4 * len(self._children):
                number, job = waiting.popleft()
                running[number] = job
                try:
                    child.start(number, job)
                except OSError:  # it died while idle
                    self._replace(child).start(number, job)

    def _collect(
        self,
        waiting: deque[tuple[int, Job]],
        running: dict[int, Job],
        on_page: Callable[[int], None],
    ) -> Iterator[tuple[int, Done]]:
        busy = [child for child in self._children if child.job is not None]
        patience = min(child.deadline for child in busy) - time.monotonic()
        ready = wait([child.connection for child in busy], timeout=max(0.0, patience))
        for child in busy:
            number = child.job
            assert number is not None
            try:
                if child.connection in ready:
                    yield from self._hear(child, running[number], on_page)
                elif time.monotonic() > child.deadline:
                    raise EOFError
            except (EOFError, ConnectionError):
                waiting.appendleft((number, _without(running[number], child)))
                self._replace(child)

    def _hear(
        self, child: _Child, job: Job, on_page: Callable[[int], None]
    ) -> Iterator[tuple[int, Done]]:
        pages = 0
        while child.job is not None and (pages == 0 or child.connection.poll()):
            message = child.connection.recv()
            if isinstance(message, Failed):
                child.job = None
                raise UserError(f"cannot parse {job.page_file}: {message.message}")
            if isinstance(message, Done):
                number, child.job = child.job, None
                yield number, message
            else:
                child.row = message
                pages += 1
                limit = job.options.parser_timeout
                # The last page's time also covers what is done for all of them.
                child.deadline = time.monotonic() + limit + (GRACE_S if message < 0 else 0.0)
        if pages:
            on_page(pages)

    def _replace(self, child: _Child) -> _Child:
        child.end()
        fresh = _Child(self._memory)
        self._children[self._children.index(child)] = fresh
        return fresh


def _without(job: Job, child: _Child) -> Job:
    if child.row is None or child.row in job.skip:
        raise UserError(f"parser process failed at {job.page_file}, row group {job.row_group}")
    return dataclasses.replace(job, skip=job.skip | {child.row})


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
