"""Runs of one index at the same time: one commits, the other ends with one line, nothing is lost."""

import pytest
from crawling import nutbeam
from indexed_tables import dies, index, operations_of, page, put, visible, writer

from nutbeam.io.indexing import run_receipts
from nutbeam.pipelines.indexing import index as job
from nutbeam.policy.components.schema import Status

ONE, TWO, THREE = (f"http://a.com/{n}" for n in (1, 2, 3))


@pytest.fixture
def table(tmp_path):
    table = str(tmp_path / "table")
    for number in (1, 2):  # in files of their own: two parts
        put(table, f"17-{number}", {f"com.a:http/{number}": page(f"text {number}")})
    return table


def meanwhile(monkeypatch, act):
    """Calls a function when a run has written its first part."""
    plain, parts = job.write_part, []

    def noted(task, name, rows, *making):
        done = plain(task, name, rows, *making)
        parts.append(name)
        if len(parts) == 1:
            act()
        return done

    monkeypatch.setattr(job, "write_part", noted)
    return parts


@pytest.mark.long
def test_a_rebuild_ends_early_when_another_run_has_committed(table, tmp_path, monkeypatch, capsys):
    out = tmp_path / "out"
    assert index(table, out) == 0

    def other():
        put(table, "17-3", {"com.a:http/3": page("text 3")})
        with monkeypatch.context() as patch:
            patch.setattr(job, "write_part", plain)
            assert index(table, out) == 0

    plain = job.write_part
    with monkeypatch.context() as patch:
        parts = meanwhile(patch, other)
        assert index(table, out, "--full", "true", "--operation", "rebuild") == 3
    said = capsys.readouterr().err
    assert "index/main/index_runs was changed by index" in said
    assert "nothing was written: run it again" in said
    assert "Traceback" not in said
    assert len(parts) == 1  # the second one was not sent
    texts = {ONE: "text 1", TWO: "text 2", THREE: "text 3"}
    assert visible(out) == texts
    assert index(table, out, "--full", "true", "--operation", "rebuild") == 0
    assert visible(out) == texts
    assert len(operations_of(out)) == 1
    assert not list((tmp_path / "table" / "index").rglob("*.intent"))


def test_a_run_ends_early_when_a_rebuild_has_committed(table, tmp_path, monkeypatch, capsys):
    out = tmp_path / "out"

    def rebuild():
        with monkeypatch.context() as patch:
            patch.setattr(job, "write_part", plain)
            assert index(table, out, "--full", "true") == 0

    plain = job.write_part
    with monkeypatch.context() as patch:
        parts = meanwhile(patch, rebuild)
        assert index(table, out) == 3
    assert "nothing was written: run it again" in capsys.readouterr().err
    assert len(parts) == 1
    assert visible(out) == {ONE: "text 1", TWO: "text 2"}


@pytest.mark.long
def test_documents_that_an_overtaken_run_sent_are_sent_again(table, tmp_path, monkeypatch):
    """A server without versions may have got its text after that of the later run."""
    out, receipts = tmp_path / "out", tmp_path / "table" / "index" / "main" / "receipts"
    with monkeypatch.context() as patch:
        patch.setattr(job, "commit", dies)
        assert index(table, out) != 0
        patch.undo()
        patch.setattr(run_receipts, "has_ended", lambda _: False)  # as if it still sent
        assert index(table, out) == 0
    assert list(receipts.rglob("*.intent"))
    put(table, "17-4", {"com.a:http/2": {"status": int(Status.DB_GONE)}})
    assert nutbeam("clean", table, *writer(out)) == 0
    assert visible(out) == {ONE: "text 1"}
    monkeypatch.setattr(run_receipts, "has_ended", lambda _: True)
    put(table, "17-5", {"com.a:http/3": page("three")})
    assert index(table, out) == 0
    _, adds, _ = operations_of(out)[-1]
    assert sorted(adds) == [ONE, THREE]
    assert visible(out) == {ONE: "text 1", THREE: "three"}
    assert not list(receipts.rglob("*.intent"))
