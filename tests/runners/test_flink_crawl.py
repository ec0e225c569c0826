"""The jobs on a real Flink cluster make the table that they make in this process."""

import itertools
import re

import polars as pl
import pytest
from crawling import (
    asked,
    assert_same,
    assert_whole,
    contents,
    crawl,
    done_in,
    files_of,
    manifest_of,
    manifests_of,
    nutbeam,
    reach,
)
from flink.cluster import SHUFFLE_BUFFERS, wait_for
from flink.jobs import (
    Launched,
    attempts,
    bring_in,
    choose,
    flushed_by_partition,
    launched,
    tasks_of,
    whole,
)
from linked_tables import graph_in, make_linked, random_edges, ranks_in
from robots_victims import victim
from simulated_web import SimWeb, served_web

from nutbeam.web.urls.row_keys import from_key

pytestmark = pytest.mark.flink
JOBS = ("inject", "generate", "fetch", "parse", "updatedb", "dedup")


web = served_web(hosts=3, pages=4, scope="module")  # 3 rounds


def test_a_crawl_makes_the_table_of_a_crawl_in_this_process(flink, web, tables, tmp_path):
    here, there = tmp_path / "here", tables(tmp_path / "there")
    assert crawl(here, web, *web.seeds) == 0
    with launched(
        flink, "crawl", there, *web.seeds, "--rounds", -1, "--num_fetchers", 2, *reach(web)
    ) as command:
        assert command.ended() == 0
        steps = [flink.buffers_of_steps(job) for job in command.jobs()]
    # Two steps may run at once: the published network memory is enough for the two that write most.
    assert max(sum(sorted(buffers)[-2:]) for buffers in steps) <= flink.network_buffers()
    assert max(map(max, steps)) >= 5 * SHUFFLE_BUFFERS  # dedup is among them
    assert_whole(there, web.site)
    assert_same(contents(there), contents(here))
    assert done_in(there) == done_in(here)


def test_a_small_round_is_few_tasks_and_makes_the_same_table(flink, web, tmp_path):
    here, there = tmp_path / "here", tmp_path / "there"
    for table in (here, there):
        assert nutbeam("inject", table, *web.seeds) == 0
    assert nutbeam("round", here, *reach(web), "--num_fetchers", 2) == 0
    small = {"one_worker_urls": 1_000}
    words = ("round", there, *reach(web), "--num_fetchers", 2)
    with launched(flink, *words, **small) as command:
        assert command.ended() == 0
        (job,) = command.jobs()
    assert tasks_of(flink, job) <= 26  # 226 with all phases on all workers
    with launched(flink, "dedup", there, **small) as command:
        assert command.ended() == 0
        (job,) = command.jobs()
    assert tasks_of(flink, job) <= 3  # 148 on all workers
    assert nutbeam("dedup", here) == 0
    assert_same(contents(there), contents(here))
    with launched(flink, "updatedb", there, **small) as command:
        assert command.ended() == 1  # no batch is parsed
        assert command.jobs() == []
    wait_for(lambda: not [*flink.folder.glob("beam-worker.*")], "their folders to be removed")


@pytest.mark.long
def test_a_round_of_one_page_of_a_large_table_makes_the_same_table(flink, web, tmp_path):
    """Generate and dedup read the whole table, on all workers; parse and updatedb are on one."""
    seeds, here, there = tmp_path / "seeds.txt", tmp_path / "here", tmp_path / "there"
    seeds.write_text("".join(f"http://h0.example.com/{n}.html\n" for n in range(300)))
    for table in (here, there):
        assert nutbeam("inject", table, seeds) == 0
    words = (*reach(web), "--num_fetchers", 2, "--top_n", 1)
    assert nutbeam("round", here, *words) == 4  # it is not found
    with launched(flink, "round", there, *words, one_worker_urls=5) as command:
        assert command.ended() == 4
        (job,) = command.jobs()
    assert 100 < tasks_of(flink, job) < 180  # 226 with all phases on all workers
    assert_same(contents(there), contents(here))


@pytest.mark.long
def test_each_job_by_itself_makes_the_table_of_the_jobs_in_this_process(flink, web, tmp_path):
    here, there = tmp_path / "here", tmp_path / "there"
    for table, more in (
        (here, []),
        (there, [*flink.options, "--num_fetchers", 2, "--one_worker_urls", 0]),
    ):
        for job in JOBS:
            words = web.site.urls("page") if job == "inject" else []
            options = [w for w in more if job == "generate" or w not in ("--num_fetchers", 2)]
            words = [*sorted(words), *(reach(web) if job == "fetch" else []), *options]
            assert nutbeam(job, table, *words) == 0
    assert_same(contents(there), contents(here))
    assert [m.counts for m in manifests_of(there)] == [m.counts for m in manifests_of(here)]


def test_each_of_two_workers_fetches_a_third_at_the_same_time(flink, tmp_path):
    table = tmp_path / "table"
    with SimWeb(hosts=120, pages=4, seed=3, crawl_delay=0, latency=0.5) as web:
        urls = choose(table, web, "--num_fetchers", 2)
        with launched(flink, "fetch", table, *reach(web), "--flush_seconds", 0.5) as command:
            assert command.ended() == 0
    lines = command.said.splitlines()
    assert any(line.startswith("fetch: 0 of ") for line in lines)
    assert lines[-1].startswith(f"fetch: {len(urls)} pages in ")
    assert lines[-1].endswith(f", success {len(urls)}")
    pages = flushed_by_partition(table)
    assert sum(pages.values()) == manifest_of(table).counts["pages"] == len(urls)
    assert min(pages.values()) >= 0.3 * len(urls), pages
    processes = attempts(table)
    assert {number: len(pids) for number, pids in processes.items()} == {0: 1, 1: 1}
    assert processes[0] != processes[1]
    # None waits for the other one.
    times = {
        number: pl.concat(
            pl.read_parquet(path, columns=["fetch_time"])
            for path in whole(table, "pages")
            if path.name.startswith(f"p{number:05d}-")
        )["fetch_time"]
        for number in pages
    }
    assert max(times[0].min(), times[1].min()) < min(times[0].max(), times[1].max())
    bring_in(table, web, "parse", "updatedb")


@pytest.mark.long
def test_two_attempts_at_one_partition_on_two_workers_are_as_polite_as_one(flink, tmp_path):
    table, delay = tmp_path / "table", 2.0
    with SimWeb(hosts=2, pages=30, seed=3, crawl_delay=0) as web:  # a minute
        urls = choose(table, web, "--num_fetchers", 1)
        batch = str(manifest_of(table).batch)
        connect_to = [word for mapping in web.connect_to for word in ("--connect_to", mapping)]
        pace = ("--server_delay", str(delay), "--flush_seconds", "0.5")
        words = ["fetch", str(table), "--batch", batch, *connect_to, *pace]
        with launched(flink, *words, "--operation", "first", slots=1) as first:
            first.wait_for(lambda: flushed_by_partition(table), "a page was flushed")
            second = Launched(flink, [*words, "--operation", "second"], slots=1)
            codes = [first.ended(), second.ended()]
        requests, found = web.requests(), sorted(asked(web))
    # One adopts what the other has left, or finds that the batch is fetched in the meantime.
    assert codes in ([0, 0], [0, 3], [3, 0])
    (pids,) = attempts(table).values()
    assert len(set(pids)) == len(pids) > 1
    fetched = pl.concat(pl.read_parquet(path, columns=["key"]) for path in files_of(
        table, f"batches/{manifest_of(table).batch}/pages"))  # fmt: skip
    assert sorted(from_key(key) for key in fetched["key"]) == urls
    assert found == urls
    assert re.search(rf"^fetch: [1-9]\d* of {len(urls)} pages, ", first.said, re.MULTILINE)
    for host in {request.host for request in requests}:
        times = sorted(request.time for request in requests if request.host == host)
        assert min(after - before for before, after in itertools.pairwise(times)) >= delay - 0.01


def test_each_partition_requests_a_redirect_target_at_most_once_per_delay(flink, tmp_path):
    table, delay = tmp_path / "table", 0.3
    with victim(10) as site:
        assert nutbeam("inject", table, *site.hosts) == 0
        assert nutbeam("generate", table, "--num_fetchers", 2) == 0
        words = (*site.reach, "--server_delay", delay)
        with launched(flink, "fetch", table, *words) as command:
            assert command.ended() == 0
    site.check(partitions=2, delay=delay)
    assert manifest_of(table).counts["protocol/success"] == 10


@pytest.mark.long
def test_a_graph_and_its_ranks_are_those_of_this_process(flink, tmp_path):
    edges = random_edges(5, nodes=80, links=500)
    here, there = (make_linked(tmp_path / name, edges) for name in ("here", "there"))
    for words in (("webgraph", "--block_nodes", 30), ("linkrank",)):
        for table, more in ((here, []), (there, [*flink.options, "--one_worker_urls", 0])):
            assert nutbeam(words[0], table, *words[1:], *more) == 0
    assert graph_in(there) == graph_in(here)
    assert ranks_in(there).equals(ranks_in(here))
