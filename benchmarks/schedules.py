"""Freshness by schedule: two simulated years of 5,000 pages whose changes are known.

``python benchmarks/schedules.py [--small] [--picture FILE.svg]``. Each day the pages that are due
the longest are fetched, up to the fetches a day, and the status machine is updated with the results:
the same functions that the jobs use, with the time given. Freshness is the share of the time for
which the stored body of a live page is the server's, averaged over all live pages.

Beside each result is what a model predicts from the times of the visits and the known rates, with
the standard error. The difference must be less than 3 standard errors.
"""

import dataclasses
import sys
import time

import changing_pages as web
import numpy as np
import polars as pl
from changing_pages import Population
from freshness import (
    Check,
    Times,
    change_check,
    fresh_check,
    fresh_times,
    live_times,
    move_checks,
    successes,
)

from nutbeam.policy.schedules.built_in import built_in_schedule
from nutbeam.policy.schedules.schedule import DAY_MS, Clock, due
from nutbeam.policy.schema import CHANGES, STATE, Status, conform, to_frame
from nutbeam.policy.updating.status import Surroundings, UpdateOptions, update_state
from nutbeam.web.base.clock import EARLIEST_MS
from nutbeam.web.exchange import status as codes

START = EARLIEST_MS + 30 * DAY_MS
SCHEDULES = ("default", "adaptive", "rate")
ANSWERED, AWAY, FAILED, FORBIDDEN = range(4)
LEAST_GAIN = 1.10
# The intervals are so short that all schedules use all fetches; the longest one is a year.
OPTIONS = {"fetch_interval": 20 * 86_400, "max_fetch_interval": 365 * 86_400}


@dataclasses.dataclass
class Visits:
    """All requests of a run, in order of time.

    Attributes:
        page: Number of each page.
        day: When, days since the start.
        answer: What came: ANSWERED, AWAY, FAILED or FORBIDDEN.
        state: The table at the end.
        seconds: How long the run took.
    """

    page: np.ndarray
    day: np.ndarray
    answer: np.ndarray
    state: pl.DataFrame
    seconds: float


def run(pages: Population, schedule: str, fetches: int) -> Visits:
    """Crawls the pages with a schedule."""
    options = UpdateOptions(schedule=schedule, fetches_per_day=float(fetches), **OPTIONS)
    known = Surroundings(pages=len(pages.classes), schedule=built_in_schedule(options))
    state, before = _new_table(pages), _before(pages)
    began, requests = time.perf_counter(), []
    for day in range(int(pages.days)):
        at = _chosen(state, START + day * DAY_MS, fetches, options)
        if not len(at):
            continue
        days = day + np.arange(len(at)) / fetches
        rows = state[np.sort(at)]
        answer, changes = _answers(pages, before, state, at, days)
        requests.append((at, days, answer))
        done, _, _ = update_state(rows, changes, START + (day + 1) * DAY_MS, options, known)
        rest = np.ones(len(state), dtype=bool)
        rest[at] = False
        state = pl.concat([state.filter(rest), done]).sort("key")
    page, days, answer = (np.concatenate(parts) for parts in zip(*requests, strict=True))
    return Visits(page, days, answer, state, time.perf_counter() - began)


def _new_table(pages: Population) -> pl.DataFrame:
    number = np.arange(len(pages.classes))
    frame = pl.DataFrame({"host": pages.host, "page": number}).select(
        key=pl.format("com.h{}:http/{}", _padded("host"), _padded("page")),
        status=pl.lit(int(Status.DB_UNFETCHED)),
        # In an order of their own, as a crawl finds them.
        fetch_time=pl.lit(np.random.default_rng(0).permutation(number) + START - len(number)),
        fetch_interval=pl.lit(OPTIONS["fetch_interval"]),
        retries=pl.lit(0),
        score=pl.lit(1.0),
        distance=pl.lit(0),
    )
    return to_frame(conform(frame, STATE))


def _padded(name: str) -> pl.Expr:
    return pl.col(name).cast(pl.String).str.zfill(6)


def _chosen(state: pl.DataFrame, now: int, fetches: int, options: UpdateOptions) -> np.ndarray:
    """Returns the numbers of the pages that are fetched, those that are due the longest first."""
    ready = state.select("fetch_time", due=due(Clock(now), options)).with_row_index("at")
    ready = ready.filter("due").sort("fetch_time", "at").head(fetches)
    return ready.get_column("at").to_numpy()


def _before(pages: Population) -> np.ndarray:
    """Returns the day of the last change of each page before the start, for Last-Modified."""
    poisson = pages.rates > 0
    conditions = [poisson, pages.classes == "bursts", pages.classes == "periodic"]
    means = [1 / np.where(poisson, pages.rates, 1), web.BURST_EVERY, np.mean(web.PERIODS)]
    before = -np.random.default_rng(19).exponential(np.select(conditions, means, 1.0))
    return np.where(pages.classes == "never", -1_000.0, before)


def _answers(
    pages: Population,
    before: np.ndarray,
    state: pl.DataFrame,
    at: np.ndarray,
    days: np.ndarray,
) -> tuple[np.ndarray, pl.DataFrame]:
    """Returns what the servers answer, and the CHANGES rows of it."""
    versions = np.array(
        [np.searchsorted(pages.changes[p], t, side="right") for p, t in zip(at, days, strict=True)]
    )
    answer = np.array([_answer(pages, p, t) for p, t in zip(at, days, strict=True)])
    signatures = [f"{page}:{version}".encode() for page, version in zip(at, versions, strict=True)]
    old = state.get_column("signature")[at].to_list()
    says = pages.says[pages.host[at]]
    same = (says == "true") & np.array(
        [a == b for a, b in zip(old, signatures, strict=True)], dtype=bool
    )
    ok = answer == ANSWERED
    body = ok & ~same
    fetch = np.select(
        [body, ok, answer == FAILED],
        [codes.FETCH_SUCCESS, codes.FETCH_NOTMODIFIED, codes.FETCH_RETRY],
        codes.FETCH_GONE,
    )
    protocol = np.select(
        [body, ok, answer == FAILED],
        [codes.SUCCESS, codes.NOTMODIFIED, codes.EXCEPTION],
        codes.GONE,
    )
    changed = [
        pages.changes[page][version - 1] if version else before[page]
        for page, version in zip(at, versions, strict=True)
    ]
    said = [_last_modified(word, day) for word, day in zip(says, changed, strict=True)]
    frame = pl.DataFrame(
        {
            "key": state.get_column("key")[at], "order": np.arange(len(at)), "fetch_status": fetch,
            "protocol_status": protocol, "fetch_time": START + (days * DAY_MS).astype(np.int64),
            "signature": signatures, "last_modified": said, "page": ["p"] * len(at),
        }
    ).with_columns(
        pl.when(pl.Series(body)).then(pl.col(name)).alias(name)
        for name in ("signature", "last_modified", "page")
    )  # fmt: skip
    return answer, to_frame(conform(frame, CHANGES))


def _answer(pages: Population, page: int, day: float) -> int:
    host = pages.host[page]
    if day >= pages.dies[host]:
        return FAILED
    if pages.forbids[host] <= day < pages.forbids[host] + web.FORBIDDEN_DAYS:
        return FORBIDDEN
    moved = np.searchsorted(pages.moves[page], day, side="right")
    return AWAY if moved % 2 else ANSWERED


def _last_modified(word: str, day: float) -> str | None:
    """Returns the header of a host; ``day`` is that of the last change."""
    seconds = {"true": START // 1000 + int(day * 86_400), "future": 2_500_000_000, "epoch": 0}
    if word not in seconds:
        return None
    return time.strftime("%a, %d %b %Y %H:%M:%S GMT", time.gmtime(seconds[word]))


@dataclasses.dataclass(frozen=True)
class Result:
    """What a schedule has achieved.

    Attributes:
        name: The schedule.
        visits: Its requests.
        fresh: When pages were live and fresh.
        freshness: The share of live time in which pages were fresh.
        by_class: The same for each class of pages.
        checks: Numbers beside those of the model.
    """

    name: str
    visits: Visits
    fresh: Times
    freshness: float
    by_class: dict[str, float]
    checks: list[Check]


def measure(pages: Population, schedule: str, fetches: int) -> Result:
    """Runs a schedule, and compares its numbers with the model."""
    visits = run(pages, schedule, fetches)
    ok = visits.answer == ANSWERED
    seen = successes(pages, visits.page[ok], visits.day[ok])
    tried = successes(pages, visits.page, visits.day)
    live, fresh = live_times(pages), fresh_times(pages, seen)
    classes = {name: pages.classes == name for name in web.SHARES}
    everything = np.ones(len(pages.classes), dtype=bool)
    checks = [
        fresh_check(pages, seen, fresh),
        *(change_check(pages, seen, name) for name in ("fast", "slow", "come_and_go")),
        *move_checks(pages, tried),
        _dead_check(pages, visits),
    ]
    return Result(
        schedule,
        visits,
        fresh,
        fresh.total(everything) / live.total(everything),
        {name: fresh.total(of) / live.total(of) for name, of in classes.items()},
        checks,
    )


def _dead_check(pages: Population, visits: Visits) -> Check:
    """Compares the pages of dead hosts that the table knows as gone: after three failures."""
    failures = np.bincount(visits.page[visits.answer == FAILED], minlength=len(pages.classes))
    gone = (visits.state.get_column("status") == int(Status.DB_GONE)).to_numpy()
    dead = pages.dies[pages.host] < np.inf
    # A page that was gone before stays gone.
    away = np.array([len(moves) > 0 for moves in pages.moves])
    dead &= ~away
    return Check(
        "pages of dead hosts gone", (gone & dead).sum(), (failures[dead] >= 3).sum(), 0.5
    )  # fmt: skip


def report(results: list[Result]) -> bool:
    """Prints the figures; returns whether all are as they must be."""
    classes = list(web.SHARES)
    print(
        f"{'schedule':10}{'fetches':>9}{'freshness':>11}  " + " ".join(f"{n:>11}" for n in classes)
    )
    for result in results:
        shares = " ".join(f"{result.by_class[name]:>11.3f}" for name in classes)
        print(f"{result.name:10}{len(result.visits.page):>9,}{result.freshness:>11.4f}  {shares}")
    print(
        f"\n{'schedule':10}{'count':28}{'simulated':>12}{'model':>12}{'std. error':>12}{'errors':>8}"
    )
    good = True
    for result in results:
        for check in result.checks:
            good &= abs(check.errors) < 3
            print(f"{result.name:10}{check.name:28}{check.found:>12,.1f}{check.expected:>12,.1f}"
                  f"{check.error:>12,.1f}{check.errors:>8.1f}")  # fmt: skip
    best = {result.name: result.freshness for result in results}
    print()
    for name, freshness in best.items():
        if name != "rate":
            print(f"rate / {name}: {best['rate'] / freshness:.3f} (at least {LEAST_GAIN})")
            good &= best["rate"] >= LEAST_GAIN * freshness
    return good


def draw(pages: Population, results: list[Result], path: str) -> None:
    """Draws freshness over time, and by class of pages."""
    import matplotlib

    matplotlib.use("svg")
    matplotlib.rcParams["svg.hashsalt"] = "schedules"
    from matplotlib import pyplot

    _, (left, right) = pyplot.subplots(1, 2, figsize=(10, 3.6), layout="constrained")
    days = np.arange(0, pages.days + 1, 10)
    live = np.diff(live_times(pages).until(days))
    names = list(web.SHARES)
    for number, result in enumerate(results):
        left.plot(days[1:], np.diff(result.fresh.until(days)) / live, label=result.name)
        places = np.arange(len(names)) + 0.27 * (number - 1)
        right.bar(places, [result.by_class[name] for name in names], 0.27, label=result.name)
    left.set(xlabel="day", ylabel="fresh share of the live pages", ylim=(0, None))
    right.set_xticks(range(len(names)), [name.replace("_", " ") for name in names])
    right.set(ylabel="freshness in two years", ylim=(0, 1))
    left.legend(frameon=False)
    for axes in (left, right):
        axes.spines[["top", "right"]].set_visible(False)
    pyplot.savefig(path, metadata={"Date": None})


def main() -> None:
    """Prints the table, and draws the picture."""
    arguments = sys.argv[1:]
    pages, fetches = web.population(), web.FETCHES_A_DAY
    if "--small" in arguments:
        pages, fetches = web.population(600, 365), 20
    results = [measure(pages, name, fetches) for name in SCHEDULES]
    good = report(results)
    print("seconds: " + ", ".join(f"{r.name} {r.visits.seconds:.0f}" for r in results))
    if "--picture" in arguments:
        draw(pages, results, arguments[arguments.index("--picture") + 1])
    sys.exit(0 if good else 1)


if __name__ == "__main__":
    main()
