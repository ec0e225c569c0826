"""Hosts with answers that no server should give: redirects in circles, traps, troubles of robots.txt.

Each serving process counts requests on its own. The title of a page has its path, so a test sees
which pages were requested.
"""

import asyncio
import hashlib
import html
import itertools
from collections import Counter

from . import bad_wires
from .answers import HEAD, Handler, HostileWire, Request, honest_answer, page, redirect, url_of

_CHAIN_LENGTH = 8
_requests: Counter[str] = Counter()
_numbers = itertools.count(1)
_DATE = "Mon, 01 Jan 2024 00:00:00 GMT"


async def loop(wire: HostileWire, request: Request) -> None:
    """Redirects each URL to itself."""
    wire.write(redirect(url_of("loop", request.target)))


async def pair(wire: HostileWire, request: Request) -> None:
    """Redirects /a to /b, and all else to /a."""
    wire.write(redirect(url_of("pair", "/b" if request.path == "/a" else "/a"), 301))


async def chain(wire: HostileWire, request: Request) -> None:
    """Serves a page at the end of eight redirects: / leads to /1, that to /2, and so on."""
    number = request.path.strip("/") or "0"
    if number.isdecimal() and int(number) < _CHAIN_LENGTH:
        wire.write(redirect(url_of("chain", f"/{int(number) + 1}"), 301))
    else:
        wire.write(page("the end of the chain", []))


async def endless_chain(wire: HostileWire, request: Request) -> None:
    """Redirects each URL to a new one."""
    number = request.path.strip("/") or "0"
    number = str(int(number) + 1) if number.isdecimal() and len(number) < 10 else "1"
    wire.write(redirect(url_of("endless-chain", f"/{number}")))


async def to_private(wire: HostileWire, request: Request) -> None:
    """Redirects to the requested path on http://127.0.0.1/."""
    wire.write(redirect(f"http://127.0.0.1{request.target}"))


async def to_metadata(wire: HostileWire, request: Request) -> None:
    """Redirects to the metadata service of clouds."""
    wire.write(redirect("http://169.254.169.254/latest/meta-data/"))


async def to_file(wire: HostileWire, request: Request) -> None:
    """Redirects to file:///etc/passwd."""
    wire.write(redirect("file:///etc/passwd"))


async def to_port(wire: HostileWire, request: Request) -> None:
    """Redirects to port 6379 of another host."""
    wire.write(redirect("http://elsewhere.example.org:6379/"))


async def to_nowhere(wire: HostileWire, request: Request) -> None:
    """Answers 302 without Location."""
    wire.write(redirect("").replace(b"Location: \r\n", b""))


async def changing(wire: HostileWire, request: Request) -> None:
    """Serves a different text each time."""
    wire.write(page("changing", [], f"This is answer number {next(_numbers)}."))


async def etag(wire: HostileWire, request: Request) -> None:
    """Sends an ETag, and answers 304 to requests that repeat it."""
    if '"v1"' in request.headers.get("if-none-match", ""):
        wire.write(b'HTTP/1.1 304 Not Modified\r\nETag: "v1"\r\nConnection: close\r\n\r\n')
    else:
        wire.write(honest_answer("<title>etag</title>", 200, 'ETag: "v1"'))


async def last_modified(wire: HostileWire, request: Request) -> None:
    """Sends a Last-Modified, and answers 304 to requests that repeat it."""
    if request.headers.get("if-modified-since") == _DATE:
        wire.write(b"HTTP/1.1 304 Not Modified\r\nConnection: close\r\n\r\n")
    else:
        wire.write(honest_answer("<title>last modified</title>", 200, f"Last-Modified: {_DATE}"))


async def unasked_304(wire: HostileWire, request: Request) -> None:
    """Answers 304 to requests without a condition."""
    wire.write(b"HTTP/1.1 304 Not Modified\r\nConnection: close\r\n\r\n")


async def too_many(wire: HostileWire, request: Request) -> None:
    """Answers 429 with Retry-After: 120."""
    wire.write(honest_answer("", 429, "Retry-After: 120"))


async def retry_never(wire: HostileWire, request: Request) -> None:
    """Answers 503 with a Retry-After of 300 years."""
    wire.write(honest_answer("", 503, "Retry-After: 9999999999"))


async def retry_before(wire: HostileWire, request: Request) -> None:
    """Answers 503 with a Retry-After of -60 seconds."""
    wire.write(honest_answer("", 503, "Retry-After: -60"))


async def recovers(wire: HostileWire, request: Request) -> None:
    """Answers 503 to the first request for a URL, and then with a page."""
    _requests[request.target] += 1
    if _requests[request.target] == 1:
        wire.write(honest_answer("", 503, "Retry-After: 1"))
    else:
        wire.write(page("recovered", []))


async def cookies(wire: HostileWire, request: Request) -> None:
    """Sets cookies, also for other domains, and shows which it received."""
    cookies = ("one=1; Path=/", "two=2; Domain=example.com", "three=3; Domain=com")
    text = f"<title>cookies</title><p>came: {request.headers.get('cookie', 'none')}</p>"
    wire.write(honest_answer(text, 200, *(f"Set-Cookie: {cookie}" for cookie in cookies)))


_RULES = "User-agent: *\nDisallow: /private\n"
_DELAY = "User-agent: *\nCrawl-delay: 86400\n"
_PAGE = "<html><title>home</title>"
_FAR, _LOOP = url_of("robots-200", "/robots.txt"), url_of("robots-loop", "/robots.txt")


def _mode(name: str, about: str, robots: Handler | bytes) -> Handler:
    """Returns a mode with honest pages and a robots.txt: bytes to send, or a function that does."""

    async def handle(wire: HostileWire, request: Request) -> None:
        if request.path != "/robots.txt":
            wire.write(page(f"{name} {request.path}", ["/private", "/public"]))
        elif isinstance(robots, bytes):
            wire.write(robots)
        else:
            await robots(wire, request)

    handle.__name__, handle.__doc__ = name, about
    return handle


async def _send_big_robots(wire: HostileWire, request: Request) -> None:
    # The rule at the front counts; rules after 500 KiB may be ignored (RFC 9309 2.5).
    line = b"# and on and on\n"
    wire.write(HEAD.replace(b"html", b"plain") + b"Content-Length: 10485760\r\n\r\n")
    wire.write(_RULES.encode() + line * ((10 * 1024 * 1024 - len(_RULES)) // len(line)))
    wire.write(b"Disallow: /public\n".rjust(16))
    await wire.drain()


async def _reset_connection(wire: HostileWire, request: Request) -> None:
    wire.abort()


_CUT = HEAD + b"Content-Length: 1000\r\n\r\nUser-agent: *\nDisallow: /pri"
ROBOTS_MODES = [
    _mode("robots_200", "Forbids /private in its robots.txt.", honest_answer(_RULES)),
    _mode(
        "robots_200_big",
        "Serves a robots.txt of 10 MiB that forbids /private at its beginning.",
        _send_big_robots,
    ),
    _mode("robots_html", "Serves a web page for robots.txt.", honest_answer(_PAGE)),
    _mode("robots_nul", "Serves a robots.txt of NULs.", honest_answer(b"\0" * 5000)),
    _mode("robots_delay", "Asks for a day between two requests.", honest_answer(_DELAY)),
    _mode(
        "robots_redirect", "Redirects its robots.txt to that of another host.", redirect(_FAR, 301)
    ),
    _mode("robots_loop", "Redirects its robots.txt to itself.", redirect(_LOOP)),
    _mode(
        "robots_private",
        "Redirects its robots.txt to 127.0.0.1.",
        redirect("http://127.0.0.1/robots.txt"),
    ),
    _mode("robots_hang", "Never answers requests for robots.txt.", bad_wires.hang),
    _mode("robots_reset", "Resets the connection on requests for robots.txt.", _reset_connection),
    _mode("robots_cut", "Breaks off in the middle of its robots.txt.", _CUT),
]
for _status in (204, 400, 401, 403, 404, 410, 418, 429, 500, 501, 503):
    _about = f"Answers {_status} to requests for robots.txt."
    _answer = honest_answer(_RULES if _status != 204 else b"", _status)
    ROBOTS_MODES.append(_mode(f"robots_{_status}", _about, _answer))


_SAME = "Nothing that was not here before."


def _digest(text: str, length: int = 16) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:length]


async def calendar(wire: HostileWire, request: Request) -> None:
    """Serves a page for each day of each month, without end."""
    parts = [int(part) for part in request.path.split("/") if part.isdecimal() and len(part) < 10]
    year, month = (*parts, 2024, 1)[:2] if len(parts) >= 2 else (2024, 1)
    links = [f"/{year}/{month}/{day}" for day in range(1, 29)]
    links.append(f"/{year + month // 12}/{month % 12 + 1}")
    wire.write(page(f"calendar {request.path}", links, f"Nothing happens on {request.path}."))


async def session_ids(wire: HostileWire, request: Request) -> None:
    """Puts a new session id into each link of each page; there are three pages."""
    links = [f"/{n}?visit={_digest(f'{request.target} {n}', 32)}" for n in (1, 2, 3)]
    wire.write(page(f"session {request.path}", links, _SAME))


async def same_pages(wire: HostileWire, request: Request) -> None:
    """Has the same page, byte by byte, at each URL, with links relative to it."""
    wire.write(page("same", [f"{n}/" for n in range(10)], _SAME))


async def echo(wire: HostileWire, request: Request) -> None:
    """Writes the requested path into its links, twice."""
    path = request.path.rstrip("/")
    wire.write(page(f"echo {path}", [f"{path}{path}/a/", f"{path}/a/b/c/"], request.path))


async def parameters(wire: HostileWire, request: Request) -> None:
    """Adds a parameter to the query of each link, and makes another longer."""
    query = request.target.partition("?")[2]
    count = query.count("&") + 1 if query else 0
    longer_query = f"{query}&p{count}=x" if query else "p0=x"
    filters = [f"/?{longer_query}", *(f"/list?sort={n}&of={_digest(query)}" for n in range(5))]
    wire.write(page(f"parameters {count}", [*filters, f"/?v={'x' * (200 * count)}"], query))


async def infinite_hosts(wire: HostileWire, request: Request) -> None:
    """Links to three new host names of its own on each page."""
    links = [url_of(f"{_digest(f'{request.host} {n}', 8)}.infinite-hosts") for n in range(3)]
    wire.write(page(f"host {request.host}", links, request.host))


async def spam(wire: HostileWire, request: Request) -> None:
    """Links from each page to a hundred others of its own, all with the same words."""
    links = [f"/{_digest(f'{request.target} {n}')}.html" for n in range(100)]
    wire.write(page(f"cheap {_digest(request.target)}", links, "cheap pills " * 50))


async def soft_404(wire: HostileWire, request: Request) -> None:
    """Says 200 and "not found" to all but /, which links to a hundred such pages."""
    links = [f"/missing/{n}" for n in range(100)] if request.path == "/" else []
    title = "home" if links else "not found"
    wire.write(page(title, links, "There is no such page." if not links else ""))


async def odd_titles(wire: HostileWire, request: Request) -> None:
    """Has a script and characters that reverse text in its title and in its text."""
    odd = f"<script>document.title='obeyed'</script>\u202egnp.exe {request.path}"
    wire.write(page(odd, [], html.escape(odd)))


async def million_links(wire: HostileWire, request: Request) -> None:
    """Serves a page of a million links."""
    wire.write(HEAD + b"Connection: close\r\n\r\n<title>a million links</title>\n")
    for start in range(0, 1_000_000, 1000):
        wire.write(b"".join(b"<a href=/%d>%d</a>\n" % (n, n) for n in range(start, start + 1000)))
        await wire.drain()
        await asyncio.sleep(0)


async def nested(wire: HostileWire, request: Request) -> None:
    """Serves a page of 200,000 nested elements."""
    wire.write(honest_answer(b"<title>nested</title>" + b"<div>" * 200_000))
