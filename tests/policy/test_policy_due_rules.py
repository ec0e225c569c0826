"""The rule that is named is the one by which update has set the next fetch."""

import pytest
from frames import frame_of
from status_rows import BEFORE, DAY_MS, MONTH, NOW, A, B, event, old_row

from nutbeam.policy.schedules.built_in import built_in_schedule
from nutbeam.policy.schedules.due_rules import due_rule
from nutbeam.policy.schema import CHANGES, STATE, Status
from nutbeam.policy.updating.status import Surroundings, UpdateOptions, update_state
from nutbeam.web.exchange.status import FETCH_GONE, FETCH_NOTMODIFIED, FETCH_RETRY, FETCH_SUCCESS

DAY = 86_400


def rule_after(event_status, row, came, **options):
    """Returns the rule of a row after an update."""
    options = UpdateOptions(**options)
    table = Surroundings(schedule=built_in_schedule(options))
    old = old_row(Status.DB_FETCHED, signature=A, **row)
    changes = frame_of(CHANGES, event(event_status, **came))
    rows, _, _ = update_state(frame_of(STATE, old), changes, NOW, options, table)
    return due_rule(rows.row(0, named=True), options)


SAME, NEW = {"signature": A}, {"signature": B}
FORCED = (
    "it was not modified, and its interval was over max_fetch_interval: it is fetched again without "
    "conditions"
)
LONG = {"fetch_interval": 200 * DAY}
# Event, columns of the row and of the event, options, the rule.
CASES = [
    (FETCH_SUCCESS, {}, NEW, {}, ("schedule", "schedule default: 30 days")),
    (FETCH_NOTMODIFIED, {}, {}, {}, ("schedule", "schedule default: 30 days")),
    (
        FETCH_SUCCESS,
        {"fetch_interval": DAY, "fixed_interval": DAY},
        NEW,
        {},
        ("fixed_interval", "its seed list sets an interval of 1 day"),
    ),
    (FETCH_RETRY, {}, {}, {}, ("retry", "failure 1 of 3: tried again a day later")),
    (
        FETCH_RETRY,
        {"retries": 1},
        {"retry_after": 600},
        {},
        ("retry_after", "failure 2 of 3: its server asked for a wait of 0:10:00"),
    ),
    (FETCH_GONE, {}, {}, {}, ("gone", "it is gone: its interval is 45 days, grown by half")),
    (
        FETCH_RETRY,
        {"retries": 2},
        {},
        {},
        ("gone", "it is gone: its interval is 45 days, grown by half"),
    ),
    (
        FETCH_GONE,
        {"fetch_interval": 70 * DAY},
        {},
        {},
        ("gone", "it is gone: its interval is 81 days, nine tenths of max_fetch_interval"),
    ),
    (
        FETCH_SUCCESS,
        LONG,
        NEW,
        {},
        ("longest_interval", "81 days: nine tenths of max_fetch_interval, 90 days"),
    ),
    (
        FETCH_NOTMODIFIED,
        LONG,
        {},
        {},
        (
            "forced",
            FORCED,
        ),
    ),
    (
        FETCH_SUCCESS,
        {},
        NEW,
        {"schedule": "adaptive"},
        ("schedule", "schedule adaptive: 24 days"),
    ),
    (
        FETCH_SUCCESS,
        {"modified_time": NOW - 10 * DAY_MS},
        SAME,
        {"schedule": "adaptive"},
        (
            "sync_delta",
            "schedule adaptive: 42 days, 3 days earlier, towards the time of the last change",
        ),
    ),
]


@pytest.mark.parametrize(("what", "row", "came", "options", "expected"), CASES)
def test_update_has_set_the_date_by_this_rule(what, row, came, options, expected):
    assert rule_after(what, row, came, **options) == expected


def test_an_estimate_of_changes_is_shown():
    name, detail = rule_after(FETCH_SUCCESS, {}, NEW, schedule="rate")
    assert name == "schedule"
    assert detail.startswith("schedule rate: ")
    assert "; it changes about every " in detail


def test_dates_that_update_has_not_set():
    row = {**old_row(Status.DB_FETCHED, signature=A), "fixed_interval": None, "change_shape": None}
    row |= {"change_days": None, "fetch_time": BEFORE + DAY_MS}
    assert row["fetch_interval"] == MONTH
    expected = ("set", "1 day after its last fetch; its interval is 30 days")
    assert due_rule(row, UpdateOptions()) == expected
    new = {**row, "last_fetch_time": None}
    assert due_rule(new, UpdateOptions()).name == "never_fetched"
