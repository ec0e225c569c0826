"""The blocklist: URLs, hosts and domains that must not be added to the table again.

It has only hashes, so the list itself reveals no names. A known name can be checked;
for other names the list shows only how many there are.
"""

import dataclasses
import hashlib
import itertools
from collections import defaultdict
from collections.abc import Iterator, Mapping

import polars as pl

from ...web.base.columns import falses
from ...web.base.dataclass import dataclass
from ...web.urls.row_keys import host_key_of
from ..base.key_columns import host_keys
from .schema import BLOCKLIST, BlocklistRows, HostRows, conform_frame

REASON = "purged"  # the reason under which blocked URLs are counted


@dataclass(frozen=True)
class Names:
    """The names that a purge removes.

    Attributes:
        urls: Row keys.
        hosts: Reversed hosts.
        domains: Reversed domains: each means the domain itself and all hosts below it.
    """

    urls: tuple[str, ...] = ()
    hosts: tuple[str, ...] = ()
    domains: tuple[str, ...] = ()

    def rows(self, now: int) -> BlocklistRows:
        """Returns the BLOCKLIST rows of the names, in key order.

        >>> Names(hosts=("com.foo",)).rows(0).get_column("key")[0][:13]
        'host:d27517bb'
        """
        records = [
            *({"key": f"url:{digest(key)}", "host": digest(host_key_of(key))} for key in self.urls),
            *({"key": f"host:{digest(host)}"} for host in self.hosts),
            *({"key": f"domain:{digest(domain)}"} for domain in self.domains),
        ]
        frame = pl.DataFrame(records, schema={"key": pl.String, "host": pl.String})
        frame = frame.with_columns(time=pl.lit(now, pl.Int64)).unique("key").sort("key")
        return conform_frame(frame, BLOCKLIST)


@dataclass(frozen=True)
class Blocklist:
    """Blocked names, by hash.

    Attributes:
        hosts: Hashes of reversed hosts.
        domains: Hashes of reversed domains.
        urls: Hashes of row keys, by the hash of their host.
    """

    hosts: frozenset[str] = frozenset()
    domains: frozenset[str] = frozenset()
    urls: Mapping[str, frozenset[str]] = dataclasses.field(default_factory=dict)

    def __bool__(self) -> bool:
        return bool(self.hosts or self.domains or self.urls)

    def blocks_hosts(self, hosts: pl.Series) -> pl.Series:
        """Returns a mask of the reversed hosts that are completely blocked; False for null.

        >>> blocklist = blocklist_of(Names(domains=("com.foo",)).rows(0))
        >>> blocklist.blocks_hosts(pl.Series(["com.foo", "com.foo.www", "com.foo1"])).to_list()
        [True, True, False]
        """
        blocked = [host for host in hosts.unique().drop_nulls() if self._host(host)]
        return hosts.is_in(pl.Series(blocked, dtype=pl.String).implode()).fill_null(False)

    def blocks(self, keys: pl.Series) -> pl.Series:
        """Returns a mask of the row keys that are blocked; False for null.

        >>> blocklist = blocklist_of(Names(urls=("com.foo:http/a",), hosts=("com.bar",)).rows(0))
        >>> blocklist.blocks(pl.Series(["com.foo:http/a", "com.foo:http/b", "com.bar:https/"])).to_list()
        [True, False, True]
        """
        if not self:
            return falses(len(keys))
        hosts = host_keys(keys)
        by_host = self.blocks_hosts(hosts)
        if not self.urls:
            return by_host
        # Hash only URLs of hosts that have a blocked URL.
        near = [host for host in hosts.unique().drop_nulls() if digest(host) in self.urls]
        is_near = hosts.is_in(pl.Series(near, dtype=pl.String).implode())
        candidates = pl.DataFrame({"key": keys, "host": hosts}).filter(is_near)
        blocked = [
            key
            for key, host in candidates.unique().iter_rows()
            if digest(key) in self.urls[digest(host)]
        ]
        return by_host | keys.is_in(pl.Series(blocked, dtype=pl.String).implode()).fill_null(False)

    def _host(self, host: str) -> bool:
        if digest(host) in self.hosts:
            return True
        return any(digest(name) in self.domains for name in _above(host)) if self.domains else False


def blocklist_of(rows: BlocklistRows) -> Blocklist:
    """Returns the blocklist of BLOCKLIST rows."""
    names: dict[str, set[str]] = defaultdict(set)
    urls: dict[str, set[str]] = defaultdict(set)
    for key, host in rows.select("key", "host").iter_rows():
        kind, _, value = key.partition(":")
        (urls[host] if kind == "url" else names[kind]).add(value)
    of_hosts = {host: frozenset(values) for host, values in urls.items()}
    return Blocklist(frozenset(names["host"]), frozenset(names["domain"]), of_hosts)


def digest(name: str) -> str:
    """Returns the hash of a name."""
    return hashlib.sha256(name.encode()).hexdigest()


def drop_blocked(rows: pl.DataFrame, blocklist: Blocklist) -> tuple[pl.DataFrame, dict[str, int]]:
    """Returns the rows whose ``key`` is not blocked, and the count of blocked rows."""
    if not blocklist:
        return rows, {}
    remaining_rows = rows.filter(~blocklist.blocks(rows.get_column("key")))
    dropped = len(rows) - len(remaining_rows)
    return remaining_rows, {f"dropped/{REASON}": dropped} if dropped else {}


def drop_blocked_hosts(host_rows: HostRows, blocklist: Blocklist) -> HostRows:
    """Returns the rows whose ``key``, a reversed host, is not blocked."""
    return host_rows.filter(~blocklist.blocks_hosts(host_rows.get_column("key")))


def _above(host: str) -> Iterator[str]:
    """Returns a reversed host and the domains above it: com.foo.www, com.foo, com."""
    labels = [host] if host.startswith("[") else host.split(".")
    return itertools.accumulate(labels, "{}.{}".format)
