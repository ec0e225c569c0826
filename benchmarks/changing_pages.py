"""Pages whose changes are known: the population of ``schedules.py``.

The population and the fetches a day were committed before any schedule was measured on it, and have
not been changed since. A page is of one of six classes; the shares follow what studies of the web
report: about a quarter of all pages change at least daily, and about a third hardly ever (Cho and
Garcia-Molina, "The Evolution of the Web and Implications for an Incremental Crawler", 2000).

Times are days since the start.
"""

import dataclasses

import numpy as np

DAYS = 730
PAGES = 5_000
PAGES_PER_HOST = 20
# What Nutch's default schedule needs with its default interval of 30 days.
FETCHES_A_DAY = 167
SEED = 18

SHARES = {
    "never": 0.30,  # the page does not change
    "fast": 0.25,  # Poisson, 1 to 8 changes a day: front pages, tickers, pages with a clock
    "slow": 0.25,  # Poisson, one change in 5 to 60 days
    "periodic": 0.075,  # every day, every 7 days or every 30 days, to the hour
    "bursts": 0.075,  # 12 changes, one in 4 hours; one burst in 40 days on average
    "come_and_go": 0.05,  # there for 90 days, away for 30 days on average; a change in 30 days
}
PERIODS = (1.0, 7.0, 30.0)
BURST_CHANGES, BURST_STEP, BURST_EVERY = 12, 4 / 24, 40.0
THERE, AWAY, CHANGED_EVERY = 90.0, 30.0, 30.0

# Shares of hosts.
DYING = 0.04  # from some day on no request is answered
FORBIDDING = 0.04  # robots.txt forbids all pages, for 120 days
FORBIDDEN_DAYS = 120.0
# What hosts say in Last-Modified: the truth, a time in the future, 1 January 1970; else nothing.
LAST_MODIFIED = {"true": 0.50, "future": 0.05, "epoch": 0.05}


@dataclasses.dataclass(frozen=True)
class Population:
    """Pages, and everything that happens to them.

    Attributes:
        classes: Class of each page.
        rates: Changes a day of each Poisson page, ``come_and_go`` among them; else 0.
        changes: Days of the changes of each page, ascending.
        moves: Days on which a page goes and comes back, alternately, ascending.
        host: Number of the host of each page.
        dies: Day on which each host dies; infinite: never.
        forbids: First day on which each host forbids all; infinite: never.
        says: What each host says in Last-Modified: a name of ``LAST_MODIFIED``, or "nothing".
        days: How long it is observed.
    """

    classes: np.ndarray
    rates: np.ndarray
    changes: list[np.ndarray]
    moves: list[np.ndarray]
    host: np.ndarray
    dies: np.ndarray
    forbids: np.ndarray
    says: np.ndarray
    days: float


def population(pages: int = PAGES, days: float = DAYS, seed: int = SEED) -> Population:
    """Makes the pages; the same arguments make the same pages."""
    random = np.random.default_rng(seed)
    names = list(SHARES)
    bounds = np.round(np.cumsum(list(SHARES.values())) * pages).astype(int)
    classes = np.array(names)[np.searchsorted(bounds, np.arange(pages), side="right")]
    random.shuffle(classes)
    rates = _rates(classes, random)
    changes = [
        _changes(name, rate, days, random) for name, rate in zip(classes, rates, strict=True)
    ]
    moves = [_moves(days, random) if name == "come_and_go" else np.empty(0) for name in classes]
    hosts = -(-pages // PAGES_PER_HOST)
    order = random.permutation(hosts)
    dying, forbidding = round(DYING * hosts), round(FORBIDDING * hosts)
    dies, forbids = np.full(hosts, np.inf), np.full(hosts, np.inf)
    dies[order[:dying]] = random.uniform(0, days, dying)
    forbids[order[dying : dying + forbidding]] = random.uniform(0, days, forbidding)
    shares = [*LAST_MODIFIED.values(), 1 - sum(LAST_MODIFIED.values())]
    says = random.choice([*LAST_MODIFIED, "nothing"], hosts, p=shares)
    host = np.arange(pages) // PAGES_PER_HOST
    return Population(classes, rates, changes, moves, host, dies, forbids, says, days)


def _rates(classes: np.ndarray, random: np.random.Generator) -> np.ndarray:
    rates = np.zeros(len(classes))
    for name, low, high in (("fast", 1.0, 8.0), ("slow", 1 / 60, 1 / 5)):
        chosen = classes == name
        rates[chosen] = np.exp(random.uniform(np.log(low), np.log(high), chosen.sum()))
    rates[classes == "come_and_go"] = 1 / CHANGED_EVERY
    return rates


def _changes(name: str, rate: float, days: float, random: np.random.Generator) -> np.ndarray:
    """Returns the days of the changes of a page."""
    if name == "never":
        return np.empty(0)
    if name == "periodic":
        period = random.choice(PERIODS)
        return np.arange(random.uniform(0, period), days, period)
    if name == "bursts":
        starts = _poisson(1 / BURST_EVERY, days, random)
        times = (starts[:, None] + BURST_STEP * np.arange(BURST_CHANGES)).ravel()
        return np.sort(times[times < days])
    return _poisson(rate, days, random)


def _poisson(rate: float, days: float, random: np.random.Generator) -> np.ndarray:
    return np.sort(random.uniform(0, days, random.poisson(rate * days)))


def _moves(days: float, random: np.random.Generator) -> np.ndarray:
    """Returns the days on which a page goes and comes back; at first it is there."""
    number = int(4 * days / (THERE + AWAY)) + 20
    stays = random.exponential(np.tile([THERE, AWAY], number))
    moves = np.cumsum(stays)
    return moves[moves < days]
