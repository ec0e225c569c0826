"""What the servers of ``changing_pages.py`` answer, and these servers over HTTP.

``serving`` answers from this process, so that they have its clock. It is the simulated web's server
(``nutbeam.web.simweb.worker``) with other pages.
"""

import asyncio
import contextlib
import threading
import time
from collections.abc import Callable, Iterator

import changing_pages as web
import numpy as np
from changing_pages import Population

from nutbeam.policy.schedules.schedule import DAY_MS
from nutbeam.web.base.clock import EARLIEST_MS
from nutbeam.web.simweb.model import DOMAIN
from nutbeam.web.simweb.site import Answer
from nutbeam.web.simweb.worker import AnswerBytes, Pages, render_answer, serve_connection

START = EARLIEST_MS + 30 * DAY_MS
ANSWERED, AWAY, FAILED, FORBIDDEN = range(4)
ADDRESS = "127.0.0.1"
_MISSING = Answer("missing", 404, b"Not here.\n", "text/plain")
_GONE = Answer("missing", 410, b"Gone.\n", "text/plain")
_FORBIDDING = Answer("robots", 200, b"User-agent: *\nDisallow: /\n", "text/plain")


def key_of(host: int, page: int) -> str:
    """Returns the row key of a page.

    >>> key_of(0, 7)
    'com.example.h000000:http/000007'
    """
    return f"com.example.h{host:06}:http/{page:06}"


def url_of(host: int, page: int) -> str:
    """Returns the URL of a page."""
    return f"http://h{host:06}.example.com/{page:06}"


def days_before(pages: Population) -> np.ndarray:
    """Returns the day of the last change of each page before the start, for Last-Modified."""
    poisson = pages.rates > 0
    conditions = [poisson, pages.classes == "bursts", pages.classes == "periodic"]
    means = [1 / np.where(poisson, pages.rates, 1), web.BURST_EVERY, np.mean(web.PERIODS)]
    before = -np.random.default_rng(19).exponential(np.select(conditions, means, 1.0))
    return np.where(pages.classes == "never", -1_000.0, before)


def answer_of(pages: Population, page: int, day: float) -> int:
    """Returns what comes of a request: ANSWERED, AWAY, FAILED or FORBIDDEN."""
    host = pages.host[page]
    if day >= pages.dies[host]:
        return FAILED
    if forbidden(pages, host, day):
        return FORBIDDEN
    moved = np.searchsorted(pages.moves[page], day, side="right")
    return AWAY if moved % 2 else ANSWERED


def forbidden(pages: Population, host: int, day: float) -> bool:
    """Returns whether the robots.txt of a host forbids all pages."""
    return bool(pages.forbids[host] <= day < pages.forbids[host] + web.FORBIDDEN_DAYS)


def version_of(pages: Population, page: int, day: float) -> int:
    """Returns how often a page has changed."""
    return int(np.searchsorted(pages.changes[page], day, side="right"))


def last_modified(pages: Population, before: np.ndarray, page: int, version: int) -> str | None:
    """Returns the header of a version of a page, as its host says it."""
    day = pages.changes[page][version - 1] if version else before[page]
    seconds = {"true": START // 1000 + int(day * 86_400), "future": 2_500_000_000, "epoch": 0}
    word = pages.says[pages.host[page]]
    if word not in seconds:
        return None
    return time.strftime("%a, %d %b %Y %H:%M:%S GMT", time.gmtime(seconds[word]))


def body_of(page: int, version: int) -> bytes:
    """Returns the body of a version of a page."""
    return f"<!DOCTYPE html><title>Page {page}</title><p>Version {version} of {page}\n".encode()


def version_in(body: bytes) -> int:
    """Returns the version that a body is.

    >>> version_in(body_of(5, 17))
    17
    """
    return int(body.partition(b"Version ")[2].partition(b" ")[0])


class ChangingSite(Pages):
    """The answers of the population's servers at a time that the caller gives.

    Args:
        pages: The population.
        day: Returns the time, days since the start.

    Attributes:
        requests: Number of requests, those for robots.txt among them.
    """

    def __init__(self, pages: Population, day: Callable[[], float]) -> None:
        self.latency, self.requests = 0.0, 0
        self._pages, self._day, self._before = pages, day, days_before(pages)

    def note(self, host: str, target: str) -> None:
        """Counts a request."""
        self.requests += 1

    def get(self, host: str, target: str) -> AnswerBytes:
        """Returns the answer.

        Raises:
            ConnectionError: The host is dead; the connection ends without an answer.
        """
        number, day = int(host.removeprefix("h").partition(".")[0]), self._day()
        if day >= self._pages.dies[number]:
            raise ConnectionError(f"{host} is dead")
        if target == "/robots.txt":
            shut = forbidden(self._pages, number, day)
            return render_answer(_FORBIDDING if shut else _MISSING)
        page = int(target.removeprefix("/"))
        if answer_of(self._pages, page, day) == AWAY:
            return render_answer(_GONE)
        version = version_of(self._pages, page, day)
        said = last_modified(self._pages, self._before, page, version)
        headers = () if said is None else (("Last-Modified", said),)
        if self._pages.says[number] == "true":
            headers = (("ETag", f'"{version}"'), *headers)  # so these hosts answer 304
        return render_answer(Answer("page", 200, body_of(page, version), headers=headers))


@contextlib.contextmanager
def serving(site: Pages) -> Iterator[str]:
    """Serves in a thread; yields the value of ``--connect_to`` with which a crawl gets there."""
    loop = asyncio.new_event_loop()

    async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await serve_connection(site, reader, writer)

    server = loop.run_until_complete(asyncio.start_server(connected, ADDRESS, 0, backlog=1024))
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()
    try:
        yield f"*.{DOMAIN}:80:{ADDRESS}:{server.sockets[0].getsockname()[1]}"
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        server.close()
        for task in asyncio.all_tasks(loop):
            task.cancel()
        loop.run_until_complete(asyncio.sleep(0))
        loop.close()
