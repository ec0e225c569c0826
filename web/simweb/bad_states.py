"""Hosts whose answers depend on the request or on earlier ones: they change, refuse, recover.

Each serving process counts on its own.
"""

import itertools
from collections import Counter

from .answers import HostileWire, Request, honest_answer, page

_requests: Counter[str] = Counter()
_numbers = itertools.count(1)
_DATE = "Mon, 01 Jan 2024 00:00:00 GMT"


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
