"""Random histories of shards end in the same documents as a dictionary."""

import random

import polars as pl
import pytest
from index_shards import held, page, searched, urls, write_shards

from nutbeam.io.batches.batches import describe_file
from nutbeam.io.indexing.shard_merging import merge_shards, plan_merges, stored_documents
from nutbeam.io.indexing.shards import shard_keys
from nutbeam.io.indexing.unpacked_index import unpack_index
from nutbeam.io.tablets.file_lists import DataFile
from nutbeam.io.upkeep.fsck import read_keys
from nutbeam.policy.components.index_schema import index_component
from nutbeam.policy.searching.search_query import parse_search

COMPONENT = index_component("main", "shards")


def changes(rng, known):
    """Returns the pages and deletes of an operation; each URL is in one of the two."""
    names = rng.sample([f"http://h{n % 7}.com/{n}" for n in range(30)], rng.randint(1, 12))
    cut = rng.randint(0, len(names))
    pages = [page(url, f"t{rng.randrange(10**6)}", "some words") for url in names[:cut]]
    return pages, names[cut:]


@pytest.mark.long
@pytest.mark.few(1)
@pytest.mark.parametrize("seed", range(2))
def test_a_history_ends_in_the_documents_that_were_written_last(tmp_path, seed):
    rng = random.Random(seed)
    files, known = [], {}
    for version in range(1, 9):
        pages, deletes = changes(rng, known)
        known |= {one["id"]: one["title"] for one in pages}
        for url in deletes:
            known.pop(url, None)
        half = len(pages) // 2  # two parts of one operation
        files += write_shards(tmp_path / "t", pages[:half], deletes, version)
        if pages[half:]:
            files += write_shards(tmp_path / "t", pages[half:], (), version)
        if rng.random() < 0.3 and len(files) > 2:
            begin = rng.randint(0, len(files) - 2)
            ordered = sorted(files, key=lambda file: (file.order, file.path))
            group = ordered[begin : begin + rng.randint(2, 5)]
            merged = merge_shards(tmp_path / "t", COMPONENT, group, ordered)
            files = [f for f in files if f.path not in merged.replaced] + list(merged.files)
        if rng.random() < 0.3:
            assert held(searched(tmp_path / "t", files, tmp_path / "c")) == known
    assert held(searched(tmp_path / "t", files, tmp_path / "c")) == known
    merged = merge_shards(tmp_path / "t", COMPONENT, files, files)
    assert held(searched(tmp_path / "t", merged.files, tmp_path / "c")) == known
    keys = pl.concat([shard_keys(tmp_path / "t" / file.path) for file in merged.files])
    assert not keys.get_column("deletes").any()  # nothing older is left to delete


def test_shards_rank_as_one_index_does(tmp_path):
    pages = [
        page(f"http://a.com/{n}", f"page {n}", "river " * (n % 5) + "stone " * (n % 3) + "hill")
        for n in range(1, 40)
    ]
    one = write_shards(tmp_path / "one", pages)
    several = [f for n in range(4) for f in write_shards(tmp_path / "four", pages[n::4], (), n + 1)]
    whole = searched(tmp_path / "one", one, tmp_path / "c1")
    parts = searched(tmp_path / "four", several, tmp_path / "c2")
    for query in ("river", "stone river", "hill"):
        found = [s.search(parse_search(query), 40) for s in (whole, parts)]
        scores = [sorted((hit.score, hit.url) for hit in some.hits) for some in found]
        assert scores[0] == scores[1]


def test_an_unpacked_index_is_made_once_and_takes_files_of_the_one_before(tmp_path):
    root, cache = tmp_path / "t", tmp_path / "c"
    first = write_shards(root, [page("http://a.com/1", "one", "words")])
    unpacked = unpack_index(root, first, cache)
    assert unpack_index(root, first, cache) == unpacked
    second = write_shards(root, [page("http://a.com/2", "two", "words")], version=2)
    (root / first[0].path).rename(root / "elsewhere")
    with pytest.raises(Exception, match="missing"):  # its keys are read again
        unpack_index(root, [*first, *second], cache)
    (root / "elsewhere").rename(root / first[0].path)
    store = next(unpacked.glob("*.store")).stat().st_ino
    newer = unpack_index(root, [*first, *second], cache)
    assert store in {path.stat().st_ino for path in newer.glob("*.store")}
    assert [path.name for path in cache.iterdir()] == [newer.name]


def test_a_document_that_comes_twice_in_a_part_is_there_once(tmp_path):
    url = "http://a.com/1"
    files = write_shards(
        tmp_path / "t", [page(url, "old", "one"), page(url, "new", "two")], at_once=1
    )
    search = searched(tmp_path / "t", files, tmp_path / "c")
    assert held(search) == {url: "new"}
    assert urls(search, "one") == []
    again = [row for rows in stored_documents(tmp_path / "t", files[0]) for row in rows.to_dicts()]
    assert [row["title"] for row in again] == ["new"]


def test_small_shards_are_merged_and_large_ones_stay():

    def shard(order, size):
        return DataFile(f"s{order}", 1, size, order=order)

    large = [shard(n, 1 << 30) for n in range(20)]
    assert plan_merges(large) == []
    assert [len(group) for group in plan_merges(large, full=True)] == [20]
    tiered = [shard(0, 10_000), *(shard(n, 10) for n in range(1, 9))]
    assert [[file.order for file in group] for group in plan_merges(tiered)] == [list(range(1, 9))]


def test_shards_say_their_order_themselves(tmp_path):
    url = "http://a.com/1"
    old = write_shards(tmp_path / "t", [page(url, "old", "one")], version=7)
    new = write_shards(tmp_path / "t", [page(url, "new", "two")], version=8)
    paths = [tmp_path / "t" / file.path for file in (*new, *old)]
    lost = [describe_file(tmp_path / "t", path, read_keys(path)) for path in paths]
    assert held(searched(tmp_path / "t", lost, tmp_path / "c")) == {url: "new"}
