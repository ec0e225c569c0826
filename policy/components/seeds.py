"""Hosts and domains of the seeds: what the marks in the host table say."""

import dataclasses

import polars as pl

from ...web.urls.domains import registered_domain
from ...web.urls.row_keys import from_host_key


@dataclasses.dataclass(frozen=True)
class Seeds:
    """Hosts and domains of the seeds.

    Attributes:
        hosts: The hosts of seeds.
        domains: The registered domains of these hosts.
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
