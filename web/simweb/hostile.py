"""The simulated web's bad neighbourhood: hosts that answer as no server should.

Each mode is a name of its own, ``NAME.hostile.example.com``, reached by no link from the friendly
pages; names below it are the same. Their robots.txt is an honest 404, so that a crawler comes to see
the rest, except where robots.txt is the trouble. To add one, write a coroutine in a module of its
kind and name it in ``MODES`` there; when it returns, the connection is closed.
"""

from collections.abc import Awaitable, Callable
from typing import NamedTuple

from . import bad_codings, bad_redirects, bad_robots, bad_states, bad_traps, bad_wires
from .answers import Request, Wire, answer
from .model import DOMAIN

_BELOW = f".hostile.{DOMAIN}"


class Mode(NamedTuple):
    """One kind of trouble.

    Attributes:
        host: Its name.
        about: What it does, in one line.
        handle: Answers a request.
        robots: Whether it answers for robots.txt, too.
    """

    host: str
    about: str
    handle: Callable[[Wire, Request], Awaitable[None]]
    robots: bool


def _modes() -> dict[str, Mode]:
    kinds = (bad_wires, bad_codings, bad_redirects, bad_states, bad_robots, bad_traps)
    found = {}
    for kind in kinds:
        for handle in kind.MODES:
            host = handle.__name__.replace("_", "-") + _BELOW
            about = (handle.__doc__ or "").strip().partition("\n")[0]
            found[host] = Mode(host, about, handle, kind is bad_robots)
    return found


HOSTILE = _modes()


def find(host: str) -> Mode | None:
    """Returns the mode of a host name, or of the one that it is below of.

    >>> find("a.b.loop.hostile.example.com").host, find("h0.example.com")
    ('loop.hostile.example.com', None)
    """
    if not host.endswith(_BELOW):
        return None
    return HOSTILE.get(host.removesuffix(_BELOW).rpartition(".")[2] + _BELOW)


async def respond(mode: Mode, wire: Wire, request: Request) -> None:
    """Answers a request as a mode does."""
    if request.path == "/robots.txt" and not mode.robots:
        wire.write(answer("no robots.txt\n", 404))
    else:
        await mode.handle(wire, request)


def listing() -> str:
    """Returns one line for each mode: its host and what it does."""
    width = max(map(len, HOSTILE))
    return "\n".join(f"{mode.host:<{width}}  {mode.about}" for mode in HOSTILE.values())
