"""The rows of changes are found by hashes of keys, but never taken for those of other keys."""

import polars as pl
import pytest
from status_rows import EVENT, OLD, update

ROWS = [{**OLD, "key": key, "status": 2} for key in ("a:http/", "b:http/", "long:http/")]


@pytest.mark.parametrize(
    "found",
    [
        pytest.param(["b:http/"], id="two rows of the table have one hash"),
        pytest.param(["c:http/"], id="a new URL has the hash of rows"),
        pytest.param(["else:http/"], id="a new URL has the hash of one row"),
        pytest.param(["long:http/", "c:http/", "d:http/"], id="new URLs have one hash"),
    ],
)
def test_keys_that_have_one_hash_are_kept_apart(found, monkeypatch):
    link = {"order": 0, "inlink_score": 0.5, "inlink_distance": 1}
    changes = [{"key": key, **link} for key in found]
    changes += [{**EVENT, "key": found[0], "fetch_status": 33}]
    expected = update(ROWS, changes)
    monkeypatch.setattr(pl.Series, "hash", lambda keys: keys.str.len_bytes().cast(pl.UInt64))
    rows, outcome, counts = update(ROWS, changes)
    assert rows.equals(expected[0])
    assert outcome.equals(expected[1])
    assert counts == expected[2]
    assert set(rows["key"]) == {row["key"] for row in ROWS} | set(found)
