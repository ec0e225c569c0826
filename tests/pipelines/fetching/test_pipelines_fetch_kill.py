"""``kill -9`` of a fetch while pages are in flight, and the same command again."""

import random

import pytest
from crawling import asked, json_lines, manifests_of, nutbeam, reach
from ending import flushed, kill_at
from simulated_web import SimWeb

TRIALS = [
    (1, "threads"),
    (2, "asyncio"),
    *(
        pytest.param(seed, ("threads", "asyncio")[seed % 2], marks=pytest.mark.long)
        for seed in range(2, 21)
    ),
]


@pytest.fixture(scope="module")
def web():
    # The latency keeps three pages in flight, always.
    with SimWeb(hosts=3, pages=25, seed=7, crawl_delay=0, latency=0.02) as server:
        yield server


@pytest.mark.long
@pytest.mark.parametrize(("seed", "client"), TRIALS)
def test_killed_fetches_lose_no_page_and_request_no_stored_page_again(
    web, tmp_path, capsys, seed, client
):
    table, seeds, dice = tmp_path / "table", tmp_path / "seeds.txt", random.Random(seed)
    urls = sorted(web.site.urls("page"))
    seeds.write_text("\n".join(urls))
    assert nutbeam("inject", table, seeds) == 0
    assert nutbeam("generate", table) == 0
    fetch = ("fetch", table, *reach(web), "--flush_seconds", "0.05", "--operation", "nightly")
    fetch += ("--http_client", client)
    safe, since = [], len(asked(web))
    for _ in range(1 if seed <= 3 else dice.randint(1, 3)):
        left = len(urls) - len(safe)
        kill_at(fetch, web, dice.randint(1, max(1, left // 2)))
        again = asked(web)[since:]
        assert set(safe).isdisjoint(again)  # what was on disk is not asked for again
        safe, since = flushed(table), len(asked(web))
        assert len(safe) == len(set(safe))
        assert [manifest.job for manifest in manifests_of(table)] == ["inject", "generate"]
    assert nutbeam(*fetch) == 0
    again = asked(web)[since:]
    assert set(safe).isdisjoint(again)
    assert len(again) == len(set(again))
    assert sorted([*safe, *again]) == urls  # just what was missing
    assert sorted(flushed(table)) == urls  # no page is lost
    counts = manifests_of(table)[-1].counts
    assert counts["pages"] == len(urls)
    assert counts.get("adopted", 0) == len(safe)
    for job in ("parse", "updatedb"):
        assert nutbeam(job, table) == 0
    capsys.readouterr()
    assert nutbeam("pages", table) == 0
    seen = [record["url"] for record in json_lines(capsys.readouterr().out)]
    assert sorted(seen) == urls  # no reader sees one twice
