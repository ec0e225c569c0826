"""The figures of a crawl as one declared value: what the report and the console show.

Names of hosts, titles and texts are those that strangers wrote. The page that shows them escapes them.
"""

import dataclasses
from collections.abc import Mapping
from typing import NamedTuple, TypeAlias

from ...web.base.dataclass import dataclass

# Numbers by name, in the order in which they are shown.
NamedCounts: TypeAlias = Mapping[str, int]


class JobFigures(NamedTuple):
    """What one job did.

    Attributes:
        snapshot: Number of the snapshot that it made.
        job: Its name.
        time: When it began, ms.
        seconds: From then to its commit, s; None if the snapshot has expired.
        batch: The batch that it worked on, or None.
        urls: URLs in the table after it; None if the snapshot has expired.
        counts: What it counted, by name.
    """

    snapshot: int
    job: str
    time: int
    seconds: float | None
    batch: str | None
    urls: int | None
    counts: NamedCounts


class RoundFigures(NamedTuple):
    """What the jobs on one batch did.

    Attributes:
        batch: The batch.
        time: When its first job began, ms.
        urls: URLs in the table after its last job; None if unknown.
        chosen: URLs that generate chose.
        fetched: Pages that were fetched, those that are not modified among them.
        failed: URLs without a page, for whatever reason.
        redirected: URLs that redirect.
        added: URLs that it has brought to the table.
        seconds: By job, s.
        done: URLs or pages by job, for its speed.
    """

    batch: str
    time: int
    urls: int | None
    chosen: int
    fetched: int
    failed: int
    redirected: int
    added: int
    seconds: Mapping[str, float]
    done: NamedCounts


class FetchFigures(NamedTuple):
    """The requests of one batch.

    Attributes:
        batch: The batch.
        requests: Requests for pages that were sent.
        seconds: From the first request to the last answer, s.
        tail_seconds: How long the last twentieth of the answers took, s.
        tail_hosts: The hosts with most answers in that time: (host, answers).
    """

    batch: str
    requests: int
    seconds: float
    tail_seconds: float
    tail_hosts: tuple[tuple[str, int], ...]


class HostFigures(NamedTuple):
    """The URLs of one host.

    Attributes:
        host: Its name.
        urls: All of its URLs.
        fetched: Those that are fetched.
        gone: Those that are gone.
        duplicates: Those that are duplicates.
        failing: Those whose last request failed.
        robots: Those that robots.txt denies.
        robots_failing: Those that are due while robots.txt fails (425, 429, 5xx, no answer).
        denied: Those that answered 401 or 403, without a wall.
        busy: Those that answered 429, without a wall.
        walls: Those that a bot wall answered, by the guard's name.
        mean_ms: Mean time of their last answers, ms; None without one.
    """

    host: str
    urls: int
    fetched: int
    gone: int
    duplicates: int
    failing: int
    robots: int
    robots_failing: int
    denied: int
    busy: int
    walls: int
    guards: tuple[str, ...]
    mean_ms: float | None

    @property
    def blocked(self) -> int:
        """URLs that the host keeps from the crawler, for whatever reason."""
        return self.robots + self.robots_failing + self.denied + self.busy + self.walls


class DueFigures(NamedTuple):
    """When URLs are due.

    Attributes:
        now: Those that are due now.
        days: Those that are due on each of the next days, from now.
        later: Those that are due after these days.
        never: Those without a time, as in damaged rows.
    """

    now: int
    days: tuple[int, ...]
    later: int
    never: int


class DroppedFigures(NamedTuple):
    """What jobs left out for one reason.

    Attributes:
        job: The job.
        family: The family of counts, such as ``dropped``.
        reason: Its name.
        number: How often.
        meaning: What it means; empty if the catalogue does not have it.
        advice: What to do; may be empty.
    """

    job: str
    family: str
    reason: str
    number: int
    meaning: str
    advice: str


class TopPage(NamedTuple):
    """A page with a high score.

    Attributes:
        url: Its URL.
        score: Its score.
        status: Its status.
    """

    url: str
    score: float
    status: str


class PageSample(NamedTuple):
    """A page as text.

    Attributes:
        url: Its URL.
        title: Its title.
        text: The beginning of its text.
    """

    url: str
    title: str
    text: str


class HostLinks(NamedTuple):
    """Links between the hosts with most URLs.

    Attributes:
        hosts: The hosts.
        links: (from, to, number) of pairs of them with links, the most first; numbers of ``hosts``.
        pages: Pages whose links were counted.
        all_pages: Pages with a stored text.
    """

    hosts: tuple[str, ...] = ()
    links: tuple[tuple[int, int, int], ...] = ()
    pages: int = 0
    all_pages: int = 0


@dataclass(frozen=True)
class CrawlFigures:
    """The figures of one snapshot of a table.

    Attributes:
        address: Address of the table.
        snapshot: Number of the snapshot.
        time: When its job began, ms.
        now: The time to which days and ages refer, ms.
        urls: Number of URLs.
        hosts: Number of hosts.
        statuses: URLs by status.
        codes: Requested URLs by HTTP's code of the last answer, or why there is none.
        types: URLs with a body by media type.
        languages: Living pages by language.
        depths: URLs by the number of links from the nearest seed.
        ages: Living pages by the time since their last request.
        due: When URLs are due.
        duplicates: Pages by the number of their duplicates: (URL, number), the most first.
        biggest: The hosts with most URLs.
        slowest: The hosts with the longest mean times.
        failing: The hosts with most failing URLs.
        blocking: The hosts that keep most URLs from the crawler.
        blocks: URLs by what keeps them from the crawler: ``robots``, ``robots_failing``, ``denied``,
            ``busy``, ``walls``.
        guards: URLs by the bot wall that answered.
        jobs: The jobs, the oldest first.
        rounds: The rounds, the oldest first.
        fetches: The fetches whose pages are stored, the oldest first.
        dropped: What was left out and why, the most first.
        links: Links between the hosts with most URLs.
        top_pages: The pages with the highest scores.
        samples: Some pages as text.
        notes: What could not be read, a sentence each.
    """

    address: str
    snapshot: int
    time: int
    now: int
    urls: int = 0
    hosts: int = 0
    statuses: NamedCounts = dataclasses.field(default_factory=dict)
    codes: NamedCounts = dataclasses.field(default_factory=dict)
    types: NamedCounts = dataclasses.field(default_factory=dict)
    languages: NamedCounts = dataclasses.field(default_factory=dict)
    depths: NamedCounts = dataclasses.field(default_factory=dict)
    ages: NamedCounts = dataclasses.field(default_factory=dict)
    due: DueFigures = dataclasses.field(default_factory=lambda: DueFigures(0, (), 0, 0))
    duplicates: tuple[tuple[str, int], ...] = ()
    biggest: tuple[HostFigures, ...] = ()
    slowest: tuple[HostFigures, ...] = ()
    failing: tuple[HostFigures, ...] = ()
    blocking: tuple[HostFigures, ...] = ()
    blocks: NamedCounts = dataclasses.field(default_factory=dict)
    guards: NamedCounts = dataclasses.field(default_factory=dict)
    jobs: tuple[JobFigures, ...] = ()
    rounds: tuple[RoundFigures, ...] = ()
    fetches: tuple[FetchFigures, ...] = ()
    dropped: tuple[DroppedFigures, ...] = ()
    links: HostLinks = dataclasses.field(default_factory=HostLinks)
    top_pages: tuple[TopPage, ...] = ()
    samples: tuple[PageSample, ...] = ()
    notes: tuple[str, ...] = ()
