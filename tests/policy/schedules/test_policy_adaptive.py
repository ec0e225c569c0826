"""The schedules adaptive and mime_adaptive, with Nutch's examples."""

import re

import pytest
from visits import DAY, MODIFIED, NOTMODIFIED, NOW, UNKNOWN, visit, visits_of

from nutbeam.pipelines.inject import InjectOptions
from nutbeam.policy.schedules.adaptive_schedule import (
    SHIPPED_RATES,
    AdaptiveSchedule,
    HostIntervals,
    host_intervals,
    mime_rates,
)
from nutbeam.policy.schedules.reschedule import built_in_schedule
from nutbeam.policy.schedules.schedule import DAY_MS, RescheduleOptions, ScheduleOptions
from nutbeam.policy.schedules.visits import ScheduleContext
from nutbeam.web.base.options import validate
from nutbeam.web.exchange.status import FETCH_NOTMODIFIED
from nutbeam.web.rule_files.rule_files import RuleFile

ADAPTIVE = AdaptiveSchedule(HostIntervals())
MIME = AdaptiveSchedule(HostIntervals(), mime_rates(SHIPPED_RATES))
YEAR = {"max_fetch_interval": 365 * DAY}


@pytest.mark.parametrize(("state", "days"), [(MODIFIED, 24), (NOTMODIFIED, 42), (UNKNOWN, 30)])
def test_the_examples_of_nutch(state, days):
    assert visit(ADAPTIVE, state)[:2] == (days, days)


def test_the_rates_are_options():
    assert visit(ADAPTIVE, MODIFIED, dec_rate=0.5)[0] == 15
    assert visit(ADAPTIVE, NOTMODIFIED, inc_rate=1.0)[0] == 60


@pytest.mark.parametrize("state", [MODIFIED, NOTMODIFIED, UNKNOWN])
def test_intervals_stay_between_their_bounds(state):
    tiny, huge = {"fetch_interval": 1}, {"fetch_interval": 2**31 - 1}
    assert visit(ADAPTIVE, state, tiny)[2]["fetch_interval"] == 60
    assert visit(ADAPTIVE, state, huge)[:2] == (90, 90)  # max_fetch_interval is less than a year
    assert visit(ADAPTIVE, state, huge, **YEAR)[:2] == (365, 365)
    assert visit(ADAPTIVE, state, huge, max_interval=DAY)[:2] == (1, 1)


@pytest.mark.parametrize(
    ("days", "interval", "due"),
    [
        (10, 42, 39),  # 42 days, less 0.3 of 10
        (60, 60, 42),  # delta is the interval
        (90, 90, 63),
        (91, 90, 63),  # older than the longest interval: 0.3 of one interval, in Nutch of 91 days
        (299, 90, 63),  # Nutch: after 26 minutes
        (400, 90, 63),  # Nutch: 90 days, the offset becomes 0
        (5000, 90, 63),
    ],
)
def test_sync_delta_moves_the_next_fetch_towards_the_change(days, interval, due):
    row = {"modified_time": NOW - days * DAY_MS}
    assert visit(ADAPTIVE, NOTMODIFIED, row)[:2] == pytest.approx((interval, due))
    assert visit(ADAPTIVE, NOTMODIFIED, row, sync_delta=False)[:2] == (42, 42)


@pytest.mark.parametrize("rate", [0.0, 0.3, 1.0])
@pytest.mark.parametrize("days", [0, 1, 89, 90, 91, 299, 301, 10_000])
def test_no_page_is_due_sooner_than_its_shortest_interval(days, rate):
    hosts = HostIntervals((("com.example", 3600.0, float(DAY)),))
    for schedule, shortest in ((ADAPTIVE, 60), (AdaptiveSchedule(hosts), 3600)):
        row = {"modified_time": NOW - days * DAY_MS}
        assert visit(schedule, NOTMODIFIED, row, sync_delta_rate=rate)[1] * DAY >= shortest - 0.01


@pytest.mark.few(2)
@pytest.mark.parametrize("longest", [10, 90, 365])
def test_a_page_that_never_changes_is_not_fetched_ever_more_often(longest):
    age, interval, visits = 0.0, 1.0, 0
    while age < 3 * 365:
        row = {"modified_time": NOW - round(age * DAY_MS), "fetch_interval": round(interval * DAY)}
        interval, wait, _ = visit(ADAPTIVE, NOTMODIFIED, row, max_fetch_interval=longest * DAY)
        assert 0.7 * interval - 1e-4 <= wait <= interval + 1e-4
        age, visits = age + wait, visits + 1
    assert interval == longest
    assert visits <= 3 * 365 / (0.7 * longest) + 20


@pytest.mark.parametrize("schedule", [ADAPTIVE, MIME])
def test_a_fixed_interval_has_priority(schedule):
    row = {"fixed_interval": 200 * DAY, "modified_time": NOW - 50 * DAY_MS}
    assert visit(schedule, NOTMODIFIED, row)[:2] == (200, 200)
    assert visit(schedule, NOTMODIFIED, {"fixed_interval": 0})[0] > 30


LONG_AGO = "Tue, 14 Nov 2023 12:13:20 GMT"  # 10 hours before NOW


@pytest.mark.parametrize(
    ("state", "row", "said", "hours"),
    [
        (MODIFIED, {}, LONG_AGO, 10),
        (MODIFIED, {}, None, 0),
        (MODIFIED, {}, "Wed, 15 Nov 2033 12:13:20 GMT", 0),  # the future
        (MODIFIED, {}, "Thu, 01 Jan 1970 00:00:00 GMT", 0),
        (MODIFIED, {}, "yesterday", 0),
        (MODIFIED, {}, "Monday, 14-Nov-23 12:13:20 GMT", 10),  # it was a Tuesday
        (MODIFIED, {}, "Tue Nov 14 12:13:20 2023", 10),
        (MODIFIED, {}, " Mon, 14 Nov 2023 12:13:20 UTC ", 10),
        (MODIFIED, {"last_fetch_time": NOW - 3_600_000}, LONG_AGO, 0),  # before the last visit
        (UNKNOWN, {"modified_time": None, "last_fetch_time": None}, LONG_AGO, 10),
        (NOTMODIFIED, {"modified_time": NOW - 3_600_000}, LONG_AGO, 1),
    ],
)
def test_the_time_of_the_server_counts_if_it_can_be_right(state, row, said, hours):
    done = visit(ADAPTIVE, state, row, {"last_modified": said})[2]
    assert (NOW - done["modified_time"]) / 3_600_000 == hours


def test_an_answer_without_body_keeps_the_time_of_the_content():
    event = {"fetch_status": FETCH_NOTMODIFIED}
    assert visit(ADAPTIVE, NOTMODIFIED, {"modified_time": None}, event)[2]["modified_time"] is None


@pytest.mark.parametrize(
    ("given", "days"),
    [("text/html", 24), ("Text/HTML; charset=x", 24), ("application/pdf", 18), ("image/png", 24)],
)
def test_rates_by_content_type(given, days):
    assert visit(MIME, MODIFIED, event={"content_type": given})[0] == pytest.approx(days)


def test_a_304_has_the_content_type_of_before_and_other_types_the_rates_of_the_options():
    assert visit(MIME, NOTMODIFIED, {"content_type": "application/pdf"})[0] == 33
    assert visit(MIME, NOTMODIFIED, {"content_type": "image/png"})[0] == 42
    assert visit(MIME, NOTMODIFIED)[0] == 42


def test_hosts_have_bounds_of_their_own():
    file = RuleFile("f", "# comment\nexample.com 0 86400\nother.example 172800 default\n")
    schedule = AdaptiveSchedule(host_intervals(file, 60, 90 * DAY))
    rows = visits_of(
        (UNKNOWN, {}, {}),
        (UNKNOWN, {"key": "example.other:http/", "fetch_interval": 5}, {}),
        (UNKNOWN, {"key": "com.example.www:http/"}, {}),
    )
    done = schedule(rows, ScheduleContext(RescheduleOptions()))
    assert [days / DAY for days in done["fetch_interval"]] == [1, 2, 30]


@pytest.mark.parametrize("line", ["a.com 1 86400", "a.com 60", "a.com 60 99999999", "a.com x 90",
                                  "a.com 90 80", "a.com 60 70 80", "a.com nan 90"])  # fmt: skip
def test_a_bad_line_of_a_host_is_quoted(line):
    with pytest.raises(ValueError, match=f"^f:2: .*between 60 and 86400, got '{line}'$"):
        host_intervals(RuleFile("f", f"ok.com 60 70\n{line}\n"), 60, DAY)


@pytest.mark.parametrize("host", ["http://a.test/", "a.test:80", "*.test", "a..test", ".test"])
def test_invalid_hosts_are_quoted(host):
    expected = rf"^f:1: expected a host, got {re.escape(repr(host))} in '{re.escape(host)} 60 70'$"
    with pytest.raises(ValueError, match=expected):
        host_intervals(RuleFile("f", f"{host} 60 70"), 60, DAY)


def test_hosts_are_as_urls_have_them():
    file = RuleFile("f", "m\u00fcnchen.de 60 70\nWWW.Foo.com. 60 80\n")
    names = [name for name, _, _ in host_intervals(file, 60, DAY).bounds_of]
    assert names == ["de.xn--mnchen-3ya", "com.foo.www"]


@pytest.mark.parametrize("name", ["TEXT/HTML; charset=utf-8", "text", "text/", "*"])
def test_invalid_content_types_are_quoted(name):
    with pytest.raises(ValueError, match=r"^f:1: expected a content type") as error:
        mime_rates(RuleFile("f", f"{name}\t0.1\t0.2"))
    assert repr(name) in str(error.value)


@pytest.mark.parametrize("line", ["text/html\t0.1", "text/html 0.1 0.2", "text/html\t-1\t0.2",
                                  "text/html\tnan\t0.2", "text/html\t0.1\t2"])  # fmt: skip
def test_a_bad_line_of_a_content_type_is_quoted(line):
    with pytest.raises(ValueError, match=r"^f:1: expected a content type.*got 'text/html"):
        mime_rates(RuleFile("f", line))


def test_schedules_read_their_files(tmp_path):
    hosts, mime = tmp_path / "hosts", tmp_path / "mime"
    hosts.write_text("example.com 60 3600\n")
    mime.write_text("text/html\t0.5\t0.5\n")
    options = RescheduleOptions(
        schedule="mime_adaptive", host_intervals=str(hosts), mime_rates=str(mime)
    )
    made = built_in_schedule(options)
    assert made.rates == (("text/html", 0.5, 0.5),)
    assert made.hosts.bounds_of == (("com.example", 60.0, 3600.0),)
    missing = RescheduleOptions(schedule="adaptive", host_intervals=str(tmp_path / "no"))
    with pytest.raises(
        ValueError, match=r"^--[a-z_]+ must name a file that can be read, got '.*/no'"
    ):
        built_in_schedule(missing)


def test_an_interval_that_was_given_and_is_too_long_is_refused():
    limits = RescheduleOptions(schedule="adaptive")  # the default, a year, is only limited
    assert (limits.shortest, limits.longest) == (60, 90 * DAY)
    RescheduleOptions(max_interval=91 * DAY)  # it does not matter
    for days in (91, 364, 365, 366):
        with pytest.raises(ValueError, match=rf"max_interval .* 7776000, got {days * DAY}"):
            RescheduleOptions(schedule="adaptive", max_interval=days * DAY)
    RescheduleOptions(schedule="adaptive", max_interval=90 * DAY)
    for limit in ("max_interval", "max_fetch_interval"):
        with pytest.raises(ValueError, match=f"^--min_interval .* --{limit} 3600, got 7200$"):
            RescheduleOptions(schedule="rate", **{limit: 3600}, min_interval=7200)


def test_a_limit_below_the_shortest_interval_that_was_not_given_is_obeyed():
    for limit in ("max_interval", "max_fetch_interval"):
        limits = RescheduleOptions(schedule="adaptive", **{limit: 30})
        assert (limits.shortest, limits.longest) == (30, 30)
    assert RescheduleOptions(schedule="rate", max_fetch_interval=500 * DAY).longest == 365 * DAY


@pytest.mark.parametrize(
    ("option", "schedule"),
    [("host_intervals", "default"), ("host_intervals", "rate"), ("mime_rates", "adaptive")],
)
def test_a_file_that_the_schedule_does_not_read_is_refused(option, schedule):
    with pytest.raises(ValueError, match=f"^--{option} is for .* not for '{schedule}', got '/no'$"):
        RescheduleOptions(schedule=schedule, **{option: "/no"})
    RescheduleOptions(schedule="mine", **{option: "/no"})


def test_an_interval_of_new_pages_over_the_limit_is_refused():
    with pytest.raises(ValueError, match=r"^--fetch_interval .* 7776000, got 8640000$"):
        ScheduleOptions(fetch_interval=100 * DAY)
    with pytest.raises(ValueError, match=r"got 8640000$"):
        validate(InjectOptions(fetch_interval=100 * DAY))
    assert (
        RescheduleOptions(max_fetch_interval=DAY).shortened_interval == 77_760
    )  # 30 days are shortened
