"""Input and output of the fetch engine: tasks, results, and findings about hosts."""

import dataclasses
import itertools
from collections.abc import Iterable, Iterator
from typing import NamedTuple, Protocol

from ..exchange.status import Response
from ..robots.robots import RobotsRecord


@dataclasses.dataclass(slots=True)
class HostRecord:
    """The findings of a run about a host.

    Attributes:
        host: Lower-case name, or address; IPv6 in brackets.
        robots_origin: ``scheme://host[:port]`` of the robots.txt; if the host has
            several origins, the first one requested.
        robots_status: Its HTTP status; 0 if it did not answer, None if it was not requested.
        robots_text: Its text; while the server fails, the last text that it sent.
        robots_time: Time of its fetch, UTC ms.
        robots_failing_since: UTC ms of the first of consecutive failures; 0 if it does not fail.
        sitemaps: URLs of sitemaps that robots.txt names.
        crawl_delay: Crawl delay of robots.txt in s, if it has one.
        exceptions: Failures since the last success.
        backoff_level: Number of failures; each success halves it.
        backoff_until: UTC ms before which the host gets no request; 0 for none.
        last_request_time: UTC ms at which the last request ended; 0 for none.
        cookies: Cookies for the host, as Set-Cookie headers, one per line; None: they are not kept.
        counts: Results by the name of their protocol status.
    """

    host: str
    robots_origin: str = ""
    robots_status: int | None = None
    robots_text: str = ""
    robots_time: int = 0
    crawl_delay: float | None = None
    exceptions: int = 0
    backoff_until: int = 0
    last_request_time: int = 0
    counts: dict[str, int] = dataclasses.field(default_factory=dict)
    robots_failing_since: int = 0
    sitemaps: tuple[str, ...] = ()
    backoff_level: int = 0
    cookies: str | None = None

    @property
    def robots(self) -> RobotsRecord | None:
        """The robots.txt; None if it was not requested."""
        if self.robots_status is None:
            return None
        times = self.robots_time, self.robots_failing_since
        return RobotsRecord(self.robots_status, self.robots_text, *times)


class KnownHosts(Protocol):
    """Findings of earlier runs, by host, such as a mapping."""

    def get(self, host: str, /) -> HostRecord | None: ...


_SPARE = 16  # most free places at the front of the list, unless half of it is larger


@dataclasses.dataclass(slots=True)
class Task:
    """A page to fetch, with its earlier findings.

    Attributes:
        url: Absolute, normalized URL.
        key: Row key.
        score: Score of the page.
        distance: Number of links from a seed.
        etag: ETag of the stored copy, for a conditional request.
        last_modified: Last-Modified of that copy, as the server sent it.
        modified_time: UTC ms of that copy, if the server sent no date; 0 if unknown.
        hops: Number of redirects that led to the URL.
        depth: Number of links followed to the URL within this fetch.
        delay: Seconds between two requests to its queue; None for the usual delay.
        threads: Most turns at a time to its queue; None for the usual number.
        address: Address of its host, which is the name of its queue; None to look it up.
        host: Host of the URL; the engine sets it.
        robots: Whether it is not a page, but the target of a redirect of another host's robots.txt.
        at: URL that is requested in place of ``url``, which is its normal form: the target of a
            redirect; empty: ``url``.
        again: How often it was requested again because of a redirect.
        fresh: Whether it needs a new connection, as a server closed an idle one without an answer.
    """

    url: str
    key: str = ""
    score: float = 0.0
    distance: int = 0
    etag: str | None = None
    last_modified: str | None = None
    modified_time: int = 0
    hops: int = 0
    depth: int = 0
    delay: float | None = None
    threads: int | None = None
    address: str | None = None
    host: str = ""
    robots: bool = False
    fresh: bool = False
    at: str = ""
    again: int = 0

    @property
    def request_url(self) -> str:
        """The URL that is requested."""
        return self.at or self.url


class Tasks:
    """Tasks in order of arrival: a deque that needs little memory for few tasks.

    >>> tasks = Tasks()
    >>> tasks.extend("abc")
    >>> tasks.popleft(), len(tasks), tasks[0], list(tasks)
    ('a', 2, 'b', ['b', 'c'])
    """

    __slots__ = ("_items", "_start")

    def __init__(self) -> None:
        self._items: list[Task] = []
        self._start = 0

    def __len__(self) -> int:
        return len(self._items) - self._start

    def __getitem__(self, at: int) -> Task:
        return self._items[self._start + at]

    def __iter__(self) -> Iterator[Task]:
        return itertools.islice(self._items, self._start, None)

    def append(self, task: Task) -> None:
        """Adds a task at the end."""
        self._items.append(task)

    def appendleft(self, task: Task) -> None:
        """Adds a task at the front; this is fast if a task was taken from there before."""
        if self._start:
            self._start -= 1
            self._items[self._start] = task
        else:
            self._items.insert(0, task)

    def extend(self, tasks: Iterable[Task]) -> None:
        """Adds tasks at the end."""
        self._items.extend(tasks)

    def popleft(self) -> Task:
        """Takes the first task."""
        task = self._items[self._start]
        self._items[self._start] = None  # type: ignore[call-overload]
        self._start += 1
        if self._start == len(self._items):
            self.clear()
        elif 2 * self._start >= len(self._items) and self._start > _SPARE:
            self._replace(self._items[self._start :])
        return task

    def clear(self) -> None:
        """Removes all tasks."""
        self._replace([])

    def _replace(self, items: list[Task]) -> None:
        # In this order: another thread may read the length, which must not be negative.
        self._start = 0
        self._items = items


# How often a page is requested again because of redirects, if cookies are kept.
MOST_REPEATS = 2


class Hop(NamedTuple):
    """The target of a redirect.

    Attributes:
        key: Row key of its normal form; empty if there is none, or if it does not matter.
        task: The task for it; None if it is left to a later batch. If it has the key of the page
            that redirects, the page is requested again, and gets no result yet.
    """

    key: str = ""
    task: Task | None = None


def repeat_at(task: Task, url: str, new_cookie: bool, most: int = 1) -> Task | None:
    """Returns the task for a page whose redirect leads to itself: to another spelling of its URL.

    Args:
        task: The task of the page.
        url: The target.
        new_cookie: Whether the next request has another cookie, so that it may be for the same URL.
        most: How often a page is requested again.

    >>> repeat_at(Task("http://a.example/x"), "http://a.example/x?", False).request_url
    'http://a.example/x?'
    >>> repeat_at(Task("http://a.example/x"), "http://a.example/x#y", False)
    """
    url = url.partition("#")[0]
    is_same = url == task.request_url
    if task.again >= most or (is_same and not new_cookie):
        return None
    at = "" if url == task.url else url
    return dataclasses.replace(task, at=at, again=task.again + 1, fresh=False)


@dataclasses.dataclass(slots=True)
class Result:
    """The outcome of a task.

    Attributes:
        task: The task.
        response: The response; None if no request was sent.
        fetch_status: One of ``status.FETCH_…``.
        protocol_status: One of the ProtocolStatus codes.
        message: The reason as a short text; empty for success.
        redirect: Absolute URL of the redirect's target, if any.
        fetched_at: When the request ended, UTC ms.
        usage: What robots.txt allows the content to be used for; None: it is silent.
    """

    task: Task
    response: Response | None
    fetch_status: int
    protocol_status: int
    message: str = ""
    redirect: str | None = None
    fetched_at: int = 0
    usage: str | None = None


def body_bytes(result: Result) -> int:
    """Returns the length of the body that a result holds."""
    return 0 if result.response is None else len(result.response.body)
