"""JSON that is nested too deeply is damage like any other: one line, wherever a file holds it."""

import pytest
from crawling import latest_snapshot, nutbeam

from nutbeam.io.batches.leases import LEASE_TIMES, acquire
from nutbeam.io.bigtable.own_rows import head_of
from nutbeam.io.snapshots import hold
from nutbeam.io.snapshots.operations import operation_of_record
from nutbeam.web.base.errors import UserError

DEEP = "[" * 100_000
SEED = "http://example.com/"


@pytest.fixture
def table(tmp_path):
    folder = tmp_path / "table"
    assert nutbeam("inject", folder, SEED, "--operation", "first") == 0
    return folder


def error_of(capsys, *words):
    """Returns the exit code of a command, and its one line."""
    capsys.readouterr()
    code = nutbeam(*words)
    (line,) = capsys.readouterr().err.splitlines()
    return code, line


def test_an_operation_record(tmp_path):
    path = tmp_path / "operations" / "first.json"
    with pytest.raises(UserError, match=r"^operation file is damaged: .* no JSON that can be read"):
        operation_of_record(path, DEEP.encode())


def test_a_manifest(table, capsys):
    path = table / "manifest" / "00000001.json"
    path.write_text(DEEP)
    code, line = error_of(capsys, "readdb", table, "--stats")
    assert code == 3
    assert f"manifest is damaged: {path}: it is no JSON that can be read" in line


def test_a_hold_becomes_stale(table, monkeypatch):
    monkeypatch.setattr(hold, "HOLD_TIMES", hold.HOLD_TIMES._replace(stale=0.1))
    (table / hold.HOLD).write_text(DEEP)
    assert nutbeam("generate", table) == 0
    assert latest_snapshot(table) == 2


def test_the_claim_of_a_lease_is_superseded(tmp_path):
    folder = tmp_path / "batches" / "1-x" / "leases"
    folder.mkdir(parents=True)
    for ending in ("claim", "beat"):
        (folder / f"p00000-000001.{ending}").write_text(DEEP)
    with acquire(tmp_path, "1-x", 0, times=LEASE_TIMES) as lease:
        assert lease.may_send()
        assert (folder / "p00000-000002.claim").exists()


def test_the_manifest_row_of_bigtable():
    with pytest.raises(UserError, match=r"^the manifest row is damaged: .* no JSON that can be"):
        head_of(DEEP.encode())


def test_a_config_file(table, tmp_path, capsys):
    config = tmp_path / "deep.toml"
    config.write_text(f"topn = {DEEP}")
    code, line = error_of(capsys, "generate", table, "--config", str(config))
    assert code == 2
    assert line.endswith(f"got {str(config)!r}: it is nested too deeply")
