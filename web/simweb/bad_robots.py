"""Hosts whose robots.txt is the trouble: each status, each size; their pages are honest.

The title of a page has its path, so a test sees which pages were requested.
"""

from .answers import HEAD, Handler, HostileWire, Request, honest_answer, page, redirect, url_of
from .bad_wires import hang

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
MODES = [
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
    _mode("robots_hang", "Never answers requests for robots.txt.", hang),
    _mode("robots_reset", "Resets the connection on requests for robots.txt.", _reset_connection),
    _mode("robots_cut", "Breaks off in the middle of its robots.txt.", _CUT),
]
for _status in (204, 400, 401, 403, 404, 410, 418, 429, 500, 501, 503):
    _about = f"Answers {_status} to requests for robots.txt."
    _answer = honest_answer(_RULES if _status != 204 else b"", _status)
    MODES.append(_mode(f"robots_{_status}", _about, _answer))
