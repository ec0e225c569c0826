import polars as pl
import pytest
from file_changes import update_state
from scored_web import NOW, ScoredWeb, scorings

from nutbeam.policy.components.schema import Status
from nutbeam.policy.schedules.schedule import DAY_MS
from nutbeam.policy.scoring.orphan import is_orphan
from nutbeam.policy.scoring.scoring import ScoringOptions
from nutbeam.policy.updating.update_rules import UpdateOptions

GONE, ORPHAN = int(Status.DB_GONE), int(Status.DB_ORPHAN)
UNFETCHED, FETCHED = int(Status.DB_UNFETCHED), int(Status.DB_FETCHED)


def linked_page(days):
    """A page to which a link was found, and that is fetched some days later."""
    web = ScoredWeb("opic", "orphan")
    web.inject("seed")
    web.update(web.changes({"seed": ["a"]}))
    web.now += days * DAY_MS
    return web


@pytest.mark.parametrize(
    ("days", "status"),
    [(1, FETCHED), (30, FETCHED), (31, GONE), (40, GONE), (41, ORPHAN), (400, ORPHAN)],
)
def test_a_page_to_which_no_link_is_found_any_more(days, status):
    web = linked_page(days)
    web.update(web.changes({"a": []}))
    assert web.column("status")["a"] == status
    assert web.counts[{FETCHED: "status/db_fetched", GONE: "status/db_gone"}.get(
        status, "status/db_orphan")] == 1  # fmt: skip


def test_update_does_not_mark_pages_without_a_fetch_as_orphans():
    web = linked_page(400)
    web.update(web.changes({"seed": []}))
    assert web.column("status")["a"] == UNFETCHED
    orphans = web.rows.filter(is_orphan(web.now, ScoringOptions()))
    assert orphans.get_column("key").to_list() == ["com.example:http/a"]


@pytest.mark.parametrize("days", [35, 400])
def test_a_link_revives_an_orphan(days):
    web = linked_page(days)
    web.update(web.changes({"a": []}))
    due = web.column("fetch_time")["a"]
    web.now += DAY_MS
    web.update(web.changes({"seed": ["a"]}))
    assert web.column("status")["a"] == UNFETCHED
    assert web.column("fetch_time")["a"] == due
    assert web.column("last_inlink_day")["a"] == web.now // DAY_MS


@pytest.mark.parametrize("days", [35, 400])
def test_the_outcome_has_the_old_status_of_a_revived_page(days):
    web = linked_page(days)
    web.update(web.changes({"a": []}))
    was = web.column("status")["a"]
    web.now += DAY_MS
    changes = web.changes({"seed": ["a"], "a": []})
    _, outcome, *_ = update_state(web.rows, changes, web.now, UpdateOptions(), web.scorings)
    told = {row["key"][-1]: (row["old_status"], row["status"]) for row in outcome.to_dicts()}
    assert told["a"] == (was, FETCHED)


@pytest.mark.parametrize("answer", [12, 13])
def test_a_link_revives_a_redirect_that_is_gone_only_for_want_of_links(answer):
    web = linked_page(0)
    gone = pl.lit(GONE, pl.UInt8), pl.lit(answer, pl.UInt8)
    web.rows = web.rows.with_columns(status=gone[0], protocol_status=gone[1])
    web.update(web.changes({"seed": ["a"]}))
    assert web.column("status")["a"] == UNFETCHED


def test_a_link_does_not_revive_a_page_that_its_server_does_not_have():
    web = linked_page(0)
    gone = pl.lit(GONE, pl.UInt8), pl.lit(14, pl.UInt8)  # notfound
    web.rows = web.rows.with_columns(status=gone[0], protocol_status=gone[1])
    web.update(web.changes({"seed": ["a"]}))
    assert web.column("status")["a"] == GONE


def test_seeds_and_pages_without_any_link_stay():
    web = ScoredWeb("opic", "orphan")
    web.inject("a", "b")
    web.update(web.changes({"a": ["b"]}))
    web.rows = web.rows.with_columns(distance=pl.Series([3, 0], dtype=pl.Int32))
    web.now += 400 * DAY_MS
    web.update(web.changes({"a": [], "b": []}))
    assert web.column("status") == {"a": FETCHED, "b": FETCHED}


def test_without_the_scoring_nothing_is_an_orphan():
    web = linked_page(400)
    web.scorings = scorings("opic")
    web.update(web.changes({"a": []}))
    assert web.column("status")["a"] == FETCHED
    orphan = pl.lit(ORPHAN, pl.UInt8)
    web.rows = web.rows.with_columns(status=orphan)
    web.update(web.changes({"seed": ["a"]}))
    assert web.column("status")["a"] == ORPHAN


def test_gone_comes_before_orphan():
    with pytest.raises(ValueError, match="--mark_orphan_after must be at least --mark_gone_after"):
        ScoringOptions(mark_gone_after=NOW, mark_orphan_after=1)
