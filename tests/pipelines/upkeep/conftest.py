"""Tables with a batch in each phase, and fsck, for tests of what fsck finds."""

import json

import pytest
from bigtable_samples import every_third_key
from crawling import (
    nutbeam,
    open_batches,
    reach,
    tree,
)
from simulated_web import SimWeb
from web_tables import InBigtable

from nutbeam.io.bigtable.snapshot_log import open_log
from nutbeam.io.table.bigtable_web_table import BigtableWebTable
from nutbeam.io.tablets import tablet_writer


@pytest.fixture(scope="session")
def web():
    with SimWeb(hosts=2, pages=8, seed=7, crawl_delay=0) as server:
        yield server


@pytest.fixture(scope="session")
def whole_folder(web, tmp_path_factory):
    """A table with several tablets and a batch in each phase; tests only read it."""
    folder = tmp_path_factory.mktemp("fsck") / "table"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tablet_writer, "TABLET_ROWS", 8)
        assert nutbeam("crawl", folder, *web.seeds, "--rounds", "2", *reach(web)) == 0
        open_batches(folder, web, 2)
    return folder


@pytest.fixture
def fsck(capsys):
    """Runs fsck and returns its record; checks that it changes and deletes nothing."""

    def run(folder, *words, code=0):
        before = tree(folder, ignore=())
        capsys.readouterr()
        assert nutbeam("fsck", folder, *words, "--format", "json") == code
        after = tree(folder, ignore=())
        assert {name: after.get(name) for name in before} == before
        if "--repair" not in words:
            assert after == before
        return json.loads(capsys.readouterr().out)

    return run


@pytest.fixture(scope="session")
def bigtable_tables(bigtable, tmp_path_factory):
    return InBigtable(tmp_path_factory, bigtable)


@pytest.fixture(scope="session")
def whole_in_bigtable(web, bigtable_tables):
    """A table with several ranges and a batch in each phase; tests only read it."""
    table = bigtable_tables.fresh()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tablet_writer, "TABLET_ROWS", 8)
        patch.setattr(BigtableWebTable, "samples", every_third_key)
        assert nutbeam("crawl", table, *web.seeds, "--rounds", "2", *reach(web)) == 0
        open_batches(table, web, 2)
    return table


@pytest.fixture
def fsck_in_bigtable(capsys):
    """Runs fsck and returns its record; without --repair it changes nothing."""

    def run(table, *words, code=0):
        head = open_log(table).head()
        capsys.readouterr()
        assert nutbeam("fsck", table, *words, "--format", "json") == code
        if "--repair" not in words:
            assert open_log(table).head() == head
        return json.loads(capsys.readouterr().out)

    return run
