"""The delay of each host and the speed over all hosts, in one run: neither is bought with the other."""

import collections
import itertools

import pytest
from crawling import manifest_of, nutbeam

from nutbeam.web.simweb.server import SimWeb

HOSTS, PAGES, DELAY = 12, 7, 0.3
SHARE = 0.5  # of the speed that the delay of the largest host allows
TWO = ("--direct_running_mode=multi_processing", "--direct_num_workers=2")


@pytest.mark.parametrize(
    ("workers", "client"),
    [
        (1, "requests"),
        (1, "aiohttp"),
        (2, "requests"),
        pytest.param(2, "aiohttp", marks=(pytest.mark.long, pytest.mark.slow)),
    ],
)
def test_each_host_waits_and_none_for_another(tmp_path, workers, client):
    table, seeds = tmp_path / "table", tmp_path / "seeds.txt"
    more = TWO if workers == 2 else ()
    with SimWeb(hosts=HOSTS, pages=PAGES, seed=3, crawl_delay=0) as web:
        seeds.write_text("\n".join(sorted(web.site.urls("page"))))
        assert nutbeam("inject", table, seeds) == 0
        assert nutbeam("generate", table, "--num_fetchers", workers) == 0
        doors = [word for door in web.connect_to for word in ("--connect_to", door)]
        words = ("--server_delay", DELAY, "--http_client", client, *more)
        assert nutbeam("fetch", table, *doors, *words) == 0
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
