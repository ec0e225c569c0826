"""A crawl goes on when another crawl of the same table does a part of its work first."""

import pytest
from crawling import manifests_of, nutbeam, statuses_of
from interleaving import launch
from web_servers import connect_to, reply, serve

from nutbeam.io.storage.errors import ConflictError
from nutbeam.transforms import operations

SEED = "http://a.example.com/"


@pytest.fixture
def web():
    def answer(path, _):
        if "robots" in path:
            return reply(b"", "404 Not Found")
        body = f"<a href=/b>{path}</a>".encode()
        return reply(body, "200 OK", "Content-Type: text/html")

    with serve(answer) as server:
        server.connect_to = ["--connect_to", *connect_to(server.port), "--server_delay", "0"]
        yield server


@pytest.mark.long
@pytest.mark.parametrize("command", [("crawl", "--rounds", "5"), ("round",)])
def test_what_another_crawl_has_done_is_not_done_again(web, tmp_path, monkeypatch, caplog, command):
    table, others = tmp_path / "table", []
    commit_job = operations.commit_job

    def commit(operation, written, how):
        if operation.job == "update" and not others:
            others.append(operation)
            assert launch("updatedb", table) == 0  # of the other crawl
        return commit_job(operation, written, how)

    assert nutbeam("inject", table, SEED) == 0
    monkeypatch.setattr(operations, "commit_job", commit)
    name, *words = command
    assert nutbeam(name, table, *words, *web.connect_to) == 0
    assert len(others) == 1
    assert "another crawl or job has committed first, the phase is run again" in caplog.text
    updates = [m for m in manifests_of(table) if m.job == "update"]
    assert len({m.batch for m in updates}) == len(updates)
    beyond = "db_fetched" if name == "crawl" else "db_unfetched"
    assert statuses_of(table) == {SEED: "db_fetched", f"{SEED}b": beyond}


def test_a_conflict_that_nobody_else_has_made_ends_the_crawl(web, tmp_path, monkeypatch, capsys):
    def commit(operation, written, how):
        raise ConflictError("for no reason")

    table = tmp_path / "table"
    assert nutbeam("inject", table, SEED) == 0
    monkeypatch.setattr(operations, "commit_job", commit)
    assert nutbeam("crawl", table, *web.connect_to) == 3
    assert "for no reason" in capsys.readouterr().err
