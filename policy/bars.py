"""Bars: URLs, hosts and domains that must not come into the table (again).

They are kept as hashes, so that the list itself names nobody. Who knows a name
can look whether it is barred; who does not, learns nothing but the number.
"""

import dataclasses
import hashlib
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping

import polars as pl

from ..web.base.columns import falses
from ..web.rules.url_rules import host_keys
from ..web.urls.row_keys import host_of
from .schema import BARS, conform, to_frame

REASON = "purged"  # what a URL that is barred is dropped under


@dataclasses.dataclass(frozen=True)
class Names:
    """What a purge is about.

    Attributes:
        urls: Row keys.
        hosts: Reversed hosts.
        domains: Reversed domains: they stand for themselves and all hosts below.
    """

    urls: tuple[str, ...] = ()
    hosts: tuple[str, ...] = ()
    domains: tuple[str, ...] = ()

    def rows(self, now: int) -> pl.DataFrame:
        """Returns the BARS rows of the names, in key order.

        >>> Names(hosts=("com.foo",)).rows(0).get_column("key")[0][:13]
        'host:d27517bb'
        """
        records = [
            *({"key": f"url:{hashed(key)}", "host": hashed(host_of(key))} for key in self.urls),
            *({"key": f"host:{hashed(host)}"} for host in self.hosts),
            *({"key": f"domain:{hashed(domain)}"} for domain in self.domains),
        ]
        frame = pl.DataFrame(records, schema={"key": pl.String, "host": pl.String})
        frame = frame.with_columns(time=pl.lit(now, pl.Int64)).unique("key").sort("key")
        return to_frame(conform(frame, BARS))


@dataclasses.dataclass(frozen=True)
class Bars:
    """Barred names, by hash.

    Attributes:
        hosts: Of reversed hosts.
        domains: Of reversed domains.
        urls: Of row keys, by the hash of their host.
    """

    hosts: frozenset[str] = frozenset()
    domains: frozenset[str] = frozenset()
    urls: Mapping[str, frozenset[str]] = dataclasses.field(default_factory=dict)

    def __bool__(self) -> bool:
        return bool(self.hosts or self.domains or self.urls)

    def hosts_hit(self, hosts: pl.Series) -> pl.Series:
        """Returns which reversed hosts are barred as a whole; false where one is null.

        >>> bars = bars_of(Names(domains=("com.foo",)).rows(0))
        >>> bars.hosts_hit(pl.Series(["com.foo", "com.foo.www", "com.foo1"])).to_list()
        [True, True, False]
        """
        barred = [host for host in hosts.unique().drop_nulls() if self._host(host)]
        return hosts.is_in(pl.Series(barred, dtype=pl.String).implode()).fill_null(False)

    def hit(self, keys: pl.Series) -> pl.Series:
        """Returns which row keys are barred; false where one is null.

        >>> bars = bars_of(Names(urls=("com.foo:http/a",), hosts=("com.bar",)).rows(0))
        >>> bars.hit(pl.Series(["com.foo:http/a", "com.foo:http/b", "com.bar:https/"])).to_list()
        [True, False, True]
        """
        if not self:
            return falses(len(keys))
        hosts = host_keys(keys)
        found = self.hosts_hit(hosts)
        if not self.urls:
            return found
        # Only URLs of hosts that have a barred one are hashed.
        near = [host for host in hosts.unique().drop_nulls() if hashed(host) in self.urls]
        some = keys.filter(hosts.is_in(pl.Series(near, dtype=pl.String).implode()))
        barred = [key for key in some.unique() if hashed(key) in self.urls[hashed(host_of(key))]]
        return found | keys.is_in(pl.Series(barred, dtype=pl.String).implode()).fill_null(False)

    def _host(self, host: str) -> bool:
        if hashed(host) in self.hosts:
            return True
        return any(hashed(name) in self.domains for name in _above(host)) if self.domains else False


def bars_of(rows: pl.DataFrame) -> Bars:
    """Returns what BARS rows bar."""
    found: dict[str, set[str]] = defaultdict(set)
    urls: dict[str, set[str]] = defaultdict(set)
    for key, host in rows.select("key", "host").iter_rows():
        kind, _, value = key.partition(":")
        (urls[host] if kind == "url" else found[kind]).add(value)
    of_hosts = {host: frozenset(values) for host, values in urls.items()}
    return Bars(frozenset(found["host"]), frozenset(found["domain"]), of_hosts)


def hashed(name: str) -> str:
    """Returns the hash of a name."""
    return hashlib.sha256(name.encode()).hexdigest()


def without(rows: pl.DataFrame, bars: Bars) -> tuple[pl.DataFrame, dict[str, int]]:
    """Returns the rows whose ``key`` is not barred, and the count of the others."""
    if not bars:
        return rows, {}
    kept = rows.filter(~bars.hit(rows.get_column("key")))
    dropped = len(rows) - len(kept)
    return kept, {f"dropped/{REASON}": dropped} if dropped else {}


def _above(host: str) -> Iterator[str]:
    """Yields a reversed host and the domains above it: com.foo.www, com.foo, com."""
    labels: Iterable[str] = [host] if host.startswith("[") else host.split(".")
    name = ""
    for label in labels:
        name = f"{name}.{label}" if name else label
        yield name
