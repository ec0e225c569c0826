"""--add_days in a crawl: each URL is brought forward at most once, and the ending says what is due."""

import json

import polars as pl
import pytest
from crawling import manifests_of, nutbeam, state_of
from frames import frame_of
from web_servers import connect_to, reply, serve

from nutbeam.pipelines.generating.generate_candidates import due_at
from nutbeam.policy.components.schema import STATE, Status
from nutbeam.policy.generating.selection import GenerateOptions, eligible_rows
from nutbeam.policy.schedules.schedule import DAY_MS
from nutbeam.web.base.clock import Clock

NOW = 1_700_000_000_000
ROBOTS = reply(b"", "404 Not Found")
SEED = "http://a.example.com/"


def page(*links):
    body = "".join(f'<a href="{link}">to</a>' for link in links)
    return reply(body.encode(), "200 OK", "Content-Type: text/html")


@pytest.fixture
def pages():
    return {"/robots.txt": ROBOTS, "/": page("/1", "/2"), "/1": page("/3"), "/2": page(),
            "/3": page()}  # fmt: skip


@pytest.fixture
def web(pages):
    with serve(lambda path, _: pages.get(path, reply(b"", "500 Broken"))) as server:
        server.connect_to = ["--connect_to", *connect_to(server.port), "--server_delay", "0"]
        yield server


def asked(web):
    return sorted(path for path, _, _ in web.requests if path != "/robots.txt")


def crawl(capsys, web, *words):
    """Returns (exit code, record) of a crawl."""
    capsys.readouterr()
    web.requests.clear()
    code = nutbeam("crawl", *words, *web.connect_to, "--format", "json")
    return code, json.loads(capsys.readouterr().out)


@pytest.mark.long
def test_a_crawl_fetches_each_page_once_and_ends(web, pages, tmp_path, capsys):
    table = tmp_path / "table"
    assert crawl(capsys, web, table, SEED)[0] == 0
    pages["/1"] = page("/3", "/new")
    pages["/new"] = page()
    code, record = crawl(capsys, web, table, "--add_days", 31, "--rounds", -1)
    assert (code, record["ending"]) == (0, "done")
    # Links that are found on the way are followed, too.
    assert asked(web) == ["/", "/1", "/2", "/3", "/new"]
    assert record["rounds"] == 2
    assert record["message"] == ""  # nothing is due now


@pytest.mark.long
def test_a_seed_that_fails_is_tried_once_in_a_run(web, tmp_path, capsys):
    table = tmp_path / "table"
    seeds = [SEED, f"{SEED}broken"]
    for tries in (1, 2):
        crawl(capsys, web, table, *seeds, "--add_days", 31)
        assert asked(web).count("/broken") == 1
        row = state_of(table).filter(pl.col("url") == seeds[1]).row(0, named=True)
        assert (row["status"], row["retries"]) == (Status.DB_UNFETCHED, tries)


@pytest.mark.long
def test_a_single_round_fetches_pages_of_earlier_runs_again(web, tmp_path, capsys):
    table = tmp_path / "table"
    crawl(capsys, web, table, SEED, "--rounds", 1)
    web.requests.clear()
    for times in (1, 2):
        assert nutbeam("round", table, *web.connect_to, "--add_days", 31) == 0
        assert asked(web).count("/") == times


@pytest.mark.long
def test_a_crawl_that_is_launched_again_goes_on_with_its_run(web, tmp_path, capsys):
    table = tmp_path / "table"
    crawl(capsys, web, table, SEED)
    words = [table, "--add_days", 31, "--operation", "again"]
    crawl(capsys, web, *words, "--rounds", 1)
    before = len(manifests_of(table))
    crawl(capsys, web, *words, "--rounds", 3)
    assert asked(web) == []
    assert not any(m.counts.get("chosen") for m in manifests_of(table)[before:])


@pytest.mark.parametrize("days", [0.0, 1.0, 89.0, 90.0, 91.0, 400.0])
@pytest.mark.parametrize("ahead", [0, 30, 1000])
def test_no_row_that_is_eligible_is_overlooked_by_zone_maps_and_servers(days, ahead):
    clock = Clock(NOW, latest=NOW + ahead * DAY_MS if ahead else 0, began=NOW - 5)
    options = GenerateOptions(add_days=days)
    times = [NOW + day * DAY_MS + ms for day in (0, 1, 30, 89, 90, 91, 180, 400) for ms in (0, 1)]
    rows = [
        {"key": f"k{at}{last}", "score": 1.0, "fetch_time": time, "last_fetch_time": last}
        for at, time in enumerate(times)
        for last in (None, NOW - 9, NOW)
    ]
    found = eligible_rows(frame_of(STATE, *rows).lazy(), clock, options).collect()["fetch_time"]
    due = due_at(clock, options)
    assert ((found <= due.until) | (found > due.far)).all()
    assert due.far >= due.until  # otherwise Bigtable would send a row twice
