"""A crawl of a simulated web finds just what is there, and doing it again changes nothing."""

import json

import polars as pl
import pytest
from crawling import (
    assert_whole,
    crawl,
    distances,
    manifest_of,
    manifests_of,
    nutbeam,
    reach,
    state_of,
    statuses_of,
    tree,
)
from simulated_web import SimWeb, served_web
from web_servers import reply, serve

from nutbeam.pipelines.command_line.cli import main
from nutbeam.policy.components.schema import Status

web = served_web(hosts=3, pages=12, scope="module")


@pytest.fixture(scope="module")
def crawled(web, tables, kept_crawls, tmp_path_factory):
    """(A table with a whole crawl, made under the operation id ``first``; the URLs it asked for)."""
    folder = tables(tmp_path_factory.mktemp("crawl") / "table")
    return folder, kept_crawls.make(web, folder)


@pytest.fixture(scope="module")
def table(crawled):
    """The table; tests only read it."""
    return crawled[0]


def test_a_crawl_finds_exactly_the_pages_of_the_site(web, table):
    assert_whole(table, web.site)


def test_each_url_is_requested_once_and_urls_denied_by_robots_txt_never(web, crawled):
    kinds = web.site.reachable()
    wanted = [url for url, kind in kinds.items() if kind != "denied"]
    assert sorted(crawled[1]) == sorted(wanted)


def test_the_distance_is_the_number_of_links_from_the_seed(web, table):
    found = dict(state_of(table).select("url", "distance").rows())
    assert found == distances(web.site, web.seeds)


def test_fetched_pages_are_recorded_in_the_state(table):
    rows = state_of(table)
    pages = rows.filter(pl.col("status").is_in([2, 7]))
    for name in ("signature", "document", "page", "batch_id", "last_fetch_time", "response_ms"):
        assert pages[name].null_count() == 0, name
    assert set(pages["http_code"]) == {200}
    assert set(pages["retries"]) == {0}
    days = (rows["fetch_time"] - rows["last_fetch_time"]) / 86_400_000
    gone = rows["status"] == 3
    assert set(days.filter(~gone)) == {30.0}
    assert set(days.filter(gone)) == {45.0}
    assert (rows["score"] >= 0).all()


def test_the_same_operation_again_changes_nothing(web, table, capsys):
    requests, files, state = len(web.requests()), tree(table, ignore=()), state_of(table)
    words = [*web.seeds, "--operation", "first", "--format", "json"]
    capsys.readouterr()
    assert crawl(table, web, *words) == 0
    again = json.loads(capsys.readouterr().out)
    assert tree(table, ignore=()) == files
    assert state_of(table).equals(state)
    assert len(web.requests()) == requests
    # What it reports is what that operation did, when it did it.
    assert again["rounds"] == sum(m.job == "update" for m in manifests_of(table))
    counts = [m.counts for m in manifests_of(table) if m.job == "fetch"]
    assert again["requests"] == sum(c.get("requests", 0) for c in counts) > 0
    assert again["fetched"] == sum(
        again["status"].get(n, 0) for n in ("db_fetched", "db_duplicate")
    )


@pytest.mark.long
def test_seeds_that_are_known_change_nothing_and_nothing_due_is_exit_1(web, tables, tmp_path):
    # One page, so that a crawl is one round.
    folder = tables(tmp_path / "table")
    with SimWeb(hosts=1, pages=1, seed=7, crawl_delay=0) as small:
        assert crawl(folder, small, *small.seeds) == 0
        state, requests = state_of(folder), len(small.requests())
        assert crawl(folder, small, *small.seeds) == 1
        assert crawl(folder, small) == 1
        assert len(small.requests()) == requests
    assert state_of(folder).equals(state)
    assert list(statuses_of(folder).values()).count("db_fetched") == 1


@pytest.mark.long
def test_rounds_is_how_often_links_are_followed(web, tables, tmp_path):
    folder = tables(tmp_path / "table")
    words = [folder, *web.seeds, "--rounds", "2", *reach(web)]
    assert nutbeam("crawl", *words) == 0
    assert sum(m.job == "update" for m in manifests_of(folder)) == 2
    rows = state_of(folder)
    tried = rows.filter(pl.col("last_fetch_time").is_not_null())
    waiting = rows.filter(pl.col("last_fetch_time").is_null())
    right = distances(web.site, web.seeds)
    assert {right[url] for url in tried["url"]} == {0, 1}
    assert set(waiting["status"]) == {1}
    assert {right[url] for url in waiting["url"]} <= {1, 2}  # 1: behind a redirect
    # The next one goes on where this one ended.
    assert nutbeam("crawl", *words[:1], "--rounds", "-1", *reach(web)) == 0
    assert_whole(folder, web.site)


def test_no_rounds_only_inject(tables, tmp_path, web):
    folder = tables(tmp_path / "table")
    assert nutbeam("crawl", folder, *web.seeds, "--rounds", "0", *reach(web)) == 1
    assert statuses_of(folder) == dict.fromkeys(web.seeds, "db_unfetched")


def page(*links):
    body = "<title>page</title>" + "".join(f'<a href="{link}">to</a>' for link in links)
    return reply(body.encode(), "200 OK", "Content-Type: text/html")


@pytest.fixture(scope="module")
def islands():
    """Three domains; ``www`` and ``other`` are hosts of the first."""
    pages = {
        "/": page("/deep", "http://other.example.com/1", "http://example.org/2", "/away"),
        "/deep": page("//example.org/3"),
        "/away": reply(b"", "302 Found", "Location: http://example.net/4"),
        "/1": page("http://www.example.com/5"),
    }
    with serve(lambda path, _: pages.get(path, page())) as server:
        yield server


@pytest.mark.few(1)
@pytest.mark.parametrize(
    ("scope", "beyond"),
    [
        ("host", []),
        ("domain", ["http://other.example.com/1", "http://www.example.com/5"]),
        ("any", ["http://other.example.com/1", "http://www.example.com/5", "http://example.org/2",
                 "http://example.org/3", "http://example.net/4"]),
    ],
)  # fmt: skip
def test_scope(islands, tables, tmp_path, scope, beyond):
    folder = tables(tmp_path / "table")
    domains = ("example.com", "example.org", "example.net")
    names = [name for domain in domains for name in (domain, f"*.{domain}")]
    connect_to = [w for n in names for w in ("--connect_to", f"{n}:80:127.0.0.1:{islands.port}")]
    words = ["--scope", scope, "--server_delay", "0", "--rounds", "-1"]
    assert nutbeam("crawl", folder, "http://www.example.com/", *words, *connect_to) == 0
    home = ["", "deep", "away"]
    want = {f"http://www.example.com/{name}" for name in home} | set(beyond)
    assert set(statuses_of(folder)) == want
    dropped = sum(
        number
        for manifest in manifests_of(folder)
        for name, number in manifest.counts.items()
        if name in ("dropped/out_of_scope", "dropped/redirect_out_of_scope")
    )
    assert dropped == {"host": 4, "domain": 3, "any": 0}[scope]


@pytest.mark.long
def test_an_open_batch_is_finished_first_and_counts_as_a_round(web, tables, tmp_path):
    folder = tables(tmp_path / "table")
    assert nutbeam("inject", folder, *web.seeds) == 0
    assert nutbeam("generate", folder) == 0
    (batch,) = manifest_of(folder).batches
    assert nutbeam("fetch", folder, *reach(web)) == 0
    before = len(web.requests())
    assert nutbeam("crawl", folder, "--rounds", "1", *reach(web)) == 0
    assert len(web.requests()) == before  # its pages were there
    manifest = manifest_of(folder)
    assert {name: b.phase for name, b in manifest.batches.items()} == {batch: "updated"}
    assert [m.job for m in manifests_of(folder)] == [
        "inject", "generate", "fetch", "parse", "update", "dedup",
    ]  # fmt: skip
    # Then the rounds go on.
    assert nutbeam("crawl", folder, "--rounds", "-1", *reach(web)) == 0
    assert_whole(folder, web.site)


def test_a_crawl_that_died_before_dedup_is_deduplicated_by_the_next(web, tables, tmp_path):
    folder = tables(tmp_path / "table")
    assert nutbeam("inject", folder, *web.seeds) == 0
    for job in ("generate", "fetch", "parse", "updatedb"):
        options = reach(web) if job == "fetch" else []
        assert nutbeam(job, folder, *options) == 0
    (batch,) = manifest_of(folder).batches
    assert nutbeam("crawl", folder, "--rounds", "1", *reach(web)) == 0
    last = manifest_of(folder)
    assert (last.job, last.batch) == ("dedup", batch)


@pytest.mark.long
def test_the_summary_for_scripts(web, tables, tmp_path, capsys):
    folder = tables(tmp_path / "table")
    capsys.readouterr()
    words = ["--rounds", "2", *reach(web), "--format", "json"]
    assert main(["crawl", str(folder), *web.seeds, *words]) == 0
    captured = capsys.readouterr()
    record = json.loads(captured.out)  # nothing but the result is on standard output
    assert record["rounds"] == 2
    assert record["urls"] == sum(record["status"].values()) == len(state_of(folder))
    tried = sum(n for name, n in record["status"].items() if name != "db_unfetched")
    denied = record["not_fetched"].get("robots_denied", 0)
    assert record["requests"] == tried - denied
    assert record["phases"]["fetch"]["done"] == tried
    assert len(record["best"]) == 5
    assert record["best"][0]["url"] == web.seeds[0]
    assert "fetch: " in captured.err  # progress, plain
    assert "Traceback" not in captured.err


@pytest.mark.long
@pytest.mark.folder_first
def test_a_dedup_that_never_came_is_made_up_for(tables, tmp_path):
    table = tables(tmp_path / "table")
    with SimWeb(hosts=2, pages=12, seed=7, crawl_delay=0) as web:
        nutbeam("inject", table, *web.seeds)
        while nutbeam("generate", table) == 0:
            for job in ("fetch", "parse", "updatedb"):
                assert nutbeam(job, table, *(reach(web) if job == "fetch" else ())) == 0
        assert (state_of(table)["status"] != Status.DB_DUPLICATE).all()
        # Something else is committed before any dedup, as after a kill.
        nutbeam("inject", table, "http://h0.example.com/elsewhere")
        assert crawl(table, web) == 4  # there is no such page
        lost = state_of(table).filter(pl.col("status") == Status.DB_DUPLICATE)
        assert len(lost) == sum(len(same) - 1 for same in web.site.duplicates())
    assert manifest_of(table).waiting_for("dedup") == []


def test_a_host_with_retry_after_costs_no_rounds(tables, tmp_path):
    table = tables(tmp_path / "table")
    busy = reply(b"", "429 Too Many Requests", "Retry-After: 3600")
    answers = {"/robots.txt": reply(b"", "404 Not Found")}
    with serve(lambda path, _: answers.get(path, busy)) as server:
        mapping = [
            "--connect_to",
            f"*.example.com:80:127.0.0.1:{server.port}",
            "--server_delay",
            "0",
        ]
        seeds = [f"http://busy.example.com/{n}" for n in range(4)]
        assert nutbeam("crawl", table, *seeds, "--rounds", "4", *mapping) == 4
    # The first page brings the pause; the others wait for it, and no round is made for them.
    assert [m.job for m in manifests_of(table)].count("fetch") == 1
    assert set(statuses_of(table).values()) == {"db_unfetched"}
