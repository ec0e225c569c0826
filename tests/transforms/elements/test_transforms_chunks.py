import apache_beam as beam
import polars as pl
import pyarrow as pa
import pytest
from frames import frame_of, table_of
from running import apply

from nutbeam.policy.components.schema import OUTCOME, PAGES, STATE
from nutbeam.transforms.elements import chunks as module
from nutbeam.transforms.elements.chunks import Chunk, rechunk, to_chunks
from nutbeam.transforms.wiring.chunk_coder import ChunkCoder

ROWS = pl.DataFrame({"key": [f"k{n:05d}" for n in range(1000)], "status": list(range(1000))})


def rows_of(chunks):
    return [row for chunk in chunks for row in chunk.to_pylist()]


@pytest.mark.parametrize(
    "table",
    [
        ROWS.to_arrow(),
        ROWS.to_arrow().slice(10, 5),
        STATE.empty_table(),
        table_of(STATE, {"key": "é", "metadata": [("a", None)], "signature": b"\x00"}),
        pa.concat_tables([ROWS.to_arrow(), ROWS.to_arrow()]),
    ],
    ids=["rows", "slice", "empty", "types", "pieces"],
)
def test_chunks_survive_coding(table):
    decoded = ChunkCoder().decode(ChunkCoder().encode(table))
    assert decoded.equals(table)
    assert decoded.schema == table.schema


def test_a_slice_is_coded_without_the_rest():
    assert len(ChunkCoder().encode(ROWS.to_arrow().slice(0, 1))) < 1500


def test_the_coder_is_the_one_that_beam_takes():
    assert isinstance(beam.coders.registry.get_coder(Chunk), ChunkCoder)


def test_chunks_are_of_bounded_rows(monkeypatch):
    monkeypatch.setattr(module, "MAX_ROWS", 300)
    chunks = list(to_chunks(ROWS))
    assert [len(chunk) for chunk in chunks] == [300, 300, 300, 100]
    assert rows_of(chunks) == ROWS.to_dicts()


def test_chunks_are_of_bounded_bytes(monkeypatch):
    monkeypatch.setattr(module, "MAX_BYTES", 10_000)
    wide = ROWS.with_columns(text=pl.lit("x" * 1000))
    chunks = list(to_chunks(wide))
    assert max(chunk.nbytes for chunk in chunks) < 12_000
    assert rows_of(chunks) == wide.to_dicts()


def test_a_row_larger_than_a_chunk_is_a_chunk(monkeypatch):
    monkeypatch.setattr(module, "MAX_BYTES", 10)
    assert [len(chunk) for chunk in to_chunks(ROWS.head(3))] == [1, 1, 1]


def test_a_few_rows_of_a_large_frame_are_one_chunk(monkeypatch):
    monkeypatch.setattr(module, "MAX_BYTES", 10_000)
    wide = ROWS.with_columns(text=pl.lit("x" * 500) + pl.col("key"))
    few = wide.filter(pl.col("status") % 200 == 0)
    assert [len(chunk) for chunk in to_chunks(few)] == [5]


def test_no_rows_give_no_chunk():
    assert list(to_chunks(ROWS.clear())) == []
    assert list(rechunk(STATE.empty_table())) == []


def test_chunks_are_cast_to_the_declared_schema():
    (chunk,) = to_chunks(pl.DataFrame({"key": ["a"], "more": [1]}), OUTCOME)
    assert chunk.schema == OUTCOME


@pytest.mark.parametrize("declared", [STATE, OUTCOME, PAGES])
def test_cutting_again_keeps_the_declared_schema(declared, monkeypatch):
    monkeypatch.setattr(module, "MAX_ROWS", 2)
    table = table_of(declared, *({"key": f"k{n}"} for n in range(5)))
    chunks = list(rechunk(table))
    assert [len(chunk) for chunk in chunks] == [2, 2, 1]
    assert pa.concat_tables(chunks).equals(table)
    assert {chunk.schema for chunk in chunks} == {declared}


def test_chunks_pass_through_a_pipeline():
    rows = frame_of(STATE, {"key": "a", "metadata": [("x", "y")]}, {"key": "b"})
    found = apply(list(to_chunks(rows, STATE)), beam.Reshuffle())
    assert [chunk.schema for chunk in found] == [STATE]
    assert rows_of(found) == rows_of([table_of(STATE, *rows_of(to_chunks(rows, STATE)))])
