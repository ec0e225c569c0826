"""Hosts that redirect in circles, without end, or to forbidden places."""

from .answers import HostileWire, Request, page, redirect, url_of

LENGTH = 8


async def loop(wire: HostileWire, request: Request) -> None:
    """Redirects each URL to itself."""
    wire.write(redirect(url_of("loop", request.target)))


async def pair(wire: HostileWire, request: Request) -> None:
    """Redirects /a to /b, and all else to /a."""
    wire.write(redirect(url_of("pair", "/b" if request.path == "/a" else "/a"), 301))


async def chain(wire: HostileWire, request: Request) -> None:
    """Serves a page at the end of eight redirects: / leads to /1, that to /2, and so on."""
    number = request.path.strip("/") or "0"
    if number.isdecimal() and int(number) < LENGTH:
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
