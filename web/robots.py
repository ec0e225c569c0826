"""robots.txt as RFC 9309 has it: what may be fetched of a site, and how fast."""

import contextlib
import re
import threading
import time
import zlib
from collections import OrderedDict
from collections.abc import Iterable
from typing import NamedTuple

from protego import Protego

from .http import ClientBase
from .protocol import classify, redirect_target
from .response import Response
from .route import request_url
from .steps import Ask, Steps, drive

MAX_BYTES = 500 * 1024  # RFC 9309 2.5
_BOM = b"\xef\xbb\xbf"
# Rules that were parsed take some 30 times the size of their text.
_SHELF_CHARS = 4_000_000
# For so long a server must have failed before it counts as one without robots.txt (2.3.1.4).
FAILING_MS = 30 * 86_400_000
MAX_SITEMAPS = 100
MAX_SITEMAP_CHARS = 2048
_AGENT_LINE = re.compile(
    r"\s*user[- ]?agent(?:\s*:\s*|\s+)([a-z_-]+)(?:/[^\s#]*)?\s*(?:#.*)?", re.IGNORECASE
)
_SITEMAP = re.compile(r"https?://[!-~\u00a1-\U0010ffff]+", re.IGNORECASE)

ALLOW = "allow"
DEFER = "defer"
RULES = "rules"


class RobotsRecord(NamedTuple):
    """What is kept of a robots.txt.

    Attributes:
        status: HTTP status; 0 where the server could not be reached.
        text: Its text; where the server fails, the last that it sent.
        fetched_at: UTC ms.
        failing_since: UTC ms of the first of the failures in a row; 0 if it does not fail.
    """

    status: int
    text: str
    fetched_at: int
    failing_since: int = 0


class RobotsRules:
    """What a robots.txt allows one agent.

    The text is kept compressed; parsed rules are kept while there is room.

    Args:
        record: What the server sent.
        agents: Product tokens of the agent; the groups of all of them count.
        error: Why the server could not be reached, if so.
        retry_after: Seconds that the server asked to be left alone, if it did.

    Attributes:
        state: ``rules``; ``allow`` for 4xx, which is as if there were no
            robots.txt; ``defer`` for 429, 5xx and no answer: nothing may be
            fetched for now (RFC 9309 2.3.1). After 30 days of 5xx or no answer
            the last robots.txt counts, or none if there was none (2.3.1.4).
        crawl_delay: Seconds, where the agent's group names them; of the last
            robots.txt that was read, while the server fails.
        sitemaps: URLs of sitemaps that it names: the first hundred of at most
            2,048 characters.

    >>> rules = RobotsRules(RobotsRecord(200, "User-agent: *\\nDisallow: /x", 0), "bot")
    >>> rules.state, rules.allowed("http://a/x/y"), rules.allowed("http://a/y")
    ('rules', False, True)
    """

    __slots__ = (
        *("_agents", "_packed", "crawl_delay", "error", "failing_since", "fetched_at"),
        *("retry_after", "sitemaps", "state", "status"),
    )

    def __init__(
        self,
        record: RobotsRecord,
        agents: str | Iterable[str],
        error: str | None = None,
        retry_after: float | None = None,
    ) -> None:
        self.status, text, self.fetched_at, self.failing_since = record
        self.state = _state(record)
        self.error = error
        self.retry_after = retry_after
        self.crawl_delay: float | None = None
        self.sitemaps: tuple[str, ...] = ()
        self._agents = (agents,) if isinstance(agents, str) else tuple(agents)
        self._packed = b""
        if self.state != ALLOW and text.strip():
            self._packed = zlib.compress(text.encode("utf-8", "replace"))
            parsed = self._parsed()
            self.crawl_delay = parsed.crawl_delay(self._agents[0])
            self.sitemaps = _sitemaps(parsed.sitemaps)

    def allowed(self, url: str) -> bool:
        """Returns whether the agent may fetch a URL now; what is no URL it may not, if there are rules."""
        if self.state != RULES or not self._packed:
            return self.state != DEFER
        try:
            return bool(self._parsed().can_fetch(url, self._agents[0]))
        except ValueError:  # of urllib, where brackets are no address
            return False

    @property
    def record(self) -> RobotsRecord:
        """What to keep of it."""
        text = self._text() if self._packed else ""
        return RobotsRecord(self.status, text, self.fetched_at, self.failing_since)

    @property
    def packed_bytes(self) -> int:
        """Memory that the text takes."""
        return len(self._packed)

    def _text(self) -> str:
        return zlib.decompress(self._packed).decode()

    def _parsed(self) -> Protego:
        return _SHELF.get(self) or _SHELF.put(self, _for_agents(self._text(), self._agents))


class _Shelf:
    """Parsed rules of the sites last asked about, within a bound on their size."""

    def __init__(self) -> None:
        self._parsed: OrderedDict[int, tuple[RobotsRules, Protego, int]] = OrderedDict()
        self._chars = 0
        self._lock = threading.Lock()

    def get(self, rules: RobotsRules) -> Protego | None:
        found = self._parsed.get(id(rules))
        return found[1] if found is not None and found[0] is rules else None

    def put(self, rules: RobotsRules, text: str) -> Protego:
        parsed = Protego.parse(text)
        with self._lock:
            if id(rules) not in self._parsed:
                self._parsed[id(rules)] = (rules, parsed, len(text))
                self._chars += len(text)
            while self._chars > _SHELF_CHARS and len(self._parsed) > 1:
                self._chars -= self._parsed.popitem(last=False)[1][2]
        return parsed


_SHELF = _Shelf()


def is_exempt(host: str, allowlist: Iterable[str]) -> bool:
    """Returns whether a host is one of those in a list, or below one.

    >>> [is_exempt(host, ["foo.com"]) for host in ("foo.com", "www.foo.com", "afoo.com")]
    [True, True, False]
    """
    names = (name.strip(".").lower() for name in allowlist)
    return any(host == name or host.endswith(f".{name}") for name in names)


def _fails(status: int) -> bool:
    """Returns whether a server with such an answer is "unreachable" (RFC 9309 2.3.1.4)."""
    return not status or status >= 500


def _state(record: RobotsRecord) -> str:
    status, text, fetched_at, failing_since = record
    if 200 <= status < 300:
        return RULES
    if _fails(status) and failing_since and fetched_at - failing_since >= FAILING_MS:
        return RULES if text.strip() else ALLOW
    # RFC 9309 2.3.1.3: 4xx is "unavailable", everything is allowed; a redirect
    # that leads nowhere counts the same (2.3.1.2). 429 is no "unavailable".
    return ALLOW if 300 <= status < 500 and status != 429 else DEFER


# Stands for the robots.txt of a host that is not asked for it.
EXEMPT = RobotsRules(RobotsRecord(404, "", 0), "")


def _for_agents(text: str, agents: tuple[str, ...]) -> str:
    """Returns a robots.txt in which the groups of all agents are the first one's.

    Groups of one agent are combined (RFC 9309 2.2.1), so these are, too. A
    version behind a name is not looked at.

    >>> _for_agents("User-agent: Other/2.0 # them\\nDisallow: /", ("bot", "other"))
    'User-agent: bot\\nDisallow: /'
    """
    names = {agent.lower() for agent in agents}

    def renamed(line: str) -> str:
        match = _AGENT_LINE.fullmatch(line)
        return f"User-agent: {agents[0]}" if match and match[1].lower() in names else line

    return "\n".join(map(renamed, text.splitlines()))


def _sitemaps(found: Iterable[str]) -> tuple[str, ...]:
    urls = (url for url in found if len(url) <= MAX_SITEMAP_CHARS and _SITEMAP.fullmatch(url))
    return tuple(list(dict.fromkeys(urls))[:MAX_SITEMAPS])


def decode_robots(body: bytes) -> str:
    """Returns the text of a robots.txt: cut at 500 KiB, without BOM, bad bytes replaced."""
    if len(body) > MAX_BYTES:
        body = body[:MAX_BYTES]
        body = body[: body.rfind(b"\n") + 1] or body
    return body.removeprefix(_BOM).decode("utf-8", "replace").replace("\0", "")


def fetch_robots(
    client: ClientBase,
    origin: str,
    redirects: int = 5,
    agents: Iterable[str] = (),
    earlier: RobotsRecord | None = None,
) -> RobotsRules:
    """Fetches the robots.txt of an origin; every hop passes the guard.

    Args:
        client: What asks.
        origin: ``scheme://host[:port]``.
        redirects: How many are followed.
        agents: Product tokens besides the client's.
        earlier: What is known of it from an earlier time.
    """
    return drive(ask_robots((client.token, *agents), origin, redirects, earlier), client.answer)


def ask_robots(
    agents: tuple[str, ...], origin: str, redirects: int, earlier: RobotsRecord | None = None
) -> Steps[RobotsRules]:
    """The steps of ``fetch_robots``; ``agents`` begins with the client's product token."""
    response = yield from _follow(f"{origin}/robots.txt", redirects)
    now = response.started or time.time_ns() // 1_000_000
    # A body that broke off may lack the rule that matters.
    broken = response.error is not None and response.status < 300
    status = 0 if broken else response.status
    text, since = "", 0
    if 200 <= status < 300:
        text = decode_robots(response.body)
    elif _fails(status) or status == 429:
        text = earlier.text if earlier else ""
        since = ((earlier.failing_since if earlier else 0) or now) if _fails(status) else 0
    record = RobotsRecord(status, text, now, since)
    return RobotsRules(record, agents, response.error, classify(response).retry_after_s)


def _follow(url: str, redirects: int) -> Steps[Response]:
    while True:
        # On a connection of its own: an idle one may be closed unanswered.
        response: Response = yield Ask(url, content_limit=MAX_BYTES + 1, fresh=True)
        target = redirect_target(response) if 300 <= response.status < 400 else None
        if target is None or not redirects or not target.startswith(("http://", "https://")):
            return response
        with contextlib.suppress(ValueError):  # what cannot be asked for gives an error, too
            target = request_url(target)
        url, redirects = target, redirects - 1
