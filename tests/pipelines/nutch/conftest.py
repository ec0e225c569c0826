import pytest
from nutch_crawls import NutchCrawl


@pytest.fixture
def crawl(tmp_path):
    return NutchCrawl(tmp_path / "nutch")


@pytest.fixture
def table(tmp_path):
    return tmp_path / "table"
