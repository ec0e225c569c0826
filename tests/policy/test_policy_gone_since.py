"""Since when a page is gone: what update writes, and how filterdb drops pages by it."""

import polars as pl
import pytest
from file_changes import update_state
from frames import frame_of
from status_rows import BEFORE, DAY_MS, NOW, A, B, event, linked, old_row, one

from nutbeam.policy.components.blocklist import Blocklist
from nutbeam.policy.components.schema import CHANGES, STATE, Status
from nutbeam.policy.filtering import DropOptions, RowRules, filter_rows
from nutbeam.policy.scoring.scoring import ScoringOptions
from nutbeam.policy.scoring.scorings import chosen_scorings
from nutbeam.policy.updating.update_rules import UpdateOptions
from nutbeam.web.exchange.status import (
    FETCH_GONE,
    FETCH_NOTMODIFIED,
    FETCH_REDIR_PERM,
    FETCH_RETRY,
    FETCH_SUCCESS,
    NOTFOUND,
    SUCCESS,
)

GONE = Status.DB_GONE
DAY_S = 86_400


@pytest.mark.parametrize("old", [s for s in Status if s != GONE], ids=lambda s: s.name)
@pytest.mark.parametrize(
    ("status", "retries"), [(FETCH_GONE, 0), (FETCH_RETRY, 2), (FETCH_RETRY, 0)]
)
def test_a_page_is_gone_since_the_fetch_that_found_it_gone(old, status, retries):
    row, _, _ = one(old_row(old, retries=retries), event(status))
    is_gone = status == FETCH_GONE or retries == 2
    assert (row["status"] == GONE, row["gone_since"]) == (is_gone, NOW if is_gone else None)


def test_a_new_page_may_be_gone_at_once():
    assert one(None, event(FETCH_GONE))[0]["gone_since"] == NOW


@pytest.mark.parametrize("status", [FETCH_GONE, FETCH_RETRY])
@pytest.mark.parametrize(("since", "expected"), [(5, 5), (None, BEFORE)])
def test_the_moment_stays_while_the_page_is_gone(status, since, expected):
    """An older row does not say it; it was gone when it was last fetched."""
    old = old_row(GONE, gone_since=since, last_fetch_time=BEFORE, retries=2)
    assert one(old, event(status))[0]["gone_since"] == expected
    assert one(old, linked(1.0))[0]["gone_since"] == since


@pytest.mark.parametrize("status", [FETCH_SUCCESS, FETCH_NOTMODIFIED, FETCH_REDIR_PERM])
def test_a_page_that_returns_is_not_gone(status):
    row, _, _ = one(old_row(GONE, gone_since=5, signature=A), event(status, signature=B))
    assert row["gone_since"] is None


def judged(old, *changes, now=NOW):
    scorings = chosen_scorings(ScoringOptions(scoring=("opic", "orphan")))
    frames = frame_of(STATE, old), frame_of(CHANGES, *changes)
    rows, *_ = update_state(*frames, now, UpdateOptions(), scorings)
    return rows.row(0, named=True)


def test_a_page_without_links_is_gone_until_a_link_comes():
    old = old_row(Status.DB_FETCHED, last_inlink_day=NOW // DAY_MS - 35, protocol_status=SUCCESS)
    gone = judged(old, event(FETCH_SUCCESS, signature=A, protocol_status=SUCCESS))
    assert (gone["status"], gone["gone_since"]) == (GONE, NOW)
    revived = judged(gone | {"metadata": None}, linked(1.0))
    assert (revived["status"], revived["gone_since"]) == (Status.DB_UNFETCHED, None)
    both = judged(gone | {"metadata": None}, linked(1.0), event(FETCH_GONE, fetch_time=NOW + 5))
    assert (both["status"], both["gone_since"]) == (GONE, NOW + 5)  # the link revived it before


def is_dropped(row, now, **options):
    rows = frame_of(STATE, row)
    verdicts = rows.select("key", reason=pl.lit(None, pl.String))
    found, _ = filter_rows(rows, verdicts, RowRules(Blocklist(), now, DropOptions(**options)))
    return found.get_column("reason").to_list() == ["gone"]


@pytest.mark.parametrize("days", [80, 81, 90])
@pytest.mark.parametrize("modified", [None, 0, 1])
def test_a_page_that_has_just_gone_stays_with_any_interval(days, modified):
    """Its interval may be at the limit, and it may never have had content."""
    old = old_row(Status.DB_FETCHED, fetch_interval=days * DAY_S, modified_time=modified)
    row, _, _ = one(old, event(FETCH_GONE))
    row["metadata"] = None
    day = NOW + DAY_MS
    assert not is_dropped(row, day, drop_gone=2 * DAY_S)
    assert is_dropped(row, day, drop_gone=DAY_S)
    assert not is_dropped(row, day)


@pytest.mark.few(2)
@pytest.mark.parametrize("limit", [30, 90, 365])
@pytest.mark.parametrize("fixed", [None, 10 * DAY_S])
def test_a_gone_page_is_dropped_though_the_crawl_tries_it_again_and_again(limit, fixed):
    row = old_row(Status.DB_FETCHED, fetch_interval=30 * DAY_S, fixed_interval=fixed)
    row["fetch_time"] = NOW
    for day in range(0, 3 * 365, 5):
        now = NOW + day * DAY_MS
        if row["fetch_time"] <= now:
            row, _, _ = one(row, event(FETCH_GONE, fetch_time=now, protocol_status=NOTFOUND))
            row["metadata"] = None
        if is_dropped(row, now, drop_gone=limit * DAY_S):
            break
    assert limit <= day < limit + 5


def test_an_older_row_counts_from_its_last_fetch():
    row = old_row(GONE, last_fetch_time=NOW - 10 * DAY_MS, fetch_interval=81 * DAY_S)
    assert is_dropped(row, NOW, drop_gone=10 * DAY_S)
    assert not is_dropped(row, NOW, drop_gone=10 * DAY_S + 1)
    assert not is_dropped(row | {"last_fetch_time": None}, NOW, drop_gone=1)
    assert is_dropped(row | {"last_fetch_time": None}, NOW, drop_gone=0)
