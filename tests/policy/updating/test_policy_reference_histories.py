"""Two simulated years of random updates: update_state against the reference, and invariants."""

import functools
import math
from collections import Counter

import pytest
from reference_adapter import differences, outcome_differences
from reference_histories import Web, history
from reference_update import FETCHED, GONE, IS_GONE, ORPHAN, RETRY, SUCCESS, UNFETCHED

LONGEST_WAIT_MS = 30 * 86_400_000
ALL = Web(returning=True, too_long=True)
ORPHANS = Web(pages=100, returning=True, orphans=True)
ADAPTIVE = Web(returning=True, too_long=True, adaptive=True, redirects=True)
REDIRECTED = Web(returning=True, redirects=True)
HISTORIES = [(Web(), 0), (Web(returning=True), 1), (Web(too_long=True), 2), (ALL, 0), (ALL, 1),
             (ORPHANS, 0), (ORPHANS, 2), (ADAPTIVE, 0), (ADAPTIVE, 1), (ADAPTIVE, 2),
             (REDIRECTED, 1)]  # fmt: skip
steps = functools.cache(lambda web, seed: list(history(seed, web)))


@pytest.mark.few(2)
@pytest.mark.parametrize(("web", "seed"), HISTORIES)
def test_two_years_agree(web, seed):
    check(steps(web, seed))


@pytest.mark.long
@pytest.mark.parametrize("seed", range(3, 33))
@pytest.mark.parametrize("orphans", [False, True])
@pytest.mark.parametrize("adaptive", [False, True])
def test_two_years_of_frequent_updates_agree(seed, orphans, adaptive):
    web = Web(pages=200, gap_days=1.0, returning=True, too_long=True, orphans=orphans,
              adaptive=adaptive, redirects=adaptive)  # fmt: skip
    check(history(seed, web))


def check(history_of_table):
    failures = Counter()
    for step in history_of_table:
        assert differences(step.product, step.reference) == []
        assert outcome_differences(step.product, step.reference) == []
        check_rows(step)
        check_retries(step, failures)


def check_rows(step):
    """No URL is lost, dates are after the fetch and within bounds, scores add up."""
    rows, limits = step.product.rows, step.rules.limits
    linked = {key for key, score in step.links.items() if score}
    assert rows.keys() >= step.before.keys() | linked
    for key, row in rows.items():
        before = step.before.get(key, {"score": 0.0})
        assert math.isfinite(row["score"])
        assert row["score"] == before["score"] + step.links[key]
    for key, event in step.fetched.items():
        row, wait = rows[key], rows[key]["fetch_time"] - event["fetch_time"]
        assert row["last_fetch_time"] == event["fetch_time"]
        longest = max(limits.max_fetch_interval, row["fixed_interval"] or 0)
        assert 0 <= wait <= max(LONGEST_WAIT_MS, longest * 1000)
        failed = event["fetch_status"] == RETRY and row["retries"] >= limits.retry_max
        if row["status"] == GONE and (failed or event["fetch_status"] == IS_GONE):
            # It comes back, after a while that grows, and is bounded.
            was = step.before[key]["fetch_interval"]
            shortened = limits.max_fetch_interval * 9 // 10
            assert wait == row["fetch_interval"] * 1000
            assert row["fetch_interval"] in ((was * 3 + 1) // 2, shortened)
    for key in rows.keys() & step.before.keys() - step.fetched.keys():
        assert rows[key]["fetch_time"] == step.before[key]["fetch_time"]


def check_retries(step, failures):
    """Retries count failures in a row, and an URL is gone after as many as the options say."""
    judged = (GONE, ORPHAN) if step.rules.orphan_days else ()
    for key, event in step.fetched.items():
        row = step.product.rows[key]
        failures[key] = failures[key] + 1 if event["fetch_status"] == RETRY else 0
        before = (step.before[key]["retries"] or 0) if key in step.before else 0
        assert 0 <= row["retries"] <= before + (event["fetch_status"] == RETRY)
        if event["fetch_status"] == SUCCESS and event["parse_status"] == 1:
            assert row["retries"] == 0
        if event["fetch_status"] == RETRY:
            assert row["retries"] >= failures[key]
            gone = row["retries"] >= step.rules.limits.retry_max
            assert row["status"] in {GONE if gone else UNFETCHED, *judged}


def test_histories_reach_every_status_and_revive_gone_pages():
    statuses, revived = set(), 0
    for step in (step for seed in range(2) for step in steps(ALL, seed)):
        statuses |= {row["status"] for row in step.reference.rows.values()}
        revived += sum(
            outcome["old_status"] == GONE and outcome["status"] == FETCHED
            for outcome in step.reference.outcomes.values()
        )
    assert statuses == set(range(1, 10))
    assert revived > 20
