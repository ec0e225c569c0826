"""Which pages an archive gets, what their captures are, and which of them are revisits."""

import polars as pl
import pyarrow as pa
import pytest

from nutbeam.policy.archives.captured_pages import capture_row, captures_of, choose_pages
from nutbeam.policy.archives.revisits import (
    CAPTURED,
    WRITTEN,
    confirmed_captures,
    revisits_of_payloads,
)
from nutbeam.policy.components.schema import PAGES
from nutbeam.web.archives.captures import Capture
from nutbeam.web.archives.page_records import CapturedContent
from nutbeam.web.exchange.status import FETCH_GONE, FETCH_NOTMODIFIED, FETCH_SUCCESS

ROWS = [
    {"key": "com.a:http/", "fetch_status": FETCH_SUCCESS, "http_code": 200, "body": b"x",
     "headers": [{"name": "A", "value": "1"}, {"name": "B", "value": None}], "fetch_time": 7},
    {"key": "com.a:http/gone", "fetch_status": FETCH_GONE, "http_code": 404, "headers": None},
    {"key": "com.a:http/same", "fetch_status": FETCH_NOTMODIFIED, "http_code": 304, "headers": []},
    {"key": "com.a:http/dead", "fetch_status": FETCH_GONE},
    {"key": ":file/a", "fetch_status": FETCH_SUCCESS, "body": b""},
]  # fmt: skip


def test_a_page_without_its_body_is_in_no_archive():
    rows = [{**ROWS[0], "body": None, "truncated": "dropped"}, ROWS[0]]
    chosen, left_out = choose_pages(
        pa.Table.from_pylist(rows, schema=PAGES), "", 0, successful=False
    )
    assert (len(chosen), left_out) == (1, {"body_dropped": 1})


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


def test_the_earliest_capture_of_a_payload_is_the_original():
    rows = captured((b"d", "http://b/", 5, "2", 1, False, True), (b"d", "http://a/", 3, "1", 0, False, True),
                    (b"e", "http://c/", 1, "1", 0, False, True), (None, "http://d/", 1, "1", 0, False, True))  # fmt: skip
    columns = ["url", "part", "earlier_url", "earlier_batch"]
    assert revisits_of_payloads(rows).select(columns).rows() == [("http://b/", 1, "http://a/", "1")]
    written = captured((b"d", "http://w/", 2, "0", WRITTEN, False, True))
    assert revisits_of_payloads(pl.concat([rows, written])).select(columns).sort("url").rows() == [
        ("http://a/", 0, "http://w/", "0"),
        ("http://b/", 1, "http://w/", "0"),
    ]


def test_a_batch_that_is_written_late_refers_to_no_newer_capture():
    late = captured(
        (b"d", "http://a/", 3, "1", 0, False, True), (b"d", "http://b/", 4, "1", 0, False, True)
    )
    written = captured((b"d", "http://w/", 9, "2", WRITTEN, False, True))
    (revisit,) = revisits_of_payloads(pl.concat([late, written])).to_dicts()
    assert (revisit["url"], revisit["earlier_url"]) == ("http://b/", "http://a/")


def test_a_304_confirms_the_newest_capture_before_it_and_names_the_original_of_its_payload():
    # The newest capture of b is a revisit, which this run writes or an earlier run has written.
    for part, has_body in ((0, True), (WRITTEN, False)):
        rows = captured((b"x", "http://a/", 1, "1", WRITTEN, False, True),
                        (b"y", "http://b/", 3, "1", WRITTEN, False, True),
                        (b"x", "http://b/", 4, "2", part, False, has_body),
                        (None, "http://b/", 6, "3", 1, True, True),
                        (b"z", "http://b/", 8, "4", 1, False, True),
                        (None, "http://c/", 6, "3", 1, True, True))  # fmt: skip
        confirmed = confirmed_captures(rows)
        columns = ["url", "time", "digest", "earlier_time", "earlier_batch"]
        assert confirmed.select(columns).rows() == [("http://b/", 6, b"x", 4, "2")]
        found = revisits_of_payloads(pl.concat([rows, confirmed.select(rows.columns)]))
        assert ("http://b/", 6, 1, "http://a/", 1, "1") in found.rows()
        assert "http://c/" not in found["url"]


@pytest.mark.parametrize(
    ("capture", "mime", "digest"),
    [
        (Capture("http://a/", "1", 0, status=200, content_type="Text/HTML charset=x", body=b""), "Text/HTML", b"d"),
        (Capture("http://a/", "1", 0, status=304), None, None),
        (Capture("file:///a", "1", 0, body=b"x"), "application/octet-stream", b"d"),
    ],
)  # fmt: skip
def test_a_row_of_a_capture_has_the_type_of_its_record_and_a_304_no_digest(capture, mime, digest):
    row = capture_row(CapturedContent(capture, None), b"d", whole=False, sniffed=False)
    assert (row["mime"], row["digest"]) == (mime, digest)
