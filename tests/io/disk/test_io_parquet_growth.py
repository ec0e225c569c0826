"""Parquet files of strangers: long texts in dictionaries, and damage of any byte."""

import contextlib
import random

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from nutbeam.io.disk import parquet_growth
from nutbeam.io.disk.parquet_growth import check_dictionaries


def check(path):
    with path.open("rb") as file:
        check_dictionaries(file, path.stat().st_size)


def write(path, texts, rows, **how):
    indices = pa.array([number % len(texts) for number in range(rows)], pa.int32())
    column = pa.DictionaryArray.from_arrays(indices, pa.array(texts))
    pq.write_table(pa.table({"key": column}), path, store_schema=False, **how)


@pytest.mark.parametrize("compression", ["none", "snappy", "gzip", "brotli", "zstd", "lz4"])
def test_a_long_text_in_many_rows_is_refused(tmp_path, compression):
    write(tmp_path / "a", ["x" * (1 << 20), "y"], 180_000, compression=compression)
    with pytest.raises(ValueError, match=r"bytes and unpacks to 94,371,930,000"):
        check(tmp_path / "a")


@pytest.mark.parametrize(
    ("texts", "rows"),
    [
        (["x" * (1 << 20), *map(str, range(99_999))], 100_000),  # one long text among short ones
        ([f"{number:016d}" for number in range(50_000)], 1_000_000),
        (["text/html"], 5_000_000),
        ([str(number) * 9 for number in range(60_000)], 1_000_000),
    ],
)
def test_texts_as_tables_have_them_pass(tmp_path, texts, rows):
    write(tmp_path / "a", texts, rows)
    check(tmp_path / "a")


@pytest.mark.parametrize("chars", [500, 4_000, 5_000])
def test_a_page_whose_header_has_long_texts_passes(tmp_path, monkeypatch, chars):
    texts = [f"{number % 9}{'x' * chars}" for number in range(2_000)]
    options = {"use_dictionary": False, "compression": "zstd", "store_schema": False}
    pq.write_table(pa.table({"key": texts}), tmp_path / "a", **options)
    monkeypatch.setattr(parquet_growth, "_UNPACKED_BYTES", 1 << 20)  # so that pages are looked at
    monkeypatch.setattr(parquet_growth, "_GROWTH", 1 << 20)
    check(tmp_path / "a")


def test_a_page_of_few_long_texts_beside_many_short_ones_passes(tmp_path):
    # Its header has the texts themselves, as the least and the greatest one.
    texts = [str(number) for number in range(200_000)]
    many = pa.array([texts, []], pa.list_(pa.string()))
    table = pa.table({"many": many, "few": ["a" * 4_096, "b" * 4_096]})
    pq.write_table(table, tmp_path / "a", use_dictionary=False)
    check(tmp_path / "a")


@pytest.mark.long
def test_an_encoding_that_repeats_the_text_before_is_refused(tmp_path):
    table = pa.table({"key": [f"{'x' * 50_000}{number}" for number in range(400)] * 250})
    how = {"use_dictionary": False, "column_encoding": {"key": "DELTA_BYTE_ARRAY"}}
    pq.write_table(table, tmp_path / "a", **how)
    with pytest.raises(ValueError, match="an encoding that no job writes: 7"):
        check(tmp_path / "a")


def test_damage_of_any_byte_is_an_error_or_none(tmp_path):
    write(tmp_path / "whole", [str(number) * 9 for number in range(60_000)], 300_000)
    whole = (tmp_path / "whole").read_bytes()
    draw = random.Random(4)
    for _ in range(300):
        data = bytearray(whole)
        for place in (draw.randrange(60), len(data) - draw.randrange(1, 400)):
            data[place] = draw.randrange(256)
        (tmp_path / "a").write_bytes(data)
        with contextlib.suppress(ValueError, OSError):
            check(tmp_path / "a")
