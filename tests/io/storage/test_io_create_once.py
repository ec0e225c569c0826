"""A name is created once, on disk and in every store, so commits are not lost."""

import itertools
import multiprocessing
import threading

import pytest
from stores_here import PROXIED, everywhere

from nutbeam.io.snapshots.commit import commit
from nutbeam.io.snapshots.manifest import newest_manifest
from nutbeam.io.snapshots.operations import begin
from nutbeam.io.storage.files import create_exclusive, names, read_bytes
from nutbeam.io.storage.place_addresses import place_of
from nutbeam.io.table.opening import open_table
from nutbeam.web.base.errors import UserError


@everywhere
def test_creates_a_file_once(root):
    path = root / "deep" / "er" / "name"
    assert create_exclusive(path, b"one") is True
    assert create_exclusive(path, b"two") is False
    assert create_exclusive(path, b"one") is False  # of the same content, and yet not this call's
    assert read_bytes(path) == b"one"
    assert names(path.parent) == ["name"]  # nothing temporary is left


@pytest.mark.few(3)
@everywhere
@pytest.mark.parametrize("threads", [2, 8])
def test_each_name_is_won_once_by_threads(root, threads):
    won = [[] for _ in range(threads)]
    gate = threading.Barrier(threads)

    def race(me):
        for number in range(10):
            gate.wait()
            if create_exclusive(root / f"{number:03d}", f"{me}".encode()):
                won[me].append(number)

    racers = [threading.Thread(target=race, args=(me,)) for me in range(threads)]
    for racer in racers:
        racer.start()
    for racer in racers:
        racer.join()
    assert sorted(itertools.chain(*won)) == list(range(10))
    for me, numbers in enumerate(won):
        for number in numbers:
            assert read_bytes(root / f"{number:03d}") == f"{me}".encode()
    assert len(names(root)) == 10


def _race(address, me, gate, results):
    won = []
    for number in range(10):
        gate.wait()
        if create_exclusive(place_of(address) / f"{number:03d}", f"{me}".encode()):
            won.append(number)
    results.put(won)


@pytest.mark.long
@pytest.mark.few(1)
@pytest.mark.parametrize("address", ["gs", "s3"], indirect=True)
def test_each_name_is_won_once_by_processes(address):
    spawn = multiprocessing.get_context("spawn")
    gate, results = spawn.Barrier(3), spawn.Queue()
    racers = [spawn.Process(target=_race, args=(address, me, gate, results)) for me in range(3)]
    for racer in racers:
        racer.start()
    won = [results.get() for _ in racers]
    for racer in racers:
        racer.join()
    assert sorted(itertools.chain(*won)) == list(range(10))


@everywhere
def test_many_operations_at_once_are_all_committed(address):
    def work(me):
        commit(begin(address, "inject", f"op-{me}"), [])

    racers = [threading.Thread(target=work, args=(me,)) for me in range(4)]
    for racer in racers:
        racer.start()
    for racer in racers:
        racer.join()
    assert newest_manifest(address).snapshot == 4


@everywhere
def test_commits_of_other_processes_are_seen_at_once(address):
    assert begin(address, "inject", "before").snapshot == 0
    root = place_of(address)
    assert names(root / "manifest") == []
    commit(begin(address, "inject", "one"), [])
    assert open_table(str(root)).snapshots() == [1]
    assert begin(address, "inject", "two").snapshot == 1


@PROXIED
def test_an_answer_that_was_lost_is_no_defeat(proxied, kind):
    proxy, root = proxied
    once = iter([True])
    proxy.cut = lambda method, path: (
        method == ("POST" if kind == "gs" else "PUT") and next(once, False)
    )
    assert create_exclusive(root / "name", b"mine") is True
    assert next(once, None) is None  # it was lost
    assert create_exclusive(root / "name", b"mine") is False
    assert read_bytes(root / "name") == b"mine"


@pytest.mark.parametrize("address", ["hdfs"], indirect=True)
def test_a_rename_with_a_lost_answer_counts_as_done(root, stores):
    server = stores.server("hdfs")
    server.cut.append("RENAME")
    assert create_exclusive(root / "name", b"mine") is True
    assert server.cut == []
    server.cut.append("RENAME")
    assert create_exclusive(root / "name", b"mine") is False
    assert names(root) == ["name"]


@pytest.mark.parametrize("kind", ["s3"])
def test_a_store_that_would_lose_commits(proxied):
    proxy, root = proxied
    proxy.drop = {"if-none-match"}  # as some that speak S3's protocol ignore it
    with pytest.raises(UserError, match=r"^no table can be kept at s3://tables: .*If-None-Match"):
        begin(str(root), "inject", "op")
    proxy.drop = set()
    begin(str(root), "inject", "op")
    assert names(root / "operations") == ["op.json"]
