"""Ids, cleaning, bulks, verdicts and waiting times for search servers."""

import datetime
import json
import random
import time

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nutbeam.web.exchange.status import seconds_to_wait
from nutbeam.web.indexing.server_answers import RetryPlan, ServerAnswer, judge_update
from nutbeam.web.indexing.server_bulks import (
    Action,
    action_bulks,
    bulk_actions,
    clean_documents,
    dead_letter_text,
    document_id,
    document_ids,
    solr_actions,
    solr_deletes,
)
from nutbeam.web.indexing.server_fields import read_schema
from nutbeam.web.indexing.stored_documents import stored_document_rows

NONE = pl.Series([], dtype=pl.String)


def test_the_id_is_the_url_unless_it_is_longer_than_512_bytes():
    fits, long = "http://a/" + "é" * 251 + "x", "http://a/" + "é" * 252
    assert len(fits.encode()) == 512
    assert document_id(fits) == fits
    assert document_id(long).startswith("sha256:")
    urls = pl.Series([fits, long, "http://b/"])
    assert document_ids(urls) == [document_id(url) for url in urls]
    (added,) = bulk_actions(pl.DataFrame({"id": [long]}), NONE, 1)
    (deleted,) = bulk_actions(pl.DataFrame({"id": NONE}), pl.Series([long]), 1)
    (in_solr,) = solr_actions(pl.DataFrame({"id": [long]}), {})
    (gone,) = solr_deletes(pl.Series([long]))
    assert added.id == deleted.id == in_solr.id == json.loads(gone.data) == document_id(long)
    assert json.loads(in_solr.data) == {"id": document_id(long), "url": long}
    assert added.url == in_solr.url == long


@given(st.text(st.characters(codec="utf-8"), max_size=30))
def test_clean_texts_can_be_sent_and_cleaning_them_again_changes_nothing(text):
    def cleaned(text):
        found, _ = clean_documents(pl.DataFrame({"id": ["a"], "title": [text]}), frozenset())
        return found["title"][0]

    clean = cleaned(text)
    assert cleaned(clean) == clean
    assert not set(clean) & set(map(chr, {*range(9), 11, 12, *range(14, 32), 127, 0xFFFE, 0xFFFF}))


def test_documents_are_cleaned():
    frame = pl.DataFrame(
        {
            "id": ["a", "b", "c"],
            "title": ["x\x00\ny\u200b", "ok", None],
            "anchor": [["a\x01", "b"], ["c"], None],
            "tstamp": [0, 253_402_300_800_000, None],
            "seen": pl.Series([1, 2, 3]).cast(pl.Datetime("us")),
            "boost": [float("inf"), 1.5, None],
            "count": [1, 2, 3],
        }
    )
    clean, counts = clean_documents(frame, frozenset(["tstamp"]))
    assert clean["title"].to_list() == ["x \ny\u200b", "ok", None]
    assert clean["anchor"].to_list() == [["a ", "b"], ["c"], None]
    assert clean["tstamp"].to_list() == ["1970-01-01T00:00:00.000Z", None, None]
    assert clean["seen"][0] == "1970-01-01T00:00:00.000Z"
    assert clean["boost"].to_list() == [None, 1.5, None]
    assert counts == {"cleaned_texts": 2, "cleaned_dates": 1, "cleaned_numbers": 1}


@given(
    st.lists(st.integers(0, 20), max_size=50),
    st.integers(1, 30),
    st.integers(1, 7),
)
def test_bulks_keep_order_and_limits(sizes, most_bytes, most):
    actions = [Action(str(n), str(n), b"x" * size) for n, size in enumerate(sizes)]
    made = list(action_bulks(actions, most_bytes, most))
    assert [action for bulk in made for action in bulk] == actions
    for bulk in made:
        assert 0 < len(bulk) <= most
        assert len(bulk) == 1 or sum(len(action.data) for action in bulk) <= most_bytes


def test_a_dead_letter_of_a_large_document_is_cut():
    large = {"id": "a", "content": "x" * 3_000_000, "anchor": ["y"] * 50, "boost": 1.0}
    kept = json.loads(dead_letter_text(json.dumps(large).encode()))
    assert kept["id"] == "a"
    assert kept["boost"] == 1.0
    assert kept["content"].endswith("(cut)")
    assert len(json.dumps(kept)) < 1_100_000


def test_waiting_doubles_with_jitter_and_ends():
    plan, waits = RetryPlan(100, rng=random.Random(1)), []
    while (seconds := plan.wait()) is not None:
        waits.append(seconds)
    assert sum(waits) <= 100
    for at, seconds in enumerate(waits):
        assert 0.25 * 2**at <= seconds <= 0.5 * 2**at
    plan.progress()
    assert plan.wait() <= 0.5


@pytest.mark.parametrize(("text", "seconds"), [("999999999999", 600.0), ("-1", None), ("", None)])
def test_odd_values_of_retry_after(text, seconds):
    assert seconds_to_wait(text, 600) == seconds


def test_a_date_without_a_zone_is_utc_in_retry_after(monkeypatch):
    monkeypatch.setenv("TZ", "America/New_York")
    time.tzset()
    try:
        date = datetime.datetime.now(datetime.UTC) + datetime.timedelta(seconds=100)
        assert 90 < seconds_to_wait(f"{date:%a, %d %b %Y %H:%M:%S}", 600) <= 100
    finally:
        monkeypatch.undo()
        time.tzset()


def solr_bulk(*ids):
    return list(solr_actions(pl.DataFrame({"id": list(ids)}), {}))


def test_solr_names_the_bad_document_and_the_others_are_sent_again():
    body = b'{"error":{"msg":"ERROR: [doc=b] unknown field","code":400}}'
    verdict = judge_update(solr_bulk("a", "b", "c"), ServerAnswer(400, body))
    assert [action.id for action in verdict.again] == ["a", "c"]
    assert [(action.id, why) for action, why in verdict.refused] == [
        ("b", "ERROR: [doc=b] unknown field")
    ]


def test_solr_names_no_document_and_the_bulk_is_split():
    verdict = judge_update(solr_bulk("a", "b"), ServerAnswer(400, b'{"error":{"msg":"bad"}}'))
    assert verdict.too_large
    assert len(verdict.again) == 2


def test_solr_tolerates_bad_documents():
    body = b'{"responseHeader":{"status":0,"errors":[{"type":"ADD","id":"b","message":"no"}]}}'
    verdict = judge_update(solr_bulk("a", "b"), ServerAnswer(200, body))
    assert verdict.counts == {"added": 1}
    assert [(action.id, why) for action, why in verdict.refused] == [("b", "no")]


def test_an_answer_that_is_not_of_solr_counts_for_nothing():
    verdict = judge_update(solr_bulk("a"), ServerAnswer(200, b"<html>log in</html>"))
    assert len(verdict.again) == 1
    assert "<html>" in verdict.why


def test_missing_fields_and_dates_of_a_schema_are_found():
    schema = read_schema(
        {
            "schema": {
                "uniqueKey": "id",
                "fields": [{"name": "id", "type": "string"}, {"name": "when", "type": "d"}],
                "dynamicFields": [{"name": "*_dt", "type": "d"}, {"name": "attr_*", "type": "s"}],
                "fieldTypes": [
                    {"name": "d", "class": "solr.DatePointField"},
                    {"name": "words", "class": "solr.TextField"},
                    {"name": "string", "class": "solr.StrField"},
                ],
            }
        }
    )
    assert schema.dates(["when", "x_dt", "attr_x", "none"]) == {"when", "x_dt"}
    lacking = {field["name"]: field for field in schema.lacking()}
    assert "id" not in lacking
    assert lacking["title"]["type"] == "words"
    assert lacking["anchor"]["multiValued"]
    assert lacking["index_version"]["type"] == "plong"


def test_stored_documents_of_any_program_are_read():
    rows = stored_document_rows(
        [
            ("a", {"url": ["u", "v"], "tstamp": 5, "boost": "no", "digest": 7}, None, None),
            ("b", {"id": "http://b/", "tstamp": "soon"}, 1, 2),
            ("c", {"tstamp": "1970-01-01T00:00:01"}, 1, 2),
        ]
    )
    assert rows.select("url", "time", "signature", "score").rows() == [
        ("u", 5, "7", None),
        ("http://b/", None, None, None),
        ("c", 1000, None, None),
    ]
