"""When update makes a page due again: intervals, failures, Retry-After, stale results."""

import pytest
from file_changes import update_state
from frames import frame_of
from status_rows import BEFORE, MONTH, NOW, OPTIONS, TABLE, A, B, event, linked, old_row, one

from nutbeam.policy.components.schema import CHANGES, STATE, Status
from nutbeam.policy.schedules.schedule import DAY_MS
from nutbeam.policy.updating.update_rules import UpdateOptions
from nutbeam.web.exchange.status import (
    FETCH_GONE,
    FETCH_NOTMODIFIED,
    FETCH_RETRY,
    FETCH_SUCCESS,
)


@pytest.mark.parametrize(
    ("before", "signatures", "expected"),
    [
        (None, (None, A), NOW),
        (0, (None, A), NOW),
        (BEFORE, (None, A), BEFORE),  # state unknown: what is given stays
        (BEFORE, (B, A), NOW),
        (BEFORE, (A, A), BEFORE),
        (0, (A, A), NOW),
    ],
)
def test_modified_time(before, signatures, expected):
    old, new = signatures
    row, _, _ = one(
        old_row(Status.DB_FETCHED, modified_time=before, signature=old),
        event(FETCH_SUCCESS, signature=new),
    )
    assert row["modified_time"] == expected


@pytest.mark.parametrize("status", [FETCH_GONE, FETCH_RETRY], ids=["gone", "retry"])
def test_intervals_of_a_gone_page(status):
    row = old_row(Status.DB_GONE, retries=5)
    days = []
    for at in range(4):
        row, _, _ = one(row, event(status, fetch_time=NOW + at))
        days.append((row["fetch_interval"] / 86_400, (row["fetch_time"] - NOW - at) / DAY_MS))
    assert days == [(45, 45), (67.5, 67.5), (81, 81), (81, 81)]


TOO_LONG = 7_776_001
CLAMPED = 6_998_400


@pytest.mark.parametrize("what", ["success_first", "success_equal", "redir_temp", "redir_perm"])
def test_too_long_an_interval_is_shortened(what):
    status, before, after, expected, _ = TABLE[what]
    old = old_row(Status.DB_FETCHED, signature=before, retries=2, fetch_interval=TOO_LONG)
    row, _, _ = one(old, event(status, signature=after))
    assert (row["status"], row["retries"]) == (expected, 0)
    assert (row["fetch_interval"], row["fetch_time"]) == (CLAMPED, NOW + CLAMPED * 1000)
    assert row["signature"] == (after or before)


def test_a_304_with_too_long_an_interval_makes_the_page_due_without_conditions_once():
    old = old_row(Status.DB_FETCHED, signature=A, retries=2, fetch_interval=TOO_LONG,
                  modified_time=7)  # fmt: skip
    row, outcome, _ = one(old, event(FETCH_NOTMODIFIED))
    assert (row["status"], row["retries"]) == (Status.DB_UNFETCHED, 0)
    assert (row["fetch_interval"], row["fetch_time"]) == (CLAMPED, NOW)
    # With one of these a server might answer again that nothing has changed.
    assert (row["etag"], row["last_modified"], row["modified_time"]) == (None, None, 0)
    assert row["document"] == "d0"
    same, _, _ = one(row, event(FETCH_SUCCESS, signature=A, fetch_time=NOW + 1))
    assert (same["status"], same["modified_time"]) == (Status.DB_FETCHED, NOW + 1)
    new, _, _ = one(row, event(FETCH_SUCCESS, signature=b"new", fetch_time=NOW + 1))
    assert new["modified_time"] == NOW + 1
    assert outcome[0]["status"] == Status.DB_UNFETCHED
    again, _, _ = one(row, event(FETCH_NOTMODIFIED, fetch_time=NOW + 1))
    assert again["fetch_time"] == NOW + 1 + CLAMPED * 1000


@pytest.mark.parametrize("status", [FETCH_RETRY, FETCH_GONE])
def test_an_interval_is_not_forced_by_failures(status):
    old = old_row(Status.DB_FETCHED, signature=A, fetch_interval=7_776_001)
    row, _, _ = one(old, event(status))
    assert row["signature"] == A
    assert row["status"] in (Status.DB_UNFETCHED, Status.DB_GONE)


def test_the_longest_interval_itself_is_not_too_long():
    old = old_row(Status.DB_FETCHED, signature=A, fetch_interval=7_776_000)
    row, _, _ = one(old, event(FETCH_SUCCESS, signature=A))
    assert (row["status"], row["fetch_interval"]) == (Status.DB_NOTMODIFIED, 7_776_000)


@pytest.mark.parametrize("interval", [None, 0, -1])
def test_no_interval_becomes_the_default(interval):
    old = old_row(Status.DB_UNFETCHED, fetch_interval=interval)
    row, _, _ = one(old, event(FETCH_SUCCESS, signature=A))
    assert row["fetch_interval"] == MONTH
    assert row["fetch_time"] == NOW + 30 * DAY_MS


@pytest.mark.parametrize(
    ("retry_after", "seconds"),
    [(None, 86_400), (0, 1), (-5, 1), (120, 120), (10**9, 30 * 86_400)],
)
def test_retry_after_is_obeyed_within_bounds(retry_after, seconds):
    row, _, _ = one(
        old_row(Status.DB_UNFETCHED), event(FETCH_RETRY, http_code=429, retry_after=retry_after)
    )
    assert row["fetch_time"] == NOW + seconds * 1000


def tried_again(waits, ends, retry_max=3):
    """Returns (status, retries, s until due) after each failure.

    Args:
        waits: Retry-After of each failure; None: there is none.
        ends: Seconds after the page was due again at which each further try was made.
    """
    row, at, results = old_row(Status.DB_FETCHED, signature=A), NOW, []
    for wait, later in zip(waits, [0, *ends], strict=True):
        if results:
            at = row["fetch_time"] + later * 1000
        came = event(FETCH_RETRY, http_code=503, retry_after=wait, fetch_time=at)
        options = UpdateOptions(retry_max=retry_max)
        rows, *_ = update_state(frame_of(STATE, row), frame_of(CHANGES, came), at, options)
        row = rows.row(0, named=True)
        results.append((row["status"], row["retries"], (row["fetch_time"] - at) // 1000))
    return results


DAY, GONE_S = 86_400, 45 * 86_400
TRIED_AGAIN = [
    # Waits that the server asks for, delays of the tries; retries, seconds until the next try.
    ([10, 10, 10, 10], [0, 0, 0], [1, 1, 1, 1], [10, 20, 40, 80]),
    ([10, 10, 10], [50, 0], [1, 1, 1], [10, 120, 240]),
    ([0, 0, 0], [0, 0], [1, 1, 1], [1, 2, 4]),
    ([10, 3600, 10], [0, 0], [1, 1, 1], [10, 3600, 7200]),
    ([10, None, None], [0, 0], [1, 1, 2], [10, DAY, DAY]),
    ([50_000, 50_000, 50_000], [0, 0], [1, 1, 2], [50_000, DAY, 50_000]),
    ([10, 10, 10], [DAY, DAY], [1, 2, 3], [10, 10, GONE_S]),
    ([10, 2 * DAY, 10], [0, 0], [1, 1, 2], [10, 2 * DAY, 10]),
    ([DAY, DAY, DAY], [0, 0], [1, 2, 3], [DAY, DAY, GONE_S]),
    ([None, None, None], [0, 0], [1, 2, 3], [DAY, DAY, GONE_S]),
    # Before they are due, as with --add_days: Nutch counts them.
    ([None, None, None], [30 - DAY, 30 - DAY], [1, 2, 3], [DAY, DAY, GONE_S]),
]


@pytest.mark.parametrize(("waits", "ends", "retries", "seconds"), TRIED_AGAIN)
def test_a_retry_by_retry_after_within_a_day_of_the_last_failure_does_not_count(
    waits, ends, retries, seconds
):
    gone = [seconds == GONE_S for seconds in seconds]
    statuses = [Status.DB_GONE if is_gone else Status.DB_UNFETCHED for is_gone in gone]
    expected = list(zip(statuses, retries, seconds, strict=True))
    assert tried_again(waits, ends) == expected


@pytest.mark.long
def test_a_server_with_retry_after_of_a_second_gets_few_requests_and_is_finally_gone():
    results = tried_again([1] * 60, [0] * 59)
    end = next(at for at, (status, *_) in enumerate(results) if status == Status.DB_GONE)
    assert 30 < end < 45
    assert 2 * DAY < sum(seconds for *_, seconds in results[:end]) < 7 * DAY


def test_retry_after_does_not_delay_a_page_that_is_gone():
    old = old_row(Status.DB_UNFETCHED, retries=2)
    row, _, _ = one(old, event(FETCH_RETRY, retry_after=60))
    assert row["fetch_time"] == NOW + 45 * DAY_MS


def test_stale_results_are_ignored():
    old = old_row(Status.DB_FETCHED, signature=A, last_fetch_time=NOW + 1, last_inlink_day=1)
    rows = frame_of(STATE, old)
    kept, outcome, counts, _ = update_state(
        rows, frame_of(CHANGES, event(FETCH_GONE)), NOW, OPTIONS
    )
    assert kept.equals(rows)
    assert (len(outcome), counts) == (0, {"stale_results": 1})


def test_stale_results_leave_the_links_in():
    old = old_row(Status.DB_FETCHED, signature=A, last_fetch_time=NOW + 1)
    row, outcome, counts = one(old, event(FETCH_GONE), linked(0.5))
    assert (row["status"], row["score"]) == (Status.DB_FETCHED, 1.5)
    assert (outcome, counts) == ([], {"stale_results": 1})


def test_a_result_as_old_as_the_row_counts():
    old = old_row(Status.DB_FETCHED, last_fetch_time=NOW)
    assert one(old, event(FETCH_GONE))[0]["status"] == Status.DB_GONE
