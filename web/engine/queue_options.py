"""The option that determines which hosts share a queue."""

import dataclasses

from ..base.options import option
from ..urls.domains import registered_domain


@dataclasses.dataclass(frozen=True)
class QueueOptions:
    """Option that determines which hosts share a queue."""

    queue_mode: str = option(
        "host",
        "Which hosts share a queue, with one request at a time and a delay. host: each host has "
        "its own queue. domain: the hosts of a registered domain share one. ip: the hosts of an IP "
        "address share one (with several num_fetchers, generate resolves the hosts). Give the same "
        "value to generate and to fetch.",
        choices=("host", "domain", "ip"),
        nutch="fetcher.queue.mode",
        group="fetch",
    )

    def queue_name(self, host: str) -> str:
        """Returns the name of the queue of a host, before its address is known.

        >>> QueueOptions("domain").queue_name("www.foo.co.uk")
        'foo.co.uk'
        """
        return registered_domain(host) if self.queue_mode == "domain" else host
