"""The hostile hosts of the simulated web, which answer as no server should.

Each mode has a host, ``NAME.hostile.example.com``; names below it are the same. No friendly page
links to them. Their robots.txt is an honest 404, so that a crawler requests pages, except in modes
whose robots.txt is the trouble. To add a mode, write a coroutine in a module of its kind; when it
returns, the connection is closed.
"""

import inspect
import itertools
from collections.abc import Iterator
from types import ModuleType
from typing import NamedTuple

from . import bad_answers, bad_wires
from .answers import Handler, HostileWire, Request, honest_answer
from .model import DOMAIN

_HOSTILE_DOMAIN = f".hostile.{DOMAIN}"


class HostileMode(NamedTuple):
    """A kind of trouble.

    Attributes:
        host: Its name.
        about: What it does, in one line.
        handle: Answers a request.
        robots: Whether it answers requests for robots.txt, too.
    """

    host: str
    about: str
    handle: Handler
    robots: bool


def _modes() -> dict[str, HostileMode]:
    modes = {}
    for handle in itertools.chain(*map(_handlers, (bad_wires, bad_answers))):
        host = handle.__name__.replace("_", "-") + _HOSTILE_DOMAIN
        about = (handle.__doc__ or "").partition("\n")[0]
        modes[host] = HostileMode(host, about, handle, handle in bad_answers.ROBOTS_MODES)
    return modes


def _handlers(kind: ModuleType) -> Iterator[Handler]:
    for name, value in vars(kind).items():
        if name == "ROBOTS_MODES":
            yield from value
        elif inspect.iscoroutinefunction(value) and not name.startswith("_"):
            yield value


HOSTILE = _modes()


def find_mode(host: str) -> HostileMode | None:
    """Returns the mode of a host, or of the host above it; None for friendly hosts.

    >>> find_mode("a.b.loop.hostile.example.com").host, find_mode("h0.example.com")
    ('loop.hostile.example.com', None)
    """
    if not host.endswith(_HOSTILE_DOMAIN):
        return None
    return HOSTILE.get(host.removesuffix(_HOSTILE_DOMAIN).rpartition(".")[2] + _HOSTILE_DOMAIN)


async def respond(mode: HostileMode, wire: HostileWire, request: Request) -> None:
    """Answers a request in a hostile mode."""
    if request.path == "/robots.txt" and not mode.robots:
        wire.write(honest_answer("no robots.txt\n", 404))
    else:
        await mode.handle(wire, request)


def listing() -> str:
    """Returns one line for each mode: its host and what it does."""
    width = max(map(len, HOSTILE))
    return "\n".join(f"{mode.host:<{width}}  {mode.about}" for mode in HOSTILE.values())
