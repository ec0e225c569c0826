"""Crawls of sites without an end: they end, and say why, and cost the others nothing."""

import json

import pytest
from crawling import asked, crawl, manifests_of, nutbeam, reach, state_of
from simulated_web import SimWeb

TIMES = ("--timeout", "5", "--threads_per_address", "-1")


@pytest.fixture(scope="module")
def web():
    with SimWeb(hosts=3, pages=8, crawl_delay=0) as server:
        yield server


def trapped(table, web, capsys, names, *words):
    """Crawls traps and the friendly pages until nothing is due; returns the summary."""
    traps = [f"http://{name}.hostile.example.com/" for name in names]
    capsys.readouterr()
    words = (*web.seeds, *traps, *words, *TIMES, "--format", "json")
    assert crawl(table, web, *words) == 0
    return json.loads(capsys.readouterr().out)


def test_traps_end_by_default(web, tmp_path, capsys):
    before = len(asked(web))
    found = trapped(tmp_path / "table", web, capsys, ("same-pages", "echo", "soft-404"))
    assert found["rounds"] < 12
    assert found["dropped"]["same_pages"] > 500  # of hundred pages with ten links each
    assert found["dropped"]["repeated_segments"] > 0
    urls = asked(web)[before:]
    assert len(urls) == len(set(urls))
    per_host = {name: sum(f"//{name}." in url for url in urls) for name in ("same-pages", "echo")}
    assert per_host["same-pages"] == 111
    assert per_host["echo"] < 200
    assert web.site.urls("page") <= set(urls)  # all of the friendly pages


@pytest.mark.long
def test_traps_of_all_kinds_end_with_their_reasons(web, tmp_path, capsys):
    names = ("calendar", "session-ids", "echo", "infinite-hosts", "parameters", "spam")
    found = trapped(
        *(tmp_path / "table", web, capsys, names, "--depth", "3", "--max_parameters", "2"),
        *("--max_parameter_length", "150", "--max_new_per_host", "20", "--max_new_queries", "2"),
        *("--max_new_hosts_per_domain", "10", "--max_segment_repeats", "2"),
    )
    reasons = {
        *("too_deep", "repeated_segments", "too_many_parameters", "parameter_too_long"),
        *("host_budget", "path_budget", "domain_budget"),
    }
    assert reasons <= set(found["dropped"]), found["dropped"]
    # Depth 0 to 3, and what links led to on the way.
    assert found["rounds"] <= 5
    assert found["status"].get("db_unfetched", 0) == 0


@pytest.mark.long
def test_no_depth_is_only_the_seeds(web, tmp_path, capsys):
    before = len(asked(web))
    assert nutbeam("crawl", tmp_path / "table", *web.seeds, *reach(web), "--depth", "0") == 0
    assert set(asked(web)[before:]) == set(web.seeds)


@pytest.mark.long
def test_max_per_host_limits_all_urls_of_a_host(web, tmp_path, capsys):
    table, seed = tmp_path / "table", min(web.seeds)
    words = (*reach(web), "--scope", "host", "--max_per_host", "7", "--rounds", "-1")
    capsys.readouterr()
    assert nutbeam("crawl", table, seed, *words, "--format", "json") == 0
    assert len(state_of(table)) == 7
    counts = [manifest.counts.get("dropped/host_total", 0) for manifest in manifests_of(table)]
    assert sum(counts) > 0
