"""Whole crawls to Cloud Storage, S3 and HDFS: the same table as on disk, whatever happens."""

import contextlib
import os
import re
import signal
import subprocess
import sys
from collections import Counter

import polars as pl
import pytest
from crawling import (
    asked,
    assert_same,
    assert_same_frames,
    assert_whole,
    contents,
    crawl,
    files_of,
    json_lines,
    latest_snapshot,
    manifest_of,
    manifests_of,
    nutbeam,
    reach,
)
from flaky_proxy import Proxy
from short_form import first
from simulated_web import SimWeb, served_web
from stores_here import here_and_in_a_store, in_stores
from waiting import wait_until

from nutbeam.io.parsing.shared_pools import shared_pool
from nutbeam.io.storage.files import names, read_bytes, write_bytes
from nutbeam.io.storage.place_addresses import place_of

pytestmark = pytest.mark.usefixtures("all_stores")


@contextlib.contextmanager
def through_proxy(stores, kind, monkeypatch):
    """Leads clients through a proxy, those of new processes that parse, too."""
    with Proxy(stores.server(kind).url) as proxy:
        for name, value in stores.environ(kind, proxy.url).items():
            monkeypatch.setenv(name, value)
        shared_pool.cache_clear()
        try:
            yield proxy
        finally:
            shared_pool.cache_clear()


web = served_web(hosts=3, pages=4, scope="module")


def pages_of(table, capsys):
    """Returns what ``pages`` says of a table, without times, by URL."""
    capsys.readouterr()
    assert nutbeam("pages", table) == 0
    records = json_lines(capsys.readouterr().out)
    times = ("last_fetch_time", "modified_time", "fetch_time")
    found = {r["url"]: {n: v for n, v in r.items() if n not in times} for r in records}
    assert len(found) == len(records)
    return found


def check_same(table, web, here, requests):
    """Asserts that a table is the one on disk, and came of the same requests."""
    assert_whole(table, web.site)
    assert sorted(requests) == here[1]
    assert_same(contents(table), contents(here[0]))
    assert len(manifests_of(table)) == len(manifests_of(here[0]))
    for name, component in manifest_of(here[0]).components.items():
        if "/" not in name:
            assert manifest_of(table).components[name].rows == component.rows


@pytest.mark.few(1)
@in_stores
def test_a_crawl_makes_the_table_that_it_makes_on_disk(address, web, here, tmp_path, capsys):
    before = len(asked(web))
    seeds = place_of(address).parent / "seeds" / "first.txt"
    write_bytes(seeds, "\n".join(web.seeds).encode())
    assert crawl(address, web, seeds) == 0
    check_same(address, web, here, asked(web)[before:])
    assert pages_of(address, capsys) == pages_of(here[0], capsys)
    # What was put aside, and the parts of exports, are gone.
    batches = place_of(address) / "batches"
    assert "exports" not in names(place_of(address))
    assert not [name for name in names(batches) if "aside" in names(batches / name)]

    output = tmp_path / "pages.parquet"
    assert nutbeam("pages", address, "-o", output) == 0
    assert pl.read_parquet(output).height == len(pages_of(address, capsys))
    for words in (["--stats"], ["--top", "5"], ["--dump", "-"], ["--url", web.seeds[0]]):
        shown = []
        for table in (address, here[0]):
            assert nutbeam("readdb", table, *words, "--format", "json") == 0
            shown.append(len(capsys.readouterr().out.splitlines()))
        assert shown[0] == shown[1] > 0


@pytest.mark.few(1)
@in_stores
def test_frames_of_a_copy_are_those_of_a_folder(address, here):
    assert nutbeam("copy", here[0], address) == 0
    assert_same_frames(address, here[0])


@pytest.mark.long
@pytest.mark.parametrize("address", ["s3"], indirect=True)
def test_jobs_one_by_one_and_seeds_in_the_store(address, web, here, capsys):
    seeds = place_of(address).parent / "seeds" / "list.txt"
    write_bytes(seeds, "\n".join(web.seeds).encode())
    before = len(asked(web))
    assert nutbeam("inject", address, seeds.parent) == 0
    assert nutbeam("inject", address, seeds) == 0
    options = reach(web)
    for _ in range(100):
        if nutbeam("next", address, *options) != 0:
            break
    assert_whole(address, web.site)
    assert sorted(asked(web)[before:]) == here[1]
    capsys.readouterr()
    assert nutbeam("fetch", address, "--batch", "1-none", *options) == 3
    assert re.search(r"no batch '1-none'", capsys.readouterr().err)


@pytest.mark.long
@here_and_in_a_store
def test_compact_does_not_change_the_contents_of_the_table(address, web, capsys):
    assert crawl(address, web, *web.seeds) == 0
    pages, before = pages_of(address, capsys), contents(address)
    assert nutbeam("compact", address, "--full", "--snapshot_retention", "0") == 0
    root = place_of(address)
    for name in ("state", "hosts"):  # of batches, not all is kept
        assert contents(address)[name].equals(before[name])
    assert pages_of(address, capsys) == pages
    newest = f"{latest_snapshot(root):08d}"
    assert [n for n in names(root / "manifest") if n != "made"] == [f"{newest}.json", "lists"]
    # A folder keeps the marks of what was made; stores lose no names, and have none.
    assert names(root / "manifest/made") in ([], [newest]), "marks of deleted snapshots"
    live = {path.name for path in files_of(address, "state")}
    # The clock of S3 has whole seconds: what was written in the last one stays.
    assert live == set(names(root / "state")) or (root.scheme == "s3" and live)
    assert nutbeam("inject", address, "http://more.example.com/") == 0
    assert len(contents(address)["state"]) == len(before["state"]) + 1


@pytest.mark.long
@pytest.mark.parametrize("address", ["gs"], indirect=True)
def test_a_crawl_with_worker_processes(address, web, here):
    before = len(asked(web))
    words = ["--direct_running_mode=multi_processing", "--direct_num_workers=2"]
    assert crawl(address, web, *web.seeds, *words) == 0
    check_same(address, web, here, asked(web)[before:])


@pytest.mark.long
@pytest.mark.parametrize("kind", first(1, ["gs", "s3"]))
def test_a_store_that_answers_503_now_and_then(
    kind, stores, web, here, hurried, monkeypatch, capsys
):
    with through_proxy(stores, kind, monkeypatch) as proxy:
        proxy.every = 25
        table, before = stores.address(kind), len(asked(web))
        assert crawl(table, web, *web.seeds) == 0
        assert capsys.readouterr().err == ""
        check_same(table, web, here, asked(web)[before:])
        assert proxy.refused > 10


@pytest.mark.long
@pytest.mark.parametrize("kind", first(1, ["gs", "s3"]))
def test_answers_that_are_lost(kind, stores, web, here, hurried, monkeypatch, capsys):
    """Uploads, commits among them, that the store has taken and whose answer never came."""
    with through_proxy(stores, kind, monkeypatch) as proxy:
        lost = Counter()

        def cut(method, path):
            upload = method == ("POST" if kind == "gs" else "PUT")
            lost["seen"] += upload
            lost["cut"] += upload and lost["seen"] % 9 == 0
            return upload and lost["seen"] % 9 == 0

        proxy.cut = cut
        table, before = stores.address(kind), len(asked(web))
        assert crawl(table, web, *web.seeds) == 0
        assert capsys.readouterr().err == ""
        check_same(table, web, here, asked(web)[before:])
        assert lost["cut"] > 5


@pytest.mark.long
@pytest.mark.parametrize("kind", first(1, ["gs", "s3"]))
def test_a_round_costs_a_limited_number_of_requests(kind, stores, web, monkeypatch):
    with through_proxy(stores, kind, monkeypatch) as proxy:
        table = stores.address(kind)
        assert nutbeam("crawl", table, *web.seeds, "--rounds", "1", *reach(web)) == 0
        proxy.requests.clear()
        assert nutbeam("crawl", table, "--rounds", "1", *reach(web)) == 0
        methods = Counter(classify(kind, *request) for request in proxy.requests)
        print(kind, sum(methods.values()), dict(sorted(methods.items())))
        if os.environ.get("NUTBEAM_TEST_VERBOSE"):
            for request in proxy.requests:
                print("REQ", *request)
        # Of about 180, 48 list the manifests. docs/guides/stores.md has the numbers. A round that takes over two
        # seconds writes a heartbeat, which takes eight more.
        assert sum(methods.values()) < 200


def classify(kind, method, path):
    """Returns what a request does: list, look (at a name), read, write or remove."""
    if method == "DELETE" or (method == "POST" and "delete" in path):
        return "remove"
    if method in ("PUT", "POST"):
        return "write"
    if method == "HEAD":
        return "look"
    if kind == "gs":
        if re.search(r"/o(\?|$)", path):
            return "list"
        return "read" if "alt=media" in path or "/download/" in path else "look"
    return "list" if "list-type" in path else "read"


@pytest.mark.long
@pytest.mark.parametrize("address", ["gs", "s3"], indirect=True)
def test_a_crawl_that_is_killed_is_taken_up(address, tmp_path, capsys):
    with SimWeb(hosts=3, pages=12, seed=7, crawl_delay=0, latency=0.03) as web:
        options = ["--rounds", "-1", "--flush_seconds", "0.05", *reach(web)]
        words = ["crawl", address, *web.seeds, *options, "--progress", "false"]
        command = [sys.executable, "-P", "-m", "nutbeam", *words]
        for kill_at in (15, 40):  # pages: in the middle of fetching
            process = subprocess.Popen(
                command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, start_new_session=True
            )
            wait_until(lambda kill_at=kill_at: len(asked(web)) >= kill_at, process)
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            assert process.communicate()[1] == b""
        assert crawl(address, web, *web.seeds) in (0, 1)
        assert_whole(address, web.site)
        # Of what was asked for twice the answer was lost with the process; what was flushed was not.
        twice = [url for url, times in Counter(asked(web)).items() if times > 1]
        assert len(twice) < 30
        for path in files_of(address, "state"):
            assert pl.read_parquet(read_bytes(path)).height > 0


@pytest.mark.long
@pytest.mark.parametrize("kind", first(1, ["gs", "s3"]))
def test_one_line_for_a_store_that_cannot_be_used(kind, stores, monkeypatch, capsys, web):
    for name, value in stores.environ(kind).items():
        monkeypatch.setenv(name, value)
    refused = [
        (f"{kind}://none/table", {}, "no bucket 'none'"),
        ("ftp://host/table", {}, "hdfs://HOST:PORT"),
    ]
    if kind == "s3":
        nobody = {"AWS_ACCESS_KEY_ID": "", "AWS_SECRET_ACCESS_KEY": ""}
        refused.append(("s3://tables/t", nobody, "no AWS credentials"))
    else:
        nobody = {"STORAGE_EMULATOR_HOST": "", "CLOUDSDK_CONFIG": os.devnull,
                  "NO_GCE_CHECK": "true", "GOOGLE_APPLICATION_CREDENTIALS": ""}  # fmt: skip
        refused.append(("gs://tables/t", nobody, "no Google Cloud credentials"))
    for table, environ, word in refused:
        command = [sys.executable, "-P", "-m", "nutbeam", "crawl", table, *web.seeds]
        run = subprocess.run(
            [*command, *reach(web)], capture_output=True, text=True, check=False,
            env={n: v for n, v in {**os.environ, **environ}.items() if v},
        )  # fmt: skip
        assert run.returncode == 2, run.stderr
        assert run.stderr.count("\n") == 1, run.stderr
        assert word in run.stderr
        assert run.stdout == ""
