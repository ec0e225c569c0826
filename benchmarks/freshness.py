"""How fresh the visits of ``schedules.py`` have kept a table, and what a model predicts."""

import dataclasses
import itertools

import changing_pages as web
import numpy as np
from changing_pages import Population

Interval = tuple[float, float]


@dataclasses.dataclass(frozen=True)
class Check:
    """A number of the simulation beside that of the model.

    Attributes:
        name: What was counted.
        found: By the simulation.
        expected: By the model.
        error: The standard error of the expected number.
    """

    name: str
    found: float
    expected: float
    error: float

    @property
    def errors(self) -> float:
        """The difference in standard errors."""
        return (self.found - self.expected) / self.error if self.error else 0.0


@dataclasses.dataclass(frozen=True)
class Times:
    """Intervals of pages: when each page was live, or live and fresh.

    Attributes:
        page: Number of the page.
        begin: Days.
        end: Days.
    """

    page: np.ndarray
    begin: np.ndarray
    end: np.ndarray

    def total(self, chosen: np.ndarray) -> float:
        """Returns the days of the chosen pages."""
        of = chosen[self.page]
        return float((self.end[of] - self.begin[of]).sum())

    def until(self, days: np.ndarray) -> np.ndarray:
        """Returns the total of the days up to each of the given ones."""
        return _ramp(self.begin, days) - _ramp(self.end, days)


def _ramp(starts: np.ndarray, days: np.ndarray) -> np.ndarray:
    starts = np.sort(starts)
    sums = np.concatenate([[0.0], np.cumsum(starts)])
    number = np.searchsorted(starts, days)
    return number * days - sums[number]


def live_parts(pages: Population, page: int) -> list[Interval]:
    """Returns when a page could be fetched: there, its host up, and robots.txt allowing it."""
    host = pages.host[page]
    edges = [0.0, *pages.moves[page], pages.days]
    there = [(edges[n], edges[n + 1]) for n in range(0, len(edges) - 1, 2)]
    shut = (pages.forbids[host], pages.forbids[host] + web.FORBIDDEN_DAYS)
    parts = [*(cut(there, 0.0, shut[0])), *cut(there, shut[1], pages.days)]
    return cut(parts, 0.0, pages.dies[host])


def cut(parts: list[Interval], begin: float, end: float) -> list[Interval]:
    """Returns the parts of intervals that are within another one."""
    clipped = ((max(a, begin), min(b, end)) for a, b in parts)
    return [(a, b) for a, b in clipped if a < b]


def successes(pages: Population, page: np.ndarray, day: np.ndarray) -> list[np.ndarray]:
    """Returns the days of the visits of each page."""
    order = np.lexsort((day, page))
    ends = np.searchsorted(page[order], np.arange(len(pages.classes) + 1))
    return [day[order[a:b]] for a, b in itertools.pairwise(ends)]


def live_times(pages: Population) -> Times:
    """Returns when pages were live."""
    return _times((page, live_parts(pages, page)) for page in range(len(pages.classes)))


def fresh_times(pages: Population, seen: list[np.ndarray]) -> Times:
    """Returns when pages were live, and their newest stored body that of the server."""

    def parts(page: int) -> list[Interval]:
        days, changes = seen[page], np.append(pages.changes[page], np.inf)
        stale = changes[np.searchsorted(changes, days, side="right")]
        ends = np.minimum(stale, np.append(days, pages.days)[1:])
        live = live_parts(pages, page)
        return [part for a, b in zip(days, ends, strict=True) for part in cut(live, a, b)]

    return _times((page, parts(page)) for page in range(len(pages.classes)))


def held_times(pages: Population, page: np.ndarray, day: np.ndarray, version: np.ndarray) -> Times:
    """Returns when pages were live, and the body that a table held was that of the server.

    Args:
        pages: The pages.
        page: Number of the page of each body.
        day: Since when the table held it, until the next body of the page.
        version: How often the page had changed before.
    """
    held = successes(pages, page, day)
    order = np.lexsort((day, page))
    known = np.split(version[order], np.cumsum([len(days) for days in held])[:-1])

    def parts(number: int) -> list[Interval]:
        edges = [0.0, *pages.changes[number], pages.days]
        live, found = live_parts(pages, number), []
        ends = [*held[number], pages.days][1:]  # none of a page that the table never held
        for begin, end, which in zip(held[number], ends, known[number], strict=True):
            found += cut(live, max(begin, edges[which]), min(end, edges[which + 1]))
        return found

    return _times((number, parts(number)) for number in range(len(pages.classes)))


def _times(parts: object) -> Times:
    rows = [(page, a, b) for page, some in parts for a, b in some]  # type: ignore[attr-defined]
    page, begin, end = (np.array(column) for column in zip(*rows, strict=True))
    return Times(page.astype(int), begin, end)


def fresh_check(pages: Population, seen: list[np.ndarray], fresh: Times) -> Check:
    """Compares the fresh days of pages that change as a Poisson process.

    Given the visits so far, the next change comes after an exponential time, whatever the
    schedule. So the differences between found and expected days are independent of one another
    on average (a martingale), and their variances add up.
    """
    poisson = np.isin(pages.classes, ("fast", "slow", "come_and_go"))
    expected = variance = 0.0
    for page in np.flatnonzero(poisson):
        rate, live = pages.rates[page], live_parts(pages, page)
        for a, b in itertools.pairwise([*seen[page], pages.days]):
            expected += sum(
                np.exp(-rate * (c - a)) - np.exp(-rate * (d - a)) for c, d in cut(live, a, b)
            ) / rate  # fmt: skip
            gap = rate * (b - a)
            mean = -np.expm1(-gap)
            variance += (2 * (mean - gap * np.exp(-gap)) - mean**2) / rate**2
    return Check("fresh days", fresh.total(poisson), expected, variance**0.5)


def change_check(pages: Population, seen: list[np.ndarray], name: str) -> Check:
    """Compares the number of visits that found a change of a Poisson page."""
    found = expected = variance = 0.0
    for page in np.flatnonzero(pages.classes == name):
        changes = np.searchsorted(pages.changes[page], seen[page], side="right")
        found += (np.diff(changes) > 0).sum()
        chance = -np.expm1(-pages.rates[page] * np.diff(seen[page]))
        expected += chance.sum()
        variance += (chance * (1 - chance)).sum()
    return Check(f"changes found, {name}", found, expected, variance**0.5)


def move_checks(pages: Population, tried: list[np.ndarray]) -> list[Check]:
    """Compares how often pages that come and go were found dead, and revived.

    Each is a chain of two states; hosts that die or forbid pages are left out.
    """
    going, coming = 1 / web.THERE, 1 / web.AWAY
    sums = np.zeros((2, 3))
    kept = np.isinf(np.minimum(pages.dies, pages.forbids))[pages.host]
    for page in np.flatnonzero((pages.classes == "come_and_go") & kept):
        days = np.concatenate([[0.0], tried[page]])
        away = np.searchsorted(pages.moves[page], days, side="right") % 2
        settled = -np.expm1(-(going + coming) * np.diff(days))
        for now, share in ((0, going), (1, coming)):
            at = away[:-1] == now
            chance = settled[at] * share / (going + coming)
            found = (away[1:][at] != now).sum()
            sums[now] += found, chance.sum(), (chance * (1 - chance)).sum()
    names = ("pages found dead", "pages found revived")
    return [
        Check(name, found, expected, variance**0.5)
        for name, (found, expected, variance) in zip(names, sums, strict=True)
    ]
