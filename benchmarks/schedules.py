"""Freshness by schedule: two simulated years of 5,000 pages whose changes are known.

``python benchmarks/schedules.py [--small] [--crawl] [--only NAME ...] [--picture FILE.svg]``. Each day
the pages that are due the longest are fetched, up to the fetches a day, and the status machine is
updated with the results: the same functions that the jobs use, with the time given. Freshness is the
share of the time for which the stored body of a live page is the server's, averaged over all live
pages.

Beside each result is what a model predicts from the times of the visits and the known rates, with
the standard error. The difference must be less than 3 standard errors.

With ``--crawl`` the jobs themselves do the same, too (``crawled_pages.py``): servers on loopback
answer as the pages do, and each day is a round of ``crawl``. Freshness is then that of the bodies in
the table. The counts must be those of the frames and of the model, within 3 standard errors.
"""

import argparse
import dataclasses
import pathlib
import sys
import tempfile
import time
from typing import Any

import changing_pages as web
import longest_due
import numpy as np
import polars as pl
from changing_pages import Population
from changing_site import (
    ANSWERED,
    FAILED,
    FORBIDDEN,
    START,
    answer_of,
    days_before,
    key_of,
    last_modified,
    version_of,
)
from crawled_pages import Years
from freshness import (
    Check,
    Times,
    change_check,
    fresh_check,
    fresh_times,
    held_times,
    live_times,
    move_checks,
    successes,
)

from nutbeam.policy.components.schema import CHANGES, STATE, Status, conform, to_frame
from nutbeam.policy.schedules.reschedule import built_in_schedule
from nutbeam.policy.schedules.schedule import DAY_MS, due
from nutbeam.policy.updating.range_facts import RangeFacts
from nutbeam.policy.updating.status import update_state
from nutbeam.policy.updating.update_rules import UpdateRules, UpdateTableOptions
from nutbeam.web.base.clock import Clock
from nutbeam.web.exchange import status as codes

SCHEDULES = ("default", "adaptive", "rate")
LEAST_GAIN = 1.10  # of the whole; in fewer days rate learns less
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


def run(pages: Population, schedule: str, fetches: int, *, at_once: bool = False) -> Visits:
    """Crawls the pages with a schedule.

    Args:
        pages: The pages.
        schedule: Name of the schedule.
        fetches: How many a day.
        at_once: Whether all fetches of a day are at its beginning, and pages that are due equally
            long come in the order of generate, as in ``crawled_pages.py``; otherwise they are
            spread over the day.
    """
    options = UpdateTableOptions(**settings(schedule, fetches))
    rules = UpdateRules(options, schedule=built_in_schedule(options))
    state, before = _new_table(pages, at_once=at_once), days_before(pages)
    began, requests = time.perf_counter(), []
    for day in range(int(pages.days)):
        ready = _ready(state, START + day * DAY_MS, options)
        ready = longest_due.in_order(ready) if at_once else ready.sort("fetch_time", "at")
        at = ready.get_column("at").head(fetches).to_numpy()
        if not len(at):
            continue
        days = day + (np.zeros(len(at)) if at_once else np.arange(len(at)) / fetches)
        rows = state[np.sort(at)]
        answer, changes = _answers(pages, before, state, at, days)
        requests.append((at, days, answer))
        done, *_ = update_state(
            rows,
            changes,
            RangeFacts(START + (day + 1) * DAY_MS, table_rows=len(pages.classes)),
            rules,
        )
        rest = np.ones(len(state), dtype=bool)
        rest[at] = False
        state = pl.concat([state.filter(rest), done]).sort("key")
    page, days, answer = (np.concatenate(parts) for parts in zip(*requests, strict=True))
    return Visits(page, days, answer, state, time.perf_counter() - began)


def settings(schedule: str, fetches: int) -> dict[str, Any]:
    """Returns the options of update with which a schedule is measured."""
    return {"schedule": schedule, "fetches_per_day": float(fetches), **OPTIONS}


def _new_table(pages: Population, *, at_once: bool) -> pl.DataFrame:
    number = np.arange(len(pages.classes))
    # In an order of their own, as a crawl finds them.
    order = np.random.default_rng(0).permutation(number) - len(number)
    frame = pl.DataFrame({"key": map(key_of, pages.host, number)}).with_columns(
        status=pl.lit(int(Status.DB_UNFETCHED)),
        fetch_time=pl.lit(START + (np.zeros_like(order) if at_once else order)),
        fetch_interval=pl.lit(OPTIONS["fetch_interval"]),
        retries=pl.lit(0),
        score=pl.lit(1.0),
        distance=pl.lit(0),
    )
    return to_frame(conform(frame, STATE))


def _ready(state: pl.DataFrame, now: int, options: UpdateTableOptions) -> pl.DataFrame:
    """Returns key, due time and number (``at``) of the pages that are due."""
    rows = state.select("key", "fetch_time", due=due(Clock(now), options))
    return rows.with_row_index("at").filter("due")


def _answers(
    pages: Population,
    before: np.ndarray,
    state: pl.DataFrame,
    at: np.ndarray,
    days: np.ndarray,
) -> tuple[np.ndarray, pl.DataFrame]:
    """Returns what the servers answer, and the CHANGES rows of it."""
    visits = list(zip(at, days, strict=True))
    versions = np.array([version_of(pages, page, day) for page, day in visits])
    answer = np.array([answer_of(pages, page, day) for page, day in visits])
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
        [body, ok, answer == FAILED, answer == FORBIDDEN],
        [codes.SUCCESS, codes.NOTMODIFIED, codes.EXCEPTION, codes.ROBOTS_DENIED],
        codes.GONE,
    )
    said = [
        last_modified(pages, before, page, version)
        for page, version in zip(at, versions, strict=True)
    ]
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


def measure(pages: Population, schedule: str, fetches: int, *, at_once: bool = False) -> Result:
    """Runs a schedule on frames, and compares its numbers with the model; see ``run``."""
    visits = run(pages, schedule, fetches, at_once=at_once)
    ok = visits.answer == ANSWERED
    seen = successes(pages, visits.page[ok], visits.day[ok])
    return result_of(pages, schedule, visits, fresh_times(pages, seen))


def measure_crawl(pages: Population, schedule: str, fetches: int) -> Result:
    """Runs a schedule with the jobs, and compares what the table held with the model."""
    with tempfile.TemporaryDirectory(prefix="schedules-") as folder:
        years = Years(pages, settings(schedule, fetches), fetches, pathlib.Path(folder))
        found = years.run(schedule)
    visits = Visits(found.page, found.day, found.answer, found.state, found.seconds)
    held = held_times(pages, found.held_page, found.held_day, found.held_version)
    return result_of(pages, schedule, visits, held)


def result_of(pages: Population, name: str, visits: Visits, fresh: Times) -> Result:
    """Compares the numbers of a run with the model.

    Args:
        pages: The pages.
        name: The schedule.
        visits: All requests.
        fresh: When pages were live and fresh.
    """
    ok = visits.answer == ANSWERED
    seen = successes(pages, visits.page[ok], visits.day[ok])
    tried = successes(pages, visits.page, visits.day)
    live = live_times(pages)
    classes = {name: pages.classes == name for name in web.SHARES}
    everything = np.ones(len(pages.classes), dtype=bool)
    checks = [
        fresh_check(pages, seen, fresh),
        *(change_check(pages, seen, name) for name in ("fast", "slow", "come_and_go")),
        *move_checks(pages, tried),
        _dead_check(pages, visits),
    ]
    return Result(
        name,
        visits,
        fresh,
        fresh.total(everything) / live.total(everything),
        {name: fresh.total(of) / live.total(of) for name, of in classes.items()},
        checks,
    )


def _dead_check(pages: Population, visits: Visits) -> Check:
    """Compares the pages of dead hosts that the table knows as gone: after three failures.

    Both numbers are of the same visits, so this is a check of bookkeeping, not of the schedule.
    """
    failures = np.bincount(visits.page[visits.answer == FAILED], minlength=len(pages.classes))
    gone = (visits.state.get_column("status") == int(Status.DB_GONE)).to_numpy()
    dead = pages.dies[pages.host] < np.inf
    # A page that was gone before stays gone.
    away = np.array([len(moves) > 0 for moves in pages.moves])
    dead &= ~away
    return Check(
        "pages of dead hosts gone *", (gone & dead).sum(), (failures[dead] >= 3).sum(), 0.5
    )  # fmt: skip


def fetches_fit(name: str, number: int, budget: int) -> bool:
    """Returns whether a schedule made the fetches that the model predicts.

    More pages are always due than the fetches of a day, so the model predicts all of them. ``rate``
    divides them among the pages by itself. It uses less, because a page waits until the day after it
    is due, and because dead pages have a share.

    Args:
        name: The schedule.
        number: Of its fetches.
        budget: Fetches that it could make.
    """
    return 0.9 * budget <= number <= budget if name == "rate" else number == budget


def report(results: list[Result], gain: float, budget: int) -> bool:
    """Prints the figures; returns whether all are as they must be.

    Args:
        results: The schedules.
        gain: Least freshness of ``rate``, as a share of each other one's.
        budget: Fetches that each schedule could make.
    """
    classes = list(web.SHARES)
    print(
        f"{'schedule':10}{'fetches':>9}{'freshness':>11}  " + " ".join(f"{n:>11}" for n in classes)
    )
    for result in results:
        shares = " ".join(f"{result.by_class[name]:>11.3f}" for name in classes)
        print(f"{result.name:10}{len(result.visits.page):>9,}{result.freshness:>11.4f}  {shares}")
    print(f"{'at most':10}{budget:>9,}")
    print(
        f"\n{'schedule':10}{'count':28}{'simulated':>12}{'model':>12}{'std. error':>12}{'errors':>8}"
    )
    good = all(fetches_fit(each.name, len(each.visits.page), budget) for each in results)
    for result in results:
        for check in result.checks:
            good &= abs(check.errors) < 3
            print(f"{result.name:10}{check.name:28}{check.found:>12,.1f}{check.expected:>12,.1f}"
                  f"{check.error:>12,.1f}{check.errors:>8.1f}")  # fmt: skip
    print("* of the same visits: only checks that three failures in the visits make a page gone")
    best = {result.name: result.freshness for result in results}
    print()
    for name, freshness in best.items():
        if name != "rate" and "rate" in best:
            print(f"rate / {name}: {best['rate'] / freshness:.3f} (at least {gain})")
            good &= best["rate"] >= gain * freshness
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


def compare(crawled: list[Result], framed: list[Result]) -> bool:
    """Prints the counts of the jobs beside those of the frames; returns whether they agree."""
    print(f"\n{'schedule':10}{'count':28}{'jobs':>12}{'frames':>12}{'std. error':>12}")
    good = True
    for jobs, frames in zip(crawled, framed, strict=True):
        number, other = len(jobs.visits.page), len(frames.visits.page)
        good &= abs(number - other) <= 3 * other**0.5
        print(f"{jobs.name:10}{'fetches':28}{number:>12,}{other:>12,}{other**0.5:>12,.1f}")
        for check, wanted in zip(jobs.checks, frames.checks, strict=True):
            good &= abs(check.found - wanted.found) <= 3 * wanted.error
            print(f"{jobs.name:10}{check.name:28}{check.found:>12,.1f}{wanted.found:>12,.1f}"
                  f"{wanted.error:>12,.1f}")  # fmt: skip
        print(f"{jobs.name:10}{'freshness':28}{jobs.freshness:>12.4f}{frames.freshness:>12.4f}")
    return good


def main() -> None:
    """Prints the table, and draws the picture."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument(
        "--small", action="store_true", help="600 pages, a year; with --crawl 300 pages, 60 days"
    )
    parser.add_argument("--crawl", action="store_true", help="with the jobs, over HTTP, too")
    parser.add_argument("--only", choices=SCHEDULES, nargs="+", default=SCHEDULES)
    parser.add_argument("--picture", help="file for the picture, SVG")
    arguments = parser.parse_args()
    *size, fetches = web.PAGES, web.DAYS, web.FETCHES_A_DAY
    if arguments.small:
        *size, fetches = (300, 60, 15) if arguments.crawl else (600, 365, 20)
    pages = web.population(*size)
    results = [measure(pages, name, fetches, at_once=arguments.crawl) for name in arguments.only]
    gain = 1.0 if arguments.small else LEAST_GAIN
    budget = int(pages.days) * fetches
    good = report(results, gain, budget)
    if arguments.crawl:
        print("\nWith the jobs, over HTTP:")
        crawled = [measure_crawl(pages, name, fetches) for name in arguments.only]
        good &= report(crawled, gain, budget)
        good &= compare(crawled, results)
        print("seconds: " + ", ".join(f"{r.name} {r.visits.seconds:.0f}" for r in crawled))
    else:
        print("seconds: " + ", ".join(f"{r.name} {r.visits.seconds:.0f}" for r in results))
    if arguments.picture:
        draw(pages, results, arguments.picture)
    sys.exit(0 if good else 1)


if __name__ == "__main__":
    main()
