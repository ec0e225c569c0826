"""The simulated web with the truth about it: which URLs a crawl must find, and which requests came."""

import dataclasses
import json
import os
import tempfile
from collections.abc import Iterable, Iterator
from functools import cached_property
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import pytest

from nutbeam.web.simweb import server
from nutbeam.web.simweb.model import PagePlace, SimLink, SimPage
from nutbeam.web.simweb.render import title
from nutbeam.web.simweb.site import Site


class LoggedRequest(NamedTuple):
    """A line of the log: when a request had come, and what it asked for.

    Attributes:
        time: Seconds, as ``time.monotonic()`` counts them on this machine, in any process.
        host: The Host header, lower case, without port.
        path: Path and query.
    """

    time: float
    host: str
    path: str


@dataclasses.dataclass(frozen=True)
class TrueSite(Site):
    """A site that knows what a crawl of it must find."""

    @property
    def names(self) -> tuple[str, ...]:
        """The hosts' names."""
        return tuple(self.plan.host_name(host) for host in range(self.hosts))

    def links(self, url: str) -> tuple[SimLink, ...]:
        """The links on the page at ``url``; none where there is no page."""
        page = self._find_page(url)
        return () if page is None else self.plan.links(page)

    def title(self, url: str) -> str:
        """The title of the page at ``url``; empty where there is no page."""
        page = self._find_page(url)
        return "" if page is None else title(self.plan, page)

    def reachable(self, seeds: Iterable[str] | None = None) -> dict[str, str]:
        """Every URL an obedient crawler meets that starts from ``seeds``, with its kind.

        It honours robots.txt, meta robots and rel=nofollow, follows redirects and reads no
        images or styles. Kinds are ``page``, ``redirect``, ``missing`` (404, 410) and ``denied``
        (by robots.txt: met, never asked for). The order is breadth first.
        """
        found = dict.fromkeys(self.seeds if seeds is None else seeds, "")
        queue = list(found)
        for url in queue:  # grows while it is read
            found[url], targets = self._visit(url)
            fresh = [target for target in dict.fromkeys(targets) if target not in found]
            found.update(dict.fromkeys(fresh, ""))
            queue += fresh
        return found

    def _visit(self, url: str) -> tuple[str, list[str]]:
        host, place = self._locate(url)
        if place is None or place.kind == "gone":
            return "missing", []
        page = SimPage(host, place.number)
        if place.kind in ("private", "hidden"):
            hidden = self.plan.special_url(host, "hidden", place.number)
            return ("denied", []) if place.kind == "private" else ("page", [hidden])
        if place.kind == "img":
            return "asset", []
        if place.kind != "page":
            return "redirect", [self.plan.redirect(host, place)[1]]
        if self.plan.role(page) == "nofollow":
            return "page", []
        return "page", [link.url for link in self.plan.links(page) if not link.nofollow]

    @cached_property
    def _reachable(self) -> dict[str, str]:
        return self.reachable()

    def urls(self, *kinds: str) -> frozenset[str]:
        """The URLs reachable from the root, of the kinds named, or of all kinds.

        ``page``, ``redirect``, ``missing`` and ``denied``, as in ``reachable``.
        """
        return frozenset(url for url, kind in self._reachable.items() if not kinds or kind in kinds)

    def expected(self, url: str) -> str:
        """What a whole crawl must find at ``url``: a kind as in ``reachable``, or else.

        ``robots`` and ``asset`` (styles, images) are what no page links to by ``<a>``; ``hidden``
        is a page an obedient crawler never meets; ``unknown`` is anything else.
        """
        if url in self._reachable:
            return self._reachable[url]
        parts = urlsplit(url)
        query = f"?{parts.query}" if parts.query else ""
        kind = self.answer(parts.netloc, (parts.path or "/") + query).kind
        return kind if kind in ("robots", "asset", "hidden") else "unknown"

    def duplicates(self) -> tuple[frozenset[str], ...]:
        """Sets of two or more pages with identical bodies."""
        sets: dict[SimPage, set[str]] = {}
        for page in self.plan.all_pages():
            sets.setdefault(self.plan.original_page(page), set()).add(self.plan.url(page))
        return tuple(frozenset(urls) for urls in sets.values() if len(urls) > 1)

    def noindex(self) -> frozenset[str]:
        """The pages whose meta robots says noindex."""
        return self._with_role("noindex")

    def nofollow(self) -> frozenset[str]:
        """The pages whose meta robots says nofollow."""
        return self._with_role("nofollow")

    def _with_role(self, role: str) -> frozenset[str]:
        plan = self.plan
        return frozenset(plan.url(page) for page in plan.all_pages() if plan.role(page) == role)

    def _locate(self, url: str) -> tuple[int, PagePlace | None]:
        parts = urlsplit(url)
        host = self.plan.host_number(parts.netloc)
        if host is None or parts.scheme != "http":
            return 0, None
        query = f"?{parts.query}" if parts.query else ""
        return host, self.plan.find(host, (parts.path or "/") + query)

    def _find_page(self, url: str) -> SimPage | None:
        host, place = self._locate(url)
        return SimPage(host, place.number) if place is not None and place.kind == "page" else None


class SimWeb(server.SimWeb):
    """A simulated web that logs its requests, and whose site knows the truth about itself."""

    def __init__(self, *arguments: Any, **named: Any) -> None:
        self._requests = tempfile.TemporaryFile("a+b")  # noqa: SIM115 - closed at the end
        super().__init__(*arguments, **named, log=self._requests.fileno())
        self.site = TrueSite(**dataclasses.asdict(self.site))

    def __exit__(self, *exception: object) -> None:
        super().__exit__(*exception)
        self._requests.close()

    def requests(self) -> list[LoggedRequest]:
        """All requests so far, by time."""
        # The workers write with the same file position: a read must not use it.
        log = self._requests.fileno()
        lines = os.pread(log, os.fstat(log).st_size, 0).splitlines()
        return sorted(LoggedRequest(*json.loads(line)) for line in lines)


def served_web(
    *, scope: Any = "function", seed: int = 7, crawl_delay: float = 0, **size: Any
) -> Any:
    """Returns a fixture that serves a simulated web, for a module's ``web = served_web(...)``."""

    @pytest.fixture(scope=scope)
    def web() -> Iterator[SimWeb]:
        with SimWeb(seed=seed, crawl_delay=crawl_delay, **size) as server:
            yield server

    return web
