"""Parquet files on disk, on Cloud Storage, on S3 and on HDFS alike."""

import numpy as np
import polars as pl
import pyarrow as pa
import pytest
from frames import frame_of
from polars.testing import assert_frame_equal
from stores_here import PROXIED, everywhere, in_stores

from nutbeam.io.storage import stores as module
from nutbeam.io.storage.files import creating, list_files, names, read_bytes, size_of, write_bytes
from nutbeam.io.storage.parquet_files import (
    ParquetWriter,
    collect,
    row_group_count,
    row_groups,
    scan,
)
from nutbeam.io.tablets.fold import Groups, fold_tablet, group_bounds
from nutbeam.io.tablets.resolve import write_bases
from nutbeam.io.tablets.tablet_writer import write_run
from nutbeam.io.tablets.tablets import ROW_NUMBER, Tablet, read_tablets, rows_with_keys
from nutbeam.policy.components.schema import OUTCOME, STATE
from nutbeam.web.base.errors import UserError

ROWS = frame_of(OUTCOME, *({"key": f"k{n:03d}", "status": n % 9} for n in range(100)))


def rows_of(numbers, score):
    keys = (f"com.a:http/{number:03d}" for number in numbers)
    return frame_of(STATE, *({"key": key, "score": score, "status": 1} for key in keys))


@pytest.mark.few(2)
@everywhere
def test_tablets_with_runs_are_read_as_on_disk(root, resize_tables):
    """Row groups of 40 rows: pieces begin and end anywhere among the rows that runs supersede."""
    resize_tables(row_group_rows=40)
    (base,) = write_bases(root, "state", [rows_of(range(0, 200, 2), 1.0)])
    runs = []
    for order, (numbers, at, score, fresh) in enumerate(
        [([0, 80, 81, 198], [0, 40, 100, 99], 2.0, 1), ([80, 100], [40, 50], 3.0, 0)], start=2
    ):
        rows = rows_of(numbers, score).with_columns(pl.Series(ROW_NUMBER, at, dtype=pl.UInt32))
        runs.append(write_run(root, "state", base, rows, fresh, order))
    tablet = Tablet(base, tuple(runs))
    expected = dict.fromkeys(range(0, 200, 2), 1.0) | {0: 2.0, 81: 2.0, 198: 2.0, 80: 3.0, 100: 3.0}
    keys = [f"com.a:http/{n:03d}" for n in sorted(expected)]
    scores = [expected[n] for n in sorted(expected)]

    whole = list(fold_tablet(root, STATE, tablet))
    assert pl.concat(whole)["key"].to_list() == keys
    assert pl.concat(whole)["score"].to_list() == scores
    assert [len(piece) for piece in whole] == [40, 41, 20]
    bounds = group_bounds(root, tablet).to_list()
    assert bounds == [f"com.a:http/{n:03d}" for n in (78, 158, 198)]
    for start, stop in [(0, 1), (1, 2), (1, 3), (2, None), (3, None)]:
        behind = bounds[start - 1] if start else ""
        some = list(fold_tablet(root, STATE, tablet, None, Groups(start, stop, behind)))
        wanted = whole[start:stop]
        assert [piece.rows() for piece in some[: len(wanted)]] == [p.rows() for p in wanted]
    read = read_tablets(root, "state", [tablet, tablet], ["key", "score"])
    assert sorted(read.rows()) == sorted(list(zip(keys, scores, strict=True)) * 2)
    good = pl.col("score") > 1
    narrow = read_tablets(root, "state", [tablet], ["key"], lambda rows: rows.filter(good))
    assert len(narrow) == 5
    found = rows_with_keys(
        root, "state", tablet, pl.Series("key", ["com.a:http/081", "com.a:http/100"])
    )
    assert found.select("score", ROW_NUMBER).rows() == [(2.0, 100), (3.0, 50)]


@everywhere
def test_rows_of_keys_have_columns_that_only_a_run_has_and_empty_maps(root):
    rows = [{"key": "a", "score": 1.0, "metadata": []}, {"key": "b", "score": 1.0}]
    (base,) = write_bases(root, "state", [frame_of(STATE, *rows)])
    changed = frame_of(STATE, rows[1] | {"signature": b"x"})
    numbered = changed.with_columns(pl.Series(ROW_NUMBER, [1], dtype=pl.UInt32))
    tablet = Tablet(base, (write_run(root, "state", base, numbered, 0, 2),))
    found = rows_with_keys(root, "state", tablet, pl.Series("key", ["a", "b"]))
    assert_frame_equal(found.drop(ROW_NUMBER), pl.concat([frame_of(STATE, rows[0]), changed]))
    assert found["metadata"].to_list() == [{}, None]


@everywhere
def test_rows_come_back(root):
    path = root / "new" / "a.parquet"
    with ParquetWriter(path, OUTCOME) as writer:
        writer.write(ROWS[:60])
        writer.write(ROWS[60:])
        assert [name for name in names(path.parent) if not name.startswith(".")] == []
        size = writer.close()
    assert size == size_of(path)
    assert names(path.parent) == ["a.parquet"]
    assert collect(scan([path], OUTCOME)).equals(ROWS)
    chosen = scan([path, path], OUTCOME).filter(pl.col("status") == 3).select("key")
    assert collect(chosen).equals(pl.concat([ROWS.filter(pl.col("status") == 3)] * 2).select("key"))
    assert collect(scan([path], OUTCOME).head(7)).equals(ROWS.head(7))
    assert collect(scan([path], OUTCOME).select(pl.len())).item() == 100
    assert [len(group) for group in row_groups(path, OUTCOME)] == [60, 40]
    assert [g.column_names for g in row_groups(path, OUTCOME, ["status"])] == [["status"]] * 2
    assert row_group_count(path) == 2


@everywhere
def test_columns_that_a_file_lacks_are_null(root):
    older = pa.schema([OUTCOME.field("key"), pa.field("gone", pa.int8())])
    path = root / "older.parquet"
    with ParquetWriter(path, older) as writer:
        writer.write(pa.table({"key": ["a"], "gone": [1]}, schema=older))
    rows = collect(scan([path], OUTCOME))
    assert rows.columns == OUTCOME.names
    assert rows.row(0, named=True)["key"] == "a"
    assert rows["status"].null_count() == 1


def fail_after(writing, write):
    """Writes something, and then fails."""
    with writing as target:
        write(target)
        raise RuntimeError


@everywhere
def test_a_writer_that_fails_leaves_nothing(root):
    with pytest.raises(RuntimeError):
        fail_after(ParquetWriter(root / "a" / "b", OUTCOME), lambda writer: writer.write(ROWS))
    with pytest.raises(RuntimeError):
        fail_after(creating(root / "a" / "c"), lambda file: file.write(b"x"))
    assert list(list_files(root)) == []


@everywhere
def test_files_that_are_missing_or_damaged(root):
    with pytest.raises(UserError, match=r"^data file is missing: .*/gone$"):
        collect(scan([root / "gone"], OUTCOME))
    with pytest.raises(UserError, match=r"^data file is missing: .*/gone$"):
        list(row_groups(root / "gone", OUTCOME))
    with ParquetWriter(root / "whole", OUTCOME) as writer:
        writer.write(ROWS)
    data = read_bytes(root / "whole")
    for name, damaged in [("cut", data[:-9]), ("empty", b""), ("flipped", b"x" * len(data))]:
        write_bytes(root / name, damaged)
        with pytest.raises(UserError, match=rf"^data file cannot be read: .*/{name}: "):
            collect(scan([root / "whole", root / name], OUTCOME))


WIDE = pa.schema([("key", pa.large_string()), ("body", pa.large_binary())])


@pytest.mark.long
@in_stores
def test_a_large_file_goes_up_in_pieces_and_is_given_up_whole(root, monkeypatch):
    monkeypatch.setattr(module, "BLOCK_BYTES", 5 << 20)
    bodies = [np.random.default_rng(n).bytes(1 << 20) for n in range(12)]
    rows = pa.table({"key": [str(n) for n in range(12)], "body": bodies}, schema=WIDE)
    with ParquetWriter(root / "large", WIDE) as writer:
        writer.write(rows)
    assert size_of(root / "large") > 12 << 20
    (back,) = row_groups(root / "large", WIDE)
    assert back.equals(rows)
    with pytest.raises(RuntimeError):
        fail_after(ParquetWriter(root / "given-up", WIDE), lambda writer: writer.write(rows))
    assert names(root) == ["large"]


@PROXIED
def test_only_requested_columns_are_read_from_a_store(proxied):
    proxy, root = proxied
    bodies = [np.random.default_rng(n).bytes(1 << 20) for n in range(8)]
    with ParquetWriter(root / "wide", WIDE) as writer:
        for n in range(2):
            keys = [f"{n}-{at}" for at in range(8)]
            writer.write(pa.table({"key": keys, "body": bodies}, schema=WIDE))
    proxy.requests.clear()
    before = proxy.sent
    keys = collect(scan([root / "wide"], WIDE).select("key"))
    assert len(keys) == 16
    assert proxy.sent - before < 400_000  # of 16 MB
    print(f"{len(proxy.requests)} requests, {proxy.sent - before} bytes of {16 << 20}")
    assert len(proxy.requests) <= 9  # how large it is, its end, a column of each row group
