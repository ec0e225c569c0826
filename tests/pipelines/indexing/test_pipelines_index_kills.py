"""``kill -9`` of index at random moments: the embedded index ends as a fresh full one."""

import os
import random
from collections import Counter

import pytest
from crawling import nutbeam
from indexed_tables import FETCHED, page, put, wanted
from nursery import Nursery

from nutbeam.pipelines.searching.searched_table import SearchedTable
from nutbeam.policy.components.schema import Status
from nutbeam.policy.searching.search_query import parse_search
from nutbeam.web.urls.row_keys import from_key

KEYS = [f"com.{host}:http/{n}" for host in ("a", "b", "c") for n in range(15)]
GONE = [Status.DB_GONE, Status.DB_REDIR_PERM, Status.DB_DUPLICATE, Status.DB_ORPHAN]


@pytest.fixture(scope="module")
def nursery(tmp_path_factory):
    table = str(tmp_path_factory.mktemp("warm") / "table")
    put(table, "17-0", {KEYS[0]: page("text")})
    with Nursery(10) as running:
        running.warm("index", table)
        put(table, "17-1", {KEYS[1]: page("text")})
        running.took = running.run("index", table)[1]
        yield running


class History:
    """A table, what is true of its pages, and its embedded index."""

    def __init__(self, folder, nursery, seed):
        self.folder, self.nursery, self.random = folder, nursery, random.Random(seed)
        self.table, self.pages, self.batches, self.purged = str(folder / "table"), {}, 0, set()
        self.moments = Counter()

    def change(self, most):
        """Commits random changes of some pages."""
        some = [k for k in self.random.sample(KEYS, most) if k not in self.purged]
        changes = {key: self.changed(key) for key in some}
        self.batches += 1
        put(self.table, f"17-{self.batches:03d}", changes)
        self.pages |= changes

    def changed(self, key):
        before, draw = self.pages.get(key), self.random.random()
        if before is None or draw < 0.5:
            return page(f"text {self.batches} {key}")
        if draw < 0.7:
            return {**before, "status": int(self.random.choice(GONE))}
        if draw < 0.8:  # fetched again, unchanged
            return {**before, "status": FETCHED}
        return page(f"text {self.batches}", directives=["noindex"]) if draw < 0.9 else None

    def purge(self):
        key = self.random.choice([k for k in KEYS if k not in self.purged])
        assert nutbeam("purge", self.table, "--url", from_key(key)) == 0
        self.purged.add(key)
        self.pages.pop(key, None)

    def compact(self):
        assert nutbeam("compact", self.table, "--full", "true") == 0

    def visible(self, index="main"):
        """Returns the text of each URL that search finds; none is found twice."""
        if not (self.folder / "table" / "index").exists():
            return {}
        found = SearchedTable(self.table, index, str(self.folder / "cache")).newest()
        hits = found.search(parse_search("text"), 1_000).hits
        shown = {hit.url: hit.title for hit in hits}
        assert len(shown) == len(hits) == found.documents
        return shown

    def killed(self):
        """Kills a run; the index is as before or as after. Then a run finishes the work."""
        before = self.visible() if self.moments else {}
        words = ["index", self.table, *self.random.choice([(), (), ("--full", "true")])]
        operation = ("--operation", f"killed-{self.batches}")
        at = self.random.choice(("begun", "begun", "committing", "committed"))
        after = self.random.random() * (1.1 * self.nursery.took if at == "begun" else 0.03)
        moment = self.nursery.kill(*words, *operation, after=after, at=at)
        self.moments[moment] += 1
        if self.moments.total() > 1 or moment == "ended":
            assert self.visible() in (before, wanted(self.pages))
        if self.random.random() < 0.5:  # the table may change in the meantime
            self.change(4)
            self.run(*words)
        else:
            self.run(*words, *operation)

    def run(self, *words):
        code, seconds = self.nursery.run(*words)
        assert code in (0, 1)  # 1: the killed run had committed, and nothing has changed since
        self.nursery.took = 0.7 * self.nursery.took + 0.3 * seconds
        assert self.visible() == wanted(self.pages)


def after_kills(folder, nursery, seed, number):
    history = History(folder, nursery, seed)
    history.change(20)
    while history.moments.total() - history.moments["ended"] < number:
        for _ in range(history.random.randint(1, 2)):  # a part of the work each
            history.change(8)
        act = history.random.random()
        if act < 0.1:
            history.purge()
        elif act < 0.25:
            history.compact()
        history.killed()
    fresh = ("--index", "fresh", "--full", "true")
    assert nutbeam("index", history.table, *fresh) == 0
    assert history.visible() == history.visible("fresh") == wanted(history.pages)
    assert not list((folder / "table" / "index").rglob("*.intent"))
    assert nutbeam("fsck", history.table) == 0
    return history.moments


@pytest.mark.long
def test_an_index_survives_kills(tmp_path, nursery):
    after_kills(tmp_path, nursery, 1, 2)


@pytest.mark.long
@pytest.mark.parametrize("seed", [2, 3])
def test_an_index_survives_many_kills(tmp_path, nursery, capsys, seed):
    number = int(os.environ.get("NUTBEAM_TEST_KILLS") or 100) // 2
    moments = after_kills(tmp_path, nursery, seed, number)
    with capsys.disabled():
        print(f"\n{number} kills of index survived:", dict(moments))
    assert moments["begun"] > 0
    assert moments["committing"] + moments["committed"] > 0
