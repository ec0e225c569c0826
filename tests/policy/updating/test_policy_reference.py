"""update_state against the reference, for every transition of Nutch's table.

Old status x event x retries x intervals x signature x modified_time x links, each once. The cases in
which the design corrects Nutch are apart, one part for each correction.
"""

import dataclasses
import functools
import itertools

import pytest
import status_rows
from reference_adapter import (
    differences,
    outcome_differences,
    run_product,
    run_reference,
)
from reference_rate_schedule import Rate
from reference_schedules import Adaptive
from reference_update import (
    DUPLICATE,
    GONE,
    ORPHAN,
    PARSE_FAILED,
    REDIR_PERM,
    REDIR_TEMP,
    UNFETCHED,
    Rules,
)
from status_rows import A, B

from nutbeam.web.exchange.status import (
    FETCH_GONE,
    FETCH_NOTMODIFIED,
    FETCH_REDIR_PERM,
    FETCH_REDIR_TEMP,
    FETCH_RETRY,
    FETCH_SUCCESS,
)

NOW = 1_790_000_000_000
FETCHED_AT = NOW - 3_600_000
LONG_AGO = NOW - 40 * 86_400_000
OLD = status_rows.OLD | {"fetch_time": FETCHED_AT - 1, "last_fetch_time": LONG_AGO + 1}
EVENT = status_rows.EVENT | {"fetch_time": FETCHED_AT}
LONGEST = 7_776_000
EVENTS = {
    "none": None,
    "equal": {"fetch_status": FETCH_SUCCESS, "signature": A, "parse_status": 1},
    "different": {"fetch_status": FETCH_SUCCESS, "signature": B, "parse_status": 1},
    "not_parsed": {"fetch_status": FETCH_SUCCESS, "signature": None, "document": None},
    "failed_to_parse": {"fetch_status": FETCH_SUCCESS, "signature": B, "parse_status": 2},
    "notmodified": {"fetch_status": FETCH_NOTMODIFIED, "http_code": 304},
    "redir_temp": {"fetch_status": FETCH_REDIR_TEMP, "http_code": 302},
    "redir_perm": {"fetch_status": FETCH_REDIR_PERM, "http_code": 301},
    "retry": {"fetch_status": FETCH_RETRY, "http_code": None, "protocol_message": "timeout"},
    "retry_after": {"fetch_status": FETCH_RETRY, "http_code": 503, "retry_after": 7200},
    "gone": {"fetch_status": FETCH_GONE, "http_code": 404, "response_ms": 12},
}
SCHEDULED = {"equal", "different", "not_parsed", "failed_to_parse", "redir_temp", "redir_perm"}
RETRIES = (0, 1, 2, 3, 300)
INTERVALS = (None, 0, 1, 3, 2_592_000, LONGEST * 2 // 3, LONGEST, LONGEST + 1, 3 * LONGEST)
MODIFIED_AND_LINKED = ((None, False), (0, True), (LONG_AGO, False), (LONG_AGO, True))


@dataclasses.dataclass(frozen=True)
class Case:
    """A row, with its modified_time, and an event, with or without links."""

    status: int | None
    event: str
    signature: bytes | None = A
    retries: int = 0
    interval: int | None = 2_592_000
    times: tuple[int | None, bool] = (None, False)

    @property
    def linked(self):
        return self.times[1]


CASES = [
    *(Case(None, event, times=times) for event in EVENTS for times in MODIFIED_AND_LINKED[:2]),
    *itertools.starmap(
        Case,
        itertools.product(range(1, 10), EVENTS, (None, A), RETRIES, INTERVALS, MODIFIED_AND_LINKED),
    ),
]


def part_of(case):
    """Returns the correction of Nutch that a case is of, or ``plain``."""
    long = case.status is not None and (case.interval or 0) > LONGEST
    unchanged = case.event == "notmodified" or (case.event == "equal" and case.signature == A)
    returned = unchanged and case.status in (UNFETCHED, GONE, REDIR_TEMP, REDIR_PERM, DUPLICATE)
    if long and case.event == "notmodified":
        return "long_interval_304"
    if long and case.event in SCHEDULED:
        return "long_interval_returned" if returned else "long_interval"
    if unchanged and case.status in (ORPHAN, PARSE_FAILED):
        return "returned_from_orphan"
    return "returned" if returned else "plain"


PARTS = ("plain", "returned", "returned_from_orphan", "long_interval", "long_interval_returned",
         "long_interval_304")  # fmt: skip

OTHER_SCHEDULES = {
    "adaptive": Rules(adaptive=Adaptive()),
    "rate": Rules(rate=Rate(), pages=100),
    "plugin": Rules(plugin=True, pages=100),
}


def rows_and_changes(cases):
    """Returns the rows and the changes of the cases, each of a URL of its own."""
    rows, changes = [], []
    for number, case in enumerate(cases):
        key = f"com.example.h{number % 97}:http/{number:06}"
        if case.status is not None:
            rows.append(row_of(case, key))
        if case.event != "none":
            changes.append(EVENT | EVENTS[case.event] | {"key": key})
        if case.linked:
            changes += [
                {"key": key, "order": order, "inlink_score": 0.25, "inlink_distance": 3 - order}
                for order in (1, 2)
            ]
    return rows, changes


NULLS = ("fixed_interval", "content_type", "response_ms", "protocol_status", "change_shape",
         "change_days")  # fmt: skip


def row_of(case, key):
    old = OLD | {"key": key, "status": case.status, "signature": case.signature}
    metadata = {"topic": "news"} if case.linked else None
    old |= {"retries": case.retries, "fetch_interval": case.interval, "metadata": metadata}
    old |= {"modified_time": case.times[0], "last_inlink_day": 19_000, "parse_status": 1}
    return dict.fromkeys(NULLS) | old


def disagreements(cases, rules, compare=differences):
    """Returns the first cases in which the product and the reference differ, and how."""
    rows, changes = rows_and_changes(cases)
    product, reference = (run(rows, changes, NOW, rules) for run in (run_product, run_reference))
    return [(cases[int(found.key[-6:])], found) for found in compare(product, reference)][:5]


@pytest.mark.long
@pytest.mark.parametrize("part", PARTS)
def test_every_transition(part):
    assert disagreements([case for case in CASES if part_of(case) == part], Rules()) == []


@pytest.mark.few(1)
@pytest.mark.parametrize("name", OTHER_SCHEDULES)
def test_every_transition_with_each_schedule(name, folder):
    compare = functools.partial(differences, tolerance=1e-4 if name == "rate" else 0.0)
    assert disagreements(CASES, OTHER_SCHEDULES[name], compare) == []


def test_every_transition_of_pages_that_failed_to_parse():
    cases = [case for case in CASES if case.event == "failed_to_parse"]
    assert disagreements(cases, Rules(delete_failed_parse=True)) == []


def test_outcomes_agree_with_the_reference():
    cases = [case for case in CASES if case.interval in (2_592_000, 3 * LONGEST)]
    assert disagreements(cases, Rules(), outcome_differences) == []


@pytest.mark.parametrize("event", EVENTS)
def test_without_additions_only_known_urls_change(event):
    rules = Rules(additions_allowed=False)
    cases = [Case(status, event, times=(None, True)) for status in (None, 1)]
    rows, changes = rows_and_changes(cases)
    product = run_product(rows, changes, NOW, rules)
    assert product.rows.keys() == {row["key"] for row in rows}
    assert differences(product, run_reference(rows, changes, NOW, rules)) == []


@pytest.mark.parametrize("older", [0, 1])
def test_results_older_than_the_row_are_ignored(older):
    rows, changes = rows_and_changes([Case(2, "gone", times=(None, True))])
    rows[0]["last_fetch_time"] = FETCHED_AT + older
    product = run_product(rows, changes, NOW, Rules())
    assert len(product.outcomes) == 1 - older
    assert differences(product, run_reference(rows, changes, NOW, Rules())) == []


def test_retries_never_overflow():
    assert disagreements([Case(GONE, "retry", retries=2**31 - 1)], Rules()) == []


@pytest.mark.parametrize("before", [None, 1, 2])
def test_the_target_of_a_redirect_inherits_its_interval_and_metadata(before):
    key = "com.example:http/target"
    told = {"fetch_interval": 7200, "fixed_interval": 7200, "metadata": {"topic": "news"}}
    link = {"key": key, "order": 1, "inlink_score": 0.0, "inlink_distance": 2}
    rows = [] if before is None else [row_of(Case(before, "none"), key)]
    changes = [link | told, link | {"order": 2, "inlink_score": 0.5}]
    product, reference = (run(rows, changes, NOW, Rules()) for run in (run_product, run_reference))
    assert differences(product, reference) == []
    assert (product.rows[key]["fetch_interval"] == 7200) == (before is None)
    assert product.rows[key]["score"] == (0.5 if before is None else 1.5)
