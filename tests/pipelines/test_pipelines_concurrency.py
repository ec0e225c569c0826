"""Jobs at once, in any order of their steps: the table is as if they had come one after the other.

Hypothesis starts jobs and readers, lets each on for a few steps, and compares
every snapshot with a table in memory, to which the jobs that were committed
are applied in the order of their commits.
"""

import contextlib
import dataclasses
from collections import Counter

import pytest
from crawling import manifest_at
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.errors import FlakyStrategyDefinition
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    precondition,
    rule,
    run_state_machine_as_test,
)
from interleaving import Running, gates, launch
from table_in_memory import WEB, Said, Tables, read
from web_tables import Snapshot, newest

from nutbeam.io.storage.file_errors import ConflictError, SnapshotTooOld
from nutbeam.io.storage.table_sizes import replaced_sizes
from nutbeam.io.table.opening import open_table
from nutbeam.web.base.errors import NothingToDo, UserError

# How many jobs are under way at once, at most, and how many readers.
JOBS, READERS = 4, 2


@dataclasses.dataclass
class Job:
    """A job that was started.

    Attributes:
        kind: Which command.
        operation: Its id.
        numbers: Of pages: what it is about.
        top_n: How many URLs, for generate.
        batch: The batch, for those that need one.
        to: The snapshot to go back to, for rollback.
        began: The newest snapshot when it was started.
        retention: For compact, s.
    """

    kind: str
    operation: str
    numbers: tuple[int, ...]
    top_n: int
    batch: str | None
    to: int
    began: int
    retention: int
    running: Running | None = None

    def run(self, table):
        if self.kind == "fetch":
            return WEB.fetch(table, self.batch, self.operation)
        more = {
            "inject": {"arguments": {"seeds": WEB.urls(self.numbers)}},
            "generate": {"top_n": self.top_n},
            "updatedb": {"batch": self.batch},
            "dedup": {"batch": self.batch},
            "compact": {"snapshot_retention": self.retention},
            "purge": {"host": (WEB.urls(self.numbers[:1])[0].split("/")[2],), "wait_seconds": 0},
            "rollback": {"to": self.to},
        }[self.kind]
        return launch(self.kind, table, operation=self.operation, **more)

    def name(self):
        """Returns what a manifest calls its operation."""
        return f"{self.operation}.{'update' if self.kind == 'updatedb' else self.kind}"


class Interleavings(RuleBasedStateMachine):
    """One table, jobs and readers on it."""

    backend = counts = failures = None  # of the test

    @initialize(numbers=st.lists(st.integers(0, 47), min_size=4, max_size=12))
    def make_table(self, numbers):
        self.counts["interleavings"] += 1
        self.address = self.backend.fresh()
        self.table = open_table(self.address)
        self.jobs, self.under_way, self.readers, self.failed = {}, [], [], []
        self.said = {0: Said()}
        self.swept = False
        self.begin("inject", tuple(numbers), 5, 0).running.finish()
        self.begin("generate", (0,), 4, 0).running.finish()
        self.look()

    # Jobs.

    def begin(self, kind, numbers, top_n, pick):
        latest = manifest_at(self.table, newest(self.address))
        phase = {"fetch": "generated", "updatedb": "parsed", "dedup": "updated"}.get(kind)
        batches = sorted(
            name for name, batch in latest.batches.items()
            if batch.phase == phase and not (kind == "dedup" and kind in batch.taken_in)
        )  # fmt: skip
        if phase and not batches:
            return None
        job = Job(
            kind, f"o{len(self.jobs)}", numbers, top_n,
            batches[pick % len(batches)] if batches else None,
            max(1, latest.snapshot - 1 - pick % 4), latest.snapshot, pick % 2 * 604_800,
        )  # fmt: skip
        self.jobs[job.name()] = job
        self.counts["jobs"] += 1
        self.let_run(job)
        return job

    def let_run(self, job):
        self.swept |= job.kind == "compact" and job.retention == 0
        self.under_way.append(job)
        job.running = Running(job.name(), lambda: job.run(self.address))

    @precondition(lambda self: len(self.under_way) < JOBS)
    @rule(
        kind=st.sampled_from(["inject", "generate", "fetch", "updatedb", "generate", "updatedb",
                              "dedup", "compact", "fetch"]),
        numbers=st.lists(st.integers(0, 47), min_size=1, max_size=6),
        top_n=st.integers(1, 8), pick=st.integers(0, 7),
    )  # fmt: skip
    def start(self, kind, numbers, top_n, pick):
        self.begin(kind, tuple(numbers), top_n, pick)

    @precondition(lambda self: len(self.under_way) < JOBS)
    @rule(kind=st.sampled_from(["purge", "rollback"]), number=st.integers(0, 3),
          pick=st.integers(0, 7))  # fmt: skip
    def start_what_is_rare(self, kind, number, pick):
        if pick < 2:
            self.begin(kind, (number,), 1, pick)

    @precondition(lambda self: self.under_way)
    @rule(pick=st.integers(0, JOBS - 1), gates=st.integers(1, 6))
    def advance(self, pick, gates):
        self.under_way[pick % len(self.under_way)].running.advance(gates)
        self.look()

    @precondition(lambda self: self.under_way)
    @rule(pick=st.integers(0, JOBS - 1), gates=st.integers(3, 12))
    def advance_far(self, pick, gates):
        self.under_way[pick % len(self.under_way)].running.advance(gates)
        self.look()

    @precondition(lambda self: len(self.under_way) > 1)
    @rule(gates=st.integers(1, 4))
    def advance_all(self, gates):
        for job in list(self.under_way):
            job.running.advance(gates)
            self.look()

    @precondition(lambda self: len(self.under_way) == JOBS)
    @rule(pick=st.integers(0, JOBS - 1))
    def finish(self, pick):
        self.under_way[pick % len(self.under_way)].running.finish()
        self.look()

    # Readers: each reads a snapshot, a part at a time.

    @precondition(lambda self: len(self.readers) < READERS)
    @rule()
    def open(self):
        snapshot = Snapshot(self.address)
        self.readers.append((snapshot, list(snapshot.parts()), {}))
        self.counts["readers"] += 1

    @precondition(lambda self: self.readers)
    @rule(pick=st.integers(0, READERS - 1))
    def read_on(self, pick):
        with self.noted():
            self.read_part(pick)

    def read_part(self, pick):
        reader = self.readers[pick % len(self.readers)]
        snapshot, parts, rows = reader
        try:
            if parts:
                rows.update(snapshot.read(parts.pop(0)).select("key", "status").rows())
                return
        except SnapshotTooOld:
            # It may be deleted, or overwritten: no file is ever missing without a word.
            assert self.may_be_too_old(snapshot.snapshot)
            self.counts["readers too old"] += 1
        else:
            assert rows == self.said[snapshot.snapshot].urls
        self.readers.remove(reader)

    def may_be_too_old(self, snapshot):
        most = self.backend.versions
        return self.swept or (most is not None and newest(self.address) >= snapshot + most)

    # What must hold after each step.

    @contextlib.contextmanager
    def noted(self):
        try:
            yield
        except IndexError:  # teardown passes over it
            raise
        except Exception as error:
            self.failures.append(error)
            raise

    def look(self):
        with self.noted():
            self.look_closely()

    def look_closely(self):
        """Compares all snapshots that are new; sees what has become of jobs that have ended."""
        for number in range(max(self.said) + 1, newest(self.address) + 1):
            self.compare(number)
        for job in [job for job in self.under_way if job.running.done]:
            self.under_way.remove(job)
            self.ended(job)

    def compare(self, number):
        snapshot = Snapshot(self.address, number)
        manifest = snapshot.manifest()
        job = self.jobs[manifest.operation]
        before, found = self.said[number - 1], read(snapshot)
        assert job.name() not in self.committed(number - 1), "committed twice"
        if job.kind == "rollback":
            said = dataclasses.replace(self.said[job.to], blocked=before.blocked)
        else:
            said = getattr(Tables(), job.kind)(before, job, found, manifest)
        assert found == dataclasses.replace(said, blocked=len(said.blocked)), job
        open_keys = [key for _, keys in found.batches.values() for key in keys]
        assert len(open_keys) == len(set(open_keys)), "a URL in two open batches"
        self.said[number] = said

    def committed(self, until):
        return {
            manifest_at(self.table, number).operation
            for number in open_table(str(self.table)).snapshots()
            if number <= until
        }

    def ended(self, job):
        error = job.running.error
        if error is None:
            self.counts["done"] += 1
            return
        if not isinstance(error, UserError):
            raise error
        number = newest(self.address)
        assert job.name() not in self.committed(number), "failed, and yet committed"
        if isinstance(error, ConflictError):
            assert number > job.began, "nobody was in its way"
            self.counts["conflicts"] += 1
            self.failed.append(job)
        else:
            assert may_be_refused(job, error), error
            self.counts["refused"] += 1

    def teardown(self):
        if not hasattr(self, "under_way"):
            return
        for job in list(self.under_way):
            job.running.finish()
            with contextlib.suppress(IndexError):
                self.look()
        # Who has failed succeeds when it is run again, in peace: under the same id, or a new one.
        for number, job in enumerate(self.failed):
            if number % 2:
                job = self.begin(job.kind, job.numbers, job.top_n, 0)
            else:
                job.began = newest(self.address)
                self.let_run(job)
            if job is not None:
                job.running.finish()
                assert not isinstance(job.running.error, ConflictError), job.running.error
                self.look()
                self.counts["retried"] += 1
        for reader in list(self.readers):
            while reader in self.readers:
                self.read_on(self.readers.index(reader))
        self.backend.remove(self.address)


def may_be_refused(job, error):
    """Returns whether a job may say no though nobody was in its way: what it needs is gone."""
    words = str(error)
    if job.kind == "rollback":
        reasons = (
            "is a purge",
            "was deleted",
            "nothing to go back",
            "are gone",
            "versions of rows",
        )
        return any(reason in words for reason in reasons)
    if isinstance(error, SnapshotTooOld | NothingToDo):
        return True
    return "no batch" in words or " needs one that is " in words


def interleave(backend, examples, steps, done=0):
    """Runs at least a number of interleavings, and of jobs that are done; returns counts."""
    counts, failures = Counter(), []
    machine = type(
        "Machine", (Interleavings,), {"backend": backend, "counts": counts, "failures": failures}
    )
    with gates(), replaced_sizes(tablet_rows=8):
        while counts["interleavings"] < examples or counts["done"] < done:
            try:
                run_state_machine_as_test(
                    machine,
                    settings=settings(
                        max_examples=min(20, examples),
                        stateful_step_count=steps,
                        deadline=None,
                        database=None,
                        phases=[Phase.generate],  # to shrink takes longer than to read
                        suppress_health_check=list(HealthCheck),
                    ),
                )
            except FlakyStrategyDefinition:
                # It has tried the same steps again, and a job took another number of them: ids
                # are random. That is no failure, but may have come of looking at one again.
                if failures:
                    raise failures[0] from None
                counts["begun anew"] += 1
    return counts


@pytest.mark.folder_first
@pytest.mark.long
def test_interleavings(backend):
    counts = interleave(backend, 3, 40, done=10)
    assert counts["interleavings"] >= 3
    assert counts["done"] >= 10


@pytest.mark.long
@pytest.mark.parametrize("number", range(4))
def test_50_interleavings(backend, number, capsys):
    """Four times, so that they can run side by side."""
    counts = interleave(backend, 50, 40)
    with capsys.disabled():
        print(f"\n{counts['interleavings']} interleavings:", dict(counts))
    assert counts["interleavings"] >= 50
    assert counts["conflicts"]
