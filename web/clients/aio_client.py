"""The HTTP client on an event loop: many requests at a time, one thread; see ``HttpOptions``.

Requests, responses and the places where connections may go are the same as for the
other client: see ``client_base`` and ``route``.
"""

import asyncio
import queue
import threading
import time
from collections.abc import Callable, Coroutine, Iterable
from typing import Any, TypeVar

from ..base.clock import now_ms
from ..exchange.fetch_steps import Locate, Request
from ..exchange.http_options import HttpOptions
from ..exchange.response import Response
from ..network.aio_connection import AioConnection, connect
from ..network.failures import NETWORK_ERRORS
from ..network.guard import Guard, Target, check_gate
from ..network.idle_connections import IdleClosed, IdleConnections, Origin
from ..network.route import RequestHead, split_url
from ..urls.schemes import scheme_of
from .client_base import ClientBase, failed_response

T = TypeVar("T")
_MAX_LOOKUPS = 64
_CLOSE_SECONDS = 2.0


class AioClient(ClientBase):
    """Fetches URLs, many at a time; safe to share by threads.

    Its loop runs in a thread of its own from the first request on. The gate is
    called on it, and blocks it meanwhile.
    """

    def __init__(
        self,
        options: HttpOptions,
        guard: Guard | None = None,
        gate: Callable[[], bool] | None = None,
    ) -> None:
        super().__init__(options, guard, gate)
        self.idle: IdleConnections[AioConnection] = IdleConnections()
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
                    target=_run, args=(self._loop,), name="nutbeam-loop", daemon=True
                )
                self._thread.start()
            return self._loop

    def get(
        self,
        url: str,
        headers: Iterable[tuple[str, str]] = (),
        content_limit: int | None = None,
        fresh: bool = False,
    ) -> Response:
        """See ``ClientBase``; not to be called on the loop."""
        return self._wait(self.request(url, headers, content_limit, fresh))

    def address(self, url: str) -> str | None:
        """See ``ClientBase``; not to be called on the loop."""
        return self._wait(self._locate(url))

    def _wait(self, coroutine: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(coroutine, self.loop).result()

    async def answered(self, request: Request) -> Response | str | None:
        """Carries out a request of the engine's steps, on ``loop``."""
        if isinstance(request, Locate):
            return await self._locate(request.url)
        return await self.request(*request)

    async def request(
        self,
        url: str,
        headers: Iterable[tuple[str, str]] = (),
        content_limit: int | None = None,
        fresh: bool = False,
    ) -> Response:
        """Fetches a URL once, on ``loop``; see ``ClientBase.get``."""
        other = self._others.get(scheme_of(url))
        if other is not None:
            limit = self._limit_elsewhere(content_limit, url)
            return await self._lookups.run(lambda: other.get(url, headers, limit))
        response = Response(url, started=now_ms())
        began = time.monotonic()
        try:
            if fresh:
                self.idle.forget(split_url(url)[0])
            for sent in self._attempts(response, headers):
                await self._exchange(response, self.route.head("GET", url, sent), content_limit)
        except NETWORK_ERRORS as error:
            response = failed_response(response, error)
        response.elapsed_ms = round((time.monotonic() - began) * 1000)
        return response

    async def _exchange(
        self, response: Response, head: RequestHead, content_limit: int | None
    ) -> None:
        """Sends one request and fills in the response."""
        deadline = time.monotonic() + self._options.http_time_limit
        patience = self._options.timeout
        check_gate(self._gate)
        connection, whole = self.idle.take(head.origin), False
        was_idle = connection is not None
        try:
            if connection is None:
                connection = await self._connected(head.origin, deadline)
                check_gate(self._gate)  # connecting may have taken long
            try:
                answer = await connection.exchange(head.sent, deadline, patience)
            except ConnectionError as error:
                if was_idle:
                    raise IdleClosed("an idle connection was closed") from error
                raise
            limit = self._limit(content_limit, answer.content_type)
            body = await connection.body(answer.fields, limit)
            self._fill(response, answer, body, head.shown, connection)
            whole = body.truncated is None and body.error is None
        finally:
            if connection is not None:
                connection.end()
                if whole and connection.is_idle():
                    self.idle.put(connection)
                else:
                    connection.close()

    async def _connected(self, origin: Origin, deadline: float) -> AioConnection:
        scheme, host, port = origin
        target = await self._dial(host, port)
        connection = AioConnection()
        connection.origin, connection.proxied = origin, self.route.is_proxied(origin)
        connection.rate, connection.grace = self._options.min_rate, self._options.min_rate_grace
        tls = None
        if scheme == "https":
            tls, connection.checked = self.route.tls(host), self.route.is_checked(host)
        tunnel = self.route.tunnel(origin)
        try:
            await connect(connection, target, tls, tunnel, deadline, self._options.timeout)
        except BaseException:
            connection.close()
            raise
        return connection

    async def _dial(self, host: str, port: int) -> Target:
        """Returns where to connect to; names are looked up off the loop."""
        if self.route.needs_lookup(host, port):
            return await self._lookups.run(lambda: self.route.dial(host, port))
        return self.route.dial(host, port)

    async def _locate(self, url: str) -> str | None:
        other = self._others.get(scheme_of(url))
        if other is not None:
            return await self._lookups.run(lambda: other.address(url))
        try:
            _, host, port = split_url(url)[0]
        except ValueError:
            return None
        if self.route.needs_lookup(host, port):
            return await self._lookups.run(lambda: self.route.address(url))
        return self.route.address(url)

    def close(self) -> None:
        """Cancels all requests and ends the loop; the next request starts another."""
        with self._lock:
            loop, thread = self._loop, self._thread
            if loop is None or thread is None:
                return
            self._loop = None
            asyncio.run_coroutine_threadsafe(self._end(loop), loop)
        thread.join(_CLOSE_SECONDS)

    async def _end(self, loop: asyncio.AbstractEventLoop) -> None:
        self.idle.close()
        self._lookups.close()
        tasks = asyncio.all_tasks(loop) - {asyncio.current_task(loop)}
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        loop.call_soon(loop.stop)  # after this task's own end


def _run(loop: asyncio.AbstractEventLoop) -> None:
    asyncio.set_event_loop(loop)
    try:
        loop.run_forever()
    finally:
        loop.close()


class _Lookups:
    """Threads for calls that would block the loop; as many as needed, up to a limit.

    Not those of ``concurrent.futures``, for whose end Python waits.
    """

    def __init__(self) -> None:
        self._jobs: queue.SimpleQueue[
            tuple[Callable[[], Any], asyncio.AbstractEventLoop, asyncio.Future[Any]] | None
        ] = queue.SimpleQueue()
        self._threads = self._busy = 0

    async def run(self, job: Callable[[], T]) -> T:
        """Returns what a job returns, or raises what it raises."""
        loop = asyncio.get_running_loop()
        future: asyncio.Future[T] = loop.create_future()
        self._busy += 1
        if self._threads < min(self._busy, _MAX_LOOKUPS):
            self._threads += 1
            threading.Thread(target=self._work, name="nutbeam-lookup", daemon=True).start()
        self._jobs.put((job, loop, future))
        try:
            return await future
        finally:
            self._busy -= 1

    def close(self) -> None:
        """Ends the threads."""
        for _ in range(self._threads):
            self._jobs.put(None)

    def _work(self) -> None:
        while (entry := self._jobs.get()) is not None:
            job, loop, future = entry
            result, failed = None, None
            try:
                result = job()
            except Exception as error:  # noqa: BLE001 - it is raised where it is waited for
                failed = error
            try:
                loop.call_soon_threadsafe(_set, future, result, failed)
            except RuntimeError:  # the loop is closed
                return


def _set(future: "asyncio.Future[Any]", result: Any, failed: Exception | None) -> None:
    if future.done():
        return
    if failed is not None:
        future.set_exception(failed)
    else:
        future.set_result(result)
