"""What the status machine hands to schedules, what it takes from them, and the horizon."""

import polars as pl
import pytest
from file_changes import update_state
from frames import frame_of
from status_rows import BEFORE, NOW, A, B, event, old_row

from nutbeam.policy.components.clocks import RightTimes, set_right
from nutbeam.policy.components.schema import CHANGES, STATE, STATE_COLUMNS, Status
from nutbeam.policy.schedules.reschedule import BUILT_IN_SCHEDULES, built_in_schedule
from nutbeam.policy.schedules.schedule import DAY_MS, ScheduleOptions, due, horizon
from nutbeam.policy.schedules.visits import next_fetch
from nutbeam.policy.updating.update_rules import UpdateOptions
from nutbeam.web.base.clock import Clock
from nutbeam.web.exchange.status import (
    FETCH_GONE,
    FETCH_NOTMODIFIED,
    FETCH_REDIR_TEMP,
    FETCH_RETRY,
    FETCH_SUCCESS,
)

DAY = 86_400


def updated(old, *events, schedule=None, name="adaptive", **options):
    """Returns the rows after an update."""
    options = UpdateOptions(schedule=name, **options)
    chosen = schedule or built_in_schedule(options)
    frames = frame_of(STATE, *old), frame_of(CHANGES, *events)
    rows, *_ = update_state(*frames, NOW, options, schedule=chosen)
    return rows.to_dicts()


@pytest.mark.parametrize(
    ("what", "days"),
    [
        (event(FETCH_SUCCESS, signature=B), 24),
        (event(FETCH_SUCCESS, signature=A), 42),
        (event(FETCH_NOTMODIFIED), 42),
        (event(FETCH_SUCCESS), 30),  # not parsed: nothing is known
        (event(FETCH_REDIR_TEMP), 30),
        (event(FETCH_GONE), 45),
        (event(FETCH_RETRY), 30),
    ],
)
def test_update_uses_the_schedule_for_visits_only(what, days):
    old = old_row(Status.DB_FETCHED, signature=A)
    (row,) = updated([old], what, sync_delta=False)
    assert row["fetch_interval"] == days * DAY
    waits = 1 if what["fetch_status"] == FETCH_RETRY else days
    assert row["fetch_time"] == NOW + waits * DAY_MS


def test_a_schedule_gets_no_frame_without_rows():
    seen = []

    def schedule(visits, context):
        seen.append(len(visits))
        return visits.with_columns(fetch_time="event.fetch_time")

    old = old_row(Status.DB_FETCHED, signature=A)
    updated([old], schedule=schedule, name="mine")  # nothing was tried
    updated([old], event(FETCH_GONE), schedule=schedule, name="mine")
    assert seen == []
    updated([old], event(FETCH_SUCCESS, signature=B), schedule=schedule, name="mine")
    assert seen == [1]


def test_visits_have_their_values_from_before_and_no_failures():
    seen = []

    def schedule(visits, context):
        seen.append(visits)
        return visits.with_columns(fetch_time="event.fetch_time")

    old = [old_row(Status.DB_GONE, signature=A, retries=3, key=f"k{n}") for n in range(4)]
    kinds = (FETCH_SUCCESS, FETCH_GONE, FETCH_RETRY, FETCH_NOTMODIFIED)
    events = (event(kind, key=f"k{n}", signature=B) for n, kind in enumerate(kinds))
    rows = updated(old, *events, schedule=schedule, name="mine")
    (visits,) = seen
    names = ("key", "status", "retries", "last_fetch_time", "modified", "notmodified")
    assert visits.select(names).rows() == [
        ("k0", Status.DB_GONE, 3, BEFORE, True, False),
        ("k3", Status.DB_GONE, 3, BEFORE, False, True),
    ]
    assert [row["retries"] for row in rows] == [0, 3, 4, 0]
    assert {rows[0]["status"], rows[3]["status"]} <= {Status.DB_FETCHED, Status.DB_NOTMODIFIED}
    assert [row["fetch_time"] - NOW for row in rows] == [0, 45 * DAY_MS, 45 * DAY_MS, 0]


@pytest.mark.parametrize(
    ("kind", "days", "status"),
    [(FETCH_REDIR_TEMP, 81, Status.DB_REDIR_TEMP), (FETCH_NOTMODIFIED, 0, Status.DB_UNFETCHED)],
)
def test_a_schedule_of_a_plugin_gets_no_interval_that_is_too_long(kind, days, status):
    def schedule(visits, context):
        wait = pl.col("fetch_interval").cast(pl.Int64) * 1000
        return visits.with_columns(fetch_time=pl.col("event.fetch_time") + wait)

    old = old_row(Status.DB_FETCHED, signature=A, fetch_interval=100 * DAY)
    (row,) = updated([old], event(kind), schedule=schedule, name="mine")
    assert (row["fetch_interval"], row["status"]) == (81 * DAY, status)
    assert row["fetch_time"] == NOW + days * DAY_MS


def test_a_fixed_interval_stays_with_a_schedule_of_a_plugin():
    def schedule(visits, context):
        return visits.with_columns(**next_fetch(pl.col("fetch_interval")))

    row = old_row(Status.DB_FETCHED, signature=A, fixed_interval=200 * DAY)
    for _ in range(3):
        (row,) = updated([row], event(FETCH_NOTMODIFIED), schedule=schedule, name="mine")
        assert (row["fetch_interval"], row["status"]) == (200 * DAY, Status.DB_NOTMODIFIED)
        assert row["fetch_time"] == NOW + 200 * DAY_MS
        row["last_fetch_time"] = BEFORE


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda rows: rows.head(0), "it must return all rows, in their order"),
        (lambda rows: rows.with_columns(fetch_interval=0), "interval of 0 s"),
        (
            lambda rows: rows.with_columns(fetch_interval=2**31 - 1, fetch_time="event.fetch_time"),
            "at most 7776000 s, got an interval of 2147483647 s",
        ),
        (
            lambda rows: rows.with_columns(fetch_time=pl.col("event.fetch_time") - 1),
            "after -0.001 s",
        ),
        (lambda rows: rows.with_columns(fetch_time=NOW + 91 * DAY_MS), "at most 7776000 s"),
        (lambda rows: rows.with_columns(fetch_time=None), "due after None s"),
        (lambda rows: None, "it must return a frame, got None"),
        (lambda rows: rows.drop("metadata"), "it must keep all columns, and has dropped metadata"),
        (lambda rows: rows.with_columns(fetch_time="x"), "ColumnNotFoundError: "),
        (lambda rows: 1 / 0, r"division by zero \(test_policy_reschedule.py:\d+: .*1 / 0"),
    ],
)
def test_a_schedule_that_is_wrong_is_named(change, message):
    old = old_row(Status.DB_FETCHED, signature=A)
    with pytest.raises(ValueError, match=rf"^schedule 'mine' of module {__name__}: .*{message}"):
        updated([old], event(FETCH_SUCCESS, signature=A), name="mine",
                schedule=lambda visits, _: change(visits))  # fmt: skip


@pytest.mark.parametrize("name", BUILT_IN_SCHEDULES)
def test_a_fixed_interval_has_priority_in_all_schedules_but_default(name):
    old = old_row(Status.DB_FETCHED, signature=A, fixed_interval=200 * DAY)
    (row,) = updated([old], event(FETCH_NOTMODIFIED), name=name)
    days = (row["fetch_time"] - NOW) / DAY_MS
    assert days == (30 if name == "default" else 200)
    # It is longer than the longest interval, and yet no mistake.
    frame = frame_of(STATE, row)
    assert not frame.select(due(Clock(NOW), ScheduleOptions())).item()
    assert set_right(STATE_COLUMNS, frame, RightTimes(NOW))[1] == 0


@pytest.mark.parametrize(
    ("row", "days"),
    [
        ({}, 90),
        ({"retries": 2}, 90),
        ({"fixed_interval": 5}, 90),
        ({"fixed_interval": 365 * DAY}, 365),
        ({"fixed_interval": 365 * DAY, "retries": 1}, 365),
    ],
)
def test_horizon(row, days):
    frame = frame_of(STATE, {"key": "k", **row})
    assert frame.select(horizon(NOW, ScheduleOptions())).item() == NOW + days * DAY_MS
    short = ScheduleOptions(max_fetch_interval=60)
    waits = max(row.get("fixed_interval", 0), 60, 30 * DAY if row.get("retries") else 0)
    assert frame.select(horizon(NOW, short)).item() == NOW + waits * 1000


@pytest.mark.parametrize("name", BUILT_IN_SCHEDULES)
def test_an_update_in_parts_gives_the_same_rows(name):
    old = [
        old_row(Status.DB_FETCHED, signature=A, key=f"k{n}", modified_time=NOW - n * DAY_MS)
        for n in range(4)
    ]
    events = [event(FETCH_SUCCESS, key=f"k{n}", signature=A if n % 2 else B) for n in range(4)]
    together = updated(old, *events, name=name)
    alone = [updated([row], one, name=name)[0] for row, one in zip(old, events, strict=True)]
    assert together == alone
