"""Findings about a host: one run of the engine collects them, and the next run uses them."""

import dataclasses
from typing import Protocol

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
