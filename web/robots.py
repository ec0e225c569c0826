"""robots.txt as RFC 9309 has it: what may be fetched of a site, and how fast."""

import dataclasses
import threading
import time
import zlib
from collections import OrderedDict
from typing import NamedTuple

from protego import Protego

from .http import Client, Response
from .options import option
from .protocol import redirect_target

MAX_BYTES = 500 * 1024  # RFC 9309 2.5
_BOM = b"\xef\xbb\xbf"
# Rules that were parsed take some 30 times the size of their text.
_SHELF_CHARS = 4_000_000

ALLOW = "allow"
DEFER = "defer"
RULES = "rules"


@dataclasses.dataclass(frozen=True)
class RobotsOptions:
    """How robots.txt is fetched and kept."""

    robots_max_age: float = option(
        86_400.0,
        "How long a robots.txt is used before it is fetched again.",
        unit="s",
        minimum=0,
        maximum=86_400,  # RFC 9309 2.4
    )
    robots_redirect_max: int = option(
        5, "Redirects of robots.txt that are followed.", nutch="http.robots.redirect.max", minimum=0
    )
    robots_defer_delay: float = option(
        300.0,
        "How long a site whose robots.txt answers 429 or 5xx is left alone.",
        unit="s",
        nutch="http.robots.503.defer.visits.delay",
        minimum=0,
    )


class RobotsRecord(NamedTuple):
    """What is kept of a robots.txt.

    Attributes:
        status: HTTP status; 0 where the server could not be reached.
        text: Its text; empty unless the status is 2xx.
        fetched_at: UTC ms.
    """

    status: int
    text: str
    fetched_at: int


class RobotsRules:
    """What a robots.txt allows one agent.

    The text is kept compressed; parsed rules are kept while there is room.

    Args:
        record: What the server sent.
        token: Product token of the agent.
        error: Why the server could not be reached, if so.

    Attributes:
        state: ``rules``; ``allow`` for 4xx, which is as if there were no
            robots.txt; ``defer`` for 429, 5xx and no answer: nothing may be
            fetched for now (RFC 9309 2.3.1).
        crawl_delay: Seconds, where the agent's group names them.

    >>> rules = RobotsRules(RobotsRecord(200, "User-agent: *\\nDisallow: /x", 0), "bot")
    >>> rules.state, rules.allowed("http://a/x/y"), rules.allowed("http://a/y")
    ('rules', False, True)
    """

    __slots__ = ("_packed", "_token", "crawl_delay", "error", "fetched_at", "state", "status")

    def __init__(self, record: RobotsRecord, token: str, error: str | None = None) -> None:
        self.status, text, self.fetched_at = record
        self.state = _state(self.status)
        self.error = error
        self.crawl_delay: float | None = None
        self._token = token
        self._packed = b""
        if self.state == RULES and text.strip():
            self._packed = zlib.compress(text.encode("utf-8", "replace"))
            self.crawl_delay = self._parsed().crawl_delay(token)

    def allowed(self, url: str) -> bool:
        """Returns whether the agent may fetch a URL now."""
        if not self._packed:
            return self.state != DEFER
        return bool(self._parsed().can_fetch(url, self._token))

    @property
    def record(self) -> RobotsRecord:
        """What to keep of it."""
        return RobotsRecord(self.status, self._text() if self._packed else "", self.fetched_at)

    @property
    def packed_bytes(self) -> int:
        """Memory that the text takes."""
        return len(self._packed)

    def _text(self) -> str:
        return zlib.decompress(self._packed).decode()

    def _parsed(self) -> Protego:
        return _SHELF.get(self) or _SHELF.put(self, self._text())


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


def _state(status: int) -> str:
    if 200 <= status < 300:
        return RULES
    # RFC 9309 2.3.1.3: 4xx is "unavailable", everything is allowed; a redirect
    # that leads nowhere counts the same (2.3.1.2). 429 is no "unavailable".
    return ALLOW if 300 <= status < 500 and status != 429 else DEFER


def decode_robots(body: bytes) -> str:
    """Returns the text of a robots.txt: cut at 500 KiB, without BOM, bad bytes replaced."""
    if len(body) > MAX_BYTES:
        body = body[:MAX_BYTES]
        body = body[: body.rfind(b"\n") + 1] or body
    return body.removeprefix(_BOM).decode("utf-8", "replace").replace("\0", "")


def fetch_robots(client: Client, origin: str, redirects: int = 5) -> RobotsRules:
    """Fetches the robots.txt of an origin; every hop passes the guard.

    Args:
        client: What asks.
        origin: ``scheme://host[:port]``.
        redirects: How many are followed.
    """
    response = _follow(client, f"{origin}/robots.txt", redirects)
    now = time.time_ns() // 1_000_000
    # A body that broke off may lack the rule that matters.
    broken = response.error is not None and response.status < 300
    status = 0 if broken else response.status
    text = decode_robots(response.body) if 200 <= status < 300 else ""
    return RobotsRules(RobotsRecord(status, text, now), client.token, response.error)


def _follow(client: Client, url: str, redirects: int) -> Response:
    while True:
        response = client.get(url, content_limit=MAX_BYTES + 1)
        target = redirect_target(response) if 300 <= response.status < 400 else None
        if target is None or not redirects or not target.startswith(("http://", "https://")):
            return response
        url, redirects = target, redirects - 1
