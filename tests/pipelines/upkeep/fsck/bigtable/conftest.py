"""A table in Bigtable with a batch in each phase, and fsck on it."""

import json

import pytest
from bigtable_samples import every_third_key
from crawling import nutbeam, open_batches, reach
from web_tables import InBigtable

from nutbeam.io.bigtable.snapshot_log import open_log
from nutbeam.io.storage.table_sizes import replaced_sizes
from nutbeam.io.table.bigtable_web_table import BigtableWebTable


@pytest.fixture(scope="session")
def tables(bigtable, tmp_path_factory):
    return InBigtable(tmp_path_factory, bigtable)


@pytest.fixture(scope="session")
def original(web, tables):
    """A table with several ranges and a batch in each phase; tests only read it."""
    table = tables.fresh()
    with pytest.MonkeyPatch.context() as patch, replaced_sizes(tablet_rows=8):
        patch.setattr(BigtableWebTable, "samples", every_third_key)
        assert nutbeam("crawl", table, *web.seeds, "--rounds", "2", *reach(web)) == 0
        open_batches(table, web, 2)
    return table


@pytest.fixture
def table(original, tables):
    return tables.copy(original)


@pytest.fixture
def fsck(capsys):
    """Runs fsck and returns its record; without --repair it changes nothing."""

    def run(table, *words, code=0):
        head = open_log(table).head()
        capsys.readouterr()
        assert nutbeam("fsck", table, *words, "--format", "json") == code
        if "--repair" not in words:
            assert open_log(table).head() == head
        return json.loads(capsys.readouterr().out)

    return run
