"""The schedule ``rate``, one page at a time, in plain Python: the reference for histories.

It is written from docs/guides/recrawling.md, and from the docstrings that define what the guide only
names (module ``rate_schedule`` of policy/schedules). It shares no
code with them, and uses other methods: exact sums of 50 digits where the product guards against lost
digits, and halving where it has Newton's method.

What is known of a page's changes a day is a gamma distribution (shape, days), kept as floats of 32
bits. Where the guide leaves a choice:

- Before the first visit it is (0.15, 0.7), and so it is if another schedule has left numbers that are
  not above 0.
- A visit after no change adds its days to ``days``. A change at a known time adds 1 to the shape, and
  the days since then to ``days``. After a change at an unknown time the distribution has the mean and
  the variance of the exact posterior. Two visits are at least a second apart.
- A change at an unknown time teaches nothing if the last request brought no content: it failed, or
  was redirected. A 304 brings content.
- The first fetch is one after a change at a known time, if the server or else the sitemap says when.
  A Last-Modified that is less than a minute old was made for the answer, and says nothing.
- All pages have the same gain of one more fetch, the threshold. It is that of 64 pages whose rates are
  known, and are spread evenly over all orders of magnitude from a change in 3,000 days to one an hour.
- If a page was seen to change at an unknown time, or is younger at its first fetch than the threshold
  says, it is fetched again after the threshold, until its shape is 2.
"""

import dataclasses
import functools
import math
from decimal import Decimal, localcontext

from reference_dates import EARLIEST_CHANGE_MS, last_modified_of_server
from reference_rates import root
from reference_schedules import DAY_S, MODIFIED, NOTMODIFIED, Limits, Row, rounded

DAY_MS = DAY_S * 1000
PRIOR = (0.15, 0.7)  # PRIOR_SHAPE and PRIOR_DAYS of rate_schedule
WELL_KNOWN = 2.0  # _WELL_KNOWN of rate_schedule
MADE_FOR_ANSWER_MS = 60_000
HAS_CONTENT = (1, 21)  # protocol status: success, not modified
SLOWEST, FASTEST, PAGES = 1 / 3000, 24.0, 64
Known = tuple[float, float]


@dataclasses.dataclass(frozen=True)
class Rate:
    """Settings of the schedule.

    Attributes:
        fetches_per_day: Of the whole table; 0: one of each page in the usual interval.
    """

    fetches_per_day: float = 0.0
    min_interval: int = 60
    max_interval: int = 31_536_000

    def bounds(self, limits: Limits) -> tuple[float, float]:
        """Returns the shortest and the longest interval, in days."""
        longest = min(self.max_interval, limits.max_fetch_interval)
        return min(self.min_interval, longest) / DAY_S, longest / DAY_S

    def mean_interval(self, limits: Limits, pages: int) -> float:
        """Returns the days between two fetches of a page that the budget allows on average."""
        every = pages / self.fetches_per_day if self.fetches_per_day else None
        return every or limits.fetch_interval / DAY_S


def rate_schedule(
    settings: Rate, limits: Limits, pages: int, old: Row, event: Row, change: str
) -> tuple[float, int, Known]:
    """Returns (interval in s, due time in ms, what is known of the rate) after a visit.

    Args:
        settings: Settings of the schedule.
        limits: Limits of all schedules.
        pages: Number of rows of the table.
        old: The row before the visit.
        event: The result of the visit.
        change: The kind of change.
    """
    fetched, last = event["fetch_time"], old.get("last_fetch_time")
    age = age_of(old, event)
    shape, days = known = learnt(
        old, change, age, None if last is None else (fetched - last) / DAY_MS
    )
    least, most = settings.bounds(limits)
    price = threshold(settings.mean_interval(limits, pages), least, most)
    interval = best_interval(price, known, least, most)
    new = last is None and age is not None and age < price
    if shape < WELL_KNOWN and (new or (change == MODIFIED and age is None)):
        interval = max(min(price, interval), least)
    seconds = old.get("fixed_interval") or interval * DAY_S
    return seconds, fetched + rounded(seconds * 1000), (shape, days)


def age_of(old: Row, event: Row) -> float | None:
    """Returns for how many days the content is as it is now, if the server or a sitemap says it."""
    fetched, said = event["fetch_time"], last_modified_of_server(old, event)
    of_sitemap = old.get("modified_time")
    if said is None and old.get("last_fetch_time") is None and of_sitemap is not None:
        said = of_sitemap if EARLIEST_CHANGE_MS <= of_sitemap <= fetched else None
    if said is None or fetched - said < MADE_FOR_ANSWER_MS:
        return None
    return (fetched - said) / DAY_MS


def learnt(old: Row, change: str, age: float | None, elapsed: float | None) -> Known:
    """Returns what is known of a page's rate after a visit.

    Args:
        old: The row before the visit.
        change: The kind of change.
        age: Days since the last change, if its time is known.
        elapsed: Days since the last fetch; None: there was none.
    """
    shape, days = (old.get(name) or 0.0 for name in ("change_shape", "change_days"))
    if not (0 < shape < math.inf and 0 < days < math.inf):
        shape, days = PRIOR
    if change == NOTMODIFIED:
        days += elapsed or 0.0
    if age is not None and (change == MODIFIED or elapsed is None):
        return shape + 1, days + age
    if change == MODIFIED and old["protocol_status"] in HAS_CONTENT:
        return after_change(shape, days, max(elapsed or 0.0, 1 / DAY_S))
    return shape, days


def after_change(shape: float, days: float, elapsed: float) -> Known:
    """Returns the gamma distribution with mean and variance of a rate after a change.

    The density of a rate r is that of the gamma distribution times 1 - exp(-r * elapsed).

    >>> [round(number, 2) for number in after_change(1.0, 10.0, 1e-3)]  # at a known time
    [2.0, 10.0]
    """
    with localcontext() as context:
        context.prec = 50
        s, d, later = Decimal(shape), Decimal(days), Decimal(days) + Decimal(elapsed)
        none, one, two = (d ** -(s + n) - later ** -(s + n) for n in range(3))
        mean = s * one / none
        variance = s * (s + 1) * two / none - mean**2
        return float(mean**2 / variance), float(mean / variance)


def gain(interval: float, known: Known) -> float:
    """Returns the days of freshness that one more fetch gains, for a page of which this is known.

    After t days the page is the same with probability S = (1 + t / days) ** -shape. The gain is the
    integral of S from 0 to the interval, less the interval times S at its end.

    >>> round(gain(30.0, (1e6, 3e7)), 2)
    7.93
    """
    shape, days = known
    log = math.log1p(interval / days)
    power = (1 - shape) * log
    integral = days * log * (math.expm1(power) / power if power else 1.0)
    return integral - interval * math.exp(-shape * log)


def best_interval(price: float, known: Known, shortest: float, longest: float) -> float:
    """Returns the interval in days, within bounds, at which one more fetch gains the price."""
    if gain(shortest, known) >= price:
        return shortest
    if gain(longest, known) <= price:
        return longest
    low, high = math.log(shortest), math.log(longest)
    return math.exp(root(lambda at: price - gain(math.exp(at), known), low, high, 45))


@functools.cache
def threshold(every: float, shortest: float, longest: float, pages: int = PAGES) -> float:
    """Returns the gain in days at which pages of all rates are fetched once in ``every`` days.

    >>> round(threshold(30.0, 0.01, 365.0), 1)
    2.6
    """
    steps = [at / (pages - 1) for at in range(pages)]
    rates = [SLOWEST * (FASTEST / SLOWEST) ** step for step in steps]

    def surplus(logarithm: float) -> float:
        price = math.exp(logarithm)
        often = sum(1 / _known_best(price, rate, shortest, longest) for rate in rates)
        return often / pages - 1 / every

    return math.exp(root(surplus, math.log(1e-9), math.log(1e6), 40))


def _known_best(price: float, rate: float, shortest: float, longest: float) -> float:
    def missing(logarithm: float) -> float:
        x = rate * math.exp(logarithm)
        return price * rate - (-math.expm1(-x) - x * math.exp(-x))

    low, high = math.log(shortest), math.log(longest)
    if missing(low) <= 0 or missing(high) >= 0:
        return shortest if missing(low) <= 0 else longest
    return math.exp(root(missing, low, high, 40))
