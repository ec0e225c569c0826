"""Follows redirects of robots.txt to other hosts, while pages wait for the result.

Such a redirect causes requests to another host. So each hop is a task in that host's
queue, under its limits. One response is used for all searches that lead to the same URL.
"""

import dataclasses
from collections import Counter
from collections.abc import Callable
from typing import cast

from ..base.mappings import SizeCache
from ..exchange.status import Response
from ..robots.robots import RobotsRules, RobotsSteps
from ..robots.robots_redirects import is_outdated
from ..urls.domains import is_shared_suffix, registered_domain
from .tasks import Task

_MAX_BYTES = 16 << 20
_ENTRY_BYTES = 1000
_KEPT_HEADERS = (
    *("location", "retry-after", "set-cookie"),
    *("content-type", "content-encoding", "content-range"),
)


class RobotsSearch:
    """The search for the robots.txt of one origin, which may need several turns.

    Args:
        steps: Generator of the URLs to request; see ``robots_steps``.

    Attributes:
        url: The next URL to request.
        answer: Its response, if a turn of another host has requested it.
        owner: Owner of its host, see ``owner_of``; empty if the origin has the same owner.
        waits: Whether pages of the origin wait for that response.
        pages: The waiting pages.
        refused: Reason to drop the waiting and all later pages of the origin, or None.
    """

    __slots__ = ("_steps", "answer", "owner", "pages", "refused", "url", "waits")

    def __init__(self, steps: RobotsSteps) -> None:
        self._steps = steps
        self.url = next(steps)
        self.answer: Response | None = None
        self.owner = ""
        self.waits = False
        self.pages: list[Task] = []
        self.refused: str | None = None

    def proceed(self, answer: Response) -> RobotsRules | None:
        """Continues with the response from ``url``; returns the rules after the last response."""
        self.answer = None
        try:
            self.url = self._steps.send(answer)
        except StopIteration as end:
            return cast(RobotsRules, end.value)
        return None


class RobotsHops:
    """Requests for robots.txt to other hosts, and the searches that wait for each request.

    Not safe for threads, except ``answers``.

    Args:
        most: Largest number of requests to hosts of one owner that hosts of other owners cause.
        answers: The responses.

    Attributes:
        answers: The responses.
    """

    def __init__(self, most: int, answers: "RobotsAnswers") -> None:
        self._most = most
        self._searches: dict[str, list[RobotsSearch]] = {}
        self._request_counts: Counter[str] = Counter()
        self.answers = answers

    @property
    def urls(self) -> list[str]:
        """URLs for whose responses searches wait."""
        return list(self._searches)

    def add_page(self, search: RobotsSearch, page: Task) -> bool:
        """Makes a page wait for its search's next request; returns whether to send the request."""
        search.waits = True
        search.pages.append(page)
        searches = self._searches.setdefault(search.url, [])
        searches.append(search)
        return len(searches) == 1

    def admits(self, owner: str) -> bool:
        """Counts a request to an owner's host; returns False if there are too many."""
        if owner:
            self._request_counts[owner] += 1
        return self._request_counts[owner] <= self._most

    def release(self, url: str, answer: Response | None, refused: str | None = None) -> list[Task]:
        """Passes a response or a refusal to the searches for a URL; returns their waiting pages."""
        pages: list[Task] = []
        for search in self._searches.pop(url, ()):
            pages += search.pages
            search.waits, search.answer, search.refused, search.pages = False, answer, refused, []
        return pages


class RobotsAnswers:
    """The latest answers to requests for robots.txt, by URL; safe for threads.

    Args:
        cookies: Function that returns the cookies that a request for a URL would send.

    >>> answers = RobotsAnswers()
    >>> answers.put(Response("http://a/robots.txt", status=404, body=b"x" * 1000)).body
    b''
    >>> answers.get("http://a/robots.txt").status, answers.get("http://b/robots.txt")
    (404, None)
    """

    def __init__(self, cookies: Callable[[str], str] = lambda url: "") -> None:
        self._cookies = cookies
        self._answers: SizeCache[str, Response] = SizeCache(_MAX_BYTES, _bytes_of)

    def get(self, url: str) -> Response | None:
        """Returns the answer for a URL; None if there is none, or a new cookie may change it."""
        answer = self._answers.get(url)
        is_old = answer is not None and is_outdated(answer, self._cookies(url))
        return None if is_old else answer

    def put(self, answer: Response) -> Response:
        """Stores and returns the part of a response that matters for robots.txt.

        One that ended early is not stored, for it is requested once more.
        """
        headers = [field for field in answer.headers if field[0].lower() in _KEPT_HEADERS]
        body = answer.body if 200 <= answer.status < 300 else b""
        part = dataclasses.replace(answer, headers=headers, body=body, request="", status_line="")
        if answer.truncated != "disconnect":
            self._answers.put(answer.url, part)
        return part


def _bytes_of(answer: Response) -> int:
    headers = sum(len(value) for _, value in answer.headers)
    return _ENTRY_BYTES + len(answer.body) + len(answer.url) + len(answer.reason) + headers


def owner_of(host: str) -> str:
    """Returns the owner of a host: its registered domain, or the host if others share that domain.

    >>> owner_of("www.foo.co.uk"), owner_of("foo.github.io"), owner_of("[::1]")
    ('foo.co.uk', 'foo.github.io', '[::1]')
    """
    domain = registered_domain(host)
    return host if is_shared_suffix(domain) else domain
