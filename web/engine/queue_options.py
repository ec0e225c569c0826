"""The option that says which hosts share a queue."""

import dataclasses
from collections.abc import Callable

from ..base.options import option
from ..urls.domains import registered_domain


@dataclasses.dataclass(frozen=True)
class QueueOptions:
    """Which hosts share a queue."""

    queue_mode: str = option(
        "host",
        "Which hosts share a queue, with one request at a time and a delay: each has its own; those "
        "of a registered domain; or those of an IP address (with several num_fetchers, generate "
        "resolves the hosts). Takes effect in generate and in fetch: give it to both.",
        choices=("host", "domain", "ip"),
        nutch="fetcher.queue.mode",
        group="fetch",
    )


def queue_of(mode: str) -> Callable[[str], str]:
    """Returns the function that names the queue of a host; an address is not known beforehand.

    >>> queue_of("domain")("www.foo.co.uk"), queue_of("host")("www.foo.co.uk")
    ('foo.co.uk', 'www.foo.co.uk')
    """
    return registered_domain if mode == "domain" else str
