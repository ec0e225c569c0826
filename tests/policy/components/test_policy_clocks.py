import pytest
from file_changes import update_state
from frames import frame_of

from nutbeam.policy.components.clocks import RightTimes, is_resting, set_right, wrong_times
from nutbeam.policy.components.columns import Form
from nutbeam.policy.components.kinds import KINDS
from nutbeam.policy.components.schema import (
    CHANGES,
    HOSTS,
    HOSTS_COLUMNS,
    STATE,
    STATE_COLUMNS,
    Status,
)
from nutbeam.policy.hosting.hosts import merge_hosts
from nutbeam.policy.schedules.schedule import DAY_MS, LONGEST_REST_MS, ScheduleOptions, due
from nutbeam.policy.updating.update_rules import UpdateOptions
from nutbeam.web.base.clock import EARLIEST_MS, TOLERANCE_MS, Clock
from nutbeam.web.exchange.status import FETCH_SUCCESS

NOW = EARLIEST_MS + 365 * DAY_MS
MONTH = 30 * 86_400
OPTIONS = ScheduleOptions()
AHEAD = [10 * DAY_MS, 54 * 365 * DAY_MS, 1 << 50]


def row(**columns):
    return {
        "key": "com.example:http/", "status": int(Status.DB_FETCHED), "fetch_interval": MONTH,
        "retries": 0, "score": 1.0, "distance": 1, "last_fetch_time": NOW - DAY_MS,
        "fetch_time": NOW + 29 * DAY_MS, "modified_time": NOW - DAY_MS,
    } | columns  # fmt: skip


def fetched_at(time, **columns):
    return row(last_fetch_time=time, modified_time=time, fetch_time=time + 30 * DAY_MS, **columns)


def right(*rows, now=NOW, options=OPTIONS, since=None):
    fixed, number = set_right(
        STATE_COLUMNS, frame_of(STATE, *rows), RightTimes(now, since, options)
    )
    assert fixed.schema == frame_of(STATE).schema
    again = set_right(STATE_COLUMNS, fixed, RightTimes(now, since, options))
    assert (again[1], again[0].equals(fixed)) == (0, True)
    return fixed.to_dicts(), number


@pytest.mark.parametrize("ahead", AHEAD)
def test_a_row_of_the_future_waits_as_long_as_it_was_to(ahead):
    (fixed,), number = right(fetched_at(NOW + ahead, last_inlink_day=(NOW + ahead) // DAY_MS))
    assert number == 1
    assert (fixed["last_fetch_time"], fixed["modified_time"]) == (NOW, NOW)
    assert fixed["fetch_time"] == NOW + 30 * DAY_MS
    assert fixed["last_inlink_day"] == NOW // DAY_MS


def test_a_result_that_is_yet_to_come_is_not_older_than_a_row_set_right():
    (fixed,), _ = right(fetched_at(NOW + DAY_MS), since=NOW - 1000)
    assert (fixed["last_fetch_time"], fixed["fetch_time"]) == (NOW - 1000, NOW - 1000 + 30 * DAY_MS)


@pytest.mark.parametrize("ahead", AHEAD)
def test_a_row_that_was_never_tried_is_due_at_once(ahead):
    new = row(last_fetch_time=None, modified_time=None, fetch_time=NOW + ahead)
    (fixed,), number = right(new)
    assert (fixed["fetch_time"], fixed["last_fetch_time"], number) == (NOW, None, 1)


SANE = {
    "usual": row(),
    "overdue": row(fetch_time=NOW - 500 * DAY_MS),
    "clocks_differ_a_little": fetched_at(NOW + TOLERANCE_MS, last_inlink_day=NOW // DAY_MS),
    "longest_interval": row(fetch_time=NOW + 90 * DAY_MS),
    "longer_interval_of_its_own": row(fetch_interval=12 * MONTH, fetch_time=NOW + 360 * DAY_MS),
    "gone": row(fetch_interval=3 * MONTH, fetch_time=NOW + 130 * DAY_MS),
    "new": row(last_fetch_time=None, fetch_time=NOW),
    "before_1970": row(fetch_time=-5, last_fetch_time=-5 - DAY_MS, modified_time=-5),
}


@pytest.mark.parametrize("name", SANE)
def test_possible_times_are_left_unchanged(name):
    before = frame_of(STATE, SANE[name])
    fixed, number = set_right(STATE_COLUMNS, before, RightTimes(NOW, options=OPTIONS))
    assert number == 0
    assert fixed.equals(before)


@pytest.mark.parametrize(("retries", "number"), [(0, 1), (1, 0)])
def test_a_wait_that_a_server_requested_is_no_mistake(retries, number):
    short = ScheduleOptions(fetch_interval=60, max_fetch_interval=3600)
    waits = row(fetch_interval=60, fetch_time=NOW + 30 * DAY_MS, retries=retries)
    assert right(waits, options=short)[1] == number
    taken = frame_of(STATE, waits).select(due(Clock(NOW), short)).item()
    assert taken is bool(number)


def test_a_time_beyond_all_is_due_now():
    (fixed,), number = right(row(fetch_time=NOW + 400 * DAY_MS))
    assert (fixed["fetch_time"], number) == (NOW, 1)
    assert (right(row(fetch_time=(1 << 63) - 1, last_fetch_time=-(1 << 60)))[1]) == 1


def is_due(one, clock):
    return frame_of(STATE, one).select(due(clock, OPTIONS)).item()


def test_generate_reads_times_of_the_future_as_due():
    decades, new = fetched_at(NOW + AHEAD[1]), row(last_fetch_time=None, fetch_time=NOW + DAY_MS)
    assert is_due(decades, Clock(NOW, NOW + AHEAD[1]))
    assert is_due(new, Clock(NOW, NOW + DAY_MS))
    assert not is_due(new | {"last_fetch_time": NOW - 1}, Clock(NOW, NOW + DAY_MS))


def test_pages_fetched_while_the_clock_was_ahead_are_not_due_again_at_once():
    ahead, back = fetched_at(NOW + AHEAD[1]), NOW - 1000
    assert not is_due(ahead, Clock(NOW, NOW + AHEAD[1], back))
    assert is_due(ahead, Clock(back + 30 * DAY_MS, NOW + AHEAD[1], back))
    assert is_due(row(fetch_time=NOW + AHEAD[1]), Clock(NOW, NOW + AHEAD[1], back))


def update(old, now=NOW, **event):
    change = {
        "key": old["key"], "order": 1, "fetch_status": FETCH_SUCCESS, "protocol_status": 1,
        "signature": b"s", "fetch_time": now, "document": "new", "page": "new", "batch_id": "new",
    } | event  # fmt: skip
    rows, _, counts, _ = update_state(
        frame_of(STATE, old), frame_of(CHANGES, change), now, UpdateOptions()
    )
    return rows.row(0, named=True), counts


@pytest.mark.parametrize("ahead", AHEAD)
def test_no_result_is_older_than_a_row_of_the_future(ahead):
    fixed, counts = update(fetched_at(NOW + ahead), fetch_time=NOW - 1000)
    assert (fixed["document"], counts.get("stale_results"), counts["clock"]) == ("new", None, 1)
    assert (fixed["last_fetch_time"], fixed["fetch_time"]) == (NOW - 1000, NOW - 1000 + 30 * DAY_MS)
    assert fixed["modified_time"] <= NOW


def test_a_result_that_is_older_is_stale_within_the_tolerance_too():
    fixed, counts = update(fetched_at(NOW + TOLERANCE_MS), fetch_time=NOW)
    assert (fixed["document"], counts["stale_results"]) == (None, 1)


@pytest.mark.parametrize("fetched", [NOW + AHEAD[0], NOW + AHEAD[1], -DAY_MS, 0, EARLIEST_MS])
def test_a_result_of_a_time_that_cannot_be_is_of_now(fetched):
    fixed, _ = update(row(), fetch_time=fetched)
    assert (fixed["last_fetch_time"], fixed["fetch_time"]) == (NOW, NOW + 30 * DAY_MS)


def test_links_alone_set_a_row_right():
    links = frame_of(CHANGES, {"key": row()["key"], "order": 1, "inlink_score": 0.5})
    old = frame_of(STATE, fetched_at(NOW + AHEAD[1]))
    rows, _, counts, _ = update_state(old, links, NOW, UpdateOptions())
    assert counts == {"clock": 1}
    assert (rows["last_fetch_time"][0], rows["fetch_time"][0]) == (NOW, NOW + 30 * DAY_MS)


def host(**columns):
    return {"key": "com.example", "requests": 1, "backoff_until": 0} | columns


@pytest.mark.parametrize("ahead", AHEAD)
def test_a_host_of_the_future_rests_as_long_as_it_was_to(ahead):
    then = NOW + ahead
    row = host(last_request_time=then, backoff_until=then + 60_000, robots_time=then,
               robots_failing_since=then)  # fmt: skip
    assert not frame_of(HOSTS, row).select(is_resting(NOW)).item()
    fixed, number = set_right(HOSTS_COLUMNS, frame_of(HOSTS, row), RightTimes(NOW))
    found = fixed.row(0, named=True)
    assert (found["last_request_time"], found["backoff_until"]) == (NOW, NOW + 60_000)
    assert (found["robots_time"], found["robots_failing_since"]) == (EARLIEST_MS, NOW)
    assert number == 1


@pytest.mark.parametrize(("wait", "rests"), [(1, True), (LONGEST_REST_MS, True),
                                             (LONGEST_REST_MS + 1, False), (0, False)])  # fmt: skip
def test_no_host_rests_for_longer_than_any_may(wait, rests):
    frame = frame_of(HOSTS, host(last_request_time=NOW, backoff_until=NOW + wait))
    assert frame.select(is_resting(NOW)).item() is rests


def test_new_host_findings_override_those_of_a_clock_that_was_ahead():
    then = NOW + AHEAD[1]
    known = host(last_request_time=then, backoff_until=then, exceptions=7, robots_time=then,
                 robots_status=200, robots_text="old")  # fmt: skip
    learnt = host(last_request_time=NOW - 5, exceptions=0, robots_time=NOW - 9,
                  robots_status=200, robots_text="new")  # fmt: skip
    merged, counts = merge_hosts(frame_of(HOSTS, known), frame_of(HOSTS, learnt), NOW)
    found = merged.row(0, named=True)
    assert (found["robots_text"], found["robots_time"]) == ("new", NOW - 9)
    assert (found["last_request_time"], found["exceptions"]) == (NOW - 5, 0)
    assert found["backoff_until"] < NOW
    assert counts == {"clock": 1}


TIMES = [
    (kind, column)
    for kind in KINDS.values()
    if kind.in_tablets
    for column in kind.columns
    if column.form in (Form.TIME, Form.DAY)
]


@pytest.mark.few(8)
@pytest.mark.parametrize(("kind", "column"), TIMES, ids=lambda one: one.name)
@pytest.mark.parametrize("ahead", AHEAD)
def test_each_time_of_a_row_that_is_in_the_future_is_corrected(kind, column, ahead):
    if column.planned:  # it may be in the future
        ahead += 365 * DAY_MS
    unit = DAY_MS if column.form is Form.DAY else 1
    row = {"key": "k", column.name: (NOW + ahead) // unit}
    frame = frame_of(kind.schema, row)
    assert frame.select(wrong_times(kind.columns, NOW)).item()
    fixed, number = set_right(kind.columns, frame, RightTimes(NOW))
    assert number == 1
    assert fixed.schema == frame.schema
    assert fixed[column.name].item() <= NOW // unit
    assert set_right(kind.columns, fixed, RightTimes(NOW))[1] == 0


def test_tables_without_all_columns_are_corrected_too():
    rows = frame_of(HOSTS, host(last_request_time=NOW + DAY_MS)).drop("dns_time", "purged_since")
    assert set_right(HOSTS_COLUMNS, rows, RightTimes(NOW))[0]["last_request_time"].item() == NOW
