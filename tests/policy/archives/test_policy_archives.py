"""Which pages an archive gets, what their captures are, and which of them are revisits."""

import polars as pl
import pyarrow as pa
import pytest

from nutbeam.policy.archives.captured_pages import captures_of, choose_pages
from nutbeam.policy.archives.revisits import (
    CAPTURED,
    WRITTEN,
    revisits_of_payloads,
    revisits_of_urls,
)
from nutbeam.policy.components.schema import PAGES
from nutbeam.web.exchange.status import FETCH_GONE, FETCH_NOTMODIFIED, FETCH_SUCCESS

ROWS = [
    {"key": "com.a:http/", "fetch_status": FETCH_SUCCESS, "http_code": 200, "body": b"x",
     "headers": [{"name": "A", "value": "1"}, {"name": "B", "value": None}], "fetch_time": 7},
    {"key": "com.a:http/gone", "fetch_status": FETCH_GONE, "http_code": 404, "headers": None},
    {"key": "com.a:http/same", "fetch_status": FETCH_NOTMODIFIED, "http_code": 304, "headers": []},
    {"key": "com.a:http/dead", "fetch_status": FETCH_GONE},
    {"key": ":file/a", "fetch_status": FETCH_SUCCESS, "body": b""},
]  # fmt: skip


def captured(*rows):
    return pl.DataFrame(rows, schema=pl.Schema(CAPTURED), orient="row")


@pytest.mark.parametrize(
    ("expr", "successful", "kept", "counts"),
    [
        ("", False, [0, 1, 2, 4], {"unanswered": 1}),
        ("", True, [0, 2, 4], {"unanswered": 1, "unsuccessful": 1}),
        ("http_code < 400", False, [0, 2], {"unanswered": 1, "unwanted": 2}),
        ("url.endswith('/gone')", True, [], {"unanswered": 1, "unsuccessful": 1, "unwanted": 3}),
    ],
)
def test_rows_without_an_answer_or_outside_of_the_choice_are_counted(
    expr, successful, kept, counts
):
    pages = pa.Table.from_pylist(ROWS, schema=PAGES)
    chosen, left_out = choose_pages(pages, expr, 0, successful=successful)
    assert chosen["key"].to_pylist() == [ROWS[number]["key"] for number in kept]
    assert left_out == counts


def test_captures_have_the_values_of_rows_also_of_a_slice():
    pages = pa.Table.from_pylist([*ROWS, ROWS[0]], schema=PAGES)
    found = list(captures_of(pages, "1-a"))
    assert (found[0].url, found[0].headers, found[0].time) == (
        "http://a.com/",
        (("A", "1"), ("B", "")),
        7,
    )
    assert found[4] == found[4].__class__("file:///a", "1-a", 0, body=b"")
    assert list(captures_of(pages.slice(4), "1-a")) == found[4:]


def test_the_earliest_capture_of_a_payload_is_the_original_unless_one_is_written():
    rows = captured((b"d", "http://b/", 5, "2", 1, False), (b"d", "http://a/", 3, "1", 0, False),
                    (b"e", "http://c/", 1, "1", 0, False), (None, "http://d/", 1, "1", 0, False))  # fmt: skip
    columns = ["url", "part", "earlier_url", "earlier_batch"]
    assert revisits_of_payloads(rows).select(columns).rows() == [("http://b/", 1, "http://a/", "1")]
    written = captured((b"d", "http://w/", 9, "0", WRITTEN, False))
    assert revisits_of_payloads(pl.concat([rows, written])).select(columns).sort("url").rows() == [
        ("http://a/", 0, "http://w/", "0"),
        ("http://b/", 1, "http://w/", "0"),
    ]


def test_a_304_confirms_the_newest_capture_before_it():
    rows = captured((b"x", "http://a/", 1, "1", WRITTEN, False), (b"y", "http://a/", 4, "2", 0, False),
                    (None, "http://a/", 6, "3", 1, True), (b"z", "http://a/", 8, "4", 1, False),
                    (None, "http://b/", 6, "3", 1, True))  # fmt: skip
    columns = ["url", "time", "earlier_time", "earlier_batch"]
    assert revisits_of_urls(rows).select(columns).rows() == [("http://a/", 6, 4, "2")]
