"""index notices that its place on a server is another one, was emptied, or is not its own."""

import json
import os

import pytest
from crawling import nutbeam
from index_servers import index_server
from indexed_tables import dies, index, index_command, page, put, visible, writer

from nutbeam.io.indexing import file_writers
from nutbeam.pipelines.indexing import index as job
from nutbeam.policy.components.schema import Status
from nutbeam.web.urls.row_keys import from_key

ONE, TWO = "com.a:http/1", "com.a:http/2"
TEXTS = {from_key(ONE): "one", from_key(TWO): "two"}


@pytest.fixture
def server():
    with index_server() as found:
        yield found


@pytest.fixture
def table(tmp_path):
    table = str(tmp_path / "table")
    put(table, "17-1", {ONE: page("one")})
    return table


@pytest.fixture
def line(capsys):
    def failed(*words):
        """Returns the line that says why a command fails."""
        capsys.readouterr()
        assert nutbeam(*words) == 3
        said = capsys.readouterr().err
        assert said.count("\n") == 1, said
        return said

    return failed


def empty(server):
    for found in server.indexes.values():
        found["documents"].clear()


def remove(server):
    server.indexes.clear()
    server.aliases.clear()


def replace(server):
    ((name, found),) = server.indexes.items()
    server.create(name, found["body"])


@pytest.mark.few(1)
@pytest.mark.parametrize("act", [empty, remove, replace])
def test_an_index_that_was_lost_is_named_and_built_again(server, table, line, act):
    words = index_command(server, table)
    assert nutbeam(*words) == 0
    act(server)
    put(table, "17-2", {TWO: page("two")})
    for command in (words, ("clean", *words[1:])):
        said = line(*command)
        assert f"{server.url}/main was {'emptied' if act is empty else 'removed or repl'}" in said
        assert "--full builds it again" in said
    assert nutbeam(*words, "--full", "true") == 0
    assert server.texts() == TEXTS
    assert nutbeam(*words) == 1


@pytest.mark.long
def test_an_index_that_is_empty_as_it_should_be_is_not_lost(server, table):
    words = index_command(server, table)
    assert nutbeam(*words) == 0
    put(table, "17-2", {ONE: {"status": int(Status.DB_GONE)}})
    assert nutbeam(*words) == 0
    assert server.texts() == {}
    put(table, "17-3", {TWO: page("two")})
    assert nutbeam(*words) == 0
    assert server.texts() == {from_key(TWO): "two"}


def test_another_address_needs_a_full_run(server, table, line):
    assert nutbeam(*index_command(server, table)) == 0
    put(table, "17-2", {TWO: page("two")})
    other = index_command(server, table, name="new")
    assert "wrote to another address before: --full fills this one" in line(*other)
    assert list(server.aliases) == ["main"]
    assert nutbeam(*other, "--full", "true") == 0
    assert server.texts("new") == TEXTS
    assert server.texts("main") == {from_key(ONE): "one"}
    assert "another address" in line(*index_command(server, table))


@pytest.mark.long
def test_another_folder_needs_a_full_run(table, tmp_path, line, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert index(table, "out") == 0
    put(table, "17-2", {TWO: page("two")})
    assert "another address" in line("index", table, *writer(tmp_path / "new"))
    assert index(table, tmp_path / "out") == 0  # the same one
    assert visible(tmp_path / "out") == TEXTS
    assert index(table, "new", "--full", "true") == 0
    assert visible(tmp_path / "new") == TEXTS


def test_a_full_run_is_finished_only_by_writers_that_took_part(server, table, tmp_path):
    """Else a new writer would drop what it had before the rebuild has sent anything."""
    out = tmp_path / "out"
    assert index(table, out) == 0
    assert nutbeam(*index_command(server, table, name="other"), "--full", "true") == 0
    finished = []

    def noted(self):
        finished.append((self.target.version, self.target.full))
        plain(self)

    plain = file_writers.FileWriter.finish
    patch = pytest.MonkeyPatch()
    patch.setattr(file_writers.FileWriter, "finish", noted)
    with patch.context():
        assert index(table, out, "--full", "true") == 0
    patch.undo()
    assert len(finished) == 1  # its own end
    assert visible(out) == {from_key(ONE): "one"}


def test_an_index_of_the_user_is_never_removed(server, table, line):
    server.create("main", {"mappings": {"_meta": {"of": "the user"}}})
    server.indexes["main"]["documents"]["mine"] = {"content": "mine"}
    words = index_command(server, table)
    said = line(*words, "--full", "true")
    assert "has an index 'main' that nutbeam has not made" in said
    assert nutbeam(*words) == 0  # without --full, documents are added to it
    assert set(server.texts()) == {"mine", from_key(ONE)}
    assert "nutbeam has not made" in line(*words, "--full", "true")
    assert list(server.indexes) == ["main"]


@pytest.mark.few(1)
@pytest.mark.parametrize("name", ["Main", "main-0", "main-1790000000000"])
def test_names_that_another_index_has_on_a_server_are_refused(server, table, capsys, name):
    assert nutbeam(*index_command(server, table)) == 0
    capsys.readouterr()
    assert nutbeam(*index_command(server, table), "--index", name) == 2
    said = capsys.readouterr().err
    assert f"got '{name}'" in said
    assert said.count("\n") == 1
    assert nutbeam(*index_command(server, table, name="other"), "--index", name) == 0
    assert server.texts() == server.texts("other")


def forget(path, days=60):
    """Makes files as old as if they had been written long ago."""
    for file in path.rglob("*"):
        if file.is_file():
            known = file.stat().st_mtime - 86_400 * days
            os.utime(file, (known, known))


@pytest.mark.few(1)
@pytest.mark.parametrize("upkeep", ["compact", "purge"])
def test_purge_and_compact_keep_track_of_documents_that_killed_runs_sent(
    server, table, tmp_path, monkeypatch, upkeep
):
    words = index_command(server, table)
    receipts = tmp_path / "table" / "index" / "main" / "receipts"
    put(table, "17-2", {TWO: page("two")})
    with monkeypatch.context() as patch:
        patch.setattr(job, "commit", dies)
        assert nutbeam(*words) not in (0, 1)
    assert server.texts() == TEXTS
    put(table, "17-3", {ONE: page("x", directives=["noindex"])})
    if upkeep == "compact":
        forget(tmp_path / "table")
        assert nutbeam("compact", table, "--snapshot_retention", "1d") == 0
    else:
        assert nutbeam("purge", table, "--url", from_key(TWO), "--now", "true",
                       "--wait_seconds", "0") == 0  # fmt: skip
    assert not list(receipts.rglob("*.intent"))
    left = {} if upkeep == "purge" else {from_key(TWO): "two"}
    assert nutbeam(*words) in (0, 1)
    assert server.texts() == left
    assert not [path for path in receipts.rglob("*") if path.is_file()]


def test_a_run_of_which_all_is_refused_does_not_look_like_success(server, table, line):
    server.refuses = lambda id_, document: "bad" in document["content"]
    words = index_command(server, table)
    put(table, "17-2", {ONE: page("bad"), TWO: page("bad, too")})
    said = line(*words)
    assert "refused all 2 documents: `nutbeam export" in said
    assert said.endswith("mend the cause, then run index --retry_refused with the same writer\n")
    assert nutbeam(*words) == 1
    put(table, "17-3", {ONE: page("bad again"), TWO: page("good")})
    assert nutbeam(*words) == 0


def test_the_advice_about_refused_documents_brings_them_into_the_index(server, table, caplog):
    def said(*more):
        caplog.clear()
        code = nutbeam(*index_command(server, table), *more)
        return code, [line for line in caplog.messages if "refused" in line]

    advice = (
        ": `nutbeam export TABLE --what dead_letters` says why; mend the cause, then run index "
        "--retry_refused with the same writer"
    )
    server.refuses = lambda id_, document: "bad" in document["content"]
    put(table, "17-2", {ONE: page("good"), TWO: page("bad")})
    assert said() == (0, [f"the index writer refused 1 document{advice}"])
    # The cause is mended, and there is nothing else to do.
    server.refuses = lambda id_, document: False
    assert said() == (1, [f"writers refused 1 document in earlier runs{advice}"])
    assert said("--retry_refused", "true") == (0, [])
    assert server.texts() == {from_key(ONE): "good", from_key(TWO): "bad"}
    assert said() == (1, [])


def test_a_crawl_whose_documents_are_all_refused_warns_once(server, tmp_path, capsys):
    (tmp_path / "site").mkdir()
    for name in ("a", "b"):
        (tmp_path / f"site/{name}.txt").write_text(f"text {name}")
    seeds = [f"file://{tmp_path}/site/{name}.txt" for name in ("a", "b")]
    server.refuses = lambda id_, document: True
    writing = index_command(server, tmp_path / "crawled")[2:]
    files = ("--schemes", "file", "--file_roots", tmp_path / "site")
    capsys.readouterr()
    words = ("crawl", tmp_path / "crawled", *seeds, "--rounds", "1", "--index", "main", *files)
    assert nutbeam(*words, *writing, "--format", "json") == 0
    warnings = json.loads(capsys.readouterr().out)["warnings"]
    (message,) = (one["message"] for one in warnings if one["reason"] == "refused")
    assert message.startswith("the index writer refused all 2 documents: `nutbeam export")
    assert message.endswith("mend the cause, then run index --retry_refused with the same writer")
