"""The rows of changes are found by hashes of keys, but never taken for those of other keys."""

import collections

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


@pytest.mark.parametrize("bits", [0, 8, 60])
def test_keys_are_found_however_many_last_bits_their_hashes_share(bits, monkeypatch):
    known = [f"a:http/{number:03}" for number in range(300)]
    found = [*known[::3], *(f"b:http/{number}" for number in range(50)), *known[::7]]
    of_keys = pl.Series.hash
    monkeypatch.setattr(pl.Series, "hash", lambda keys: of_keys(keys) * 2**bits)
    rows, _, counts = update(
        [{**OLD, "key": key, "status": 2, "score": 0.0} for key in known],
        [{"key": key, "order": 0, "inlink_score": 1.0, "inlink_distance": 1} for key in found],
    )
    assert counts["added"] == 50
    number = collections.Counter(found)
    assert dict(zip(rows["key"], rows["score"], strict=True)) == {
        key: number[key] for key in {*known, *found}
    }
