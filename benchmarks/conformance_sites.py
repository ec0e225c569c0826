"""The scenarios: what each host answers, and what a crawler may not do there.

All hosts are below example.com. A scenario has seeds; everything else is linked from them.
"""
# ruff: noqa: RUF001 - that characters of spellings look like others is the point

import email.utils
import html
import time
from collections.abc import Mapping
from typing import NamedTuple

from conformance_web import AnswerFunction

from nutbeam.web.simweb.answers import url_of
from nutbeam.web.simweb.hostile import HOSTILE
from nutbeam.web.simweb.site import Answer

AGENT = "conformbot"
BOT = f"User-agent: {AGENT}\n"
ALL = "User-agent: *\n"
_NONE = Answer("missing", 404, b"not here\n", "text/plain")
_TEXT = "text/plain; charset=utf-8"


class Job(NamedTuple):
    """What a crawler is asked to do.

    Attributes:
        name: Of the scenario.
        seeds: URLs to begin with.
        delay: Seconds between two requests to a host.
        seconds: After this time the crawler is ended.
        anywhere: Whether links to other hosts are followed.
        local_port: Not 0: the seeds are at this port of 127.0.0.1, which may be reached.
    """

    name: str
    seeds: list[str]
    delay: float
    seconds: float
    anywhere: bool = False
    local_port: int = 0


def page(title: str, links: list[str]) -> Answer:
    """Returns a page with links."""
    anchors = "".join(
        f'<p><a href="{html.escape(link)}">{number}</a></p>\n' for number, link in enumerate(links)
    )
    return Answer("page", 200, f"<title>{title}</title>\n<p>A page.</p>\n{anchors}".encode())


def moved(target: str) -> Answer:
    """Returns a redirect."""
    return Answer("redirect", 302, b"", headers=(("Location", target),))


# -- delays

DELAY_HOST, CRAWL_DELAY_HOST = "delay.example.com", "crawl-delay.example.com"
DELAY, CRAWL_DELAY = 1.0, 3.0


def delays(host: str, target: str, earlier: int) -> Answer:
    """Answers with ten pages, three redirects, and a page that fails at first; or with a Crawl-delay."""
    if target == "/robots.txt":
        robots = f"{ALL}Crawl-delay: {CRAWL_DELAY:g}\n".encode()
        return Answer("robots", 200, robots, _TEXT) if host == CRAWL_DELAY_HOST else _NONE
    if host == CRAWL_DELAY_HOST:
        return page("slow", [f"/{number}" for number in range(1, 6)])
    if target.startswith("/old/"):
        return moved(target.replace("old", "new"))
    if target == "/fails" and earlier == 0:
        return Answer("busy", 503, b"try again\n", _TEXT)
    links = [*(f"/{n}" for n in range(1, 11)), *(f"/old/{n}" for n in range(3)), "/fails"]
    return page(target, links if target == "/" else [])


# -- robots.txt


class Rules(NamedTuple):
    """A host with a robots.txt.

    Attributes:
        about: What is tried, in a few words.
        robots: Its body, or the answer to a request for it.
        forbidden: Paths that no crawler may request.
        allowed: Paths that may be requested.
        linked: Paths on the page ``/``, which is in one of the two above.
    """

    about: str
    robots: bytes | Answer
    forbidden: tuple[str, ...] = ("/private/1",)
    allowed: tuple[str, ...] = ("/", "/public/1")

    @property
    def linked(self) -> list[str]:
        return [path for path in (*self.forbidden, *self.allowed) if path != "/"]


ELSEWHERE = "elsewhere.example.com"
_PRIVATE = f"{ALL}Disallow: /private\n".encode()
_FILLER = b"# a line without a rule, of which there are many\n"
_MOST = 500 << 10
_CLOSED = ("/", "/private/1", "/public/1")
_OPEN = ("/", "/private/1", "/public/1")


def _robots_of(status: int, *headers: tuple[str, str]) -> Answer:
    return Answer("robots", status, _PRIVATE, _TEXT, headers)


def _hop(number: int) -> Answer:
    return _robots_of(301, ("Location", f"http://{ELSEWHERE}/hop/{number}"))


RULES: dict[str, Rules] = {
    "plain": Rules("a plain rule", _PRIVATE),
    "groups": Rules(
        "two groups of the crawler, one of others",
        f"{BOT}Disallow: /a/\n\n{ALL}Disallow: /\n\n{BOT}Disallow: /b/\n".encode(),
        ("/a/1", "/b/1"),
    ),
    "case": Rules(
        "upper and lower case of names and fields",
        f"USER-AGENT: {AGENT.upper()}\nDISALLOW: /private\n\n{ALL}Disallow:\n".encode(),
    ),
    "longest": Rules(
        "the longest match, Allow wins a draw",
        f"{ALL}Allow: /\nDisallow: /a\nAllow: /a/open\nDisallow: /b\nAllow: /b\n".encode(),
        ("/a/1", "/a/ope"),
        ("/", "/a/open/1", "/b/1"),
    ),
    "wildcards": Rules(
        "* and $",
        f"{ALL}Disallow: /*.pdf$\nDisallow: /x*y\nDisallow: /*?s=\nDisallow: /end$\n".encode(),
        ("/a/b.pdf", "/x/1/y/2", "/list?s=1", "/end"),
        ("/", "/a/b.pdf.html", "/x/1/z", "/list?t=1", "/end/1"),
    ),
    "percent": Rules(
        "percent-encoding",
        f"{ALL}Disallow: /caf%C3%A9/\nDisallow: /%7Ejoe/\nDisallow: /日本/\n".encode(),
        ("/caf%C3%A9/1", "/~joe/1", "/%E6%97%A5%E6%9C%AC/1"),
        ("/", "/cafe/1"),
    ),
    "bom": Rules("a byte-order mark", b"\xef\xbb\xbf" + _PRIVATE),
    "cr": Rules("lines that end with CR", _PRIVATE.replace(b"\n", b"\r")),
    "comments": Rules(
        "comments and spaces",
        b"# c\nUser-agent : *  # all\n  Disallow\t:\t/private  # no\n",
    ),
    "size": Rules(
        "a rule before 500 KiB",
        _PRIVATE.split(b"\n")[0] + b"\n"
        + _FILLER * ((_MOST - 100) // len(_FILLER)) + b"Disallow: /private\n",
    ),
    "html": Rules("a page of HTML instead", b"<html><title>home</title>", (), _OPEN),
    "moved": Rules(
        "a redirect to another host", _robots_of(301, ("Location", f"http://{ELSEWHERE}/end"))
    ),
    "hops": Rules("five redirects", _hop(5)),
    "s403": Rules("status 403", _robots_of(403), (), _OPEN),
    "s404": Rules("status 404", _robots_of(404), (), _OPEN),
    "s500": Rules("status 500", _robots_of(500), _CLOSED, ()),
    "s503": Rules("status 503", _robots_of(503), _CLOSED, ()),
    "onward": Rules("a page that redirects to a forbidden one", _PRIVATE, allowed=("/", "/go/1")),
}  # fmt: skip
RESET_HOST = "robots-reset.hostile.example.com"
# The page of this host, and what it links to.
RESET_RULES = Rules("a connection that is reset", b"", ("/", "/private", "/public"), ())


def robots(host: str, target: str, _: int) -> Answer:
    """Answers as a host of ``RULES``, or as the host to which requests for robots.txt are redirected."""
    if host == ELSEWHERE:
        hop = int(target.rpartition("/")[2] or 1) if target.startswith("/hop/") else 1
        return Answer("robots", 200, _PRIVATE, _TEXT) if hop == 1 else _hop(hop - 1)
    name = host.partition(".")[0]
    if name not in RULES:
        return _NONE
    rules = RULES[name]
    if target == "/robots.txt":
        body = rules.robots
        return body if isinstance(body, Answer) else Answer("robots", 200, body, _TEXT)
    if name != "onward":
        return page(target, rules.linked if target == "/" else [])
    return moved("/private/1") if target == "/go/1" else page(target, ["/go/1"])


def urls_of(rules: Mapping[str, Rules], kind: str) -> list[tuple[str, str]]:
    """Returns (host, path) of the ``forbidden`` or ``allowed`` pages."""
    return [
        (f"{name}.example.com", path)
        for name, each in rules.items()
        for path in getattr(each, kind)
    ]


# -- busy servers

RETRY_AFTER = 60
# Each host, and for how many seconds it wants no request. A date has no fractions of a second.
BUSY_HOSTS = {"busy.example.com": RETRY_AFTER, "busy-date.example.com": RETRY_AFTER - 1}
FIRST_BUSY = 3


class BusySites:
    """Two hosts that answer 429 and 503 with Retry-After from the fourth request for a page on."""

    def __init__(self) -> None:
        self._pages = dict.fromkeys(BUSY_HOSTS, 0)

    def __call__(self, host: str, target: str, _: int) -> Answer:
        if target == "/robots.txt" or host not in self._pages:
            return _NONE
        number = self._pages[host]
        self._pages[host] += 1
        if number < FIRST_BUSY:
            return page(target, [f"/{n}" for n in range(1, 21)] if target == "/" else [])
        if host == "busy.example.com":
            return Answer("busy", 429, b"", headers=(("Retry-After", str(RETRY_AFTER)),))
        until = email.utils.formatdate(time.time() + RETRY_AFTER, usegmt=True)
        return Answer("busy", 503, b"", headers=(("Retry-After", until),))


# -- private addresses

LINKS_HOST = "links.example.com"
CANARY_ADDRESSES = (
    *("127.0.0.1", "127.0.0.2", "10.0.0.1", "172.16.0.1", "192.168.0.1", "169.254.169.254"),
    *("100.64.0.1", "::1", "fd00:ec2::254"),
)
# Names of public look whose address is private.
PRIVATE_NAMES = {
    "inside.example.net": "127.0.0.1",
    "inside-six.example.net": "::1",
    "metadata.example.net": "169.254.169.254",
    "lan.example.net": "192.168.0.1",
    "mapped.example.net": "::ffff:127.0.0.1",
    "localhost": "127.0.0.1",
}
SPELLINGS = (
    *("127.0.0.1", "127.0.0.2", "127.1", "127.0.1", "2130706433", "0x7f000001", "0X7F000001"),
    *("0x7f.1", "0x7f.0x0.0x0.0x1", "0177.0.0.1", "0177.0x0.0.1", "017700000001", "127.0.0.1."),
    *("00000177.0.0.1", "127.1.", "2130706433.", "１２７.0.0.1", "127。0。0。1", "①②⑦.⓪.⓪.①"),
    *("%31%32%37.0.0.1", "127%2e0%2e0%2e1", "localhost", "LOCALHOST", "localhost.", "ｌｏｃａｌｈｏｓｔ"),
    *("%6cocalhost", "user@127.0.0.1", "user:pass@127.1", "www.example.com@127.0.0.1"),
    *("www.example.com:80@127.0.0.1", "[::1]", "[0:0:0:0:0:0:0:1]", "[::0001]", "user@[::1]"),
    *("[0000:0000:0000:0000:0000:0000:0000:0001]", "[::ffff:127.0.0.1]", "[::FFFF:7F00:1]"),
    *("[0:0:0:0:0:ffff:7f00:0001]", "0", "0.0.0.0", "[::]", "10.0.0.1", "167772161", "0xa000001"),
    *("172.16.0.1", "192.168.0.1", "192.168.1", "0300.0250.0.1", "169.254.169.254", "2852039166"),
    *("0xA9FEA9FE", "0251.0376.0251.0376", "[::ffff:169.254.169.254]", "100.64.0.1"),
    *("[fd00:ec2::254]", "inside.example.net", "inside-six.example.net", "metadata.example.net"),
    *("lan.example.net", "mapped.example.net"),
)  # fmt: skip
REDIRECTED = SPELLINGS[::5]


def private_links(host: str, target: str, _: int) -> Answer:
    """Answers with links to each spelling, and with redirects to a fifth of them."""
    if target == "/" and host == LINKS_HOST:
        links = [f"http://{spelling}/link/{n}" for n, spelling in enumerate(SPELLINGS)]
        return page("links", links + [f"/to/{number}" for number in range(len(REDIRECTED))])
    if target.startswith("/to/"):
        number = target.removeprefix("/to/")
        url = f"http://{REDIRECTED[int(number)]}/redirect/{number}"
        return moved(url.encode().decode("latin-1"))
    return _NONE


# -- bombs and bodies without an end

HONEST_HOST, HONEST_PAGES = "honest.example.com", 20
# Each is 256 MiB when it is decoded.
BOMBS = ("gzip-bomb", "double-bomb", "brotli-bomb")
ENDLESS = ("endless", "endless-chunks", "endless-headers", "long-header", "interim", "nested",
           "million-links")  # fmt: skip


def honest(host: str, target: str, _: int) -> Answer:
    """Answers with a page that links to all others."""
    if host != HONEST_HOST or target not in map(honest_path, range(HONEST_PAGES)):
        return _NONE
    links = [honest_path(number) for number in range(1, HONEST_PAGES)]
    return page(f"page {target}", links if target == "/" else [])


def honest_path(number: int) -> str:
    """Returns the path of a page beside bombs."""
    return f"/{number or ''}"


# -- a trap, and a site that is crawled in eleven attempts

TRAP_HOST, TRAP_MOST = "calendar.hostile.example.com", 3_000
KEPT_HOST, KEPT_PAGES, KILLS, KILL_EVERY = "kept.example.com", 150, 10, 12


def kept_path(number: int) -> str:
    """Returns the path of a page of the site that is crawled through kills."""
    return f"/{number}.html" if number else "/"


def kept(host: str, target: str, _: int) -> Answer:
    """Answers with a tree of pages; each links to four."""
    names = {kept_path(number): number for number in range(KEPT_PAGES)}
    if host != KEPT_HOST or target not in names:
        return _NONE
    first = 4 * names[target] + 1
    return page(target, [kept_path(n) for n in range(first, min(first + 4, KEPT_PAGES))])


def _hostile_seeds(modes: tuple[str, ...]) -> list[str]:
    return [*map(url_of, modes), f"http://{HONEST_HOST}/"]


def host_names() -> list[str]:
    """Returns the names of all hosts of all scenarios."""
    names = [f"{name}.example.com" for name in RULES]
    names += [
        ELSEWHERE,
        DELAY_HOST,
        CRAWL_DELAY_HOST,
        *BUSY_HOSTS,
        LINKS_HOST,
        HONEST_HOST,
        KEPT_HOST,
    ]
    return [*names, *HOSTILE]


def scenarios() -> dict[str, tuple[Job, AnswerFunction]]:
    """Returns each scenario: its job and what its friendly hosts answer."""
    rule_hosts = tuple(f"{name}.example.com" for name in RULES)
    jobs = [
        (
            Job("delays", [f"http://{DELAY_HOST}/", f"http://{CRAWL_DELAY_HOST}/"], DELAY, 240),
            delays,
        ),
        (
            Job("robots", [f"http://{host}/" for host in (*rule_hosts, RESET_HOST)], 0.2, 240),
            robots,
        ),
        (Job("busy", [f"http://{host}/" for host in BUSY_HOSTS], 0.5, 240), BusySites()),
        (Job("private", [f"http://{LINKS_HOST}/"], 0.1, 300, anywhere=True), private_links),
        (Job("bombs", _hostile_seeds(BOMBS), 0.1, 180), honest),
        (Job("endless", _hostile_seeds(ENDLESS), 0.1, 180), honest),
        (Job("trap", [url_of("calendar")], 0, 900), honest),
        (Job("kills", [f"http://{KEPT_HOST}/"], 0.25, 240), kept),
    ]
    return {job.name: (job, answer) for job, answer in jobs}
