"""index, purge and solrdedup with real search servers; run by ``make test-servers``."""

import contextlib
import random
import subprocess
import sys
import time

import pytest
import requests
from crawling import nutbeam
from indexed_tables import FETCHED, Killed, dies, page, put, wanted
from search_servers_here import ServerIndex, fixed_configset, managed_configset, search_server

from nutbeam.io.indexing import run_receipts
from nutbeam.io.indexing.opensearch_writer import SearchServerWriter
from nutbeam.io.indexing.solr_writer import SolrWriter
from nutbeam.pipelines.indexing import index as job
from nutbeam.policy.components.schema import Status
from nutbeam.web.urls.row_keys import from_key

pytestmark = pytest.mark.servers
KEYS = [f"com.{host}:http/{n}" for host in ("a", "b") for n in range(6)]
GONE = [Status.DB_GONE, Status.DB_REDIR_PERM, Status.DB_DUPLICATE, Status.DB_PARSE_FAILED]


@pytest.fixture(
    scope="module",
    params=["opensearch", "opensearch3", "elasticsearch", "elasticsearch7", "solr"],
)
def server(request, tmp_path_factory):
    folder = tmp_path_factory.mktemp("server") / "data"
    with search_server(request.param, folder) as found:
        if found.kind == "solr":
            managed_configset(folder)
            fixed_configset(folder)
        yield found


def changed(pages, rng, number):
    """Returns random changes of some pages."""
    changes = {}
    for key in rng.sample(sorted(pages), 4):
        before, draw = pages[key], rng.random()
        if before is None or draw < 0.4:
            changes[key] = page(f"text {number} {key}")
        elif draw < 0.6:
            changes[key] = {**before, "status": int(rng.choice(GONE))}
        elif draw < 0.7:
            changes[key] = {**before, "status": FETCHED}
        else:
            changes[key] = page("x", directives=["noindex"]) if draw < 0.85 else None
    return changes


def test_a_history_ends_as_a_fresh_index(server, tmp_path):
    table, index, rng = str(tmp_path / "table"), ServerIndex(server, "history"), random.Random(3)
    long = "com.a:http/" + "x" * 600
    pages = {key: page(f"first {key}") for key in [*KEYS, long]}
    put(table, "17-0", pages)
    assert nutbeam("index", table, *index.words) == 0
    assert index.visible() == wanted(pages)
    for number in range(1, 4):
        changes = changed(pages, rng, number)
        put(table, f"17-{number}", changes)
        pages |= changes
        assert nutbeam("index", table, *index.words) == 0
        assert index.visible() == wanted(pages)
    put(table, "17-8", {long: None})
    assert nutbeam("purge", table, "--url", from_key(KEYS[0])) == 0
    pages = {key: one for key, one in pages.items() if key not in (long, KEYS[0])}
    assert nutbeam("index", table, *index.words) == 0
    assert index.visible() == wanted(pages)
    put(table, "17-9", changes := changed(pages, rng, 9))
    pages |= changes
    assert nutbeam("index", table, *index.words, "--full", "true") == 0
    assert index.visible() == wanted(pages)


def test_runs_beside_a_rebuild_and_after_one_that_died(server, tmp_path, monkeypatch):
    table, index = str(tmp_path / "table"), ServerIndex(server, "beside")
    pages = {key: page(f"first {key}") for key in KEYS}
    put(table, "17-0", dict(list(pages.items())[:6]))
    put(table, "17-1", dict(list(pages.items())[6:]))
    full = ("index", table, *index.words, "--full", "true")
    plain, parts = job.write_part, []

    def meanwhile(act):
        """Makes the next run call a function after its first part."""

        def noted(*given):
            done = plain(*given)
            monkeypatch.setattr(job, "write_part", plain)
            act()
            return done

        monkeypatch.setattr(job, "write_part", noted)

    def run_that_dies():
        with monkeypatch.context() as patch:
            patch.setattr(job, "commit", dies)
            parts.append(nutbeam("index", table, *index.words))

    # A run makes the index while its first build is under way, and dies.
    meanwhile(run_that_dies)
    assert nutbeam(*full) == 0
    assert parts != [0]
    assert index.visible() == wanted(pages)
    # A rebuild dies before its commit, and one after it.
    writer = SolrWriter if server.kind == "solr" else SearchServerWriter
    finish = writer.finish

    def finish_dies(self):
        return dies() if self.target.operation.startswith("dies-3") else finish(self)

    deaths = ((job, "commit", dies), (writer, "finish", finish_dies))
    for number, (owner, name, death) in enumerate(deaths, 2):
        with monkeypatch.context() as patch:
            patch.setattr(owner, name, death)
            assert nutbeam(*full, "--operation", f"dies-{number}") != 0
        changes = {KEYS[number]: page("new"), KEYS[0]: page(f"again {number}")}
        put(table, f"17-{number}", changes)
        pages |= changes
        assert nutbeam("index", table, *index.words) == 0
        assert index.visible() == wanted(pages)
        # The first has lost to the other run, and begins again; the second has committed.
        if owner is job:
            assert nutbeam(*full, "--operation", f"dies-{number}") == 3
        assert nutbeam(*full, "--operation", f"dies-{number}") == 0
        assert index.visible() == wanted(pages)

    def change():
        changes = {KEYS[1]: page("meanwhile"), KEYS[5]: None}
        put(table, "17-7", changes)
        pages.update(changes)
        parts.append(nutbeam("index", table, *index.words))

    meanwhile(change)
    assert nutbeam(*full) == 3
    assert parts[1:] == [0]
    assert nutbeam("index", table, *index.words) in (0, 1)
    assert index.visible() == wanted(pages)
    assert nutbeam(*full) == 0
    assert index.visible() == wanted(pages)


@pytest.mark.parametrize("same", [True, False], ids=["same id", "other id"])
def test_a_run_that_is_killed_is_finished_by_the_next(server, tmp_path, same):
    table, index = tmp_path / "table", ServerIndex(server, f"killed-{same}".lower())
    pages = {}
    for number in range(8):
        some = {f"com.h{number}:http/{n}": page(f"text {n}") for n in range(20)}
        put(table, f"17-{number}", some)
        pages |= some
    words = ["index", str(table), "--writer", server.kind, "--writer_parameters",
             f"{index.parameters},max_documents=1"]  # fmt: skip
    operation = ["--operation", "killed"]
    command = [sys.executable, "-m", "nutbeam", *words, *operation]
    running = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    deadline = time.monotonic() + 200
    while not list(table.rglob("*.receipt")):
        assert running.poll() is None
        assert time.monotonic() < deadline
        time.sleep(0.005)
    running.kill()  # -9
    running.wait()
    sent = len(list(table.rglob("*.receipt")))
    assert 0 < sent < 8
    if not same:
        changes = {"com.h0:http/0": {"status": int(Status.DB_GONE)}, "com.h1:http/1": page("new"),
                   "com.h0:http/2": None}  # fmt: skip
        put(table, "17-9", changes)
        pages |= changes
    assert nutbeam(*words, *(operation if same else ())) == 0
    assert index.visible() == wanted(pages)
    assert not list(table.rglob("*.receipt"))


def test_pages_that_must_go_after_a_kill(server, tmp_path, monkeypatch):
    """The next run ends as a fresh index, though no journal knows what the killed one has sent."""
    table, index = str(tmp_path / "table"), ServerIndex(server, "after")
    filters = ("--index_filters", "basic,expr", "--index_expr", "title != 'dropped'")
    words = ("index", table, *index.words, *filters)
    monkeypatch.setattr(run_receipts, "has_ended", lambda _: True)
    pages = {key: page(f"first {key}") for key in KEYS[:6]}
    put(table, "17-0", pages)
    assert nutbeam(*words) == 0
    sent = {key: page(f"sent {key}") for key in KEYS[3:9]}
    put(table, "17-1", sent)
    with monkeypatch.context() as patch:
        patch.setattr(job, "commit", dies)
        assert nutbeam(*words) not in (0, 1)
    changes = {
        KEYS[3]: page("x", directives=["noindex"]), KEYS[4]: page("dropped"),
        KEYS[5]: {**sent[KEYS[5]], "status": int(Status.DB_GONE)},
        KEYS[6]: page("x", directives=["noindex"]), KEYS[7]: page("dropped"), KEYS[8]: None,
        KEYS[9]: page("new"),
    }  # fmt: skip
    put(table, "17-2", changes)
    pages |= sent | changes
    assert nutbeam(*words) == 0
    shown = {url: text for url, text in wanted(pages).items() if text != "dropped"}
    assert index.visible() == shown
    assert nutbeam(*words, "--full", "true") == 0
    assert index.visible() == shown


def test_an_index_that_was_lost_is_named(server, tmp_path, capsys):
    table, index = str(tmp_path / "table"), ServerIndex(server, "lost")
    put(table, "17-0", {KEYS[0]: page("one")})
    assert nutbeam("index", table, *index.words) == 0
    if server.kind == "solr":
        everything = {"delete": {"query": "*:*"}}
        address = f"{server.url}/solr/lost/update?commit=true"
        requests.post(address, json=everything, timeout=60).raise_for_status()
    else:
        (name,) = server.get("/_alias/lost")
        requests.delete(f"{server.url}/{name}", timeout=60).raise_for_status()
    put(table, "17-1", {KEYS[1]: page("two")})
    capsys.readouterr()
    assert nutbeam("index", table, *index.words) == 3
    said = capsys.readouterr().err
    assert "since the last run: --full builds it again" in said
    assert said.count("\n") == 1
    assert nutbeam("index", table, *index.words, "--full", "true") == 0
    assert index.visible() == {from_key(KEYS[0]): "one", from_key(KEYS[1]): "two"}


def test_solrindex_and_solrclean(server, tmp_path):
    if server.kind != "solr":
        pytest.skip("for Solr")
    table, index = str(tmp_path / "table"), ServerIndex(server, "old")
    given = ("--writer_parameters", f"{index.parameters},commit=part")
    pages = {key: page(f"text {key}") for key in KEYS}
    put(table, "17-0", pages)
    assert nutbeam("solrindex", table, *given) == 0
    assert index.visible() == wanted(pages)
    put(table, "17-1", {KEYS[0]: {"status": int(Status.DB_GONE)}})
    assert nutbeam("solrclean", table, *given) == 0
    del pages[KEYS[0]]
    assert index.visible() == wanted(pages)
    # An embedded index is built first, and then one in a new core: nothing else is finished there.
    assert nutbeam("index", table, "--index", "two", "--full", "true") == 0
    young = ServerIndex(server, "young")
    new = ("--writer_parameters", young.parameters, "--index", "two")
    assert nutbeam("solrindex", table, *new, "--full", "true") == 0
    assert young.visible() == wanted(pages)


@pytest.mark.parametrize("dies_at", [None, "finish"])
def test_a_rebuild_without_the_field_of_versions(server, tmp_path, monkeypatch, dies_at):
    if server.kind != "solr":
        pytest.skip("for Solr")
    table, index = str(tmp_path / "table"), ServerIndex(server, f"fixed-{dies_at}", "fixed")
    words = ("--writer", "solr", "--writer_parameters", f"{index.parameters},unknown_fields=drop")
    long = "com.a:http/" + "x" * 600
    pages = {key: page(f"text {key}", batch_id="17-0") for key in (*KEYS, long)}
    put(table, "17-0", pages)
    assert nutbeam("index", table, *words) == 0
    others = [{"id": "of-another", "url": "of-another", "content": "stays"}]
    sent = requests.post(
        f"{server.url}/solr/{index.name}/update?commit=true", json=others, timeout=60
    )
    assert sent.ok
    assert nutbeam("purge", table, "--url", from_key(KEYS[0]), "--now", "true") == 0
    if dies_at:
        with monkeypatch.context() as patch, contextlib.suppress(Killed):
            plain = SolrWriter.finish
            patch.setattr(SolrWriter, "finish", lambda w: dies() if w.target.full else plain(w))
            nutbeam("index", table, *words)
        assert from_key(KEYS[0]) in index.visible()
    # After a rebuild that died when it had committed, a run has nothing to send.
    assert nutbeam("index", table, *words) == (1 if dies_at else 0)
    del pages[KEYS[0]]
    assert index.visible() == wanted(pages) | {"of-another": "stays"}
    assert nutbeam("index", table, *words) == 1


@pytest.mark.parametrize("configset", ["managed", "fixed"])
def test_a_first_rebuild_whose_documents_have_no_marks(server, tmp_path, capsys, configset):
    if server.kind != "solr":
        pytest.skip("for Solr")
    table, index = str(tmp_path / "table"), ServerIndex(server, f"marks-{configset}", configset)
    pages = {key: page(f"text {key}") for key in KEYS}
    put(table, "17-0", pages)
    rules = tmp_path / "writers.toml"
    rules.write_text(f"""
[[writer]]
name = "solr"
kind = "solr"
url = "{server.url}/solr/{index.name}"
unknown_fields = "drop"
remove = ["segment", "digest"]
""")
    words = ("index", table, "--index_writers", str(rules), "--full", "true")
    if configset == "fixed":
        assert nutbeam(*words) == 3
        assert "have neither 'segment' nor 'digest'" in capsys.readouterr().err
        assert index.visible() == {}
    else:  # the run adds the field of versions
        assert nutbeam(*words) == 0
        assert nutbeam(*words) == 0
        assert index.visible() == wanted(pages)


def test_parts_are_committed_one_by_one(server, tmp_path, monkeypatch):
    if server.kind != "solr":
        pytest.skip("for Solr")
    table, index, shown = str(tmp_path / "table"), ServerIndex(server, "parts"), []
    for number in range(2):
        put(table, f"17-{number}", {KEYS[number]: page("text")})
    plain = job.write_part

    def noted(*given):
        done = plain(*given)
        shown.append(len(index.visible()))
        return done

    monkeypatch.setattr(job, "write_part", noted)
    given = ("--writer", "solr", "--writer_parameters", f"{index.parameters},commit=part")
    assert nutbeam("index", table, *given) == 0
    assert shown == [1, 2]


def test_solrdedup_keeps_the_best_of_equal_documents(server, tmp_path, capsys):
    table, index = str(tmp_path / "table"), ServerIndex(server, "equal")
    same = {"signature": b"\1" * 16}
    pages = {
        "com.a:http/1": page("one", score=1.0, **same),
        "com.a:http/2": page("two", score=5.0, **same),
        "com.a:http/3": page("three", score=2.0, **same),
        "com.b:http/1": page("other", signature=b"\2" * 16),
        "com.b:http/2": page("without a digest"),
    }
    put(table, "17-1", pages)
    assert nutbeam("index", table, *index.words) == 0
    assert len(index.visible()) == 5
    capsys.readouterr()
    assert nutbeam("solrdedup", table, *index.words) == 0
    assert capsys.readouterr().out == "5 documents, 2 duplicates deleted\n"
    assert sorted(index.visible()) == ["http://a.com/2", "http://b.com/1", "http://b.com/2"]
    assert nutbeam("solrdedup", table, *index.words) == 0
    assert nutbeam("index", table, *index.words) in (0, 1)
    assert len(index.visible()) == 3


def test_a_server_that_is_down_is_named_and_the_table_stays(tmp_path, capsys, server):
    table = str(tmp_path / "table")
    put(table, "17-1", {"com.a:http/1": page("one")})
    down = f"url=http://127.0.0.1:1,patience=1{',name=x' if server.kind != 'solr' else ''}"
    words = ("--writer", server.kind, "--writer_parameters", down)
    assert nutbeam("index", table, *words) == 3
    said = capsys.readouterr().err
    assert "http://127.0.0.1:1 does not answer" in said
    assert "Traceback" not in said
    assert requests.get(server.url, timeout=10).status_code
