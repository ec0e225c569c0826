"""Applies robots.txt (RFC 9309): the URLs of a site that may be fetched, the deciding line, the delay."""

import dataclasses
import operator
import zlib
from collections.abc import Generator, Iterable, Sequence
from typing import NamedTuple

from ..base.clock import EARLIEST_MS, now_ms
from ..base.mappings import SizeCache
from ..clients.http_client import Client
from ..content.usage import join_usage, read_usage, usage_text
from ..content.whole_bodies import FRAME
from ..exchange.status import BUSY_STATUSES, Response, classify
from ..network.body import codings_of
from ..urls.url_parts import host_of_url
from .match import Decision, Matcher, TooCostly, comparable_path
from .robots_redirects import follow_redirects
from .robots_text import MAX_ROBOTS_BYTES, decode_robots, incomplete_of, usable_sitemaps
from .rules import RobotsRule, UsageRule, read_robots_rules, split_lines

ROBOTS_REQUEST_BYTES = MAX_ROBOTS_BYTES + 1  # limit of the request: the last line may be incomplete
# A server that has failed for this long counts as one without robots.txt (2.3.1.4).
FAILING_MS = 30 * 86_400_000

ALLOW = "allow"
DEFER = "defer"
RULES = "rules"

ALLOWED = "allowed"
DENIED = "denied"
TOO_COSTLY = "too_costly"

# Caches of matchers, with limits of memory. Matchers of large texts have a separate cache, so that
# a few hosts do not remove those of all others.
_LARGE_CHARS = 32_768
_LARGE, _OTHERS = (
    SizeCache["RobotsRules", Matcher](most, operator.attrgetter("size"))
    for most in (48 << 20, 16 << 20)
)
_ROBOTS_PATH = "/robots.txt"
_ALL_ALLOWED = Decision(True, None, 0)
_NONE_ALLOWED = Decision(False, None, 0)


class RobotsRecord(NamedTuple):
    """The stored form of a robots.txt.

    Attributes:
        status: HTTP status; 0 if the server could not be reached.
        text: Its text; while the server fails, the last text that it sent.
        fetched_at: Time of the fetch, UTC ms.
        failing_since: UTC ms of the first of consecutive failures; 0 if it does not fail. A
            redirect fails if it has no end.
    """

    status: int
    text: str
    fetched_at: int
    failing_since: int = 0


class RobotsRules:
    """The rules of a robots.txt for one agent.

    The text is kept compressed; its parsed rules are cached.

    Args:
        record: The robots.txt as the server sent it.
        agents: Product tokens of the agent; the groups for all of them apply.
        error: Reason why the server could not be reached, or why its redirects have no end; or None.
        retry_after: Pause in s that the server demands, if it does.
        host: Its host; empty if unknown.

    Attributes:
        state: ``rules``; ``allow`` for 4xx, which means that there is no
            robots.txt; ``defer`` for 425, 429, 5xx, redirects without an end and no answer:
            nothing may be fetched at present (RFC 9309 2.3.1). After 30 days of that, except 425
            and 429, the last robots.txt applies, or none if there was none (2.3.1.4).
        crawl_delay: Seconds, if the agent's group has a delay; while the server fails,
            that of the last robots.txt.
        odd_delay: The value of its crawl delay, if that is no time and so is not obeyed.
        usages: Content-Usage lines for the agent.
        sitemaps: URLs of sitemaps in it, as they stand there: the first hundred of at most 2,048
            characters; see ``absolute_sitemaps``.

    >>> rules = RobotsRules(RobotsRecord(200, "User-agent: *\\nDisallow: /x", 0), "bot")
    >>> rules.state, rules.allows("http://a/x/y"), rules.allows("http://a/y")
    ('rules', False, True)
    """

    __slots__ = (
        *("_agents", "_host", "_packed", "_cache", "crawl_delay", "error", "failing_since"),
        *("odd_delay", "fetched_at", "retry_after", "sitemaps", "state", "status", "usages"),
    )

    def __init__(
        self,
        record: RobotsRecord,
        agents: str | Iterable[str],
        error: str | None = None,
        retry_after: float | None = None,
        host: str = "",
    ) -> None:
        self.status, text, self.fetched_at, self.failing_since = record
        self.state = _state(record)
        self.error = error
        self.retry_after = retry_after
        self.crawl_delay: float | None = None
        self.odd_delay: str | None = None
        self.sitemaps: tuple[str, ...] = ()
        self.usages: tuple[UsageRule, ...] = ()
        self._agents = (agents,) if isinstance(agents, str) else tuple(agents)
        self._host, self._packed = host, b""
        self._cache = _LARGE if len(text) > _LARGE_CHARS else _OTHERS
        if self.state != ALLOW and text.strip():
            self._packed = zlib.compress(text.encode("utf-8", "replace"))
            reading = read_robots_rules(text, self._agents, host)
            self.crawl_delay, self.odd_delay = reading.crawl_delay, reading.odd_delay
            self.usages = reading.usages
            self.sitemaps = usable_sitemaps(reading.sitemaps)
            self._cache.put(self, Matcher(reading.rules))

    def allows(self, url: str) -> bool:
        """Returns whether the agent may fetch a URL now."""
        return self.verdict(url) == ALLOWED

    def verdict(self, url: str) -> str:
        """Returns ``allowed``, ``denied``, or ``too_costly`` if the decision takes too many steps.

        Text that is not a URL is denied, if there are rules.
        """
        try:
            return ALLOWED if self.decide(url).allow else DENIED
        except TooCostly:
            return TOO_COSTLY

    def decide(self, url: str) -> Decision:
        """Returns the decision about a URL.

        Raises:
            TooCostly: The decision takes too many steps.
        """
        if self.state != RULES or not self._packed:
            return _NONE_ALLOWED if self.state == DEFER else _ALL_ALLOWED
        try:
            path = comparable_path(url)
        except ValueError:  # urllib raises it if brackets contain no address
            return _NONE_ALLOWED
        if path.startswith(_ROBOTS_PATH) and path[len(_ROBOTS_PATH) :][:3] in ("", "%3F"):
            return _ALL_ALLOWED  # RFC 9309 2.2.2
        return self._matcher().decide(path)

    def usage(self, url: str) -> str | None:
        """Returns what robots.txt allows the content of a URL to be used for; None: it is silent.

        The longest pattern that matches counts, and all its lines.

        >>> text = "User-agent: *\\nContent-Usage: train-ai=n\\nContent-Usage: /a/ train-ai=y"
        >>> rules = RobotsRules(RobotsRecord(200, text, 0), "bot")
        >>> rules.usage("http://h/a/b"), rules.usage("http://h/c")
        ('train-ai=y', 'train-ai=n')
        """
        if not self.usages:
            return None
        matcher = Matcher([RobotsRule(True, rule.pattern, 0) for rule in self.usages])
        try:
            best = matcher.decide(comparable_path(url)).rule
        except (TooCostly, ValueError):
            return None
        if best is None:
            return None
        pattern = self.usages[best].pattern
        usages = (read_usage(rule.usage) for rule in self.usages if rule.pattern == pattern)
        return usage_text(join_usage(usages))

    @property
    def record(self) -> RobotsRecord:
        """The record to store."""
        text = self._text() if self._packed else ""
        return RobotsRecord(self.status, text, self.fetched_at, self.failing_since)

    @property
    def packed_bytes(self) -> int:
        """Size of the compressed text in memory, bytes."""
        return len(self._packed)

    def _text(self) -> str:
        return zlib.decompress(self._packed).decode()

    def _matcher(self) -> Matcher:
        matcher = self._cache.get(self)
        if matcher is None:
            matcher = Matcher(read_robots_rules(self._text(), self._agents, self._host).rules)
            self._cache.put(self, matcher)
        return matcher


RobotsSteps = Generator[str, Response, RobotsRules]


def is_exempt(host: str, allowlist: Iterable[str]) -> bool:
    """Returns whether a host is in a list, or below a domain in it.

    >>> [is_exempt(host, ["foo.com"]) for host in ("foo.com", "www.foo.com", "afoo.com")]
    [True, True, False]
    """
    names = (name.strip(".").lower() for name in allowlist)
    return any(host == name or host.endswith(f".{name}") for name in names)


def _state(record: RobotsRecord) -> str:
    status, text, fetched_at, failing_since = record
    if 200 <= status < 300:
        return RULES
    if failing_since:  # "unreachable" (RFC 9309 2.3.1.4)
        is_over = fetched_at - failing_since >= FAILING_MS
        return DEFER if not is_over else RULES if text.strip() else ALLOW
    # RFC 9309 2.3.1.3: 4xx is "unavailable", and everything is allowed; so is what many redirects
    # lead to (2.3.1.2). 425 and 429 are not "unavailable".
    return ALLOW if 300 <= status < 500 and status not in BUSY_STATUSES else DEFER


# Rules of a host whose robots.txt is not fetched.
NO_RULES = RobotsRules(RobotsRecord(404, "", 0), "")


class Line(NamedTuple):
    """A line of a robots.txt, by its number from 1."""

    number: int
    text: str


def deciding_line(text: str, url: str, agents: tuple[str, ...]) -> Line | None:
    """Returns the line that allows or denies a URL; None if no line matches.

    The longest matching line decides; of equal length, one that allows; of equal ones, the first.
    Also None if the search takes too many steps.

    Args:
        text: The robots.txt.
        url: The URL.
        agents: Product tokens of the agent, as ``RobotsRules`` takes them.

    >>> robots = "User-agent: *\\nDisallow: /x\\nAllow: /x/y"
    >>> deciding_line(robots, "http://a/x/z", ("bot",))
    Line(number=2, text='Disallow: /x')
    >>> deciding_line(robots, "http://a/x/y", ("bot",))
    Line(number=3, text='Allow: /x/y')
    """
    rules = RobotsRules(RobotsRecord(200, text, 0), agents, host=host_of_url(url) or "")
    return line_of(rules, url, rule_lines(text, agents))


def line_of(rules: RobotsRules, url: str, lines: Sequence[Line]) -> Line | None:
    """Returns the line that decides about a URL, as ``deciding_line`` does.

    Args:
        rules: The rules of the robots.txt.
        url: The URL.
        lines: The lines of these rules, see ``rule_lines``.
    """
    try:
        number = rules.decide(url).rule
    except TooCostly:
        return None
    return None if number is None else lines[number]


def rule_lines(text: str, agents: tuple[str, ...]) -> list[Line]:
    """Returns the line of each rule that applies to an agent, as ``Decision.rule`` counts them.

    >>> rule_lines("User-agent: *\\nDisallow: /x\\nAllow: /x/y", ("bot",))[1]
    Line(number=3, text='Allow: /x/y')
    """
    lines = split_lines(text)
    numbers = [rule.line for rule in read_robots_rules(text, agents).rules]
    return [Line(number, lines[number - 1].strip()) for number in numbers]


def fetch_robots(
    client: Client,
    origin: str,
    redirects: int = 5,
    agents: Iterable[str] = (),
    earlier: RobotsRecord | None = None,
) -> RobotsRules:
    """Fetches the robots.txt of an origin; every hop passes the guard.

    Args:
        client: Makes the requests.
        origin: ``scheme://host[:port]``.
        redirects: Largest number of redirects to follow.
        agents: Product tokens besides the client's.
        earlier: The record of an earlier run.
    """
    steps = robots_steps((client.token, *agents), origin, redirects, earlier)
    try:
        url = next(steps)
        while True:
            url = steps.send(client.get(url, content_limit=ROBOTS_REQUEST_BYTES, fresh=True))
    except StopIteration as end:
        rules: RobotsRules = end.value
        return rules


def robots_steps(
    agents: tuple[str, ...], origin: str, redirects: int, earlier: RobotsRecord | None = None
) -> RobotsSteps:
    """Yields the URLs to request for ``fetch_robots``, receives responses, and returns the rules.

    ``agents`` begins with the client's product token.
    """
    response, error = yield from follow_redirects(f"{origin}/robots.txt", redirects)
    response = yield from _request_whole(response)
    now = response.started or now_ms()
    status, text, since = response.status, "", 0
    if status < 300 and (error := incomplete_of(response)):
        status = 0
    fails = error is not None or not status or status >= 500
    if 200 <= status < 300:
        text = decode_robots(response.body, response.header("content-type"))
    elif fails or status in BUSY_STATUSES:
        text = earlier.text if earlier else ""
        since = _failing_since(earlier, now) if fails else 0
    record = RobotsRecord(status, text, now, since)
    error, wait = error or response.error, classify(response).retry_after_s
    return RobotsRules(record, agents, error, wait, host_of_url(origin) or "")


def _request_whole(response: Response) -> Generator[str, Response, Response]:
    """Requests a robots.txt that ended early once more: the same one again is all that there is."""
    if not _ends_early(response):
        return response
    again = yield response.url
    if _ends_early(again) and again.body == response.body:
        return dataclasses.replace(again, truncated=FRAME, error=None)
    return again if 200 <= again.status < 300 else response


def _ends_early(response: Response) -> bool:
    # Not where the connection broke, or nothing came any more: something on the way may cut it. With
    # a coding, its end is missing, too: the rest of the file did not come.
    early = response.truncated == "disconnect" and response.error in (None, "incomplete")
    is_ok = bool(response.body) and 200 <= response.status < 300
    return early and is_ok and not codings_of(response.headers)


def _failing_since(earlier: RobotsRecord | None, now: int) -> int:
    """Returns the time of the first of consecutive failures; ignores impossible times."""
    since = earlier.failing_since if earlier else 0
    return since if EARLIEST_MS < since <= now else now
