"""Takes the engine's turns: in threads, or as tasks on one event loop."""

import asyncio
import contextlib
import dataclasses
import math
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Coroutine
from typing import Any

from ..clients.aio_client import AioClient
from ..clients.http_client import Client
from .host_queue import HostQueue, HostTurn
from .queues import Queues
from .tasks import Task

TakeTurn = Callable[[HostQueue, Task], Coroutine[Any, Any, HostTurn]]
OnError = Callable[[HostQueue, Task, BaseException], HostTurn]


@dataclasses.dataclass(eq=False)
class FetchWorkers(ABC):
    """Takes the next turns of the queues.

    Attributes:
        client: Makes the requests.
        queues: Choose the next host.
        take_turn: Takes a turn.
        on_error: Returns the outcome of a turn that raised an exception.
    """

    client: Client
    queues: Queues
    take_turn: TakeTurn
    on_error: OnError

    @abstractmethod
    def __post_init__(self) -> None:
        """Makes room for the turns under way."""

    @abstractmethod
    def grow(self, number: int) -> None:
        """Allows more turns at a time."""

    @abstractmethod
    def join(self) -> None:
        """Waits briefly for turns under way; raises the error that ended the work early."""


def workers_of(
    client: Client, queues: Queues, take_turn: TakeTurn, on_error: OnError
) -> FetchWorkers:
    """Returns the workers for a client; see ``FetchWorkers``."""
    kind = FetchLoop if isinstance(client, AioClient) else FetchThreads
    return kind(client, queues, take_turn, on_error)


class FetchThreads(FetchWorkers):
    """Turns that threads take."""

    def __post_init__(self) -> None:
        self._threads: list[threading.Thread] = []

    def grow(self, number: int) -> None:
        """Starts more threads."""
        for _ in range(number):
            thread = threading.Thread(target=self._work, name="nutbeam-fetch", daemon=True)
            self._threads.append(thread)
            thread.start()

    def join(self) -> None:
        """Waits for the threads, a second for each."""
        for thread in self._threads:
            thread.join(1.0)

    def _work(self) -> None:
        turn = None
        while (start := self.queues.next_turn(turn)) is not None:
            try:
                turn = self.client.run(self.take_turn(*start))
            except Exception as error:  # noqa: BLE001 - one page must not stop a thread
                turn = self.on_error(*start, error)


class FetchLoop(FetchWorkers):
    """Turns that tasks on the client's event loop take.

    One call on the loop returns all turns that have ended and takes all turns
    that are due. So the queues are locked once for all of them, not once for each.
    """

    def __post_init__(self) -> None:
        self._under_way = 0
        self._ended: list[HostTurn] = []
        self._tasks: set[asyncio.Task[None]] = set()
        self._scheduled = False
        self._alarm: asyncio.TimerHandle | None = None
        self._error: BaseException | None = None

    def grow(self, number: int) -> None:
        """Allows more turns at a time."""
        if self.queues.alert is None:
            loop = self.client.loop
            assert loop is not None
            self._loop = loop
            self.queues.alert = self._call
        self._call()

    def join(self) -> None:
        """Raises the error that ended the loop's work early."""
        if self._error is not None:
            raise self._error

    def _call(self) -> None:
        """Makes the loop call ``_take_due``; may be called in any thread."""
        if not self._scheduled:
            self._scheduled = True
            with contextlib.suppress(RuntimeError):  # the client and its loop are closed
                self._loop.call_soon_threadsafe(self._take_due)

    def _take_due(self) -> None:
        self._scheduled = False
        if self._alarm is not None:
            self._alarm.cancel()
            self._alarm = None
        ended, self._ended = self._ended, []
        try:
            turns, due = self.queues.take_due(ended, self.queues.workers - self._under_way)
        except Exception as error:  # noqa: BLE001 - ``join`` raises it
            self._error, turns, due = error, [], None
            self.queues.close()
        for due_turn in turns:
            self._under_way += 1
            task = self._loop.create_task(self._work(*due_turn))
            self._tasks.add(task)  # the loop itself keeps only weak references
            task.add_done_callback(self._tasks.discard)
        if due is not None and due < math.inf:
            self._alarm = self._loop.call_at(due, self._take_due)

    async def _work(self, queue: HostQueue, task: Task) -> None:
        try:
            turn = await self.take_turn(queue, task)
        except Exception as error:  # noqa: BLE001 - one page must not stop the others
            turn = self.on_error(queue, task, error)
        self._under_way -= 1
        self._ended.append(turn)
        if not self._scheduled:
            self._scheduled = True
            self._loop.call_soon(self._take_due)
