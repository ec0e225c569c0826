"""Hosts that redirect in circles, or whose answers depend on the request or on earlier ones.

Each serving process counts requests on its own.
"""

import itertools
from collections import Counter

from .answers import HostileWire, Request, honest_answer, page, redirect, url_of

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
