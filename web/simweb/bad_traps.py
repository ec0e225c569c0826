"""Hosts without an end: their links lead to ever more pages."""

import asyncio
import hashlib

from .answers import HEAD, HostileWire, Request, honest_answer, page, url_of

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
