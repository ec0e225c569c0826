"""The hold in which a purge commits: who waits for it, and for how long."""

import json

import pytest

from nutbeam.io.snapshots import hold
from nutbeam.io.snapshots.operations import begin
from nutbeam.io.storage.processes import this_process


@pytest.fixture
def root(tmp_path):
    (tmp_path / "operations").mkdir()
    return tmp_path


@pytest.fixture
def clock(monkeypatch):
    """The time as who waits sees it: each look takes a second."""
    now = [0.0]
    monkeypatch.setattr(hold, "pause_in_hold", lambda: now.__setitem__(0, now[0] + 1))
    monkeypatch.setattr(hold.time, "monotonic", lambda: now[0])
    return now


def leave_hold(root, **process):
    record = {"operation": "dead.purge", "beat": 3, "process": {**this_process(), **process}}
    (root / hold.HOLD).write_text(json.dumps(record))


def test_jobs_do_not_wait_for_a_dead_purge(root, clock):
    leave_hold(root, pid=2**22 + 1)
    assert begin(str(root), "generate", "next.generate").snapshot == 0
    assert clock == [0.0]
    assert not (root / hold.HOLD).exists()


@pytest.mark.parametrize("content", [None, b"", b"[]", b"{half", b'{"operation": 7, "process": 1}'])
def test_jobs_do_not_wait_long_for_a_stale_hold(root, clock, content):
    leave_hold(root, boot="another machine")
    if content is not None:
        (root / hold.HOLD).write_bytes(content)
    begin(str(root), "generate", "next.generate")
    assert clock == [hold.HOLD_TIMES.stale]
    assert not (root / hold.HOLD).exists()
    begin(str(root), "fetch", "next.fetch")
    assert clock == [hold.HOLD_TIMES.stale]


def test_the_wait_for_a_hold_is_limited(root, clock, monkeypatch, caplog):
    leave_hold(root, boot="another machine")
    later = hold.pause_in_hold

    def beat():
        later()
        (root / hold.HOLD).write_text(json.dumps({"operation": "p.purge", "beat": clock[0]}))

    monkeypatch.setattr(hold, "pause_in_hold", beat)
    begin(str(root), "generate", "next.generate")
    assert clock == [hold.HOLD_TIMES.most]
    assert (root / hold.HOLD).exists()
    assert "'next.generate' waits for purge 'dead.purge'" in caplog.text
    assert "waits no longer" in caplog.text


def test_a_hold_ends_with_its_block(root):
    with hold.hold_table(root, "p.purge"):
        assert (root / hold.HOLD).exists()
    assert list((root / "operations").iterdir()) == []
