"""What rows of the host table mean: hosts of seeds, numbers of URLs, settings of the operator."""

import dataclasses
import difflib
import functools
import math
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import polars as pl

from ...web.base.columns import find_sorted, put
from ...web.base.dataclass import dataclass
from ...web.base.wording import quote_value
from ...web.urls.domains import registered_domain, suffix_and_domain
from ...web.urls.row_keys import from_host_key, host_key
from ..base.key_columns import domain_keys, host_names
from .schema import (
    HOST_COUNTS,
    HOSTS,
    MAX_DELAY,
    STATUS_COUNTS,
    URL_COUNTS,
    HostCountRows,
    HostRows,
    conform_frame,
    empty,
)

# It takes no longer to look through this number of hosts than to search among them.
FEW_SEEDS = 1_000
_NONE = empty(HOST_COUNTS)
# Columns of the host table to which differences are added.
SUMMED_COLUMNS = (*URL_COUNTS, "domain_urls")
_TRUE, _FALSE = ("true", "yes", "1"), ("false", "no", "0")
LONGEST_INTERVAL = 2**31 - 1


@dataclasses.dataclass(frozen=True, eq=False)
class Seeds:
    """The hosts of seeds: a sorted column that is searched; equal only to itself.

    There may be millions, so neither they nor their domains become Python's strings.

    Attributes:
        host_keys: Keys of the host table, each once, in order.
    """

    host_keys: pl.Series = dataclasses.field(default_factory=lambda: pl.Series(dtype=pl.String))

    def domain_keys(self) -> pl.Series:
        """Returns the registered domains, reversed, each once, in order."""
        return domain_keys(self.host_keys).unique().sort()

    def cover(self, sites: pl.Series, scope: str) -> pl.Series:
        """Returns a mask of the sites that are in the scope of the seeds; False for null.

        Args:
            sites: With the scope ``domain`` registered domains; with any other scope hosts.
            scope: The scope.

        >>> seeds = seeds_of(pl.Series(["com.foo.www"]))
        >>> seeds.cover(pl.Series(["foo.com", "www.foo.com", None]), "domain").to_list()
        [True, False, False]
        """
        if len(self.host_keys) <= FEW_SEEDS:
            few = self._domains if scope == "domain" else host_names(self.host_keys)
            return sites.is_in(few.implode()).fill_null(False)
        names = sites.unique().drop_nulls()
        covered = self._are_domains(names) if scope == "domain" else self._are_hosts(names)
        return sites.is_in(names.filter(covered).implode()).fill_null(False)

    def _are_hosts(self, names: pl.Series) -> pl.Series:
        """Returns a mask of the names that are a seed's host."""
        return find_sorted(self.host_keys, host_names(names)).is_not_null()

    def _are_domains(self, names: pl.Series) -> pl.Series:
        """Returns a mask of the registered domains of a seed's host."""
        # com.foo, com.foo-bar, com.foo.a, com.foo.b: the hosts below a name are a range.
        keys = host_names(names)
        starts = self.host_keys.search_sorted(keys + ".").clip(upper_bound=len(self.host_keys) - 1)
        next_keys = pl.DataFrame({"next": self.host_keys.gather(starts), "start": keys + "."})
        has_hosts = pl.col("next").str.starts_with(pl.col("start"))
        have_hosts = next_keys.select(has_hosts).to_series()
        are_hosts = self._are_hosts(names)
        covered = names.is_in(self._dotted_domains.implode())
        likely = (~covered & (are_hosts | have_hosts)).arg_true()
        columns = (column.gather(likely) for column in (names, are_hosts, have_hosts, starts))
        verdicts = [
            (is_host and registered_domain(name) == name)
            or (has_hosts and self._has_domain(name, start))
            for name, is_host, has_hosts, start in zip(*columns, strict=True)
        ]
        return put(covered, likely, pl.Series(verdicts, dtype=pl.Boolean))

    def _has_domain(self, name: str, start: int) -> bool:
        """Returns whether a name is the registered domain of one of the hosts below it."""
        if registered_domain(from_host_key(self.host_keys[start])) == name:
            return True
        suffix, _ = suffix_and_domain(name)
        if suffix in (None, name):  # each host below it has a longer domain
            return False
        end = self.host_keys.search_sorted(f"{host_key(name)}/")
        keys = self.host_keys.slice(start, end - start)
        return any(registered_domain(from_host_key(key)) == name for key in keys)

    @functools.cached_property
    def _domains(self) -> pl.Series:
        """The registered domains of few hosts."""
        return host_names(self.domain_keys())

    @functools.cached_property
    def _dotted_domains(self) -> pl.Series:
        """The domains of hosts that end with a dot, whose keys begin with it."""
        start, end = (self.host_keys.search_sorted(text) for text in "./")
        keys = self.host_keys.slice(start, end - start)
        domains = [registered_domain(from_host_key(key)) for key in keys]
        return pl.Series(domains, dtype=pl.String)


def seeds_of(host_keys: pl.Series) -> Seeds:
    """Returns the seeds, from keys of the host table in any order."""
    return Seeds(host_keys.unique().sort())


def seed_host_rows(hosts: pl.Series) -> HostRows:
    """Returns HOSTS rows of the hosts of seeds, each once; ``file:`` URLs have none.

    Args:
        hosts: Keys of the host table; repeated ones, and empty texts, may be among them.
    """
    keys = hosts.unique().sort().alias("key").to_frame().filter(pl.col("key") != "")
    return conform_frame(keys.with_columns(seed=pl.lit(True)), HOSTS)


def sum_host_counts(frames: Iterable[HostCountRows]) -> HostCountRows:
    """Returns the sums of HOST_COUNTS rows, one row per host, in key order."""
    rows = pl.concat([_NONE, *(frame.select(HOST_COUNTS.names) for frame in frames)])
    return rows.group_by("key").agg(pl.col(URL_COUNTS).sum()).sort("key")


def urls_of_domains(counts: HostCountRows) -> HostRows:
    """Returns the numbers of URLs of registered domains: ``key``, ``domain_urls``, in key order.

    >>> rows = pl.DataFrame({"key": ["com.a.x", "com.a.y"], "unfetched": [1, 2]})
    >>> urls_of_domains(sum_host_counts([pl.concat([_NONE, rows], how="diagonal")])).rows()
    [('com.a', 3)]
    """
    domains = domain_keys(counts.get_column("key"))
    summed = counts.select(domains.alias("key"), domain_urls=number_of_urls())
    return summed.group_by("key").agg(pl.col("domain_urls").sum()).sort("key")


def number_of_urls() -> pl.Expr:
    """Returns the number of URLs of each HOST_COUNTS row."""
    return pl.sum_horizontal(pl.col(*STATUS_COUNTS.values()).fill_null(0))


def host_changes(counts: HostCountRows) -> HostRows:
    """Returns HOSTS rows, in key order, that add numbers of URLs of hosts and domains."""
    domains = urls_of_domains(counts)
    return counts.join(domains, on="key", how="full", coalesce=True).sort("key")


def has_urls() -> pl.Expr:
    """Returns a condition on HOSTS rows: the table has URLs of the host, or it is a seed's."""
    return pl.any_horizontal(pl.col(URL_COUNTS).fill_null(0) != 0) | pl.col("seed").fill_null(False)


def counted_hosts(rows: HostRows, changes: HostRows) -> HostRows:
    """Returns rows of the host table with differences added, in key order.

    Args:
        rows: HOSTS rows.
        changes: Differences, at most one row per key: ``key``, ``URL_COUNTS``, ``domain_urls``.
    """
    wide = empty(HOSTS)
    all_rows = pl.concat([rows, pl.concat([wide, changes], how="diagonal")])
    added = all_rows.group_by("key", maintain_order=True).agg(
        pl.exclude("key", *SUMMED_COLUMNS).first(), pl.col(SUMMED_COLUMNS).fill_null(0).sum()
    )
    added = added.with_columns(pl.col("seed").fill_null(False), pl.col("requests").fill_null(0))
    return added.select(HOSTS.names).cast(wide.schema).sort("key")


def is_given_up() -> pl.Expr:
    """Returns a condition: a row is of a host that was purged, and not requested since."""
    back = (pl.col("last_request_time") > pl.col("purged_since")).fill_null(False)
    return pl.col("purged_since").is_not_null() & ~back


@dataclass(frozen=True)
class HostSettings:
    """The settings of a host; None means the usual.

    Attributes:
        delay: Pause between two requests, s.
        threads: Requests at a time.
        max_count: How many URLs a batch takes of it at most.
        min_interval: Shortest interval of its pages, s.
        max_interval: Longest interval of its pages, s, except those that are gone.
        boost: Factor of the score by which generate sorts its URLs.
        blocked: Whether it is left alone.
        metadata: Other names and values.
    """

    delay: float | None = None
    threads: int | None = None
    max_count: int | None = None
    min_interval: int | None = None
    max_interval: int | None = None
    boost: float | None = None
    blocked: bool = False
    metadata: Mapping[str, str] = dataclasses.field(default_factory=dict)


def _number(least: float, most: float, kind: type = float) -> tuple[str, Callable[[str], Any]]:
    def read(text: str) -> Any:
        value = kind(text)
        if not (least <= value <= most and math.isfinite(value)):
            raise ValueError(text)
        return value

    what = "a whole number" if kind is int else "a number"
    return f"{what} from {least:g} to {most:g}", read


def _truth(text: str) -> bool:
    if text.lower() not in (*_TRUE, *_FALSE):
        raise ValueError(text)
    return text.lower() in _TRUE


_SETTINGS: dict[str, tuple[str, Callable[[str], Any]]] = {
    "delay": _number(0, MAX_DELAY),
    "threads": _number(1, 1_000, int),
    "max_count": _number(0, LONGEST_INTERVAL, int),
    "min_interval": _number(1, LONGEST_INTERVAL, int),
    "max_interval": _number(1, LONGEST_INTERVAL, int),
    "boost": _number(0, 1e6),
    "blocked": ("true or false", _truth),
}


def settings_of(values: Mapping[str, str]) -> HostSettings:
    """Returns the settings that names and values mean.

    Raises:
        ValueError: A value cannot be read, or two contradict each other; the message quotes them.

    >>> settings_of({"delay": "2.5", "team": "a"})
    HostSettings(delay=2.5, threads=None, max_count=None, min_interval=None, max_interval=None, \
boost=None, blocked=False, metadata={'team': 'a'})
    """
    typed: dict[str, Any] = {}
    metadata = {}
    for name, text in values.items():
        if name not in _SETTINGS:
            metadata[name] = text
            if near := difflib.get_close_matches(name, _SETTINGS, 1, 0.75):
                raise ValueError(f"unknown setting {quote_value(name)}, did you mean {near[0]}?")
            continue
        expected, read = _SETTINGS[name]
        try:
            typed[name] = read(text)
        except (ValueError, OverflowError):
            raise ValueError(f"{name} must be {expected}, got {quote_value(text)}") from None
    settings = HostSettings(**typed, metadata=metadata)
    _check_contradictions(settings, values)
    return settings


def _check_contradictions(settings: HostSettings, values: Mapping[str, str]) -> None:
    def refuse(*names: str) -> None:
        both = " and ".join(f"{name}={values[name]}" for name in names)
        raise ValueError(f"{both} contradict each other")

    low, high = settings.min_interval, settings.max_interval
    if low is not None and high is not None and low > high:
        refuse("min_interval", "max_interval")
    if settings.blocked:
        for name in ("delay", "threads", "max_count", "boost"):
            if name in values:
                refuse("blocked", name)
    if (settings.threads or 1) > 1 and (settings.delay or 0) > 0:
        # A delay is one between requests: with one, only one request runs at a time.
        refuse("threads", "delay")
    if settings.max_count == 0 and "boost" in values:
        refuse("max_count", "boost")
