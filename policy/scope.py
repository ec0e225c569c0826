"""Which targets a crawl follows: those on the hosts or domains of its seeds."""

import dataclasses
from typing import cast

import polars as pl

from ..web.domains import registered_domain
from ..web.options import option
from ..web.rules import Mode, Scope, UrlOptions, UrlRules, in_scope
from ..web.urls import from_host_key
from .traps import TrapOptions, trap_reasons


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


@dataclasses.dataclass(frozen=True)
class TargetOptions(UrlOptions, ScopeOptions, TrapOptions):
    """Which targets of links and redirects are taken."""


def judge(
    links: pl.DataFrame, urls: pl.Series, use: Scope, options: TargetOptions, seeds: Seeds
) -> pl.DataFrame:
    """Decides which targets are taken, and says why the others are not.

    Args:
        links: One row per link, with ``source``, the row key of where it stands.
        urls: Their targets, absolute; null where a link leads to no http URL.
        use: Scope of the rules: ``outlink`` or ``fetcher``.
        options: The rules.
        seeds: Hosts and domains of the seeds.

    Returns:
        The rows with ``key`` and ``reason``; one of the two is null.
    """
    admitted = UrlRules(options).admit(urls, use).select("key", "reason")
    inside = pl.repeat(True, len(links), eager=True)
    if options.scope != "any":
        names = seeds.of(options.scope)
        mode = cast("Mode", options.scope)  # one of the option's choices
        inside = in_scope(links["source"], admitted["key"], mode, names)
    reason = (
        pl.when(urls.is_null())
        .then(pl.lit("no_http_url"))
        .when(pl.col("reason").is_not_null())
        .then("reason")
        .when(pl.col("trap").is_not_null())
        .then("trap")
        .when(pl.col("key") == pl.col("source"))
        .then(pl.lit("own_url"))
        .when(~inside)
        .then(pl.lit("out_of_scope"))
    )
    trap = trap_reasons(admitted.get_column("key"), options)
    judged = links.with_columns(admitted).with_columns(trap=trap).with_columns(reason=reason)
    return judged.drop("trap").with_columns(key=pl.when(pl.col("reason").is_null()).then("key"))
