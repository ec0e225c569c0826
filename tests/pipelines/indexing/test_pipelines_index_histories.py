"""Random histories of a table and its index end in the documents of a fresh full index."""

import random

import pytest
from crawling import nutbeam
from indexed_tables import FETCHED, index, operations_of, page, put, visible, wanted

from nutbeam.io.indexing import file_writers
from nutbeam.pipelines.indexing import index as job
from nutbeam.policy.components.schema import ParseStatus, Status
from nutbeam.web.urls.row_keys import from_key

KEYS = [f"com.{host}:http/{n}" for host in ("a", "b") for n in range(6)]
GONE = [Status.DB_GONE, Status.DB_REDIR_PERM, Status.DB_REDIR_TEMP, Status.DB_DUPLICATE,
        Status.DB_ORPHAN, Status.DB_PARSE_FAILED]  # fmt: skip
UNPARSED = [ParseStatus.NOTPARSED, ParseStatus.FAILED]


class Killed(Exception):
    """What a killed commit raises."""


class History:
    """A table, what is true of its pages, and its index."""

    def __init__(self, folder, seed):
        self.table, self.out = str(folder / "table"), folder / "out"
        self.pages = {}
        self.random = random.Random(seed)
        self.batches = 0
        self.purged = set()

    def change(self, most=4):
        """Commits random changes of some pages."""
        some = [k for k in self.random.sample(KEYS, most) if k not in self.purged]
        changes = {key: self.changed(key) for key in some}
        self.batches += 1
        put(self.table, f"17-{self.batches:03d}", changes)
        self.pages |= changes

    def changed(self, key):
        before, draw = self.pages.get(key), self.random.random()
        text = f"text {self.batches} {key}"
        if before is None or draw < 0.4:
            return page(text)
        if draw < 0.6:
            return {**before, "status": int(self.random.choice(GONE))}
        if draw < 0.65:  # the new body could not be parsed
            return page("", parse_status=int(self.random.choice(UNPARSED)))
        if draw < 0.7:  # fetched again, unchanged
            return {**before, "status": FETCHED}
        if draw < 0.8:
            return page(text, directives=["noindex"])
        return page(text, usage="search=n") if draw < 0.9 else None

    def purge(self):
        key = self.random.choice([k for k in KEYS if k not in self.purged])
        assert nutbeam("purge", self.table, "--url", from_key(key)) == 0
        self.purged.add(key)
        self.pages.pop(key, None)

    def index(self, *words):
        assert index(self.table, self.out, *words) in (0, 1)  # 1: nothing has changed

    def killed_index(self, monkeypatch):
        """Runs index twice with one id; the first run dies when it commits."""

        def dies(*_, **__):
            raise Killed

        name = f"killed-{self.random.random()}"
        with monkeypatch.context() as patch:
            patch.setattr(job, "commit", dies)
            before = visible(self.out)
            assert index(self.table, self.out, "--operation", name) != 0
        assert visible(self.out) == before
        self.index("--operation", name)


@pytest.mark.long
@pytest.mark.parametrize("seed", [1, pytest.param(2, marks=pytest.mark.long),
                                  pytest.param(3, marks=pytest.mark.long)])  # fmt: skip
def test_a_random_history_ends_as_a_fresh_index(tmp_path, monkeypatch, seed):
    history = History(tmp_path, seed)
    history.change(8)
    history.index()
    acts = [lambda: history.killed_index(monkeypatch), history.purge, history.index,
            lambda: history.index("--full", "true"), history.index]  # fmt: skip
    history.random.shuffle(acts)
    for act in acts:
        for _ in range(history.random.randint(1, 2)):
            history.change()
        act()
    history.index()
    assert visible(history.out) == wanted(history.pages)
    assert index(history.table, tmp_path / "fresh", "--index", "main", "--full", "true") == 0
    assert visible(tmp_path / "fresh") == wanted(history.pages)


@pytest.mark.parametrize("words", [("--operation", "dies"), ()], ids=["same id", "other id"])
def test_a_run_that_dies_after_its_commit_is_finished(tmp_path, monkeypatch, words):
    table, out = str(tmp_path / "table"), tmp_path / "out"
    put(table, "17-1", {"com.a:http/1": page("one")})

    def dies(_):
        raise Killed

    with monkeypatch.context() as patch:
        patch.setattr(file_writers.JsonLinesWriter, "finish", dies)
        assert index(table, out, "--operation", "dies") != 0
    assert visible(out) == {}
    assert index(table, out, *words) == (0 if words else 1)
    assert visible(out) == {"http://a.com/1": "one"}
    assert len(operations_of(out)) == 1


def test_unchanged_documents_are_not_sent_again(tmp_path):
    table, out = str(tmp_path / "table"), tmp_path / "out"
    put(table, "17-1", {"com.a:http/1": page("one"), "com.a:http/2": page("two")})
    assert index(table, out) == 0
    put(table, "17-2", {"com.a:http/2": page("new")})
    assert nutbeam("compact", table, "--full", "true") == 0
    assert index(table, out) == 0
    assert index(table, out) == 1
    (_, first, _), (_, second, deletes) = operations_of(out)
    assert (len(first), list(second), deletes) == (2, ["http://a.com/2"], [])


def test_an_operation_that_is_started_again_sends_no_part_twice(tmp_path, monkeypatch):
    table, out = str(tmp_path / "table"), tmp_path / "out"
    put(table, "17-1", {"com.a:http/1": page("one")})
    written = []
    plain = job.write_part

    def noted(task, name, rows, *making):
        written.append(name)
        return plain(task, name, rows, *making)

    encoded = []
    encode = file_writers.JsonLinesWriter.encode_documents
    monkeypatch.setattr(job, "write_part", noted)
    monkeypatch.setattr(
        file_writers.JsonLinesWriter,
        "encode_documents",
        lambda self, documents: encoded.append(len(documents)) or encode(self, documents),
    )
    history = History(tmp_path, 1)
    history.table, history.out = table, out
    history.killed_index(monkeypatch)
    assert len(written) == 2  # each attempt asks for its part
    assert encoded == [1]  # and one of them has written it
    assert visible(out) == {"http://a.com/1": "one"}
    assert not list((tmp_path / "table" / "index" / "main" / "receipts").rglob("*.receipt"))
    index(table, out, "--operation", "done")
    before = sorted(out.rglob("*"))
    index(table, out, "--operation", "done")
    assert sorted(out.rglob("*")) == before
