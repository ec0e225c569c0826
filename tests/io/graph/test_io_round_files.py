"""The files of a ranking: a round counts once all its blocks are there, and nothing else is read."""

import numpy as np
import pytest

from nutbeam.io.graph.graph_files import Receipt, RoundFiles, remove_rounds, round_files
from nutbeam.web.base.errors import UserError

VALUES = {"rank": np.array([0.1, 1 / 3, 2e-308]), "ids": np.arange(6, dtype="<u4").reshape(3, 2)}


@pytest.fixture
def files(tmp_path):
    return round_files(tmp_path, "page", "pagerank", 10)


def test_values_and_receipts_come_back_exactly(files):
    receipt = Receipt(2, 7, {"change": 1 / 3}, (0.5, 0.1), ended=True)
    files.write(receipt, VALUES)
    assert files.receipt(7, 2) == receipt
    found = files.values(7, 2)
    assert found.keys() == VALUES.keys()
    for name, values in VALUES.items():
        assert found[name].dtype == values.dtype
        assert np.array_equal(found[name], values)
    assert files.values(7, 2, ("ids",)).keys() == {"ids"}


def test_the_last_round_is_the_last_of_which_all_blocks_are_there(files):
    assert files.last_round(2) is None
    for number, block in ((0, 0), (0, 1), (1, 1), (1, 0), (2, 0), (10, 1)):
        files.write(Receipt(block, number, {}), VALUES)
    assert files.last_round(2) == 1
    files.write(Receipt(0, 10, {}), VALUES)
    assert files.last_round(2) == 10


def test_missing_files_have_no_receipt_and_are_named(files):
    files.write(Receipt(0, 3, {}), VALUES)
    files.forget(3, 0)
    files.forget(3, 0)
    files.forget(-1, 0)
    assert files.receipt(3, 0) is None
    with pytest.raises(UserError, match=r"0003-000000\.values"):
        files.values(3, 0)


def test_a_ranking_of_something_else_has_files_of_its_own(tmp_path, files):
    others = [
        round_files(tmp_path, "page", "pagerank", 11),
        round_files(tmp_path, "host", "pagerank", 10),
    ]
    files.write(Receipt(0, 1, {}), VALUES)
    assert [other.last_round(1) for other in others] == [None, None]
    assert round_files(tmp_path, "page", "pagerank", 10).last_round(1) == 1


def test_remove_rounds_takes_all_rankings_of_a_level_and_no_ranks(tmp_path, files):
    kept = RoundFiles(tmp_path, round_files(tmp_path, "host", 1).name)
    for some in (files, round_files(tmp_path, "page", "hits"), kept):
        some.write(Receipt(0, 1, {}), VALUES)
    ranks = tmp_path / "page_ranks" / "ranks.parquet"
    ranks.write_bytes(b"ranks")
    remove_rounds(tmp_path, "page")
    assert list(ranks.parent.iterdir()) == [ranks]
    assert kept.last_round(1) == 1
