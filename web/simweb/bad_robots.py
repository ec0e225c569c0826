"""Hosts whose robots.txt is the trouble: each status, each size; their pages are honest.

The title of a page has its path, so a test sees which pages were requested.
"""

from .answers import HEAD, Handler, HostileWire, Request, honest_answer, page, redirect, url_of
from .bad_wires import hang

_STATUSES = (204, 400, 401, 403, 404, 410, 418, 429, 500, 501, 503)
_RULES = "User-agent: *\nDisallow: /private\n"


def _pages(robots: Handler, name: str, text: str) -> Handler:
    """Returns a mode in which ``robots`` answers requests for robots.txt."""

    async def handle(wire: HostileWire, request: Request) -> None:
        if request.path == "/robots.txt":
            await robots(wire, request)
        else:
            wire.write(page(f"{name} {request.path}", ["/private", "/public"]))

    handle.__name__, handle.__doc__ = name, text
    return handle


def _says(data: bytes) -> Handler:
    async def say(wire: HostileWire, request: Request) -> None:
        wire.write(data)

    return say


async def _big(wire: HostileWire, request: Request) -> None:
    # The rule at the front counts; rules after 500 KiB may be ignored (RFC 9309 2.5).
    line = b"# and on and on\n"
    wire.write(HEAD.replace(b"html", b"plain") + b"Content-Length: 10485760\r\n\r\n")
    wire.write(_RULES.encode() + line * ((10 * 1024 * 1024 - len(_RULES)) // len(line)))
    wire.write(b"Disallow: /public\n".rjust(16))
    await wire.drain()


async def _reset(wire: HostileWire, request: Request) -> None:
    wire.abort()


_MODES: dict[str, tuple[Handler, str]] = {
    "robots_200": (_says(honest_answer(_RULES)), "Forbids /private in its robots.txt."),
    "robots_200_big": (_big, "Has a robots.txt of 10 MiB that forbids /private at its beginning."),
    "robots_html": (
        _says(honest_answer("<html><title>home</title>")),
        "Has a web page for robots.txt.",
    ),
    "robots_nul": (_says(honest_answer(b"\0" * 5000)), "Has a robots.txt of NULs."),
    "robots_delay": (
        _says(honest_answer("User-agent: *\nCrawl-delay: 86400\n")),
        "Asks for a day between two requests.",
    ),
    "robots_redirect": (
        _says(redirect(url_of("robots-200", "/robots.txt"), 301)),
        "Redirects its robots.txt to that of another host.",
    ),
    "robots_loop": (
        _says(redirect(url_of("robots-loop", "/robots.txt"))),
        "Redirects its robots.txt to itself.",
    ),
    "robots_private": (
        _says(redirect("http://127.0.0.1/robots.txt")),
        "Redirects its robots.txt to 127.0.0.1.",
    ),
    "robots_hang": (hang, "Never answers requests for robots.txt."),
    "robots_reset": (_reset, "Resets the connection on requests for robots.txt."),
    "robots_cut": (
        _says(HEAD + b"Content-Length: 1000\r\n\r\nUser-agent: *\nDisallow: /pri"),
        "Breaks off in the middle of its robots.txt.",
    ),
}
_MODES |= {
    f"robots_{status}": (
        _says(honest_answer(_RULES if status != 204 else b"", status)),
        f"Answers {status} to requests for robots.txt.",
    )
    for status in _STATUSES
}
MODES = tuple(_pages(robots, name, text) for name, (robots, text) in _MODES.items())
