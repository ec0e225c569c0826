"""Nutch's adaptive schedule: intervals shrink after a change, and else grow.

The schedule ``mime_adaptive`` has rates per content type. Both read shortest and longest intervals of
hosts from a file.
"""

import re

import polars as pl

from ...web.base.dataclass import dataclass
from ...web.rule_files.rule_files import RuleFile, entries, host_name
from ...web.urls.row_keys import host_key
from ..base.key_columns import host_keys
from .schedule import RescheduleOptions
from .visits import (
    FETCH_TIME,
    ScheduleContext,
    VisitRows,
    java_round,
    last_modified_of_server,
    new_modified_time,
    next_fetch,
)

_Pairs = tuple[tuple[str, float, float], ...]  # a name and two numbers each


@dataclass(frozen=True)
class HostIntervals:
    """Bounds of the intervals of some hosts.

    Attributes:
        bounds_of: (host, reversed; shortest, longest interval in s).
    """

    bounds_of: _Pairs = ()

    def of(self, host: str) -> list[float] | None:
        """Returns the bounds of the intervals of a host (reversed), s; None for the usual ones."""
        return next((pair for name, *pair in self.bounds_of if name == host), None)

    def bounds(self, rows: VisitRows, shortest: float, longest: float) -> list[pl.Expr]:
        """Returns the bounds of the interval of each row, s.

        Args:
            rows: Rows with ``key``.
            shortest: Shortest interval of other hosts, s.
            longest: Longest interval of other hosts, s.
        """
        if not self.bounds_of:
            return [pl.lit(shortest), pl.lit(longest)]
        return _find_pairs(host_keys(rows.get_column("key")), self.bounds_of, (shortest, longest))


def _find_pairs(names: pl.Series, pairs: _Pairs, usual: tuple[float, float]) -> list[pl.Expr]:
    """Returns the two numbers of each name as columns; names without any have the usual ones."""
    columns = [{name: pair[at] for name, *pair in pairs} for at in range(2)]
    return [
        pl.lit(names.replace_strict(column, default=default, return_dtype=pl.Float64))
        for column, default in zip(columns, usual, strict=True)
    ]


def host_intervals(file: RuleFile, shortest: float, longest: float) -> HostIntervals:
    r"""Returns the bounds in a file with lines ``host shortest longest``, in s.

    0 or ``default`` stands for the bound of other hosts. Of equal hosts the last line counts.

    Args:
        file: The file.
        shortest: Shortest interval of other hosts, s.
        longest: Longest interval of other hosts, s.

    Raises:
        ValueError: A line has another form, no host name, or an interval outside those bounds; it
            is quoted.

    Names may be written in Unicode; URLs have them in punycode.

    >>> host_intervals(RuleFile("f", "www.example.com 3600 0\n"), 60, 86_400).bounds_of
    (('com.example.www', 3600.0, 86400.0),)
    """
    bounds_of = {}
    for number, line in entries(file.text):
        name, *parts = line.split()
        host = host_name(name)
        if host is None:
            raise ValueError(f"{file.name}:{number}: expected a host, got {name!r} in {line!r}")
        texts = parts if len(parts) == 2 else ["", ""]  # an empty text is no interval
        low, high = map(_seconds, texts, (shortest, longest))
        if low is None or high is None or not shortest <= low <= high <= longest:
            raise ValueError(
                f"{file.name}:{number}: expected a host, its shortest and its longest interval in "
                f"s, between {shortest} and {longest}, got {line!r}"
            )
        bounds_of[host_key(host)] = (low, high)
    return HostIntervals(tuple((name, *bounds) for name, bounds in bounds_of.items()))


def _seconds(text: str, usual: float) -> float | None:
    """Returns an interval in s; None if the text is none."""
    if text == "default":
        return float(usual)
    try:
        return float(text) or float(usual)
    except ValueError:
        return None


@dataclass(frozen=True)
class AdaptiveSchedule:
    """The schedules ``adaptive`` and ``mime_adaptive``.

    Attributes:
        hosts: Shortest and longest intervals of some hosts.
        rates: (content type in lower case, inc_rate, dec_rate); other types have the rates of the
            options.
    """

    hosts: HostIntervals
    rates: _Pairs = ()

    def __call__(self, visits: VisitRows, context: ScheduleContext) -> VisitRows:
        """Sets intervals by the rates of the content type, or else by those of the options."""
        options = context.options
        inc_rate, dec_rate = self._rates(visits, options)
        old = pl.col("fetch_interval").cast(pl.Float64)
        changed, same = pl.when("modified").then(old * (1 - dec_rate)), old * (1 + inc_rate)
        interval = changed.when("notmodified").then(same).otherwise(old)
        shortest, longest = self.hosts.bounds(visits, options.shortest, options.longest)
        modified_time = new_modified_time(pl.coalesce(last_modified_of_server(), FETCH_TIME))
        visits = visits.with_columns(modified_time=modified_time)
        if not options.sync_delta:
            return visits.with_columns(**next_fetch(interval.clip(shortest, longest)))
        since = pl.col("modified_time")
        age = pl.when(since > 0).then((FETCH_TIME - since).clip(0)).fill_null(0)
        interval = pl.max_horizontal(interval, age / 1000).clip(shortest, longest)
        offset = sync_offset(age, interval, shortest, options.sync_delta_rate)
        return visits.with_columns(**next_fetch(interval, FETCH_TIME - offset))

    def _rates(self, visits: VisitRows, options: RescheduleOptions) -> list[pl.Expr]:
        """Returns by which share the interval of an unchanged page grows, and another one shrinks."""
        if not self.rates:
            return [pl.lit(options.inc_rate), pl.lit(options.dec_rate)]
        content_type = pl.coalesce("event.content_type", "content_type")
        mime = content_type.str.split_exact(";", 1).struct.field("field_0").str.strip_chars()
        mimes = visits.select(mime=mime.str.to_lowercase()).to_series()
        return _find_pairs(mimes, self.rates, (options.inc_rate, options.dec_rate))


def sync_offset(age: pl.Expr, interval: pl.Expr, shortest: pl.Expr, rate: float) -> pl.Expr:
    """Returns how much earlier than after its interval a page is fetched, ms.

    It is a share of the time since the last change, of at most one interval. The next fetch is
    never sooner than the shortest interval after this one. Nutch takes the share of any age, so a
    page that never changes would be due ever sooner, up to the time when it divides whole numbers
    and gets 0; before 1.22 the next fetch was in the past.

    Args:
        age: Time between the last change and the fetch, ms, not below 0.
        interval: Interval of the page within its bounds, s.
        shortest: Shortest interval of the page, s.
        rate: The share, from 0 to 1.

    >>> day, week = pl.lit(86_400), pl.lit(7 * 86_400)
    >>> [pl.select(sync_offset(day * 1000 * age, week, day, 0.5)).item() / 86_400_000
    ...  for age in (2, 7, 300)]
    [1.0, 3.5, 3.5]
    """
    whole = java_round(interval * 1000)
    offset = java_round(pl.min_horizontal(age, whole) * rate)
    return pl.min_horizontal(offset, whole - java_round(shortest * 1000))


# As in Nutch's adaptive-mimetypes.txt.
SHIPPED_RATES = RuleFile(
    "adaptive-mimetypes.txt",
    "text/html\t0.2\t0.2\napplication/xhtml+xml\t0.2\t0.2\napplication/pdf\t0.1\t0.4\n",
)
# Tokens of RFC 9110.
_TYPE = re.compile(r"[\w!#$%&'*+.^`|~-]+/[\w!#$%&'*+.^`|~-]+", re.ASCII)


def mime_rates(file: RuleFile) -> _Pairs:
    r"""Returns (content type, inc_rate, dec_rate) of each line; of equal types the last counts.

    Raises:
        ValueError: A line is not a type and two rates with tabs between; it is quoted.

    >>> mime_rates(RuleFile("rates", "# types\nText/HTML\t0.1\t0.3\n"))
    (('text/html', 0.1, 0.3),)
    """
    rates_of = {}
    for number, line in entries(file.text):
        name, *rates = (part.strip() for part in line.split("\t"))
        try:
            inc, dec = map(float, rates)
        except ValueError:
            inc = dec = -1.0
        if not _TYPE.fullmatch(name):
            raise ValueError(
                f"{file.name}:{number}: expected a content type such as text/html, without "
                f"parameters, got {name!r} in {line!r}"
            )
        # NaN is not between any numbers.
        if not (0 <= inc < float("inf") and 0 <= dec <= 1):
            raise ValueError(
                f"{file.name}:{number}: expected a content type, an inc_rate of at least 0 and a "
                f"dec_rate from 0 to 1, with tabs between, got {line!r}"
            )
        rates_of[name.lower()] = (inc, dec)
    return tuple((name, *rates) for name, rates in rates_of.items())
