import itertools
import random

import polars as pl
import pytest
from file_changes import update_state
from frames import frame_of
from hypothesis import given, settings
from hypothesis import strategies as st
from status_rows import (
    KEY,
    MONTH,
    NOW,
    OPTIONS,
    STATUSES,
    TABLE,
    A,
    B,
    event,
    linked,
    name,
    old_row,
    one,
    update,
)

from nutbeam.policy.components.schema import CHANGES, OUTCOME, STATE, Status
from nutbeam.policy.schedules.schedule import DAY_MS
from nutbeam.policy.updating.update_rules import UpdateOptions
from nutbeam.web.exchange.status import (
    FETCH_GONE,
    FETCH_NOTMODIFIED,
    FETCH_REDIR_PERM,
    FETCH_REDIR_TEMP,
    FETCH_RETRY,
    FETCH_SUCCESS,
)

IN_AN_INDEX = (Status.DB_FETCHED, Status.DB_NOTMODIFIED)


@pytest.mark.parametrize("old", STATUSES, ids=name)
@pytest.mark.parametrize("what", TABLE)
def test_transition(old, what):
    status, before, after, expected, days = TABLE[what]
    if old not in IN_AN_INDEX and expected == Status.DB_NOTMODIFIED:
        expected = Status.DB_FETCHED  # an index adds it again
    row, outcome, counts = one(old_row(old, signature=before), event(status, signature=after))
    assert row["status"] == expected
    assert row["fetch_time"] == NOW + days * DAY_MS
    assert row["last_fetch_time"] == NOW
    assert [made["status"] for made in outcome] == [expected]
    assert counts[f"status/{expected.name.lower()}"] == 1
    assert counts.get("added", 0) == (old is None)


@pytest.mark.parametrize("old", STATUSES[1:], ids=name)
@pytest.mark.parametrize(
    ("retries", "expected", "days"),
    [(0, Status.DB_UNFETCHED, 1), (1, Status.DB_UNFETCHED, 1), (2, Status.DB_GONE, 45),
     (3, Status.DB_GONE, 45), (300, Status.DB_GONE, 45)],
)  # fmt: skip
def test_retry_counts_up_to_gone(old, retries, expected, days):
    row, _, _ = one(old_row(old, retries=retries, signature=A), event(FETCH_RETRY))
    assert (row["status"], row["retries"]) == (expected, retries + 1)
    assert row["fetch_time"] == NOW + days * DAY_MS
    assert row["signature"] == A
    assert row["fetch_interval"] == MONTH * (1.5 if expected == Status.DB_GONE else 1)


@pytest.mark.parametrize("old", STATUSES[1:], ids=name)
def test_link_only_changes_the_score_alone(old):
    before = old_row(old, signature=A, retries=2)
    row, outcome, counts = one(before, linked(0.25, distance=5))
    same = {column: value for column, value in row.items() if column in before}
    assert same == {**before, "score": 1.25}
    assert row["last_inlink_day"] == NOW // DAY_MS
    assert (outcome, counts) == ([], {})


def test_link_to_a_new_url_adds_it():
    row, outcome, counts = one(None, linked(0.25, distance=5))
    assert {name: value for name, value in row.items() if value is not None} == {
        "key": KEY,
        "status": Status.DB_UNFETCHED,
        "fetch_time": NOW,
        "fetch_interval": MONTH,
        "retries": 0,
        "score": 0.25,
        "distance": 5,
        "last_inlink_day": NOW // DAY_MS,
    }
    assert (outcome, counts) == ([], {"added": 1})


@pytest.mark.parametrize("old", STATUSES[1:], ids=name)
def test_nothing_changes_nothing(old):
    # Not even what an event would put right: an interval of 0.
    rows = frame_of(STATE, old_row(old, fetch_interval=0, signature=A, metadata=[("a", "b")]))
    other = frame_of(CHANGES, linked(1.0, key="com.other:http/"))
    kept, *_ = update_state(rows, other, NOW, OPTIONS)
    assert kept.filter(pl.col("key") == KEY).equals(rows)


def test_success_takes_over_the_columns_of_the_event():
    row, outcome, _ = one(
        old_row(Status.DB_FETCHED, signature=A, retries=2),
        event(FETCH_SUCCESS, signature=B, last_modified=None),
    )
    taken = ("signature", "etag", "last_modified", "content_type", "batch_id", "document", "page")
    assert [row[column] for column in taken] == [B, '"new"', None, "text/html", "b1", "d1", "p1"]
    assert (row["retries"], row["modified_time"]) == (0, NOW)
    assert outcome == [
        {"key": KEY, "document": "d1", "status": Status.DB_FETCHED, "score": 1.0, "signature": B,
         "fetch_status": FETCH_SUCCESS, "old_status": Status.DB_FETCHED, "old_document": "d0",
         "old_signature": A, "repr_url": None, "usage": None,
         "last_fetch_time": row["last_fetch_time"]}
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("status", "document"),
    [(FETCH_SUCCESS, "d1"), (FETCH_NOTMODIFIED, "d0"), (FETCH_REDIR_TEMP, None),
     (FETCH_RETRY, None), (FETCH_GONE, None)],
)  # fmt: skip
@pytest.mark.parametrize("old", [Status.DB_FETCHED, Status.DB_DUPLICATE], ids=name)
def test_the_outcome_has_old_and_new_status_and_document(old, status, document):
    """A page that failed names no document: the one before is in ``old_document``."""
    _, (told,), _ = one(old_row(old, signature=A), event(status, signature=B))
    assert (told["fetch_status"], told["old_status"]) == (status, old)
    assert (told["document"], told["old_document"]) == (document, "d0")


def test_the_outcome_of_a_new_page_has_nothing_before():
    _, (told,), _ = one(None, event(FETCH_SUCCESS, signature=B))
    assert (told["old_status"], told["old_document"]) == (None, None)


@pytest.mark.parametrize(
    "status", [FETCH_NOTMODIFIED, FETCH_REDIR_TEMP, FETCH_REDIR_PERM, FETCH_RETRY, FETCH_GONE]
)
def test_without_a_body_the_old_one_stays(status):
    kept = ("signature", "etag", "last_modified", "batch_id", "document", "page", "modified_time")
    before = old_row(Status.DB_FETCHED, signature=A)
    row, _, _ = one(before, event(status, http_code=304, content_type=None))
    assert [row[column] for column in kept] == [before[column] for column in kept]
    assert row["http_code"] == 304


@pytest.mark.parametrize(
    "change", [linked(1.0), event(FETCH_SUCCESS, signature=A)], ids=["linked", "fetched"]
)
def test_additions_may_be_refused(change):
    options = UpdateOptions(additions_allowed=False)
    row, outcome, counts = one(None, change, options=options)
    assert (row, outcome, counts) == (None, [], {"dropped/additions_not_allowed": 1})


def test_no_budget_keeps_out_pages_that_were_fetched_at_once():
    keys = [f"com.example:http/{n}" for n in range(4)]
    links = [linked(score, key=key) for key, score in zip(keys, (4.0, 3.0, 2.0, 1.0), strict=True)]
    options = UpdateOptions(max_new_per_host=1)
    kept, outcome, counts = update([], [*links, event(FETCH_SUCCESS, key=keys[3])], options)
    assert kept["key"].to_list() == [keys[0], keys[3]]
    assert kept["score"].to_list() == [4.0, 1.0]
    assert kept["distance"].null_count() == 0
    assert outcome["key"].to_list() == [keys[3]]
    assert counts["dropped/host_budget"] == 2


def test_without_additions_known_urls_change():
    options = UpdateOptions(additions_allowed=False)
    row, _, counts = one(
        old_row(Status.DB_UNFETCHED), event(FETCH_SUCCESS, signature=A), linked(1.0),
        options=options,
    )  # fmt: skip
    assert (row["status"], row["score"]) == (Status.DB_FETCHED, 2.0)
    assert counts == {"status/db_fetched": 1}


def test_scores_add_up():
    row, outcome, _ = one(
        old_row(Status.DB_UNFETCHED),
        *(linked(score, order=order) for order, score in enumerate([0.25, 0.5, 4.0])),
        event(FETCH_SUCCESS, signature=A),
    )
    assert row["score"] == outcome[0]["score"] == 5.75


def test_scores_are_summed_in_double_precision():
    shares = [linked(2.0**-26, order=order) for order in range(64)]
    assert one(old_row(Status.DB_UNFETCHED), *shares)[0]["score"] == pytest.approx(1 + 2**-20)


def test_scores_have_the_same_bits_in_any_order():
    numbers = random.Random(7)
    shares = [linked(numbers.random(), order=order) for order in range(2000)]
    expected = 0.0
    for share in shares:
        expected += share["inlink_score"]
    rows = []
    for _ in range(5):
        numbers.shuffle(shares)
        rows.append(one(None, *shares)[0]["score"])
    assert set(rows) == {pl.Series([expected]).cast(pl.Float32)[0]}


@pytest.mark.parametrize(
    ("old", "links", "expected"),
    [(None, [4, 2, 3], 2), (1, [4], 1), (5, [4], 4), (None, [None], None), (3, [None], 3)],
)
def test_distance_is_the_least(old, links, expected):
    changes = [linked(0.0, distance=d, order=at) for at, d in enumerate(links)]
    assert one(old_row(Status.DB_FETCHED, distance=old), *changes)[0]["distance"] == expected


@pytest.mark.parametrize("order", list(itertools.permutations(range(3))))
def test_the_first_event_of_a_key_wins(order):
    events = [
        event(FETCH_SUCCESS, order=1, signature=A, document="first"),
        event(FETCH_GONE, order=2, signature=None, document="second"),
        event(FETCH_RETRY, order=3, signature=None, document="third"),
    ]
    row, outcome, counts = one(old_row(Status.DB_UNFETCHED), *(events[at] for at in order))
    assert (row["status"], row["document"]) == (Status.DB_FETCHED, "first")
    assert (len(outcome), counts) == (1, {"status/db_fetched": 1})


def test_rows_come_back_in_key_order_with_the_declared_columns():
    rows = [old_row(Status.DB_FETCHED, key=f"com.example:http/{at}") for at in range(0, 10, 2)]
    changes = [linked(1.0, key=f"com.example:http/{at}") for at in (9, 3, 4, 1)]
    kept, outcome, _ = update(rows, changes)
    assert kept["key"].to_list() == sorted({row["key"] for row in [*rows, *changes]})
    assert kept.schema == frame_of(STATE).schema
    assert outcome.schema == frame_of(OUTCOME).schema


def test_no_rows_and_no_changes():
    kept, outcome, counts = update([], [])
    assert (len(kept), len(outcome), counts) == (0, 0, {})


KEYS = [f"com.example:http/{at}" for at in range(6)]


SOME_ROWS = st.lists(
    st.builds(
        lambda key, status, signature, retries: old_row(
            status, key=key, signature=signature, retries=retries
        ),
        st.sampled_from(KEYS),
        st.sampled_from(list(Status)),
        st.sampled_from([None, A, B]),
        st.integers(0, 4),
    ),
    unique_by=lambda row: row["key"],
)


FILES = st.lists(  # of each file an event and a sum per key at most, as links.py makes them
    st.lists(
        st.one_of(
            st.builds(
                lambda key, status, signature: event(status, key=key, signature=signature),
                st.sampled_from(KEYS),
                st.sampled_from([FETCH_SUCCESS, FETCH_NOTMODIFIED, FETCH_RETRY, FETCH_GONE]),
                st.sampled_from([None, A, B]),
            ),
            st.builds(
                lambda key, score: linked(score, key=key),
                st.sampled_from(KEYS),
                st.floats(0, 10, width=32),
            ),
        ),
        unique_by=lambda change: (change["key"], "inlink_score" in change),
        max_size=8,
    ),
    max_size=4,
)


@given(SOME_ROWS, FILES, st.randoms(use_true_random=False))
@settings(max_examples=15)
def test_changes_give_the_same_result_in_any_order_and_number_of_files(rows, files, shuffler):
    rows = frame_of(STATE, *sorted(rows, key=lambda row: row["key"]))
    changes = [{**change, "order": at} for at, file in enumerate(files) for change in file]
    whole = update_state(rows, frame_of(CHANGES, *changes), NOW, OPTIONS)
    shuffler.shuffle(changes)
    cut = shuffler.randint(0, len(changes))
    parts = pl.concat([frame_of(CHANGES, *changes[:cut]), frame_of(CHANGES, *changes[cut:])])
    again = update_state(rows, parts, NOW, OPTIONS)
    assert whole[0].equals(again[0])
    assert whole[1].equals(again[1])
    assert whole[2] == again[2]


@given(SOME_ROWS, FILES, st.integers(0, 6))
@settings(max_examples=15)
def test_rows_give_the_same_result_in_any_number_of_ranges(rows, files, at):
    rows = frame_of(STATE, *sorted(rows, key=lambda row: row["key"]))
    changes = frame_of(
        CHANGES, *({**change, "order": n} for n, file in enumerate(files) for change in file)
    )
    whole, outcome, counts, _ = update_state(rows, changes, NOW, OPTIONS)
    bound = KEYS[at] if at < len(KEYS) else "z"
    low, high = (
        update_state(rows.filter(below), changes.filter(below), NOW, OPTIONS)
        for below in (pl.col("key") < bound, pl.col("key") >= bound)
    )
    assert whole.equals(pl.concat([low[0], high[0]]))
    assert outcome.equals(pl.concat([low[1], high[1]]))
    assert counts == {n: low[2].get(n, 0) + high[2].get(n, 0) for n in {*low[2], *high[2]}}


def test_a_body_that_was_not_parsed_leaves_the_text_of_the_one_before():
    before = old_row(Status.DB_FETCHED, signature=A)
    row, (told,), _ = one(before, event(FETCH_SUCCESS, signature=None, document=None))
    assert (row["document"], row["page"], row["batch_id"]) == ("d0", "p1", "b1")
    # Without a signature the next request is unconditional, so the text is not old for ever.
    assert (row["status"], row["signature"]) == (Status.DB_FETCHED, None)
    assert (told["document"], told["old_document"]) == (None, "d0")
