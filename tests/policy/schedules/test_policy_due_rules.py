"""The rule that is named is the one by which update has set the next fetch."""

import pytest
from file_changes import update_state
from frames import frame_of
from status_rows import BEFORE, DAY_MS, KEY, MONTH, NOW, A, B, event, linked, old_row

from nutbeam.policy.components.schema import CHANGES, STATE, Status
from nutbeam.policy.schedules.adaptive_schedule import host_intervals
from nutbeam.policy.schedules.due_rules import due_rule
from nutbeam.policy.schedules.reschedule import built_in_schedule
from nutbeam.policy.scoring.scorings import chosen_scorings
from nutbeam.policy.updating.update_rules import UpdateOptions
from nutbeam.web.exchange.status import (
    EXCEPTION,
    FETCH_GONE,
    FETCH_NOTMODIFIED,
    FETCH_REDIR_TEMP,
    FETCH_RETRY,
    FETCH_SUCCESS,
    MOVED,
    NOTFOUND,
    SUCCESS,
    TEMP_MOVED,
)
from nutbeam.web.rule_files.rule_files import RuleFile
from nutbeam.web.urls.row_keys import host_key_of

DAY = 86_400


def rule_after(event_status, row, came, hosts=None, own=(None, None), **options):
    """Returns the rule of a row after an update."""
    options = UpdateOptions(**options)
    bounds = {} if own == (None, None) else {host_key_of(KEY): own}
    table = {"schedule": built_in_schedule(options), "bounds": bounds}
    old = old_row(Status.DB_FETCHED, signature=A, **row)
    changes = frame_of(CHANGES, event(event_status, **came))
    rows, *_ = update_state(frame_of(STATE, old), changes, NOW, options, **table)
    return due_rule(rows.row(0, named=True), options, hosts, own)


SAME, NEW = {"signature": A}, {"signature": B}
FORCED = (
    "it was not modified, and its interval was over max_fetch_interval: it is fetched again without "
    "conditions"
)
MISSING = {"protocol_status": NOTFOUND}
LONG = {"fetch_interval": 200 * DAY}
# Event, columns of the row and of the event, options, the rule.
CASES = [
    (FETCH_SUCCESS, {}, NEW, {}, ("interval", "30 days, its interval, after its last fetch")),
    (FETCH_NOTMODIFIED, {}, {}, {}, ("interval", "30 days, its interval, after its last fetch")),
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
        ("retry_after", "failure 2 of 3: its server asked for a wait of 0:10:00, or a shorter one"),
    ),
    (
        FETCH_GONE,
        {},
        MISSING,
        {},
        ("gone", "it is gone: its interval is 45 days, longer by half each time"),
    ),
    (
        FETCH_RETRY,
        {"retries": 2},
        {"protocol_status": EXCEPTION},
        {},
        ("gone", "it is gone: its interval is 45 days, longer by half each time"),
    ),
    (
        FETCH_GONE,
        {"fetch_interval": 70 * DAY},
        MISSING,
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
        ("interval", "24 days, its interval, after its last fetch"),
    ),
    (
        FETCH_SUCCESS,
        {"modified_time": NOW - 10 * DAY_MS},
        SAME,
        {"schedule": "adaptive"},
        (
            "sync_delta",
            "42 days, its interval, 3 days earlier, towards the time of the last change",
        ),
    ),
]


@pytest.mark.parametrize(("what", "row", "came", "options", "expected"), CASES)
def test_update_has_set_the_date_by_this_rule(what, row, came, options, expected):
    assert rule_after(what, row, came, **options) == expected


AGES = (0.0, 1e-9, 0.001, 1, 30, 89.9, 90, 90.1, 133, 299, 299.95, 301, 5000)


@pytest.mark.long
@pytest.mark.few(10)
@pytest.mark.parametrize("days", AGES)
@pytest.mark.parametrize("options", [{}, {"min_interval": 20 * DAY, "sync_delta_rate": 1.0}])
def test_the_rule_of_an_adaptive_schedule_is_named_at_any_age(days, options):
    """It is the interval while that and the moved date are the same second."""
    row = {"modified_time": NOW - round(days * DAY_MS)}
    for what, came in ((FETCH_SUCCESS, SAME), (FETCH_NOTMODIFIED, {}), (FETCH_REDIR_TEMP, {})):
        name, detail = rule_after(what, row, came, schedule="adaptive", **options)
        assert name == ("interval" if days < 0.0001 else "sync_delta"), detail


def test_the_rule_of_an_adaptive_schedule_knows_the_bounds_of_hosts(tmp_path):
    """The shortest and the longest interval of the host limit the move."""
    file = tmp_path / "hosts"
    file.write_text("example.com 432000 864000\n")
    limits = {"schedule": "adaptive", "host_intervals": str(file)}
    hosts = host_intervals(RuleFile("hosts", file.read_text()), 60, 90 * DAY)
    for rate, earlier in ((0.3, "3 days"), (1.0, "5 days")):
        row = {"modified_time": NOW - 33 * DAY_MS}
        rule = rule_after(FETCH_NOTMODIFIED, row, {}, hosts=hosts, sync_delta_rate=rate, **limits)
        assert rule.name == "sync_delta"
        assert f" {earlier} earlier, " in rule.detail


SEEN_TWICE = {"change_shape": 0.15, "change_days": 30.7}
NOTHING = "nothing is known yet of how often it changes"
# Event, columns of the row and of the event, what is said of the page's changes.
RATES = [
    (FETCH_SUCCESS, {"protocol_status": SUCCESS}, NEW, "by its visits it changes about every "),
    (FETCH_SUCCESS, {"last_fetch_time": None, "modified_time": None}, NEW, NOTHING),
    (FETCH_REDIR_TEMP, {}, {}, NOTHING),
    (FETCH_REDIR_TEMP, {"change_shape": 0.15, "change_days": 0.7}, {}, NOTHING),
    (FETCH_NOTMODIFIED, {}, {}, "it has not changed in the 30 days of its visits"),
    (FETCH_NOTMODIFIED, SEEN_TWICE, {}, "it has not changed in the 60 days of its visits"),
]


@pytest.mark.parametrize(("what", "row", "came", "expected"), RATES)
def test_only_changes_that_were_seen_make_a_rate(what, row, came, expected):
    name, detail = rule_after(what, row, came, schedule="rate")
    assert name == "interval"
    interval, _, said = detail.partition("; ")
    assert interval.endswith(", its interval, after its last fetch")
    assert said.startswith(expected)


def test_no_schedule_is_named_because_a_row_does_not_know_which_one_it_was():
    """The interval may be longer than today's options allow."""
    row = {**old_row(Status.DB_FETCHED, signature=A), "fetch_interval": 131 * DAY}
    row |= {"fetch_time": BEFORE + 131 * DAY_MS, **NONE}
    expected = ("interval", "131 days, its interval, after its last fetch")
    assert due_rule(row, UpdateOptions()) == expected
    assert due_rule(row, UpdateOptions(schedule="adaptive")) == expected


NONE = {"fixed_interval": None, "change_shape": None, "change_days": None}


def test_an_orphan_that_came_back():
    options = UpdateOptions(scoring=("opic", "orphan"))
    scorings = chosen_scorings(options)
    old = old_row(Status.DB_ORPHAN, signature=A, fetch_time=NOW + 29 * DAY_MS)
    old |= {"last_fetch_time": NOW - DAY_MS}
    for extra in ({}, {"signature": None, "etag": None, "last_modified": None}):
        before = frame_of(STATE, old | extra)
        rows, *_ = update_state(before, frame_of(CHANGES, linked(0.1)), NOW, options, scorings)
        row = rows.row(0, named=True)
        assert row["status"] == Status.DB_UNFETCHED
        name, detail = due_rule(row, options)
        assert name == "revived"
        assert detail == (
            "it was an orphan until a link to it was found, and has kept its date: 30 days, its "
            "interval, after its last fetch"
        )


def test_a_page_that_its_server_has_and_no_page_links_to():
    """Scoring orphan has marked it as gone; its interval has not grown."""
    row = {**old_row(Status.DB_GONE, signature=A, protocol_status=1), **NONE}
    row["fetch_time"] = BEFORE + MONTH * 1000
    expected = ("interval", "30 days, its interval, after its last fetch")
    assert due_rule(row, UpdateOptions()) == expected


@pytest.mark.parametrize("status", [Status.DB_GONE, Status.DB_ORPHAN])
@pytest.mark.parametrize(
    ("answer", "columns", "expected"),
    [
        (MOVED, {}, ("interval", "30 days, its interval, after its last fetch")),
        (TEMP_MOVED, {}, ("interval", "30 days, its interval, after its last fetch")),
        (NOTFOUND, {}, ("gone", "it is gone: its interval is 30 days, longer by half each time")),
        (
            EXCEPTION,
            {"retries": 3},
            ("gone", "it is gone: its interval is 30 days, longer by half each time"),
        ),
        (
            EXCEPTION,
            {"retries": 1, "fetch_time": BEFORE + DAY_MS},
            ("retry", "failure 1 of 3: tried again a day later"),
        ),
        (
            EXCEPTION,
            {"retries": 2, "fetch_time": BEFORE + 60_000},
            (
                "retry_after",
                "failure 2 of 3: its server asked for a wait of 0:01:00, or a shorter one",
            ),
        ),
    ],
)
def test_pages_marked_by_scoring_orphan_keep_the_rule_of_their_answer(
    status, answer, columns, expected
):
    row = {**old_row(status, protocol_status=answer), **NONE, "fetch_time": BEFORE + MONTH * 1000}
    assert due_rule(row | columns, UpdateOptions()) == expected


def test_an_orphan_that_its_server_does_not_have_and_that_came_back():
    row = {**old_row(Status.DB_UNFETCHED, protocol_status=NOTFOUND), **NONE, "retries": 0}
    name, detail = due_rule(row | {"fetch_time": BEFORE + MONTH * 1000}, UpdateOptions())
    assert name == "revived"
    assert detail.endswith("it is gone: its interval is 30 days, longer by half each time")


def test_an_interval_from_the_file_of_hosts_names_the_file():
    file = RuleFile("hosts.txt", "example.com 7200 86400\n")
    hosts = host_intervals(file, 60, 90 * DAY)
    options = UpdateOptions(schedule="adaptive", host_intervals="hosts.txt")
    for interval, which in ((7200, "shortest"), (DAY, "longest"), (3 * 3600, "")):
        row = {**old_row(Status.DB_FETCHED, signature=A), **NONE, "fetch_interval": interval}
        row |= {"fetch_time": BEFORE + interval * 1000}
        name, detail = due_rule(row, options, hosts)
        assert name == "interval"
        note = f"; that is the {which} interval of its host in hosts.txt"
        assert detail.endswith(note if which else "after its last fetch")


BY_SETTING = "the shortest interval that a setting of its host allows (hostinject)"


@pytest.mark.parametrize(
    ("least", "name", "detail"),
    [
        (
            28,
            "host_setting",
            f"28 days after its last fetch, {BY_SETTING}; its interval is 30 days",
        ),
        (
            20,
            "sync_delta",
            "30 days, its interval, 6 days earlier, towards the time of the last change",
        ),
        (40, "interval", f"40 days, its interval, after its last fetch; that is {BY_SETTING}"),
    ],
)
def test_a_setting_of_the_host_that_has_set_the_date_is_named(least, name, detail):
    row = {"fetch_interval": 20 * DAY, "modified_time": NOW - 20 * DAY_MS}
    own = least * DAY, 80 * DAY
    options = {"schedule": "adaptive", "inc_rate": 0.5}
    found = rule_after(FETCH_NOTMODIFIED, row, {"fetch_time": NOW}, None, own, **options)
    assert found == (name, detail)


def test_a_row_that_filterdb_has_moved():
    row = {**old_row(Status.DB_FETCHED), **NONE, "document": None, "page": None}
    row |= {"fetch_time": BEFORE + 5000}
    name, detail = due_rule(row, UpdateOptions())
    assert name == "moved"
    assert detail.startswith("it has no body any more, as after filterdb has changed its URL: due ")


def test_the_due_rule_of_a_page_that_failed_to_parse_says_so():
    row = {**old_row(Status.DB_PARSE_FAILED, fetch_interval=45 * DAY), **NONE}
    row |= {"fetch_time": BEFORE + 45 * DAY_MS}
    expected = ("gone", "it failed to parse: its interval is 45 days, longer by half each time")
    assert due_rule(row, UpdateOptions()) == expected


def test_a_forced_fetch_of_a_page_that_scoring_orphan_has_marked():
    row = {**old_row(Status.DB_GONE, protocol_status=1), **NONE, "fetch_time": BEFORE}
    row |= {"modified_time": 0, "etag": None, "last_modified": None}
    assert due_rule(row, UpdateOptions()).name == "forced"


def test_the_longest_wait_that_a_server_gets_may_be_shorter_than_its_retry_after():
    row = {**old_row(Status.DB_UNFETCHED, retries=1), **NONE, "fetch_time": BEFORE + 30 * DAY_MS}
    expected = "failure 1 of 3: its server asked for a wait of 30 days, or a longer one"
    assert due_rule(row, UpdateOptions()) == ("retry_after", expected)


def test_dates_that_update_has_not_set():
    row = {**old_row(Status.DB_FETCHED, signature=A), **NONE, "fetch_time": BEFORE + DAY_MS}
    assert row["fetch_interval"] == MONTH
    expected = ("set", "1 day after its last fetch; its interval is 30 days")
    assert due_rule(row, UpdateOptions()) == expected
    assert due_rule(row, UpdateOptions(schedule="adaptive")) == expected
    new = {**row, "last_fetch_time": None}
    assert due_rule(new, UpdateOptions()).name == "never_fetched"
    late = {**row, "status": int(Status.DB_UNFETCHED), "retries": 1, "fetch_time": BEFORE}
    assert due_rule(late, UpdateOptions()) == ("set", "failure 1 of 3: tried again 0:00:00 later")
