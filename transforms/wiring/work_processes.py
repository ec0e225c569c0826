"""Works on several items of a step at once, each in a child process of its own.

Beam's in-process runner has one process, and Python one interpreter for it. Its ``multi_processing``
starts all workers again for each pipeline, sends all elements through gRPC, and knows no progress.
"""

import contextlib
import logging
import os
import signal
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Callable, Iterable
from multiprocessing.connection import Connection, Pipe
from typing import Any

from ...web.base.errors import UserError
from ...web.base.imports import safe_environment
from ...web.base.machine import usable_cores
from ...web.base.progress import PROGRESS, HostActivity
from ...web.base.terminal import Relay
from ...web.engine.request_times import REQUEST_TIMES
from .work_program import ENDING_S, INTERRUPTED_CODE, Failed, Finished, Tally, WorkItem

_LOG = logging.getLogger("nutbeam")
# How many processes may be lost at one item.
MOST_LOST = 3
_INTERRUPTED = f"exit code {INTERRUPTED_CODE}"
_PROGRAM = "from nutbeam.transforms.wiring import work_program as w; w.serve_items({}, {}, {})"


class _Child:
    """A child process that works on one item at a time.

    Args:
        processes: How many share the machine.
        stderr: Descriptor for its standard error; None if it inherits ours.
    """

    def __init__(self, processes: int, stderr: int | None) -> None:
        ours, theirs = Pipe()
        self._connection: Connection = ours
        self.tally = Tally()
        cores = str(max(1, usable_cores() // processes))
        own = dict.fromkeys(("POLARS_MAX_THREADS", "OMP_NUM_THREADS"), cores)
        level = logging.getLogger("nutbeam").getEffectiveLevel()
        program = _PROGRAM.format(theirs.fileno(), processes, level)
        # As in this process: libraries warn while they are imported.
        silent = [] if level <= logging.DEBUG else ["-W", "ignore"]
        # In the process group of this one: a signal to the command reaches it, too.
        self.process = subprocess.Popen(
            [sys.executable, *silent, "-c", program], pass_fds=[theirs.fileno()],
            env=safe_environment(os.environ) | own, stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL, stderr=stderr,
        )  # fmt: skip
        theirs.close()

    def work(self, item: WorkItem) -> Finished | Failed:
        """Works on an item; counts its progress as that of this process.

        Raises:
            EOFError: The process has ended.
            OSError: The same.
        """
        self._connection.send(item)
        while not isinstance(message := self._connection.recv(), Finished | Failed):
            if isinstance(message, Tally):
                self._count(message)
            else:
                logging.getLogger(message.name).handle(message)
        self.tally = Tally()
        return message

    def _count(self, tally: Tally) -> None:
        before, self.tally = self.tally, tally
        counts = Counter(tally.counts)
        counts.subtract(before.counts)
        PROGRESS.expect_more(tally.total - before.total)
        PROGRESS.add(tally.done - before.done, **counts)
        for failure in tally.failures:
            PROGRESS.note_failure(failure.url, failure.reason)
        if tally.times is not None:
            REQUEST_TIMES.add_counted(tally.times)

    def forget(self) -> None:
        """Takes back the progress of an item that is not done: another process begins with it again."""
        self._count(Tally())

    def interrupt(self) -> None:
        """Makes it keep what it has, and end."""
        with contextlib.suppress(ProcessLookupError):
            self.process.send_signal(signal.SIGTERM)

    def close(self) -> None:
        """Closes its pipe: it ends."""
        self._connection.close()

    def wait(self) -> str:
        """Waits for its end, and returns how it ended; kills it if it takes too long."""
        try:
            code = self.process.wait(ENDING_S)
        except subprocess.TimeoutExpired:
            self.process.kill()
            code = self.process.wait()
        return signal.Signals(-code).name if code < 0 else f"exit code {code}"


class WorkProcesses(contextlib.AbstractContextManager["WorkProcesses"]):
    """Child processes that work on items; each thread that runs an item waits for one of them.

    Args:
        size: How many there are at most.
    """

    def __init__(self, size: int) -> None:
        self._size = size
        self._relay = Relay()
        self._lock = threading.Lock()
        self._idle: list[_Child] = []
        self._busy: list[_Child] = []
        self._is_stopped = False

    def run(self, function: Callable[..., Iterable[Any]], *args: Any) -> list[Any]:
        """Returns what ``function(*args)`` yields in a child process.

        If the process is killed, another one does it again: what the first has written is there.

        Raises:
            UserError: Several processes were killed.
        """
        PROGRESS.watch(self.activity)
        for _ in range(MOST_LOST):
            child = self._take()
            try:
                result = child.work(WorkItem(function, args))
            except (EOFError, OSError):
                why = self._lose(child)
                continue
            with self._lock:
                self._busy.remove(child)
                self._idle.append(child)
            if isinstance(result, Failed):
                raise result.error
            return result.elements
        raise UserError(f"{MOST_LOST} processes that fetch have ended, the last one by {why}")

    def activity(self) -> HostActivity:
        """Returns the hosts of all of them."""
        with self._lock:
            hosts = [child.tally.hosts for child in self._busy]
        return HostActivity.of_all([one for one in hosts if one is not None])

    def stop(self) -> None:
        """Makes all keep what they have and end; no other takes their place."""
        with self._lock:
            self._is_stopped = True
            children = [*self._idle, *self._busy]
        for child in children:
            child.interrupt()
        kill = threading.Timer(ENDING_S, _kill, [children])
        kill.daemon = True
        kill.start()

    def __exit__(self, *_: object) -> None:
        """Ends all."""
        with self._lock:
            children, self._idle = self._idle, []
        for child in children:
            child.close()
        for child in children:
            child.wait()
        self._relay.close()

    def _take(self) -> _Child:
        with self._lock:
            if self._is_stopped:
                raise UserError("the processes that fetch were ended")
            child = self._idle.pop() if self._idle else _Child(self._size, self._relay.stderr)
            self._busy.append(child)
        return child

    def _lose(self, child: _Child) -> str:
        child.close()
        with self._lock:
            self._busy.remove(child)
        why = child.wait()
        if self._is_stopped or why == _INTERRUPTED:
            raise UserError("a process that fetches was interrupted; what it had fetched is kept")
        child.forget()
        _LOG.warning(
            "a process that fetches has ended (%s): another one goes on with its hosts", why
        )
        return why


def _kill(children: Iterable[_Child]) -> None:
    for child in children:
        child.process.kill()
