import pytest
from simulated_web import SimWeb


@pytest.fixture(scope="module")
def web():
    with SimWeb(hosts=4, pages=12, crawl_delay=0) as server:
        yield server
