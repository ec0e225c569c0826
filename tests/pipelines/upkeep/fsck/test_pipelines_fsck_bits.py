"""A bit that flips anywhere is found, or the table reads the same; no command passes it on."""

import random

import polars as pl
import pytest
from crawling import (
    files_of,
    latest_snapshot,
    manifest_at,
    manifest_of,
    nutbeam,
    reach,
    state_of,
    tree,
)
from damaging import COMPONENTS, cut, file_of, flip, newest_manifest
from short_form import first

from nutbeam.web.base.errors import UserError

# Faults that come by chance: whatever is hit, the table says so or reads the same.


@pytest.mark.parametrize("seed", first(3, range(20)))
def test_a_bit_that_flips_anywhere_is_found_or_harmless(table, fsck, seed, capsys):
    dice = random.Random(seed)
    manifest = manifest_of(table)
    live = [table / c.list for c in manifest.components.values()]
    live += [p for name in manifest.components for p in files_of(table, name)]
    path = dice.choice([newest_manifest(table), *live])
    state = state_of(table)
    at = dice.randrange(path.stat().st_size)
    flip(path, at)
    code = nutbeam("fsck", table)
    out = capsys.readouterr().out
    if code == 0:  # such as a number that only statistics have
        assert state_of(table).equals(state)
        return
    assert code == 3
    assert path.name in out, (path, at, out)
    assert nutbeam("fsck", table, "--repair", "--drop") == 0
    assert nutbeam("readdb", table) == 0


@pytest.mark.long
@pytest.mark.few(1)
@pytest.mark.parametrize("seed", first(3, range(24)))
def test_a_bit_that_flips_stops_a_job_with_one_line_or_not_at_all(table, web, seed, capsys):
    """What a job reads may be damaged in a way that only checksums tell: fsck is for that."""
    dice = random.Random(seed)
    kind = COMPONENTS[seed % len(COMPONENTS)]
    path = file_of(table, kind)
    flip(path, dice.randrange(path.stat().st_size))
    files = tree(table)
    for words in (
        ["readdb", table],
        ["pages", table, "-o", table.parent / "pages.jsonl"],
        ["generate", table, "--top_n", 2],
        ["fetch", table, *reach(web)],
        ["parse", table],
        ["updatedb", table],
        ["dedup", table],
        ["compact", table, "--full", "true"],
    ):
        snapshot = latest_snapshot(table)
        capsys.readouterr()
        code = nutbeam(*words)
        error = capsys.readouterr().err
        if code == 3:
            assert error.count("\n") == 1, error
            assert "internal error" not in error, (path, error)
            assert path.name in error, (path, error)
            assert error.endswith(f": run nutbeam fsck {table}\n"), error
            assert latest_snapshot(table) == snapshot
        else:
            assert (code in (0, 1), error) == (True, "")
        after = tree(table)
        assert {name: after.get(name) for name in files} == files
    assert nutbeam("fsck", table) == 3  # nobody has passed the damage on under a new checksum


@pytest.mark.parametrize(
    ("kind", "words"),
    [("documents", ["pages"]), ("state", ["pages"]), ("state", ["export"]),
     ("pages", ["export", "--what", "batch_pages"])],
)  # fmt: skip
def test_damaged_rows_are_not_exported(table, tmp_path, capsys, kind, words):
    names = [name for name in manifest_of(table).components if name.endswith(kind)]
    path = next(path for name in names for path in files_of(table, name))
    data = path.read_bytes()
    for at in range(4, len(data)):  # a bit of which no reader knows
        path.write_bytes(data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :])
        try:
            pl.read_parquet(path)
        except (pl.exceptions.PolarsError, OSError):
            continue
        break
    capsys.readouterr()
    output = tmp_path / "out.jsonl"
    assert nutbeam(words[0], table, "-o", output, *words[1:]) == 3
    line = capsys.readouterr().err
    assert line.count("\n") == 1
    assert f"{path}: its checksum differs: run nutbeam fsck {table}" in line
    assert not output.exists()


def test_errors_of_damaged_files_name_fsck(table, capsys):
    path = files_of(table, "state")[0]
    cut(path)
    for words in (
        ["generate"],
        ["pages", "-o", table.parent / "x.jsonl"],
        ["inject", "http://h0.example.com/n"],
    ):
        capsys.readouterr()
        assert nutbeam(words[0], table, *words[1:]) == 3
        error = capsys.readouterr().err
        assert str(path) in error
        assert error.endswith(f": run nutbeam fsck {table}\n"), error
    newest_manifest(table).write_bytes(b"{}")
    with pytest.raises(UserError, match=f"run nutbeam fsck {table}"):
        manifest_at(table, latest_snapshot(table))
