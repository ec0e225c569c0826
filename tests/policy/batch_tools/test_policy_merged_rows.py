"""Of several rows of a URL the newest fetch wins, as in mergedb."""

import pyarrow as pa
import pytest

from nutbeam.policy.batch_tools.merged_rows import merge_state_rows
from nutbeam.policy.components.schema import STATE, to_frame

KEY = "com.a:http/"


def rows(*records):
    filled = [{"key": KEY, "status": 2, "fetch_time": 0, **record} for record in records]
    return to_frame(pa.Table.from_pylist(filled, STATE))


def merged(own, *others):
    result, counts = merge_state_rows(rows(*own), rows(*others))
    return result.row(0, named=True), counts


@pytest.mark.parametrize(
    ("own", "other", "winner"),
    [
        ({"last_fetch_time": 5}, {"last_fetch_time": 6}, "other"),
        ({"last_fetch_time": 6}, {"last_fetch_time": 5}, "own"),
        ({"last_fetch_time": 5, "fetch_time": 1}, {"last_fetch_time": 5, "fetch_time": 2}, "other"),
        ({"last_fetch_time": 5, "fetch_time": 2}, {"last_fetch_time": 5, "fetch_time": 2}, "own"),
        # An unfetched URL has no last fetch, even if a request has failed.
        ({"last_fetch_time": 9, "status": 1}, {"last_fetch_time": 5}, "other"),
        ({"fetch_time": 1, "status": 1}, {"fetch_time": 3, "status": 1}, "other"),
    ],
)
def test_the_newest_fetch_wins_then_the_later_due_time(own, other, winner):
    row, counts = merged(
        [{**own, "protocol_message": "own"}], {**other, "protocol_message": "other"}
    )
    assert row["protocol_message"] == winner
    assert counts == ({"replaced": 1} if winner == "other" else {})


def test_metadata_of_all_is_united_and_newer_values_win():
    row, _ = merged(
        [{"last_fetch_time": 2, "metadata": [("a", "2"), ("b", "2")]}],
        {"last_fetch_time": 3, "metadata": [("b", "3")]},
        {"last_fetch_time": 1, "metadata": [("a", "1"), ("c", "1")]},
    )
    assert dict(row["metadata"]) == {"a": "2", "b": "3", "c": "1"}


def test_distance_and_days_of_links_are_those_of_all():
    row, _ = merged(
        [{"last_fetch_time": 2, "distance": 1, "last_inlink_day": 7}],
        {"last_fetch_time": 3, "distance": 4, "last_inlink_day": 6},
    )
    assert (row["distance"], row["last_inlink_day"]) == (1, 7)


def test_a_body_that_the_table_has_stays_when_the_newer_row_has_none():
    own = {"last_fetch_time": 2, "document": "d", "page": "p", "signature": b"1", "etag": "e"}
    row, _ = merged([own], {"last_fetch_time": 3, "signature": b"2", "http_code": 404})
    assert (row["document"], row["signature"], row["etag"], row["http_code"]) == (
        "d",
        b"1",
        "e",
        404,
    )
    row, _ = merged([own], {"last_fetch_time": 3, "signature": b"2", "document": "n"})
    assert (row["document"], row["signature"], row["page"]) == ("n", b"2", None)


def test_rows_that_nothing_meets_stay_and_new_ones_are_in_key_order():
    own = rows({"key": "com.b:http/"}, {"key": "com.d:http/"})
    result, counts = merge_state_rows(own, rows({"key": "com.c:http/"}, {"key": "com.a:http/"}))
    assert result["key"].to_list() == [f"com.{name}:http/" for name in "abcd"]
    assert counts == {"added": 2}
