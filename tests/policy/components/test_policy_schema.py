import polars as pl
import pyarrow as pa
import pytest

from nutbeam.policy.components import schema
from nutbeam.policy.components.document_schema import DOCUMENTS
from nutbeam.policy.components.schema import (
    CHANGES,
    OUTCOME,
    PAGES,
    SEEDS,
    STATE,
    conform,
    empty,
    to_frame,
)

SCHEMAS = [value for value in vars(schema).values() if isinstance(value, pa.Schema)]


def test_missing_columns_are_null_and_unknown_ones_vanish():
    table = conform(pa.table({"status": [2, None], "other": ["x", "y"]}), OUTCOME)
    assert table.schema == OUTCOME
    assert table.to_pylist() == [
        dict.fromkeys(OUTCOME.names) | {"status": status} for status in (2, None)
    ]


def test_frames_and_tables_give_the_same():
    table = pa.table({"key": pa.array(["a"], pa.string()), "score": pa.array([0.5], pa.float64())})
    frame = pl.DataFrame({"key": ["a"], "score": [0.5]})
    assert conform(table, OUTCOME).equals(conform(frame, OUTCOME))


@pytest.mark.parametrize(
    "kind",
    [pa.string(), pa.large_string(), pa.string_view(), pa.dictionary(pa.int32(), pa.string())],
)
def test_all_kinds_of_text_become_one(kind):
    table = pa.table({"key": pa.array(["a", None]).cast(kind)})
    assert conform(table, CHANGES).column("key").to_pylist() == ["a", None]
    assert conform(table, CHANGES).schema == CHANGES


@pytest.mark.parametrize("declared", SCHEMAS)
def test_no_rows_survive_as_no_rows(declared):
    assert conform(empty(declared), declared).schema == declared
    assert len(conform(empty(declared), declared)) == 0


@pytest.mark.parametrize("declared", [STATE, SEEDS, PAGES, DOCUMENTS, CHANGES])
def test_rows_survive_the_way_through_polars(declared):
    values = {
        "key": "com.example:http/",
        "metadata": [("a", "1"), ("b", None)],
        "headers": [{"name": "A", "value": "b"}, {"name": "A", "value": "c"}],
        "outlinks": [{"key": "k", "anchor": "é", "rel": None}],
        "directives": ["noindex"],
        "signature": b"\x00\xff",
        "body": b"\x00",
        "score": 0.1,
    }
    known = {name: value for name, value in values.items() if name in declared.names}
    table = pa.Table.from_pylist([known, {}], schema=declared)
    assert conform(to_frame(table), declared).equals(table)


def test_a_value_that_does_not_fit_is_an_error():
    with pytest.raises(pa.ArrowInvalid, match=r"column 'status' must hold uint8: .*256"):
        conform(pl.DataFrame({"status": [256]}), OUTCOME)
