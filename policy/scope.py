"""Which targets a crawl follows: those on the hosts or domains of its seeds."""

import dataclasses

import polars as pl

from ..web.domains import registered_domain
from ..web.options import option
from ..web.rules import in_scope
from ..web.urls import from_host_key


@dataclasses.dataclass(frozen=True)
class ScopeOptions:
    """How far a crawl goes."""

    scope: str = option(
        "domain",
        "Follow links within the registered domains of the seeds, within their hosts, or any.",
        choices=("domain", "host", "any"),
        nutch="db.ignore.external.links.mode",
        group="scope",
    )


@dataclasses.dataclass(frozen=True)
class Seeds:
    """Where the seeds are.

    Attributes:
        hosts: Their hosts.
        domains: The registered domains of those.
    """

    hosts: frozenset[str] = frozenset()
    domains: frozenset[str] = frozenset()

    def of(self, scope: str) -> frozenset[str]:
        """Returns the names that count in a scope."""
        return self.domains if scope == "domain" else self.hosts


def seeds_of(host_keys: pl.Series) -> Seeds:
    """Returns the seeds' hosts and domains, from keys of the host table."""
    hosts = frozenset(from_host_key(key) for key in host_keys)
    return Seeds(hosts, frozenset(registered_domain(host) for host in hosts))


def outside(links: pl.DataFrame, scope: str, seeds: Seeds) -> pl.Series:
    """Says which links (``source`` and ``key``, row keys) lead out of scope; null keys do not."""
    if scope == "any":
        return pl.repeat(False, len(links), eager=True)
    inside = in_scope(links.get_column("source"), links.get_column("key"), scope, seeds.of(scope))
    return ~inside.fill_null(True)
