import shutil
from pathlib import Path

import pytest
from crawling import (
    nutbeam,
    open_batches,
    reach,
)
from simulated_web import served_web

web = served_web(hosts=2, pages=4, scope="module")


@pytest.fixture(scope="module")
def original(web, tables, tmp_path_factory):
    """A table with a batch that is updated and one in each earlier phase."""
    folder = tables(tmp_path_factory.mktemp("bad") / "table")
    assert nutbeam("crawl", folder, *web.seeds, "--rounds", "1", *reach(web)) == 0
    open_batches(folder, web, 2)
    return folder


@pytest.fixture
def table(original, tmp_path):
    """A copy of that table; of one that is no folder itself, for it can be looked at alone."""
    here = isinstance(original, Path)
    return shutil.copytree(original, tmp_path / "table") if here else original
