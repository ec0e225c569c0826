"""What tablets say about files of old batches comes together in places of bounded size."""

import polars as pl

from nutbeam.io.snapshots.manifest import Manifest
from nutbeam.io.tablets.file_lists import Component, DataFile
from nutbeam.io.upkeep.file_shares import (
    LiveRows,
    Share,
    count_named_files,
    share_batches,
    sum_rows,
)


def manifest_of_batches(**rows):
    """Returns a manifest whose batches have documents with these numbers of rows."""
    components = {
        f"batches/{name}/documents": Component(f"manifest/lists/{name}.parquet", 1, number, 1)
        for name, number in rows.items()
    }
    return Manifest(components=components)


def test_small_batches_share_a_place_and_large_ones_are_counted_in_parts(resize_tables):
    resize_tables(share_rows=100)
    manifest = manifest_of_batches(a=40, b=60, c=1, d=950, e=3)
    assert share_batches(manifest, ["a", "b", "c", "d", "e", "none"]) == {
        "a": Share(0, 1), "b": Share(0, 1), "c": Share(1, 1), "d": Share(2, 10),
        "e": Share(3, 1), "none": Share(3, 1),
    }  # fmt: skip


def test_no_place_gets_more_than_its_share(resize_tables):
    resize_tables(share_rows=100)
    paths = [f"batches/d/documents/{n:016x}.parquet" for n in range(950)]
    shares = share_batches(manifest_of_batches(d=950), ["d"])
    parts: dict[tuple[int, int], list] = {}
    for start in range(0, 950, 50):  # tablets, which name some files twice
        for key, rows in count_named_files(pl.Series(paths[start : start + 50] * 2), shares):
            parts.setdefault(key, []).append(rows)
    assert len(parts) == 10
    assert max(sum(map(len, chunks)) for chunks in parts.values()) < 150
    live = LiveRows(sum_rows(sum_rows(chunks) for chunks in parts.values()))
    assert live.total == 1900
    assert {live.of(DataFile(path, 1, 1)) for path in paths} == {2}
    assert live.of(DataFile("batches/d/documents/new.parquet", 1, 1, formerly=paths[7])) == 2
    assert live.of(DataFile("batches/d/documents/other.parquet", 1, 1)) == 0


def test_names_of_other_batches_are_left_out():
    names = pl.Series(["batches/x/documents/a.parquet", None, "odd"])
    assert list(count_named_files(names, {"d": Share(0, 1)})) == []
