"""The HTTP client on an event loop: many requests at a time, one thread; see ``HttpOptions``."""

import asyncio
import contextlib
import http.client
import queue
import socket
import ssl
import threading
from collections import deque
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping
from concurrent.futures import Future
from typing import Any, TypeVar, cast

from ..exchange.http_options import HttpOptions
from ..network.guard import Guard
from ..network.transport import Gate
from ..network.wire import READ_BYTES, Wire, cipher_words
from ..tls.contexts import NoTls
from .http_client import Client

_MAX_UNREAD_BYTES = 131_072
_GOODBYE_SECONDS = 1.0


class LoopWire(Wire, asyncio.Protocol):
    """A wire on the running event loop."""

    def __init__(self) -> None:
        self._transport: asyncio.Transport | None = None
        self._unread: deque[bytes] = deque()
        self._unread_bytes = 0
        self._closed = False
        self._error: BaseException | None = None
        self._waiter: asyncio.Future[None] | None = None

    async def _open(self, sock: socket.socket, address: tuple[Any, ...]) -> None:
        loop = asyncio.get_running_loop()
        sock.setblocking(False)
        async with self._limit_time():
            await loop.sock_connect(sock, address)
            await loop.create_connection(lambda: self, sock=sock)

    async def secure(self, context: ssl.SSLContext, name: str) -> None:
        """See ``Wire``."""
        if self._unread:  # bytes before TLS must not be taken for a response over TLS
            raise NoTls("the server sends before TLS begins")
        async with self._limit_time():
            transport = await asyncio.get_running_loop().start_tls(
                self._open_transport(),
                *(self, context),
                server_hostname=name,
                ssl_shutdown_timeout=_GOODBYE_SECONDS,
            )
        self._transport = cast(asyncio.Transport, transport)

    @contextlib.asynccontextmanager
    async def _limit_time(self) -> AsyncIterator[None]:
        try:
            async with asyncio.timeout(self.stopwatch.time_left()):
                yield
        except TimeoutError as error:
            raise self.stopwatch.timed_out() from error

    def _open_transport(self) -> asyncio.Transport:
        if self._transport is None or self._closed:
            raise self._error or ConnectionResetError("the connection is closed")
        return self._transport

    def certificate(self) -> Mapping[str, Any]:
        """See ``Wire``."""
        return self._open_transport().get_extra_info("peercert") or {}

    def cipher(self) -> str:
        """See ``Wire``."""
        return cipher_words(self._open_transport().get_extra_info("cipher"))

    async def send(self, data: bytes) -> None:
        """See ``Wire``."""
        self._open_transport().write(data)

    async def receive(self) -> bytes:
        """See ``Wire``."""
        seconds_left = self.stopwatch.time_left()
        if not self._unread and not self._closed:
            await self._wait(seconds_left)
        if not self._unread:
            if self._error is not None:
                raise self._error
            return b""
        data = self._unread.popleft()
        self._unread_bytes -= len(data)
        if not self._unread and self._transport is not None:
            self._transport.resume_reading()
        return data

    async def _wait(self, seconds: float) -> None:
        """Waits until bytes come or the connection ends."""
        loop = asyncio.get_running_loop()
        self._waiter = loop.create_future()
        timer = loop.call_later(seconds, self._expire)
        try:
            await self._waiter
        finally:
            timer.cancel()
            self._waiter = None

    def _expire(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_exception(self.stopwatch.timed_out())

    def is_quiet(self) -> bool:
        """See ``Wire``."""
        if self._transport is None or self._transport.is_closing():
            return False
        return not self._unread

    def close(self) -> None:
        """See ``Wire``."""
        self.resting = self._closed = True
        if self._transport is not None:
            self._transport.abort()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Callback: the connection is open."""
        self._transport = cast(asyncio.Transport, transport)

    def data_received(self, data: bytes) -> None:
        """Callback: keeps and counts received bytes."""
        if self.resting:
            self.close()
            return
        self.stopwatch.count(len(data))
        # In small pieces, so that a decompression bomb is noticed early.
        starts = range(0, len(data), READ_BYTES)
        self._unread.extend(data[start : start + READ_BYTES] for start in starts)
        self._unread_bytes += len(data)
        if self._unread_bytes > _MAX_UNREAD_BYTES and self._transport is not None:
            self._transport.pause_reading()
        self._wake()

    def connection_lost(self, exc: BaseException | None) -> None:
        """Callback: the connection has ended; ``exc`` is the error, if it broke."""
        self._closed = True
        if exc is not None and not isinstance(exc, OSError):
            exc = http.client.HTTPException(str(exc))
        self._error = exc
        self._wake()

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)


_T = TypeVar("_T")
_MAX_LOOKUPS = 64
_CLOSE_SECONDS = 2.0


class AioClient(Client):
    """Fetches URLs, many at a time; safe to share by threads.

    Its event loop starts with the first request and has its own thread. The gate is
    called on the loop and blocks it. ``get`` and ``run`` wait for
    the loop, so they must not be called on it.
    """

    _wire = LoopWire

    def __init__(
        self, options: HttpOptions, guard: Guard | None = None, gate: Gate | None = None
    ) -> None:
        super().__init__(options, guard, gate)
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
        """See ``Client``."""
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


def client_of(options: HttpOptions, guard: Guard | None = None, gate: Gate | None = None) -> Client:
    """Returns the client that the options name; see ``Client``."""
    kind = AioClient if options.http_client == "asyncio" else Client
    return kind(options, guard, gate)


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
