"""``kill -9`` of a job at random moments: the table is as before or as after, and it goes on from there."""

import os
import random
from collections import Counter

import pytest
from crawling import VOLATILE
from made_up import MadeUpWeb
from nursery import Nursery
from web_tables import Snapshot, newest

from nutbeam.io.storage.table_sizes import replaced_sizes

WEB = MadeUpWeb(hosts=30, pages=60, links=12, contents=900)
TABLET_ROWS = 250
# What the time decides, or where something lies.
UNSTEADY = {*VOLATILE, "slot", "backoff_until", "robots_time", "last_request_time"}


@pytest.fixture(scope="module")
def nursery():
    with Nursery(TABLET_ROWS) as running:
        yield running


class Stages:
    """Tables that wait for a job, and what it makes of them undisturbed.

    Attributes:
        before: By job, the address of a table.
        was: By job, what it says.
        right: By job, what it says afterwards.
        took: By job, for how many seconds it works, once it has begun.
    """

    JOBS = ("inject", "generate", "updatedb", "filterdb", "compact")

    def __init__(self, backend, nursery, folder, warm):
        self.seeds, self.more = folder / "seeds.txt", folder / "more.txt"
        self.kept, self.rules = folder / "kept.txt", folder / "rules"
        self.rules.mkdir()
        (self.rules / "host-urlnormalizer.txt").write_text("h1.example.com h2.example.com\n")
        seeds = WEB.urls(range(0, 1_500, 3))
        self.seeds.write_text("\n".join(seeds))
        # Of the seeds those that filterdb leaves alone.
        self.kept.write_text("\n".join(u for u in seeds if u[-1] != "7" and "/h1." not in u))
        self.more.write_text("\n".join(WEB.urls(range(1, 900, 2))))
        self.before, self.was, self.right, self.took = {}, {}, {}, {}
        table, done = backend.fresh(), []

        def do(job, *words):
            done.append(job)
            code, seconds = nursery.run(*(words or (job, table, "--operation", f"s{len(done)}")))
            assert code == 0
            return seconds

        nursery.warm("inject", backend.fresh(), self.seeds)
        do("inject", "inject", table, self.seeds)
        for _ in range(2):  # runs and bases, and batches that are over
            do("generate", "generate", table, "--top_n", "100")
            self._fetch(table, f"f{len(done)}")
            do("updatedb")
            do("dedup")
        for job in self.JOBS:
            if job == "updatedb":
                self._fetch(table, "f")
            self.before[job] = backend.copy(table)
            self.was[job] = contents(table)
            undisturbed = []
            for _ in range(warm):  # the first time may be slower
                other = backend.copy(table)
                code, seconds = nursery.run(*self.words(job, other))
                assert code == 0
                undisturbed.append(seconds)
                backend.remove(other)
            self.took[job] = sorted(undisturbed)[warm // 2]
            do(job, *self.words(job, table))
            self.right[job] = contents(table)

    def words(self, job, table):
        """Returns the command that is killed; its operation is the same each time."""
        more = {
            "inject": [self.more],
            "generate": ["--top_n", "300"],
            "updatedb": [],
            "filterdb": ["--exclude", "7$", "--url_rules_dir", self.rules,
                         "--url_normalizers", "basic,host"],
            "compact": ["--full", "--snapshot_retention", "0"],
        }[job]  # fmt: skip
        return [job, table, *more, "--operation", "mine"]

    def _fetch(self, table, operation):
        (batch,) = [
            name for name, batch in Snapshot(table).manifest().batches.items()
            if batch.phase == "generated"
        ]  # fmt: skip
        WEB.fetch(table, batch, operation)


def contents(table):
    """Returns what a table says, by its readers, without what the time decides.

    A batch is called by its place among the batches: its name is random.
    """
    snapshot = Snapshot(table)
    batches = snapshot.manifest().batches
    ordered = sorted(batches, key=lambda name: (batches[name].created, name))
    names = {name: f"batch {at}" for at, name in enumerate(ordered)}
    found = {"batches": {names[n]: (b.phase, b.urls, b.taken_in) for n, b in batches.items()}}
    for name, rows in snapshot.contents().items():
        parts = [names.get(part, part) for part in name.split("/")]
        found["/".join(parts)] = rows.drop(UNSTEADY & set(rows.columns)) if len(rows) else None
    return found


def same(one, other):
    """Tells whether two tables say the same."""
    if one.keys() != other.keys() or one["batches"] != other["batches"]:
        return False
    return all(
        (rows is None) == (other[name] is None) and (rows is None or rows.equals(other[name]))
        for name, rows in one.items()
        if name != "batches"
    )


@pytest.fixture(scope="module")
def stages(backend, nursery, tmp_path_factory):
    with replaced_sizes(tablet_rows=TABLET_ROWS):
        return Stages(backend, nursery, tmp_path_factory.mktemp("seeds"), 2)


def kill_and_look(backend, nursery, stages, job, after):
    """Kills a job, looks at the table, and brings it to its end.

    Returns:
        When it was hit, and how it left the table; ``as after soon``: the commit
        is made, and the next writer applies it.
    """
    table = backend.copy(stages.before[job])
    was, right = stages.was[job], stages.right[job]
    snapshot = newest(table)
    moment = nursery.kill(*stages.words(job, table), after=after)
    now, promised = newest(table), backend.promised(table)
    assert snapshot <= now <= promised <= snapshot + 1
    assert same(contents(table), was if now == snapshot else right)

    # Given up: what it has left behind goes in time, and nothing is in the way of others.
    given_up = backend.copy(table)
    assert nursery.run("inject", given_up, stages.kept)[0] == 0
    backend.age(given_up, 9)
    assert nursery.run("compact", given_up)[0] == 0
    backend.age(given_up, 9)
    assert nursery.run("compact", given_up)[0] == 0
    assert backend.left(given_up) == []
    assert same(contents(given_up), was if promised == snapshot else right)
    backend.remove(given_up)

    # The same operation again, and once more.
    for _ in range(2):
        assert nursery.run(*stages.words(job, table))[0] == 0
        assert newest(table) == snapshot + 1
        assert same(contents(table), right)
    assert all(nursery.run(command, table)[0] == 0 for command in backend.commands)
    backend.age(table, 9)
    assert nursery.run("compact", table)[0] == 0
    assert backend.left(table) == []
    assert same(contents(table), right)
    backend.remove(table)
    if now > snapshot:
        return moment, "as after"
    return moment, "as after soon" if promised > now else "as before"


def kills(backend, nursery, stages, number, seed):
    """Kills a number of jobs, each in turn; returns how often at which moment."""
    dice, moments = random.Random(seed), Counter()
    # Up to its end, also where it is slower this time; a kill that comes too late does not count.
    latest = {job: 1.5 * took for job, took in stages.took.items()}
    while moments["killed"] < number:
        job = Stages.JOBS[moments["tried"] % len(Stages.JOBS)]
        moment, outcome = kill_and_look(backend, nursery, stages, job, latest[job] * dice.random())
        moments["tried"] += 1
        moments["killed"] += moment != "ended"
        # The machine may be faster or slower now than when the time was taken.
        latest[job] *= 0.8 if moment == "ended" else 1.1
        moments[f"{job}: {moment}"] += 1
        moments[outcome] += 1
    return moments


@pytest.mark.long
@pytest.mark.folder_first
def test_kills(backend, nursery, stages):
    moments = kills(backend, nursery, stages, 3, seed=1)
    assert moments["as before"] > 0


@pytest.mark.long
def test_100_kills(backend, nursery, stages, capsys):
    number = int(os.environ.get("NUTBEAM_TEST_KILLS") or 100)
    moments = kills(backend, nursery, stages, number, seed=2)
    took = {job: round(seconds, 2) for job, seconds in stages.took.items()}
    with capsys.disabled():
        print(f"\n{moments['killed']} kills, all survived:", dict(sorted(moments.items())))
        print(f"seconds from begin to end: {took}")
    assert moments["as before"] > number / 5
    assert moments["as after"] > number / 20
