"""What update makes of parts of pages: items of feeds, of which nobody has fetched the page."""

import itertools

import polars as pl
import pytest
from file_changes import Earlier, changes_of, update_state
from frames import frame_of, table_of

from nutbeam.policy.components.blocklist import Names, blocklist_of
from nutbeam.policy.components.document_schema import DOCUMENTS
from nutbeam.policy.components.host_rows import Seeds
from nutbeam.policy.components.kinds import KINDS
from nutbeam.policy.components.page_facts import COLUMNS_OF_PAGES, DOCUMENT_COLUMNS, BatchOrigin
from nutbeam.policy.components.schema import CHANGES, PAGES, STATE, ParseStatus, Status
from nutbeam.policy.links import LinkOptions
from nutbeam.policy.purging import pattern_of_names, purge_rows
from nutbeam.policy.schedules.schedule import DAY_MS
from nutbeam.policy.scoring.scoring import ScoringOptions
from nutbeam.policy.scoring.scorings import OPIC, chosen_scorings
from nutbeam.policy.updating.update_rules import UpdateOptions
from nutbeam.web.exchange.status import FETCH_GONE, FETCH_RETRY, FETCH_SUCCESS, SUCCESS
from nutbeam.web.urls.row_keys import to_key

NOW = 1_700_000_000_000
FEED, ITEM, OTHER = (to_key(f"http://a.com/{name}") for name in ("feed", "item", "other"))
PAGE = {"key": FEED, "score": 1.0, "distance": 2, "fetch_status": FETCH_SUCCESS,
        "fetch_time": NOW, "http_code": 200}  # fmt: skip
WHOLE = {"key": FEED, "score": 1.0, "distance": 2, "parse_status": 1, "signature": b"feed"}
PART = {"key": ITEM, "part_of": FEED, "score": 0.0, "distance": 3, "fetch_time": NOW,
        "parse_status": 1, "signature": b"told"}  # fmt: skip
REAL = PAGE | {"key": ITEM}
REAL_DOCUMENT = WHOLE | {"key": ITEM, "signature": b"real"}


def changes(pages, documents, order=1, scorings=OPIC, known=None, **options):
    """The CHANGES of one file, and what was counted."""
    origin = BatchOrigin(order, "b", f"documents/{order}")
    return changes_of(
        frame_of(PAGES, *pages).select(COLUMNS_OF_PAGES),
        frame_of(DOCUMENTS, *documents).select(DOCUMENT_COLUMNS),
        origin, Seeds(), LinkOptions(**options), scorings, Earlier(state_rows=known),
    )  # fmt: skip


def update(rows, *files, **options):
    """The rows by key after an update from files of changes, and what was counted."""
    frame = frame_of(CHANGES).vstack(frame_of(CHANGES))
    for file in files:
        frame = frame.vstack(file)
    old = frame_of(STATE, *rows).sort("key")
    kept, outcome, counts, _ = update_state(old, frame, NOW, UpdateOptions(**options))
    assert set(outcome["key"]) <= set(kept["key"])
    return {row["key"]: row for row in kept.to_dicts()}, counts


def row(key, **columns):
    return {"key": key, "status": int(Status.DB_UNFETCHED), "fetch_time": 1, "retries": 0,
            "fetch_interval": 30 * 86_400, "score": 0.5, **columns}  # fmt: skip


TOLD = row(ITEM, status=int(Status.DB_FETCHED), last_fetch_time=5, protocol_status=SUCCESS,
           signature=b"told", document="documents/0", batch_id="b0")  # fmt: skip


@pytest.mark.parametrize("known", [False, True])
def test_a_part_is_a_page_that_was_fetched_with_its_page(known):
    file, _ = changes([PAGE], [WHOLE, PART])
    rows, counts = update([row(ITEM)] if known else [], file)
    item = rows[ITEM]
    assert item["status"] == Status.DB_FETCHED
    taken = ("signature", "document", "page", "batch_id", "last_fetch_time", "fetch_time")
    assert [item[name] for name in taken] == [
        b"told", "documents/1", None, "b", NOW, NOW + 30 * DAY_MS
    ]  # fmt: skip
    assert item["parse_status"] == ParseStatus.SUCCESS
    assert (item["score"], item["distance"]) == (0.5 if known else 0.0, 3)
    assert counts == {"status/db_fetched": 2, "added": 2 - known}


@pytest.mark.parametrize(("own", "kept", "linked"), [(3, 0, 0), (4, 1, 0), (5, 1, 1), (None, 1, 1)])
def test_parts_have_the_depth_of_their_page(own, kept, linked):
    """The feed has depth 3, its item depth 4, and what the item links to depth 5."""
    scorings = chosen_scorings(ScoringOptions(scoring=("depth", "opic"), depth_max=9))
    known = frame_of(STATE, row(FEED, max_depth=own)).select("key", *scorings.row_columns)
    item = PART | {"outlinks": [{"key": OTHER}]}
    file, counts = changes([PAGE], [WHOLE, item], scorings=scorings, known=known)
    of_item = file.filter(pl.col("key") == ITEM)
    assert of_item["part"].to_list().count(True) == kept
    assert of_item["passed_max_depth"].drop_nulls().to_list() == [own or 9] * kept
    assert file["key"].to_list().count(OTHER) == linked
    assert counts.get("dropped/too_deep", 0) == 1 - linked


@pytest.mark.parametrize("signature", [b"told", b"new"])
def test_a_newer_part_of_a_feed_updates_an_older_one(signature):
    file, _ = changes([PAGE], [WHOLE, PART | {"signature": signature}])
    rows, counts = update([TOLD], file)
    same = signature == b"told"
    assert rows[ITEM]["status"] == (Status.DB_NOTMODIFIED if same else Status.DB_FETCHED)
    assert rows[ITEM]["document"] == "documents/1"
    assert "dropped/part_fetched" not in counts


@pytest.mark.parametrize("real_first", [True, False])
def test_the_page_itself_wins_over_a_part_of_its_batch_in_any_order(real_first):
    orders = (1, 2) if real_first else (2, 1)
    real, _ = changes([REAL], [REAL_DOCUMENT], orders[0])
    feed, _ = changes([PAGE], [WHOLE, PART], orders[1])
    for files in itertools.permutations([real, feed]):
        rows, _ = update([], *files)
        assert [rows[ITEM][name] for name in ("signature", "http_code", "page")] == [
            b"real", 200, f"pages/{orders[0]}"
        ]  # fmt: skip


@pytest.mark.parametrize("real_first", [True, False])
def test_the_page_itself_wins_over_a_part_of_its_file_in_any_order(real_first):
    documents = [REAL_DOCUMENT, PART] if real_first else [PART, REAL_DOCUMENT]
    file, _ = changes([PAGE, REAL], [WHOLE, *documents])
    rows, _ = update([], file)
    assert (rows[ITEM]["signature"], rows[ITEM]["page"]) == (b"real", "pages/1")


@pytest.mark.parametrize("status", [FETCH_GONE, FETCH_RETRY])
def test_a_feed_does_not_bring_back_a_page_whose_request_failed(status):
    gone = REAL | {"fetch_status": status, "http_code": None, "protocol_status": 16}
    file, _ = changes([PAGE, gone], [WHOLE, PART])
    rows, _ = update([], file)
    assert rows[ITEM]["document"] is None
    # Nor in a later batch.
    later, _ = changes([PAGE | {"fetch_time": NOW + 1}], [WHOLE, PART | {"fetch_time": NOW + 1}])
    again, counts = update(list(rows.values()), later)
    by_link = {name: again[ITEM][name] for name in ("last_inlink_day", "distance")}
    assert again[ITEM] == rows[ITEM] | by_link
    assert counts["dropped/part_fetched"] == 1


def test_a_fetched_page_is_not_overwritten_by_a_feed():
    fetched = TOLD | {"page": "pages/0", "http_code": 200, "signature": b"real"}
    file, _ = changes([PAGE], [WHOLE, PART])
    rows, counts = update([fetched], file)
    kept = [name for name in fetched if name != "score"]
    assert {name: rows[ITEM][name] for name in kept} == {name: fetched[name] for name in kept}
    assert counts["dropped/part_fetched"] == 1


def test_a_fetched_page_replaces_the_part_of_a_feed():
    file, _ = changes([REAL], [REAL_DOCUMENT])
    rows, _ = update([TOLD], file)
    names = ("signature", "page", "http_code", "status")
    assert [rows[ITEM][name] for name in names] == [b"real", "pages/1", 200, Status.DB_FETCHED]


def test_an_update_that_is_repeated_changes_nothing():
    file, _ = changes([PAGE], [WHOLE, PART])
    once, _ = update([], file)
    twice, counts = update([], file, file)
    assert (once, counts["added"]) == (twice, 2)


def test_links_of_parts_carry_no_score_but_are_found():
    link = {"key": OTHER, "anchor": "", "rel": ""}
    file, _ = changes([PAGE], [WHOLE, PART | {"outlinks": [link]}])
    rows, _ = update([], file)
    found = rows[OTHER]
    assert (found["status"], found["score"], found["distance"]) == (Status.DB_UNFETCHED, 0.0, 4)


def test_budgets_and_depth_hold_for_parts():
    parts = [PART | {"key": to_key(f"http://a.com/{n}")} for n in range(5)]
    file, _ = changes([PAGE], [WHOLE, *parts])
    rows, counts = update([row(FEED)], file, max_new_per_host=2)
    assert (len(rows), counts["dropped/host_budget"]) == (3, 3)
    rows, counts = update([row(FEED)], file, additions_allowed=False)
    assert (list(rows), counts["dropped/additions_not_allowed"]) == ([FEED], 5)
    for most, taken in ((2, 0), (3, 5)):
        file, _ = changes([PAGE], [WHOLE, *parts], depth=most)
        assert len(update([row(FEED)], file)[0]) == 1 + taken


def test_parts_that_are_alike_are_no_trap():
    parts = [PART | {"key": to_key(f"http://a.com/{n}")} for n in range(9)]
    link = {"key": OTHER, "anchor": "", "rel": ""}
    file, _ = changes([PAGE], [WHOLE | {"outlinks": [link]}, *parts])
    rows, _ = update([row(FEED)], file, max_same_pages=3)
    assert OTHER in rows


def test_pages_that_a_parser_failed_at_go_where_gone_pages_go_if_that_is_wanted():
    failed = REAL_DOCUMENT | {"parse_status": int(ParseStatus.FAILED)}
    before = row(ITEM, signature=b"real", last_fetch_time=5, page="p", http_code=200, status=2)
    file, _ = changes([REAL | {"etag": "e"}], [failed])
    rows, _ = update([before], file)
    assert rows[ITEM]["status"] == Status.DB_NOTMODIFIED
    rows, counts = update([before], file, delete_failed_parse=True)
    item = rows[ITEM]
    assert item["status"] == Status.DB_PARSE_FAILED
    # As Nutch has it: the schedule of gone pages; and it is fetched whole then.
    assert (item["fetch_time"], item["retries"]) == (NOW + 45 * DAY_MS, 0)
    assert item["signature"] is None
    assert counts == {"status/db_parse_failed": 1}
    fine, _ = changes([REAL | {"fetch_time": NOW + 9}], [REAL_DOCUMENT])
    rows, _ = update([item], fine, delete_failed_parse=True)
    assert rows[ITEM]["status"] == Status.DB_FETCHED
    for status in (ParseStatus.NOTPARSED, ParseStatus.SUCCESS):
        file, _ = changes([REAL], [REAL_DOCUMENT | {"parse_status": int(status)}])
        rows, _ = update([before], file, delete_failed_parse=True)
        assert rows[ITEM]["status"] == Status.DB_NOTMODIFIED


def test_a_purge_takes_the_name_of_the_whole_out_of_its_parts():
    names = Names(urls=(FEED,))
    rows = table_of(DOCUMENTS, WHOLE, PART, PART | {"key": OTHER, "part_of": OTHER})
    kept, gone, mentions = purge_rows(
        rows, KINDS["documents"], blocklist_of(names.rows(0)), pattern_of_names(names)
    )
    assert (gone, mentions) == (1, 1)
    assert kept.select(["key", "part_of"]).to_pylist() == [
        {"key": ITEM, "part_of": None}, {"key": OTHER, "part_of": OTHER}
    ]  # fmt: skip
