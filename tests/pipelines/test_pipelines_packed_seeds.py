"""inject reads seed lists that are packed with gzip."""

import gzip
import io
import sys

from crawling import nutbeam, state_of, tree
from seed_lines import lines_that_shrink_little


def test_packed_seeds_from_standard_input_are_kept_as_text(tmp_path, monkeypatch):
    """So purge finds the names in them."""
    packed = io.BytesIO(gzip.compress(b"http://a.com/\n"))
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(packed))
    assert nutbeam("inject", tmp_path / "table", "-") == 0
    assert state_of(tmp_path / "table")["url"].to_list() == ["http://a.com/"]
    (kept,) = (tmp_path / "table" / "seeds").iterdir()
    assert kept.read_bytes() == b"http://a.com/\n"
    assert not packed.closed


def test_a_damaged_file_among_others_loses_nothing(tmp_path, capsys):
    table, folder = tmp_path / "table", tmp_path / "seeds"
    folder.mkdir()
    assert nutbeam("inject", table, "http://b.com/") == 0
    whole = gzip.compress(lines_that_shrink_little(2_000))
    (folder / "a.txt").write_text("http://c.com/\n")
    (folder / "b.gz").write_bytes(whole[:-100])
    before = tree(table)
    capsys.readouterr()
    assert nutbeam("inject", table, folder, "--operation", "mine") != 0
    assert "b.gz': its gzip data is incomplete" in capsys.readouterr().err
    assert tree(table) == before
    (folder / "b.gz").write_bytes(whole)
    assert nutbeam("inject", table, folder, "--operation", "mine") == 0
    assert len(state_of(table)) == 2_002
