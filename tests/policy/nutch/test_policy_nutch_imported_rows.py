"""What comes from Nutch meets the rows of a table: newest rows win, applied segments are found."""

import random

import polars as pl
import pytest

from nutbeam.policy.batch_tools import merged_rows
from nutbeam.policy.components.schema import STATE, conform_frame, empty
from nutbeam.policy.nutch.crawldb_rows import last_fetch_time
from nutbeam.policy.nutch.imported_rows import (
    NUTCH_STATE,
    applied_count,
    merge_imported,
    waiting_count,
)
from nutbeam.policy.nutch.segment_rows import pages_of_segment
from nutbeam.web.hadoop.segment_values import CONTENTS
from nutbeam.web.nutch_text.text_records import DATUM

DAY = 86_400_000
A, B = "com.a:http/", "com.b:http/"


def state(*rows):
    types = {"metadata": pl.Map(pl.String, pl.String)}
    frame = pl.DataFrame(list(rows), schema_overrides=types)
    return conform_frame(frame, STATE) if rows else empty(STATE)


def changes(*rows):
    return conform_frame(pl.DataFrame(list(rows), infer_schema_length=None), NUTCH_STATE)


def row(key=A, fetch_time=100 * DAY, status=2, last=70 * DAY, **values):
    return {
        "key": key,
        "status": status,
        "fetch_time": fetch_time,
        "last_fetch_time": last,
        **values,
    }


def page(key=A, time=70 * DAY, segment=0, **values):
    of_page = {"page": f"p{segment}", "document": f"d{segment}", "batch_id": f"b{segment}"}
    return {"key": key, "segment": segment, "fetch_status": 33, "last_fetch_time": time,
            **of_page, **values}  # fmt: skip


@pytest.mark.parametrize(
    ("status", "retries", "expected"),
    [(1, 0, None), (1, 1, 99 * DAY), (2, 0, 70 * DAY), (3, 2, 70 * DAY), (9, 0, 70 * DAY)],
)
def test_the_last_fetch_is_derived_by_the_rule_that_the_guide_states(status, retries, expected):
    rows = pl.DataFrame(
        {
            "status": [status],
            "retries": [retries],
            "fetch_time": [100 * DAY],
            "fetch_interval": [30 * 86_400],
        }
    )
    assert rows.select(last_fetch_time()).item() == expected


def test_pages_are_applied_where_their_urls_are_due_after_their_fetch():
    merged, outcomes, counts = merge_imported(
        state(), changes(row(A), row(B, 60 * DAY, 1, None), page(A), page(B), page("com.c:http/")),
        finds_applied=True,
    )  # fmt: skip
    assert counts[applied_count(0)] == 1
    assert counts[waiting_count(0)] == 2
    assert merged["page"].to_list() == ["p0", None]
    assert outcomes[0].select("key", "document", "fetch_status", "status").rows() == [
        (A, "d0", 33, 2)
    ]


def test_the_newest_body_counts_and_one_that_the_table_had_later_stays():
    merged, outcomes, _ = merge_imported(
        state(), changes(row(A), page(A, 40 * DAY, 0), page(A, 70 * DAY, 1)), finds_applied=True
    )
    assert merged["page"].to_list() == ["p1"]
    assert list(outcomes) == [0, 1]
    own = state(row(A, 110 * DAY, last=80 * DAY, page="own", document="own"))
    merged, *_ = merge_imported(own, changes(row(A), page(A)), finds_applied=True)
    assert merged.select("page", "fetch_time").rows() == [("own", 110 * DAY)]


def test_without_a_crawldb_no_page_counts_as_applied():
    merged, outcomes, counts = merge_imported(state(row(A)), changes(page(A)), finds_applied=False)
    assert (merged["page"].to_list(), outcomes, counts) == ([None], {}, {})


def test_rows_that_meet_no_other_are_merged_as_all_rows_are(monkeypatch):
    chance = random.Random(3)
    keys = [f"com.a:http/{number}" for number in range(60)]

    def rows(number):
        return state(
            *(
                row(chance.choice(keys), chance.randrange(99), chance.randrange(1, 4), chance.randrange(9),
                    score=chance.random(), metadata={"a": str(n)})
                for n in range(number)
            )
        )  # fmt: skip

    own = rows(30).unique("key").sort("key")
    arrived = rows(40)
    merged = merged_rows.merge_state_rows(own, arrived)
    monkeypatch.setattr(
        pl.Series, "is_unique", lambda column: pl.repeat(False, len(column), eager=True)
    )
    assert merged[0].equals(merged_rows.merge_state_rows(own, arrived)[0])
    assert merged[0].height == pl.concat([own, arrived])["key"].n_unique()


def test_a_content_without_a_record_of_its_fetch_is_a_page_by_its_own_notes(rules_of_nutch):
    contents = pl.DataFrame(
        [("http://a.com/", "", "", b"x", "text/html", [{"key": "_fst_", "value": "35"}])],
        schema=CONTENTS, orient="row",
    )  # fmt: skip
    pages, counts = pages_of_segment(pl.DataFrame(schema=DATUM), contents, rules_of_nutch)
    assert pages.select("key", "fetch_status", "protocol_status", "body").rows() == [
        (A, 35, 13, b"x")
    ]
    assert counts == {"pages": 1}


@pytest.fixture
def rules_of_nutch():
    from nutbeam.policy.batch_tools.url_lists import ListRuleOptions
    from nutbeam.policy.components.blocklist import Blocklist
    from nutbeam.policy.nutch.crawldb_rows import NutchRules

    return NutchRules(ListRuleOptions().rules, False, Blocklist())
