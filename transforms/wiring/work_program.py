"""The program of a child process that works on items of a step, such as partitions to fetch.

It ends when its parent ends, because the pipe closes then: it keeps what it has fetched first.
``work_processes.py`` reads its messages.
"""

import atexit
import contextlib
import copy
import dataclasses
import logging
import os
import pickle
import queue
import signal
import threading
import time
import traceback
from collections.abc import Callable, Iterable, Iterator, Mapping
from multiprocessing.connection import Connection
from types import FrameType
from typing import Any, NamedTuple

from ...io.parsing.parser_limits import share_machine
from ...web.base.dataclass import dataclass
from ...web.base.memory import collect_seldom, keep_modules
from ...web.base.progress import PROGRESS, HostActivity, RequestFailure
from ...web.engine.request_times import REQUEST_TIMES, TimesSoFar

# Exit code of a process that was interrupted.
INTERRUPTED_CODE = 130
# Longest time for its end: it writes what it has fetched.
ENDING_S = 10.0
_TALLY_S = 0.5


class WorkItem(NamedTuple):
    """Message: something to work on; ``function(*args)`` yields elements."""

    function: Callable[..., Iterable[Any]]
    args: tuple[Any, ...]


@dataclass(frozen=True)
class Tally:
    """Message: the progress of an item so far; see ``Progress``.

    Attributes:
        done: Number of things done.
        total: How many more than expected there are to do.
        counts: More counts by name.
        hosts: The hosts that are fetched.
        failures: Requests that have failed since the last message.
        times: How long requests took since the last message.
    """

    done: int = 0
    total: int = 0
    counts: Mapping[str, int] = dataclasses.field(default_factory=dict)
    hosts: HostActivity | None = None
    failures: tuple[RequestFailure, ...] = ()
    times: TimesSoFar | None = None


class Finished(NamedTuple):
    """Message: an item is done; its elements."""

    elements: list[Any]


class Failed(NamedTuple):
    """Message: the work on an item has raised an error."""

    error: Exception


def serve_items(descriptor: int, processes: int, level: int) -> None:
    """Works on items until the parent closes the pipe, or a signal ends it.

    Args:
        descriptor: File descriptor of the pipe to the parent.
        processes: How many such processes share the machine.
        level: Lowest level of logs.
    """
    for number in (signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)  # the parent decides when this process ends
    signal.signal(signal.SIGTERM, _interrupt)
    collect_seldom()
    share_machine(processes)
    channel, items = _Channel(Connection(descriptor)), queue.SimpleQueue[WorkItem]()
    logging.basicConfig(handlers=[_ChannelHandler(channel)], level=level, force=True)
    threading.Thread(target=channel.receive, args=(items,), name="items", daemon=True).start()
    try:
        while True:
            channel.send(_work(items.get(), channel))
    except KeyboardInterrupt:
        _end_soon()
        atexit._run_exitfuncs()
        # A normal exit takes long, because it frees the memory of all modules.
        os._exit(INTERRUPTED_CODE)


def _interrupt(number: int, _: FrameType | None) -> None:
    """Interrupts the main thread, once."""
    signal.signal(number, signal.SIG_IGN)
    raise KeyboardInterrupt


def _end_soon() -> None:
    """Limits the time for the rest of this process."""
    last = threading.Timer(ENDING_S, os._exit, [INTERRUPTED_CODE])
    last.daemon = True
    last.start()


class _Channel:
    """The pipe to the parent; several threads send."""

    def __init__(self, connection: Connection) -> None:
        self._connection, self._lock = connection, threading.Lock()

    def send(self, message: Any) -> None:
        """Sends a message; one to a parent that has ended is lost."""
        with self._lock, contextlib.suppress(BrokenPipeError):
            self._connection.send(message)

    def receive(self, items: "queue.SimpleQueue[WorkItem]") -> None:
        """Receives items, in a thread; interrupts the main thread when the pipe is closed."""
        try:
            while True:
                items.put(self._connection.recv())
        except (EOFError, OSError):
            os.kill(os.getpid(), signal.SIGTERM)
            time.sleep(ENDING_S)
            os._exit(INTERRUPTED_CODE)


class _ChannelHandler(logging.Handler):
    """Sends logs to the parent, which writes them in its format."""

    def __init__(self, channel: _Channel) -> None:
        super().__init__()
        self._channel = channel

    def emit(self, record: logging.LogRecord) -> None:
        plain = copy.copy(record)
        plain.msg, plain.args = record.getMessage(), None
        if record.exc_info:
            plain.exc_text = self.format(record).partition("\n")[2]
            plain.exc_info = None
        self._channel.send(plain)


def _work(item: WorkItem, channel: _Channel) -> Finished | Failed:
    PROGRESS.start("work", total=0)
    try:
        with _tallies(channel):
            elements = list(item.function(*item.args))
    except Exception as error:  # noqa: BLE001 - the parent raises it
        return Failed(_portable(error))
    keep_modules()
    return Finished(elements)


@contextlib.contextmanager
def _tallies(channel: _Channel) -> Iterator[None]:
    """Sends the progress every half second, and at the end."""
    over = threading.Event()

    def send() -> None:
        failures, times = set[RequestFailure](), REQUEST_TIMES.so_far()
        while True:
            is_last = over.wait(_TALLY_S)
            phases, now = PROGRESS.snapshot(), REQUEST_TIMES.so_far()
            fresh = tuple(one for one in phases.failures if one not in failures)
            phase = phases.current
            if phase is not None:
                channel.send(
                    Tally(
                        phase.done, phase.total or 0, phase.counts, None if is_last else phase.hosts,
                        fresh, now.since(times),
                    )
                )  # fmt: skip
            if is_last:
                return
            failures, times = set(phases.failures), now

    thread = threading.Thread(target=send, name="tallies", daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


def _portable(error: Exception) -> Exception:
    """Returns an error that another process can raise: the same one, or one with its traceback."""
    try:
        copied = pickle.loads(pickle.dumps(error))
    except Exception:  # noqa: BLE001 - whatever its class does
        copied = None
    if type(copied) is type(error) and str(copied) == str(error):
        return error
    return RuntimeError("".join(traceback.format_exception(error)))
