import typing
from collections.abc import Sequence

import apache_beam as beam
import polars as pl
import pyarrow as pa
import pytest
from frames import chunks_of, rows_in, table_of
from hypothesis import given
from hypothesis import strategies as st
from running import apply, run

from nutbeam.policy.components.schema import STATE
from nutbeam.transforms.elements import chunks as chunks_module
from nutbeam.transforms.top_n_per_key import TopNPerKey
from nutbeam.transforms.top_rows import top_n_per_key

# Half of all rows are of one key; keys span chunks.
FRAME = pl.DataFrame(
    {
        "host": ["big" if n % 2 else f"h{n % 13}" for n in range(500)],
        "score": [n * 7919 % 101 for n in range(500)],
        "url": [str(n) for n in range(500)],
    }
)


def plain(rows, n, descending=True):
    """The same in Python: rows are (key, *order)."""
    by_key = {}
    for row in rows:
        by_key.setdefault(row[0], []).append(row)
    ranked = [sorted(r, key=lambda row: row[1:], reverse=descending) for r in by_key.values()]
    return sorted(row for some in ranked for row in some[:n])


def test_keeps_the_best_of_each_key_across_chunks():
    first = pl.DataFrame({"host": ["a", "a"], "score": [1, 3]}).to_arrow()
    second = pl.DataFrame({"host": ["a", "b"], "score": [2, 9]}).to_arrow()
    kept = apply([first, second], TopNPerKey(2, key="host", order_by=("score",), partitions=2))
    assert rows_in(kept) == [("a", 2), ("a", 3), ("b", 9)]


@given(
    st.lists(st.tuples(st.sampled_from("abc"), st.integers(0, 3), st.integers(0, 99)), unique=True),
    st.integers(1, 5),
    st.booleans(),
)
def test_the_twin_agrees_with_plain_python(rows, n, descending):
    schema = {"k": pl.String, "x": pl.Int64, "y": pl.Int64}
    frame = pl.DataFrame(rows, schema=schema, orient="row")
    kept = top_n_per_key(frame, n, "k", ("x", "y"), descending)
    assert kept.columns == frame.columns
    assert sorted(kept.rows()) == plain(rows, n, descending)


@pytest.mark.few(2)
@pytest.mark.parametrize("chunk_rows", [7, 1000])
@pytest.mark.parametrize("partitions", [1, 3])
def test_agrees_with_the_whole_table_in_memory(chunk_rows, partitions):
    kept = apply(
        chunks_of(FRAME, chunk_rows),
        TopNPerKey(5, key="host", order_by=("score", "url"), partitions=partitions),
    )
    assert rows_in(kept) == sorted(top_n_per_key(FRAME, 5, "host", ("score", "url")).rows())
    assert rows_in(kept) == plain(FRAME.rows(), 5)


def test_output_is_cut_to_chunks_of_bounded_size(monkeypatch):
    monkeypatch.setattr(chunks_module, "MAX_ROWS", 10)
    transform = TopNPerKey(1000, key="host", order_by=("url",), partitions=2)
    kept = apply(chunks_of(FRAME, 100), transform)
    assert max(len(chunk) for chunk in kept) == 10
    assert rows_in(kept) == sorted(FRAME.rows())


def test_null_ranks_lowest_and_nan_above_all_numbers():
    scores = [None, float("nan"), 1.0, float("inf")]
    frame = pl.DataFrame({"k": ["a"] * 4, "score": scores, "n": [0, 1, 2, 3]})
    assert set(top_n_per_key(frame, 3, "k", ("score",))["n"]) == {1, 2, 3}
    assert set(top_n_per_key(frame, 1, "k", ("score",))["n"]) == {1}


def test_rows_without_a_key_are_of_one_key():
    frame = pl.DataFrame({"k": [None, None, "a"], "x": [1, 2, 3]})
    kept = apply(chunks_of(frame, 1), TopNPerKey(1, key="k", order_by=("x",), partitions=3))
    assert sorted(pl.from_arrow(pa.concat_tables(kept))["x"]) == [2, 3]


def test_the_declared_schema_survives():
    rows = [{"key": "a", "score": float(n), "metadata": [("x", str(n))]} for n in range(3)]
    chunks = [table_of(STATE, row) for row in rows]
    (kept,) = apply(chunks, TopNPerKey(2, key="key", order_by=("score",), partitions=1))
    assert kept.schema == STATE
    assert sorted(kept["score"].to_pylist()) == [1.0, 2.0]


def test_kinds_of_text_may_meet():
    texts = [pa.table({"k": pa.array(["a"], kind), "x": [n]})
             for n, kind in enumerate((pa.string(), pa.large_string()))]  # fmt: skip
    (kept,) = apply(texts, TopNPerKey(1, key="k", order_by=("x",), partitions=1))
    assert kept.to_pylist() == [{"k": "a", "x": 1}]


def test_no_chunks():
    assert apply([], TopNPerKey(1, key="k", order_by=("x",), partitions=2)) == []


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"n": 0}, "n must be at least 1, got 0"),
        ({"n": "2"}, "n must be a whole number, got '2'"),
        ({"n": True}, "n must be a whole number, got True"),
        ({"partitions": "2"}, "partitions must be a whole number, got '2'"),
        ({"order_by": 5}, "order_by must name a column, got 5"),
        ({"order_by": None}, "order_by must name a column, got None"),
        ({"descending": "no"}, r"descending must be true or false, .* \('x',\), got 'no'"),
        ({"partitions": 0}, "partitions must be at least 1, got 0"),
        ({"order_by": []}, r"order_by must name a column, got \[\]"),
    ],
)
def test_bad_arguments(arguments, message):
    good = {"n": 1, "key": "k", "order_by": ("x",), "partitions": 1}
    with pytest.raises(ValueError, match=rf"^{message}$"):
        TopNPerKey(**good | arguments)


def test_rows_and_chunks_agree():
    rows = [beam.Row(**row) for row in FRAME.rows(named=True)]
    transform = TopNPerKey(5, key="host", order_by=["score", "url"], partitions=3)
    kept = run(lambda p: p | beam.Create(rows) | transform | beam.Map(as_tuple))
    assert sorted(kept) == plain(FRAME.rows(), 5)


def as_tuple(row):
    return row.host, row.score, row.url


class Visit(typing.NamedTuple):
    day: int
    site: str | None
    tags: Sequence[str]


beam.coders.registry.register_coder(Visit, beam.coders.RowCoder)


def test_a_type_of_the_users_comes_back_and_numbers_are_keys():
    visits = [Visit(1, "a", ["x"]), Visit(1, "b", []), Visit(2, None, ["y"])]
    kinds = []

    def build(p):
        kept = p | beam.Create(visits).with_output_types(Visit) | TopNPerKey(1, "day", "site")
        kinds.append(kept.element_type)
        return kept | beam.Map(tuple)

    assert sorted(run(build)) == [tuple(visits[1]), tuple(visits[2])]
    assert kinds == [Visit]


def test_a_column_that_is_not_there_is_an_error_when_the_pipeline_is_built():
    rows = beam.Pipeline("FnApiRunner") | beam.Create([beam.Row(host="a", score=1)])
    message = "TopNPerKey needs the column 'hots' \\(key\\), there are 'host', 'score'"
    with pytest.raises(ValueError, match=message):
        rows | TopNPerKey(1, key="hots", order_by=("score",))


def test_a_column_that_chunks_lack_is_an_error_that_names_it():
    chunk = pl.DataFrame({"host": ["a"], "score": [1]}).to_arrow()
    message = "TopNPerKey needs the column 'rank' \\(order_by\\), there are 'host', 'score'"
    with pytest.raises(Exception, match=message):
        apply([chunk], TopNPerKey(1, key="host", order_by=("score", "rank")))


def test_a_key_must_be_one_value():
    rows = [beam.Row(host=["a", "b"], score=1)]
    with pytest.raises(Exception, match="column 'host' must be text or numbers to be a key"):
        apply(rows, TopNPerKey(1, key="host", order_by="score", partitions=2))
