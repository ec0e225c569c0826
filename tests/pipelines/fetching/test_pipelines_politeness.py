"""The delay of each host and the speed over all hosts, in one run: neither is bought with the other."""

import collections
import itertools

import polars as pl
import pytest
from crawling import files_of, manifest_of, nutbeam
from robots_victims import VICTIM, victim
from simulated_web import SimWeb

from nutbeam.io.storage.files import read_bytes
from nutbeam.web.urls.row_keys import host_key

HOSTS, PAGES, DELAY = 12, 7, 0.3
SHARE = 0.5  # of the speed that the delay of the largest host allows
TWO = ("--direct_running_mode=multi_processing", "--direct_num_workers=2")


@pytest.mark.few(1)
@pytest.mark.parametrize(
    ("workers", "client"),
    [
        (1, "threads"),
        (1, "asyncio"),
        (2, "threads"),
        pytest.param(2, "asyncio", marks=(pytest.mark.long, pytest.mark.slow)),
    ],
)
def test_each_host_waits_and_none_for_another(tmp_path, workers, client):
    table, seeds = tmp_path / "table", tmp_path / "seeds.txt"
    more = TWO if workers == 2 else ()
    with SimWeb(hosts=HOSTS, pages=PAGES, seed=3, crawl_delay=0) as web:
        seeds.write_text("\n".join(sorted(web.site.urls("page"))))
        assert nutbeam("inject", table, seeds) == 0
        assert nutbeam("generate", table, "--num_fetchers", workers) == 0
        connect_to = [word for mapping in web.connect_to for word in ("--connect_to", mapping)]
        words = ("--server_delay", DELAY, "--http_client", client, *more)
        assert nutbeam("fetch", table, *connect_to, *words) == 0
        requests = web.requests()
    assert manifest_of(table).counts["protocol/success"] == HOSTS * PAGES
    moments = collections.defaultdict(list)
    for request in requests:
        moments[request.host].append(request.time)
    assert len(moments) == HOSTS
    gaps = [b - a for some in moments.values() for a, b in itertools.pairwise(some)]
    assert min(gaps) >= DELAY
    span = max(some[-1] for some in moments.values()) - min(some[0] for some in moments.values())
    largest = max(len(some) for some in moments.values())
    assert len(requests) > 4 * largest  # so one host after the other would take four times as long
    assert SHARE * span <= (largest - 1) * DELAY


@pytest.mark.long
@pytest.mark.few(1)
@pytest.mark.parametrize("client", ["threads", "asyncio"])
def test_each_partition_requests_a_redirect_target_at_most_once_per_delay(tmp_path, client):
    table = tmp_path / "table"
    with victim(8) as site:
        assert nutbeam("inject", table, *site.hosts) == 0
        assert nutbeam("generate", table, "--num_fetchers", 2) == 0
        words = ("--server_delay", DELAY, "--http_client", client)
        assert nutbeam("fetch", table, *site.reach, *words) == 0
    site.check(partitions=2, delay=DELAY)
    assert manifest_of(table).counts["protocol/success"] == 8
    assert nutbeam("parse", table) == 0
    assert nutbeam("updatedb", table) == 0
    hosts = pl.concat([pl.read_parquet(read_bytes(file)) for file in files_of(table, "hosts")])
    found = hosts.filter(key=host_key(VICTIM)).select("robots_status", "requests").unique()
    assert found.rows() == [(None, 0)]  # when it was asked is known, and no rules of its own


def test_pages_left_out_by_the_limit_of_robots_redirects_stay_due_and_are_counted(tmp_path):
    table = tmp_path / "table"
    with victim(4) as site:
        assert nutbeam("inject", table, *site.hosts) == 0
        assert nutbeam("generate", table) == 0
        words = ("--server_delay", 0, "--robots_redirect_targets", 1)
        assert nutbeam("fetch", table, *site.reach, *words) == 0
    assert len(site.moments) == 1
    counts = manifest_of(table).counts
    assert (counts["protocol/success"], counts["dropped/robots_redirects"]) == (1, 3)
