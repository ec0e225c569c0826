import apache_beam as beam
import polars as pl
import pytest
from frames import chunks_of, rows_in
from hypothesis import given
from hypothesis import strategies as st
from running import apply, run

from nutbeam.transforms import dedup_by_hash as module
from nutbeam.transforms.dedup_by_hash import DUPLICATES, KEPT, DedupByHash, dedup_by_hash
from nutbeam.transforms.elements import chunks as chunks_module
from nutbeam.transforms.top_n_per_key import TopNPerKey

# Half of all rows have one hash; hashes span chunks.
FRAME = pl.DataFrame(
    {
        "hash": [b"big" if n % 2 else str(n % 31).encode() for n in range(600)],
        "score": [float(n * 7919 % 101) for n in range(600)],
        "key": [f"k{n}" for n in range(600)],
    }
)
ORDER = {"order_by": ("score", "key"), "descending": (True, False)}


def divide(chunks, partitions=3):
    found = apply(chunks, DedupByHash("hash", partitions=partitions, **ORDER))
    assert set(found) == {KEPT, DUPLICATES}
    return rows_in(found[KEPT]), rows_in(found[DUPLICATES])


def plain(rows):
    """The same in Python: rows are (hash, score, key)."""
    best = {}
    for row in sorted(rows, key=lambda r: (-r[1], r[2])):
        best.setdefault(row[0], row)
    return sorted(best.values()), sorted(set(rows) - set(best.values()))


def test_the_first_row_of_each_hash_stays():
    one = pl.DataFrame({"hash": [b"x", b"y"], "score": [1.0, 1.0], "key": ["a", "b"]})
    other = pl.DataFrame({"hash": [b"x"], "score": [2.0], "key": ["c"]})
    kept, lost = divide([one.to_arrow(), other.to_arrow()])
    assert kept == [(b"x", 2.0, "c"), (b"y", 1.0, "b")]
    assert lost == [(b"x", 1.0, "a")]


@given(
    st.lists(
        st.tuples(
            st.sampled_from([b"", b"a", b"b"]), st.integers(0, 2), st.text("xyz", max_size=3)
        ),
        unique_by=lambda row: row[2],
    )
)
def test_the_twin_agrees_with_plain_python(rows):
    schema = {"hash": pl.Binary, "score": pl.Float64, "key": pl.String}
    frame = pl.DataFrame(rows, schema=schema, orient="row")
    kept, lost = dedup_by_hash(frame, "hash", *ORDER.values())
    assert (sorted(kept.rows()), sorted(lost.rows())) == plain(frame.rows())


@pytest.mark.few(2)
@pytest.mark.parametrize("chunk_rows", [7, 1000])
@pytest.mark.parametrize("partitions", [1, 3])
def test_agrees_with_the_whole_table_in_memory(chunk_rows, partitions):
    kept, lost = divide(chunks_of(FRAME, chunk_rows), partitions)
    twin = dedup_by_hash(FRAME, "hash", *ORDER.values())
    assert (kept, lost) == tuple(sorted(part.rows()) for part in twin)
    assert (kept, lost) == plain(FRAME.rows())


def test_a_partition_is_folded_piece_by_piece(monkeypatch):
    monkeypatch.setattr(module, "MAX_ROWS", 20)
    monkeypatch.setattr(chunks_module, "MAX_ROWS", 20)
    assert divide(chunks_of(FRAME, 10), 1) == plain(FRAME.rows())


def test_every_row_comes_out_once_with_any_values():
    frame = pl.DataFrame(
        {
            "hash": [None, None, b"x", b"x", b"x"],
            "score": [1.0, 2.0, None, float("nan"), 1.0],
            "key": list("abcde"),
        }
    )
    for rows in (1, 5):
        found = apply(chunks_of(frame, rows), DedupByHash("hash", partitions=2, **ORDER))
        kept, lost = (
            sorted(key for chunk in found[tag] for key in chunk["key"].to_pylist())
            for tag in (KEPT, DUPLICATES)
        )
        assert kept == ["a", "b", "d"]  # no hash, no duplicate; null is last, NaN is largest
        assert lost == ["c", "e"]


def test_strings_are_hashes_too():
    frame = FRAME.with_columns(pl.col("hash").cast(pl.String))
    assert divide(chunks_of(frame, 50)) == plain(frame.rows())


def test_no_chunks():
    assert divide([]) == ([], [])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"partitions": 0}, "partitions must be at least 1, got 0"),
        (
            {"descending": (True,)},
            r"descending must be true or false, or one of these for each of order_by .*\(True,\)",
        ),
    ],
)
def test_bad_arguments(arguments, message):
    with pytest.raises(ValueError, match=message):
        DedupByHash(**{"hash": "hash", "partitions": 1, **ORDER, **arguments})


def test_rows_and_chunks_agree():
    rows = [beam.Row(**row) for row in FRAME.rows(named=True)]

    def build(p):
        divided = p | beam.Create(rows) | DedupByHash("hash", partitions=3, **ORDER)
        assert {part.element_type for part in divided.values()} == {
            beam.typehints.row_type.RowTypeConstraint.from_fields(
                [("hash", bytes), ("score", float), ("key", str)]
            )
        }
        return {tag: part | tag >> beam.Map(as_tuple) for tag, part in divided.items()}

    found = run(build)
    assert (sorted(found[KEPT]), sorted(found[DUPLICATES])) == plain(FRAME.rows())


def as_tuple(row):
    return row.hash, row.score, row.key


@pytest.mark.parametrize(("order", "best"), [({}, "b"), ({"descending": False}, "a")])
def test_the_largest_value_is_the_best_by_default(order, best):
    rows = [beam.Row(n=1, url="b"), beam.Row(n=1, url="a")]

    def build(p):
        kept = p | beam.Create(rows) | TopNPerKey(1, "n", "url", **order)
        divided = p | "Again" >> beam.Create(rows) | DedupByHash("n", "url", **order)
        return {"top": kept, KEPT: divided.kept}

    assert {tag: [row.url for row in rows] for tag, rows in run(build).items()} == {
        "top": [best],
        KEPT: [best],
    }


@pytest.mark.parametrize("chunks", [True, False])
def test_a_column_that_is_not_there_is_an_error_that_names_it(chunks):
    rows = [pl.DataFrame({"url": ["a"]}).to_arrow()] if chunks else [beam.Row(url="a")]
    with pytest.raises(Exception, match="DedupByHash needs the column 'hash', there are 'url'"):
        apply(rows, DedupByHash("hash", "url"))


def test_kept_rows_and_duplicates_are_chunks_for_the_next_step():
    chunks = beam.Pipeline("FnApiRunner") | beam.Create(chunks_of(FRAME, 50))
    divided = chunks | DedupByHash("hash", **ORDER)
    assert [part.element_type for part in divided.values()] == [chunks_module.Chunk] * 2
