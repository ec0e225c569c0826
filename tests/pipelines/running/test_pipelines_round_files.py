"""What a round costs in files: which are read, what waits for the disk, and in which order."""

import itertools
import os
import shutil
from pathlib import Path

import pytest
from crawling import manifests_of, nutbeam, reach
from running import RUNNER
from simulated_web import served_web

from nutbeam.io.storage.local_place import LocalPlace
from nutbeam.io.table.opening import open_table
from nutbeam.io.tablets.file_lists import load_files

pytestmark = pytest.mark.skipif(bool(RUNNER), reason="about rounds in one process")
web = served_web(hosts=1, pages=60, scope="module")
JOBS = ["generate", "fetch", "update", "dedup"]
# A file waits for its content to be on disk, and for its name. The names of the lists of one commit
# wait together. A round of one page has 8 data files, or 9 where a base is divided, and 8 lists of 3 commits.
MOST_WAITS = 2 * 9 + (8 + 3) + 2 * len(JOBS) + 2 * len(JOBS)


def crawl_one_page(table, web, rounds, *seeds):
    options = ("--rounds", rounds, "--top_n", 1)
    assert nutbeam("crawl", table, *seeds, *options, *reach(web)) == 0


@pytest.fixture
def events(monkeypatch):
    """Notes (what, path) when a whole file is read or looked at, waits for the disk, or gets its name."""
    noted, read_whole, fsync, link = [], LocalPlace.read_whole, os.fsync, os.link
    version = LocalPlace.version

    def read(place, most):
        noted.append(("read", place))
        return read_whole(place, most)

    def look(place, *args):
        noted.append(("look", place))
        return version(place, *args)

    def sync(descriptor):
        noted.append(("sync", Path(f"/proc/self/fd/{descriptor}").readlink()))
        fsync(descriptor)

    def name(source, target):
        link(source, target)
        noted.append(("name", Path(target)))

    monkeypatch.setattr(LocalPlace, "read_whole", read)
    monkeypatch.setattr(LocalPlace, "version", look)
    monkeypatch.setattr(os, "fsync", sync)
    monkeypatch.setattr(os, "link", name)
    return noted


def test_a_round_reads_no_manifest_and_no_list_that_its_process_has_written(tmp_path, web, events):
    table = tmp_path / "table"
    crawl_one_page(table, web, 1, *web.seeds)
    crawl_one_page(table, web, 2)
    assert [path for what, path in events if what == "read" and "manifest" in path.parts] == []


def test_a_process_keeps_its_own_manifests_and_lists_as_others_read_them(tmp_path, web):
    table, copy = tmp_path / "table", tmp_path / "copy"
    crawl_one_page(table, web, 2, *web.seeds)
    shutil.copytree(table, copy)
    kept, read = manifests_of(table), manifests_of(copy)
    assert kept == read
    assert [repr(one) for one in kept] == [repr(one) for one in read]
    for name, component in kept[-1].components.items():
        own, others = (load_files(open_table(str(one)), component) for one in (table, copy))
        assert [repr(file) for file in own] == [repr(file) for file in others], name


def test_a_round_of_one_page_waits_for_the_disk_as_seldom_as_safety_allows(tmp_path, web, events):
    table = tmp_path / "table"
    crawl_one_page(table, web, 2, *web.seeds)
    counts = []
    for rounds in (1, 3):
        events.clear()
        crawl_one_page(table, web, rounds)
        counts.append(sum(what == "sync" for what, _ in events))
    assert [one.job for one in manifests_of(table)][-12:] == 3 * JOBS
    assert (counts[1] - counts[0]) / 2 <= MOST_WAITS


def test_a_later_round_looks_at_no_more_manifests(tmp_path, web, events):
    table = tmp_path / "table"
    crawl_one_page(table, web, 4, *web.seeds)
    ends = [
        events.index(("name", table / "manifest" / f"{manifest.snapshot:08d}.json"))
        for manifest in manifests_of(table)
        if manifest.job == JOBS[-1]
    ]
    looks = [
        sum(what == "look" and path.suffix == ".json" for what, path in events[start:end])
        for start, end in itertools.pairwise(ends)
    ]
    assert looks[2] <= looks[1] <= 40


def test_a_manifest_gets_its_name_when_all_lists_that_it_names_are_on_disk(tmp_path, web, events):
    table = tmp_path / "table"
    crawl_one_page(table, web, 2, *web.seeds)
    manifests = [manifest for manifest in manifests_of(table) if manifest.job in JOBS]
    lists = table / "manifest" / "lists"
    for manifest in manifests:
        commit = events.index(("name", table / "manifest" / f"{manifest.snapshot:08d}.json"))
        synced = [path for what, path in events[:commit] if what == "sync"]
        contents = {path.name.split(".parquet")[0].removeprefix("."): n for n, path in enumerate(synced) if path.parent == lists}  # fmt: skip
        names = [n for n, path in enumerate(synced) if path == lists]
        last = max(contents[Path(one.list).stem] for one in manifest.components.values())
        assert last < names[-1]
    assert len([p for what, p in events if (what, p) == ("sync", lists)]) <= len(
        manifests_of(table)
    )
