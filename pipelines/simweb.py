"""simweb: serves a simulated web on this machine, for trying a crawl."""

import dataclasses

from ..web.base.dataclass import dataclass
from ..web.base.options import option, seconds
from .base.command import Argument, Invocation, configuration

ARGUMENTS: tuple[Argument, ...] = ()


@dataclass(frozen=True)
class Options:
    """Options of the simulated web; the same values give the same web."""

    hosts: int = option(20, "How many hosts there are.", minimum=1)
    pages: int = option(50, "How many pages each host has.", unit="pages", minimum=1)
    seed: int = option(7, "Seed of the random numbers: the same number makes the same web.")
    port: int = option(0, "Port on loopback; 0 takes a free one.", minimum=0, maximum=65535)
    processes: int = option(1, "How many processes serve.", unit="processes", minimum=1)
    crawl_delay: float = seconds(1.0, "Crawl-delay in the robots.txt of one host.")
    latency: float = seconds(0.0, "How long each answer waits.", maximum=3599)
    serve_sitemaps: bool = option(
        False, "Give each host sitemaps, and pages that only its sitemaps name."
    )
    list: bool = option(False, "List the hostile hosts, with what each does, and serve nothing.")


def run(invocation: Invocation) -> int:
    """Serves until interrupted; prints the address, a seed and a ready ``--connect_to``."""
    from ..web.simweb import server  # late, so that --help is fast

    options = dataclasses.asdict(invocation.options)
    if options.pop("list"):
        from ..web.simweb.hostile import listing

        print(listing())
        return 0
    with configuration():
        sitemaps = options.pop("serve_sitemaps")
        return server.serve(server.SimWeb(sitemaps=sitemaps, **options))
