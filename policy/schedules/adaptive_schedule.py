"""Nutch's adaptive schedule: intervals shrink after a change, and else grow (nutch.md 2.5).

The schedule ``mime_adaptive`` has rates per content type.
"""

import dataclasses
import re

import polars as pl

from ...web.rule_files.rule_files import RuleFile, entries
from .host_intervals import HostIntervals
from .visits import FETCH_TIME, ScheduleContext, content_time, java_round, next_fetch, server_time


@dataclasses.dataclass(frozen=True)
class AdaptiveSchedule:
    """The schedule ``adaptive``.

    Attributes:
        hosts: Shortest and longest intervals of some hosts.
    """

    hosts: HostIntervals

    def __call__(self, visits: pl.DataFrame, context: ScheduleContext) -> pl.DataFrame:
        """Sets intervals by the rates of the options; see ``visits``."""
        rates = pl.lit(context.options.inc_rate), pl.lit(context.options.dec_rate)
        return adapt(visits, context, self.hosts, rates)


def adapt(
    visits: pl.DataFrame,
    context: ScheduleContext,
    hosts: HostIntervals,
    rates: tuple[pl.Expr, pl.Expr],
) -> pl.DataFrame:
    """Sets intervals by the given rates.

    Args:
        visits: See ``visits``.
        context: Options.
        hosts: Shortest and longest intervals of some hosts.
        rates: By which share the interval of an unchanged page grows, and by which share that of a
            changed page shrinks.
    """
    options, (inc_rate, dec_rate) = context.options, rates
    old = pl.col("fetch_interval").cast(pl.Float64)
    interval = (
        pl.when("modified")
        .then(old * (1 - dec_rate))
        .when("notmodified")
        .then(old * (1 + inc_rate))
        .otherwise(old)
    )
    shortest, longest = hosts.bounds(visits, options.shortest, options.longest)
    modified_time = content_time(pl.coalesce(server_time(), FETCH_TIME))
    visits = visits.with_columns(modified_time=modified_time)
    if not options.sync_delta:
        return visits.with_columns(**next_fetch(interval.clip(shortest, longest)))
    changed = pl.col("modified_time")
    age = pl.when(changed > 0).then((FETCH_TIME - changed).clip(0)).fill_null(0)
    interval = pl.max_horizontal(interval, age / 1000).clip(shortest, longest)
    offset = sync_offset(age, interval, shortest, options.sync_delta_rate)
    return visits.with_columns(**next_fetch(interval, FETCH_TIME - offset))


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


@dataclasses.dataclass(frozen=True)
class MimeAdaptiveSchedule:
    """The schedule ``mime_adaptive``.

    Attributes:
        hosts: Shortest and longest intervals of some hosts.
        rates: (content type in lower case, inc_rate, dec_rate).
    """

    hosts: HostIntervals
    rates: tuple[tuple[str, float, float], ...]

    def __call__(self, visits: pl.DataFrame, context: ScheduleContext) -> pl.DataFrame:
        """Sets intervals by the rates of the content type, or else by those of the options."""
        options = context.options
        content_type = pl.coalesce("event.content_type", "content_type")
        mime = content_type.str.split_exact(";", 1).struct.field("field_0").str.strip_chars()
        visits = visits.with_columns(mime=mime.str.to_lowercase())
        names = [name for name, _, _ in self.rates]
        inc, dec = (
            pl.col("mime").replace_strict(
                names, [rate[at] for rate in self.rates], default=usual, return_dtype=pl.Float64
            )
            for at, usual in ((1, options.inc_rate), (2, options.dec_rate))
        )
        return adapt(visits, context, self.hosts, (inc, dec)).drop("mime")


def mime_rates(file: RuleFile) -> tuple[tuple[str, float, float], ...]:
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
