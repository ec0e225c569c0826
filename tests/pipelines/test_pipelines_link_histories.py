"""Random histories of a crawl, its upkeep and kills end in the links of the newest documents."""

import random
import time

import pytest
from clocks import DAY, clock_off
from crawling import nutbeam, rows_of
from linked_web import HOST, linked_web, stored_links, true_links
from nursery import Nursery
from web_tables import newest

from nutbeam.io.snapshots.manifest import newest_manifest

# A compact that drops what no row needs.
DROPS = ("--snapshot_retention", "0", "--keep_batches", "0")
# Twice the longest interval, the age at which a link that is not seen any more ends.
AGE = 2 * 90 * DAY
MOMENTS = ("begun", "committing", "committed")


@pytest.fixture(scope="module")
def nursery():
    with Nursery() as running:
        yield running


class History:
    """A crawl, what happens to its web and its table, and which links may be stale.

    Attributes:
        lossy: Whether files were dropped while the links of a batch were not inverted yet.
        purged: Paths of purged pages.
        safe: The oldest snapshot to go back to: not before a purge, none whose files are deleted.
    """

    STEPS = ("change", "change", "gone", "move", "purge", "compact", "rollback", "kill", "later")

    def __init__(self, table, web, nursery):
        self.table, self.web, self.nursery = table, web, nursery
        self.lossy, self.safe, self.kills = False, 1, 0
        self.purged = set()

    def crawl(self, *words):
        assert nutbeam("crawl", self.table, *words, *self.web.words) in (0, 1, 4)

    def round(self, *words):
        self.crawl("--rounds", "1", "--add_days", "200", *words)

    def do(self, step):
        getattr(self, step)()

    def change(self):
        self.web.change(self.web.random.randrange(self.web.pages))
        self.round("--links")

    def gone(self):
        self.web.gone.symmetric_difference_update({str(self.web.random.randrange(self.web.pages))})
        self.round("--links")

    def move(self):
        self.web.move(self.web.random.randrange(self.web.pages))
        self.round("--links")

    def later(self):
        """The links of a round wait."""
        self.web.change(self.web.random.randrange(self.web.pages))
        self.round()

    def purge(self):
        page = self.web.random.randrange(self.web.pages)
        assert nutbeam("purge", self.table, "--url", self.web.url(page)) == 0
        self.purged.add(f"/{page}")
        self.safe = newest(self.table)

    def compact(self):
        self.lossy = self.lossy or bool(newest_manifest(self.table).waiting_for("links"))
        assert nutbeam("compact", self.table, *DROPS) == 0
        self.safe = newest(self.table)

    def rollback(self):
        now = newest(self.table)
        if now - self.safe > 1:
            to = self.web.random.randrange(max(self.safe, now - 6), now)
            assert nutbeam("rollback", self.table, "--to", to) == 0

    def kill(self):
        """invertlinks is killed; the same operation, or another one, does the work."""
        self.later()
        self.kills += 1
        before, some = newest(self.table), self.web.random
        words = ["invertlinks", self.table, "--operation", f"k{self.kills}"]
        self.nursery.kill(*words, at=some.choice(MOMENTS))
        again = words if some.random() < 0.5 else words[:2]
        # Which is the only one waiting, unless the commit was made.
        assert self.nursery.run(*again)[0] in (0, 1)
        assert newest(self.table) > before

    def settle(self):
        while newest_manifest(self.table).waiting_for("links"):
            assert nutbeam("invertlinks", self.table) == 0

    def truth(self):
        """The links of the newest documents, between pages that were not purged."""
        return {
            ends: rest
            for ends, rest in true_links(self.table).items()
            if not any(key[key.rindex("/") :] in self.purged for key in ends)
        }

    def check(self):
        self.settle()
        stored, truth = stored_links(self.table), self.truth()
        assert truth.items() <= stored.items()
        assert self.lossy or stored == truth


def play(table, nursery, seed, steps, monkeypatch):
    """Plays a history; returns how many links were stored at the end."""
    with linked_web(seed) as web:
        history = History(table, web, nursery)
        history.crawl(f"http://{HOST}/", "--rounds", "2", "--links")
        dice = random.Random(seed)
        # Each step once, in any order, and then some more.
        order = dice.sample(History.STEPS, len(History.STEPS)) + dice.choices(History.STEPS, k=8)
        for step in order[:steps]:
            history.do(step)
            if dice.random() < 0.5:
                history.check()
        history.check()
        assert nutbeam("fsck", table) == 0
        with clock_off(monkeypatch, AGE + DAY):
            history.round("--links")
            history.settle()
        assert stored_links(table) == history.truth()
    return len(stored_links(table))


@pytest.mark.long
@pytest.mark.parametrize("seed", range(12))
def test_histories_with_upkeep_and_kills(tmp_path, nursery, monkeypatch, seed):
    assert play(str(tmp_path / "table"), nursery, seed, 8, monkeypatch) > 0


@pytest.mark.bigtable
@pytest.mark.long
@pytest.mark.parametrize("seed", range(3))
def test_histories_in_bigtable(tmp_path, nursery, monkeypatch, bigtable, seed):
    assert play(bigtable.make(tmp_path / "files"), nursery, seed, 8, monkeypatch) > 0


@pytest.mark.long
@pytest.mark.parametrize(("seconds", "ends"), [(-60, False), (60, True)])
def test_stale_links_end_just_after_their_age(tmp_path, monkeypatch, seconds, ends):
    """compact drops the old documents between updatedb and invertlinks."""
    table = str(tmp_path / "table")
    with linked_web(3) as web:
        history = History(table, web, None)
        history.crawl(f"http://{HOST}/", "--rounds", "2", "--links")
        history.later()
        for page in range(web.pages):
            web.change(page)
        history.round()
        history.compact()
        history.settle()
        stale = stored_links(table).keys() - true_links(table).keys()
        assert stale
        rows = rows_of(table, "links").to_dicts()
        seen = {row["last_seen"] for row in rows if (row["target"], row["source"]) in stale}
        history.round()
        moment = (max(seen) if ends else min(seen)) / 1000 + AGE + seconds
        with clock_off(monkeypatch, int(moment - time.time())):
            history.settle()
        left = stored_links(table).keys() - true_links(table).keys()
        assert left == (set() if ends else stale)
