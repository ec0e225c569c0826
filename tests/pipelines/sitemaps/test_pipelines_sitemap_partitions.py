"""Sitemaps by partitions of sites: the same rows as with one, and nothing is read twice after a kill."""

import json
import subprocess
import sys
import threading

import polars as pl
import pytest
from crawling import manifests_of, nutbeam, rows_of, state_of
from odd_sitemaps import of
from waiting import PATIENCE, wait_until
from web_servers import connect_to, reply, serve

from nutbeam.io.batches.leases import SITEMAP_LEASES, Lease, acquire
from nutbeam.io.snapshots.operations import begin
from nutbeam.io.table.opening import open_table
from nutbeam.pipelines.sitemaps import sitemap
from nutbeam.pipelines.sitemaps.sitemap_partitions import SitemapPartition, partitions_of_urls
from nutbeam.web.base.errors import Unavailable
from nutbeam.web.urls.row_keys import from_key

SITES = [f"s{n}.com" for n in range(6)]
OTHERS = ["cdn.net", "hop.org", "end.net"]
WORDS = (
    "--server_delay",
    "0",
    "--timeout",
    "300",
    "--agent_name",
    "bot",
    "--agent_email",
    "bot@example.com",
)
NOT_TIMES = ["key", "seed", "requests", "robots_origin", "robots_status", "robots_text", "sitemaps"]
# A process with partitions of one host, which writes each part at once.
PROGRAM = """
import sys
from nutbeam.pipelines.command_line.cli import main
from nutbeam.pipelines.sitemaps import sitemap, source_results
sitemap.HOSTS_AT_ONCE, source_results._KEEP_SECONDS = int(sys.argv[1]), 0.0
sys.exit(main(sys.argv[2:]))
"""


class Web:
    """Sites whose sitemaps are partly on other sites, one of them at the end of two redirects.

    Attributes:
        asked: URLs that were requested, robots.txt left out.
        stuck: URL whose answer waits until ``go_on`` is set.
    """

    def __init__(self):
        self.asked, self.stuck = [], None
        self.is_stuck, self.go_on = threading.Event(), threading.Event()

    def answer(self, path, _):
        head = self.server.current.head
        host = next(line[6:] for line in head.split("\r\n") if line.lower().startswith("host: "))
        if path == "/robots.txt":
            return self.robots(host)
        url = f"http://{host}{path}"
        self.asked.append(url)
        if url == self.stuck:
            self.is_stuck.set()
            self.go_on.wait(PATIENCE)
        site = path[1:-4] if host in OTHERS else host
        if path == "/moved.xml" or host == "hop.org":
            target = "end.net" if host == "hop.org" else "hop.org"
            return reply(b"", "301 Moved", f"Location: http://{target}/{site}.xml")
        name = {"cdn.net": "cdn", "end.net": "end"}.get(host, "own")
        urls = of(*(f"<url><loc>http://{site}/{name}/{n}</loc></url>" for n in range(3)))
        return reply(urls.encode(), "200 OK", "Content-Type: application/xml")

    def robots(self, host):
        if host in OTHERS:
            return reply(b"none", "404 Not Found")
        named = (f"{host}/own.xml", f"cdn.net/{host}.xml", f"{host}/moved.xml")
        return reply("".join(f"Sitemap: http://{name}\n" for name in named).encode())


@pytest.fixture
def web():
    made = Web()
    with serve(made.answer) as made.server:
        yield made
        made.go_on.set()


def words_of(web, table, *more):
    reached = [word for door in connect_to(web.server.port, *SITES, *OTHERS)
               for word in ("--connect_to", door)]  # fmt: skip
    return ["sitemap", str(table), *more, *reached, *WORDS]


def prepared(table):
    """Makes a table with the sites as seeds."""
    assert nutbeam("inject", table, *(f"http://{site}/" for site in SITES)) == 0
    return table


def hosts_of(table):
    return rows_of(table, "hosts").select(NOT_TIMES).sort("key")


def urls_of(table):
    return {from_key(key) for key in state_of(table).get_column("key")}


@pytest.mark.parametrize("group", ["all", "listed"])
def test_partitions_bring_the_rows_of_one_engine(web, tmp_path, monkeypatch, group):
    asked = []
    for name, at_once in (("one", 20_000), ("many", 1)):
        monkeypatch.setattr(sitemap, "HOSTS_AT_ONCE", at_once)
        table = prepared(tmp_path / name)
        hosts = group if group == "all" else ",".join(SITES)
        assert nutbeam(*words_of(web, table, "--sitemap_hosts", hosts)) == 0
        asked.append(sorted(web.asked))
        web.asked.clear()
    assert asked[0] == asked[1]  # each sitemap once
    one, many = tmp_path / "one", tmp_path / "many"
    names = {f"http://{site}/{part}/{n}" for site in SITES for part in ("own", "cdn", "end")
             for n in range(3)}  # fmt: skip
    assert urls_of(many) == urls_of(one) == names | {f"http://{site}/" for site in SITES}
    columns = [name for name in state_of(one).columns if not name.endswith("_time")]
    assert state_of(many).select(columns).equals(state_of(one).select(columns))
    assert manifests_of(many)[-1].counts == manifests_of(one)[-1].counts
    assert hosts_of(many).equals(hosts_of(one))
    assert not (many / "batches" / "sitemaps" / "aside").exists()


@pytest.mark.parametrize(
    ("at_once", "stuck"), [(1, "http://end.net/s3.com.xml"), (20_000, "http://s3.com/own.xml")]
)
def test_finished_work_of_a_killed_attempt_is_not_repeated(
    web, tmp_path, monkeypatch, at_once, stuck
):
    monkeypatch.setattr(sitemap, "HOSTS_AT_ONCE", at_once)
    table = prepared(tmp_path / "t")
    whole = prepared(tmp_path / "whole")
    assert nutbeam(*words_of(web, whole, "--sitemap_hosts", "all")) == 0
    every = sorted(web.asked)
    web.asked.clear()
    web.stuck = stuck
    words = words_of(web, table, "--sitemap_hosts", "all", "--operation", "mine")
    folder = kill_when_stuck(web, table, words, at_once)
    first = list(web.asked)
    web.asked.clear()
    assert nutbeam(*words) == 0
    again = [url for url in web.asked if url in first]
    # Of the site that was not done, its sitemaps come again. The others are done.
    assert {url for url in again if "s3.com" not in url} == set()
    assert sorted({*first, *web.asked}) == every
    assert state_of(table).drop("fetch_time").equals(state_of(whole).drop("fetch_time"))
    assert manifests_of(table)[-1].counts["added"] == manifests_of(whole)[-1].counts["added"]
    found = hosts_of(table).filter(pl.col("key").is_in([f"com.s{n}" for n in (0, 1, 2, 4, 5)]))
    right = hosts_of(whole).filter(pl.col("key").is_in(found["key"].implode()))
    assert found.equals(right)
    assert not folder.exists()


def kill_when_stuck(web, table, words, at_once):
    """Kills a process when all sites but one are done; returns the folder of its parts."""
    command = [sys.executable, "-P", "-c", PROGRAM, str(at_once), *words, "--progress", "false"]
    folder = table / "batches" / "sitemaps" / "aside"
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        assert wait_until(web.is_stuck.is_set, process)
        wait_until(lambda: len(sites_done(folder)) >= len(SITES) - 1, process)
    finally:
        process.kill()
        process.wait(PATIENCE)
    web.go_on.set()
    return folder


def sites_done(folder):
    heads = [path.read_bytes().partition(b"\n")[0] for path in folder.glob("p*.arrow")]
    sources = {source for head in heads for source in json.loads(head)["sources"]}
    return {source.split("/")[2] for source in sources}


def test_a_purge_removes_parts_of_a_killed_attempt(web, tmp_path):
    table = prepared(tmp_path / "t")
    words = words_of(web, table, "--sitemap_hosts", "all", "--operation", "mine")
    web.stuck = "http://s3.com/own.xml"
    folder = kill_when_stuck(web, table, words, 20_000)
    assert "s0.com" in sites_done(folder)
    assert nutbeam("purge", table, "--host", "s0.com", "--now", "true") == 0
    assert "s0.com" not in sites_done(folder)


def test_hosts_of_a_site_are_in_one_partition():
    urls = pl.Series(["http://a.com/", "https://www.a.com/s.xml", "http://x.y.a.com:81/", "bad",
                      "http://one.github.io/", "http://two.github.io/"])  # fmt: skip
    numbers = partitions_of_urls(urls, 1_000).to_list()
    assert len(set(numbers[:3])) == 1
    assert numbers[4] != numbers[5]  # unrelated parties
    assert partitions_of_urls(urls, 1).to_list() == [0] * 6


def test_partitions_of_one_turn_run_together_and_no_others(tmp_path):
    table = open_table(str(tmp_path / "t"))
    one, two = (begin(str(tmp_path / "t"), "sitemap", name) for name in ("one", "two"))
    mine = SitemapPartition(one, 0, 4, 1)
    rivals = {
        "its neighbour": (SitemapPartition(one, 0, 4, 2), True),
        "itself": (mine, False),
        "a later turn": (SitemapPartition(one, 1, 4, 2), False),
        "the last turn": (SitemapPartition(one, 2, 1, 0), False),
        "another operation": (SitemapPartition(two, 0, 4, 2), False),
        "another one with one partition": (SitemapPartition(two, 0, 1, 0), False),
    }
    for other, together in rivals.values():
        with held(table, mine):
            if together:
                held(table, other).release()
                continue
            with pytest.raises(Unavailable):
                held(table, other)
        held(table, other).release()


def held(table, partition) -> Lease:
    return acquire(table, SITEMAP_LEASES, partition.lease, most=0.0, rivals=partition.excludes)
