"""The HTTP client on an event loop: many requests at a time, one thread; see ``HttpOptions``."""

import asyncio
import queue
import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import Future
from typing import Any, TypeVar

from ..network.loop_wire import LoopWire
from .client_base import ClientBase

_T = TypeVar("_T")
_MAX_LOOKUPS = 64
_CLOSE_SECONDS = 2.0


class AioClient(ClientBase):
    """Fetches URLs, many at a time; safe to share by threads.

    Its event loop starts with the first request and has its own thread. The gate is
    called on the loop and blocks it. ``get`` and ``run`` wait for
    the loop, so they must not be called on it.
    """

    _wire = LoopWire

    def _open(self) -> None:
        self._lookups = _Lookups()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self._lock = threading.Lock()

    @property
    def loop(self) -> asyncio.AbstractEventLoop:
        """The event loop, running."""
        with self._lock:
            if self._loop is None:
                self._loop = asyncio.new_event_loop()
                self._thread = threading.Thread(
                    target=_run_loop, args=(self._loop,), name="nutbeam-loop", daemon=True
                )
                self._thread.start()
            return self._loop

    def run(self, coroutine: Coroutine[Any, Any, _T]) -> _T:
        """See ``ClientBase``."""
        return asyncio.run_coroutine_threadsafe(coroutine, self.loop).result()

    async def _run_blocking(self, call: Callable[[], _T]) -> _T:
        return await self._lookups.run(call)

    def close(self) -> None:
        """Cancels all requests and ends the loop; the next request starts a new loop."""
        with self._lock:
            loop, thread = self._loop, self._thread
            if loop is None or thread is None:
                return
            self._loop = None
            asyncio.run_coroutine_threadsafe(self._end(loop), loop)
        thread.join(_CLOSE_SECONDS)

    async def _end(self, loop: asyncio.AbstractEventLoop) -> None:
        super().close()
        self._lookups.close()
        tasks = asyncio.all_tasks(loop) - {asyncio.current_task(loop)}
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        loop.call_soon(loop.stop)  # after this task's own end


def _run_loop(loop: asyncio.AbstractEventLoop) -> None:
    asyncio.set_event_loop(loop)
    try:
        loop.run_forever()
    finally:
        loop.close()


class _Lookups:
    """Threads for calls that would block the loop; started when needed, up to a limit.

    They are not threads of ``concurrent.futures``, because Python would wait for their end.
    """

    def __init__(self) -> None:
        self._jobs: queue.SimpleQueue[tuple[Future[Any], Callable[[], Any]] | None]
        self._jobs = queue.SimpleQueue()
        self._threads = self._busy = 0

    async def run(self, job: Callable[[], _T]) -> _T:
        """Returns the result of a job, or raises its error."""
        self._busy += 1
        if self._threads < min(self._busy, _MAX_LOOKUPS):
            self._threads += 1
            threading.Thread(target=self._work, name="nutbeam-lookup", daemon=True).start()
        future: Future[_T] = Future()
        self._jobs.put((future, job))
        try:
            return await asyncio.wrap_future(future)
        finally:
            self._busy -= 1

    def close(self) -> None:
        """Ends the threads; the next job starts new threads."""
        for _ in range(self._threads):
            self._jobs.put(None)
        self._threads = 0

    def _work(self) -> None:
        while (entry := self._jobs.get()) is not None:
            future, job = entry
            if not future.set_running_or_notify_cancel():
                continue
            try:
                future.set_result(job())
            except Exception as error:  # noqa: BLE001 - it is raised where it is waited for
                future.set_exception(error)
