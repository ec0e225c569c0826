"""A link farm of 30 domains without an end takes no more than a few percent of a crawl."""

import pytest
from crawling import nutbeam
from farm_web import HONEST, PAGES, SEEDS, connect_to, farm_web


def share_of_farm(table, *options):
    """Crawls; returns (share of the farm in the requested pages, number of honest pages)."""
    with farm_web() as server:
        words = ["--scope", "any", "--top_n", "200", "--rounds", "9", *connect_to(server)]
        assert nutbeam("crawl", table, *SEEDS, *words, *options) == 0
        honest = sum(host.startswith("h") for host in server.hosts)
        return 1 - honest / len(server.hosts), honest


@pytest.mark.long
def test_a_farm_gets_a_few_percent_of_the_batches(tmp_path):
    with_limits, honest = share_of_farm(tmp_path / "with")
    without, _ = share_of_farm(tmp_path / "without", "--domain_budget", "-1")
    assert with_limits < 0.05
    assert without > 0.2
    assert honest > 0.8 * HONEST * PAGES
