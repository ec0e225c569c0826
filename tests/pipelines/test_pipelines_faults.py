"""A bundle that fails is tried again, at whatever moment it failed, and nobody can tell.

BundleBasedDirectRunner tries a bundle four times, in this process: so a trap
around a function of ours makes each step fail when its work is half done.
"""

import dataclasses
import random
import re
import shutil
import time
from collections import Counter

import polars as pl
import pytest
from crawling import (
    assert_same,
    assert_whole,
    contents,
    files_of,
    manifest_of,
    manifests_of,
    nutbeam,
    reach,
)
from simulated_web import served_web

from nutbeam.io.batches import documents
from nutbeam.io.batches import page_writer as pages
from nutbeam.io.snapshots import commit as written
from nutbeam.io.storage.table_sizes import replaced_sizes
from nutbeam.io.tablets import resolve, tablet_writer
from nutbeam.io.tablets.file_lists import load_files
from nutbeam.pipelines import dedup, fetch, generate, inject
from nutbeam.pipelines.fetching import host_findings
from nutbeam.pipelines.generating import survey
from nutbeam.pipelines.updating import file_changes
from nutbeam.transforms import apply_changes, for_each, parse_pages, tickets
from nutbeam.transforms import operations as steps
from nutbeam.web.urls.row_keys import from_key

RUNNER = "--runner=BundleBasedDirectRunner"
TRIES = 4  # of a bundle, by that runner
JOBS = ("inject", "generate", "fetch", "parse", "updatedb", "dedup")


class Fault(Exception):
    """What a trap raises."""


@dataclasses.dataclass(frozen=True)
class Trap:
    """Makes a function of ours fail.

    Attributes:
        owner: Module or class that the function is called by.
        name: Of the function.
        after: Whether it has done its work before it fails.
        at: From which call on.
    """

    owner: object
    name: str
    after: bool = True
    at: int = 1

    def set(self, patch, fails):
        """Sets the trap; ``fails(trap)`` says at each call whether it is to fail."""
        real, calls = getattr(self.owner, self.name), Counter()

        def function(*args, **kwargs):
            calls[""] += 1
            fail = calls[""] >= self.at and fails(self)
            if fail and not self.after:
                raise Fault(f"before {self.name}")
            result = real(*args, **kwargs)
            if fail:
                raise Fault(f"after {self.name}")
            return result

        patch.setattr(self.owner, self.name, function)

    def __str__(self):
        owner = getattr(self.owner, "__name__", "").rpartition(".")[2]
        number = f"-{self.at}" if self.at > 1 else ""
        return f"{'after' if self.after else 'before'}-{owner}.{self.name}{number}"


def both(owner, name, at=1):
    return [Trap(owner, name, after=False, at=at), Trap(owner, name, after=True, at=at)]


# The first and the last step of every job; the manifest is there after the third.
ENDS = [
    *both(tickets, "begin"),
    Trap(written, "store_files"),
    *both(written, "store_manifest"),
    Trap(steps, "commit_job"),
]
APPLY = [
    Trap(apply_changes, "split_by_range", after=False),
    Trap(tablet_writer.TabletWriter, "close"),
    Trap(tablet_writer.TabletWriter, "close", at=2),
    Trap(tablet_writer.TabletWriter, "write", at=2),
]
# By job: each moment at which a step may fail.
TRAPS = {
    "inject": [*ENDS, Trap(inject, "UrlRules"), *APPLY],
    "generate": [
        *ENDS,
        Trap(survey, "put_aside"),
        Trap(survey, "put_aside", at=2),
        Trap(generate, "take_up"),
        Trap(generate, "write_file"),
        *both(generate, "remove_aside"),
    ],
    "fetch": [
        *ENDS,
        Trap(fetch, "acquire", after=False),
        *both(fetch, "check_batch_waits"),  # while the lease is held
        *both(pages.PageWriter, "add", at=3),
        Trap(pages, "write_file"),  # a file of pages is flushed, and nobody is told of it
        Trap(pages, "write_file", at=4),
        Trap(host_findings, "write_file"),  # what was learnt about hosts
    ],
    "parse": [*ENDS, Trap(documents, "write_file"), *both(parse_pages, "parse_file", at=2)],
    "updatedb": [
        *ENDS,
        Trap(file_changes, "decide_page_changes"),
        Trap(file_changes, "decide_page_changes", at=2),
        *APPLY,
    ],
    # Few rows change: they become a run.
    "dedup": [*ENDS, Trap(dedup, "comparable_rows"), APPLY[0], *both(resolve, "write_run")],
}


web = served_web(hosts=2, pages=12, scope="module")


@pytest.fixture(scope="module", autouse=True)
def small():
    """Several tablets, and a file for each page."""
    with replaced_sizes(tablet_rows=6):
        yield


def words_of(job, folder, web):
    words = [job, folder, "--operation", f"my-{job}", RUNNER]
    if job == "inject":
        links = [f"http://h0.example.com/{n}" for n in range(20)]  # they are not there
        copies = [url for urls in web.site.duplicates() for url in urls]
        return [*words, *web.seeds, *links, *sorted(copies)]
    return [*words, *reach(web), "--flush_seconds", "0"] if job == "fetch" else words


@pytest.fixture(scope="module")
def stages(web, tmp_path_factory):
    """By job, a table that waits for it, and what the job makes of it undisturbed."""
    base = tmp_path_factory.mktemp("faults")
    folder, made = base / "table", {}
    # One round goes before, so that there are tablets and hosts to be changed.
    assert nutbeam("crawl", folder, *web.seeds, "--rounds", "1", *reach(web), RUNNER) == 0
    for job in JOBS:
        before = base / f"before-{job}"
        shutil.copytree(folder, before)
        assert nutbeam(*words_of(job, folder, web)) == 0
        made[job] = (before, contents(folder), dict(manifest_of(folder).counts))
    assert len(load_files(folder, manifest_of(folder).components["state"])) > 3
    assert made["dedup"][2]["duplicates"] > 0
    return made


def cases():
    """All moments; that the ends of a job are alike in all of them is for the long form to show."""
    return [
        pytest.param(
            job,
            trap,
            id=f"{job}-{trap}",
            marks=[pytest.mark.long] if trap in ENDS and job not in ("inject", "fetch") else [],
        )
        for job, traps in TRAPS.items()
        for trap in traps
    ]


@pytest.mark.few(1)
@pytest.mark.parametrize(("job", "trap"), cases())
def test_a_step_that_fails_is_done_again(web, stages, tmp_path, monkeypatch, job, trap):
    before, right, counts = stages[job]
    table = shutil.copytree(before, tmp_path / "table")
    snapshot = manifest_of(table).snapshot
    left = [TRIES - 1]

    def fails(_):
        left[0] -= 1
        return left[0] >= 0

    trap.set(monkeypatch, fails)
    assert nutbeam(*words_of(job, table, web)) == 0
    assert left[0] < TRIES - 1, "the trap was never sprung"
    assert manifest_of(table).snapshot == snapshot + 1
    assert_same(contents(table), right)
    if job == "fetch":
        check_fetch(table, counts, web)
    else:
        assert manifest_of(table).counts == counts


def check_fetch(table, counts, web):
    """Retries adopt what is flushed: it is counted as adopted, and not asked for again."""
    manifest = manifest_of(table)
    found = manifest.counts
    assert {name: number for name, number in found.items() if name != "adopted"} == counts
    asked_at = {}
    for request in web.requests():
        asked_at[f"http://{request.host}{request.path}"] = request.time
    to_wall = time.time() - time.monotonic()
    for path in files_of(table, f"batches/{manifest.batch}/pages"):
        flushed_at = path.stat().st_mtime
        for key in pl.read_parquet(path, columns=["key"])["key"]:
            assert asked_at.get(from_key(key), 0.0) + to_wall < flushed_at + 0.01, key


@pytest.mark.long
def test_without_an_end_to_the_faults_the_job_fails_and_the_table_is_as_it_was(
    web, stages, tmp_path, monkeypatch, capsys
):
    before, right, counts = stages["updatedb"]
    table = shutil.copytree(before, tmp_path / "table")
    manifests = len(manifests_of(table))
    with monkeypatch.context() as patch:
        Trap(tablet_writer.TabletWriter, "close").set(patch, lambda _: True)
        capsys.readouterr()
        assert nutbeam(*words_of("updatedb", table, web)) == 3
        error = capsys.readouterr().err
        assert error.count("\n") == 1
        assert "Fault: after close" in error
    assert len(manifests_of(table)) == manifests
    # The same operation again, in peace.
    assert nutbeam(*words_of("updatedb", table, web)) == 0
    assert_same(contents(table), right)
    assert manifest_of(table).counts == counts


# What a runner may lose without a word: Prism does, in the moment before it ends a job that fails.
LOST = [
    *((job, for_each, "_work", 0) for job in JOBS),
    *((job, apply_changes, "_resolve", 0) for job in ("inject", "updatedb", "dedup")),
    *((job, for_each, "_work", 1) for job in ("parse", "updatedb")),
]


@pytest.mark.few(1)
@pytest.mark.parametrize(("job", "owner", "name", "at"), LOST)
def test_a_runner_that_loses_work_makes_no_commit(
    web, stages, tmp_path, monkeypatch, capsys, job, owner, name, at
):
    before, right, _ = stages[job]
    table = shutil.copytree(before, tmp_path / "table")
    manifests = len(manifests_of(table))
    real, calls = getattr(owner, name), Counter()

    def loses(*args):
        calls[""] += 1
        return iter(()) if calls[""] == at + 1 else real(*args)

    with monkeypatch.context() as patch:
        patch.setattr(owner, name, loses)
        capsys.readouterr()
        assert nutbeam(*words_of(job, table, web)) == 3
    error = capsys.readouterr().err
    assert error.count("\n") == 1
    assert re.search(r"step '\w+' did \d+ of (\d+|its) parts; nothing was written", error)
    assert len(manifests_of(table)) == manifests
    assert nutbeam(*words_of(job, table, web)) == 0
    assert_same(contents(table), right)


def all_traps():
    return list({str(trap): trap for traps in TRAPS.values() for trap in traps}.values())


@pytest.mark.long
def test_a_crawl_in_which_everything_fails_once_in_a_while(web, tmp_path, monkeypatch):
    calm, wild = tmp_path / "calm", tmp_path / "wild"
    words = [*web.seeds, "--rounds", "-1", *reach(web), "--flush_seconds", "0", RUNNER]
    assert nutbeam("crawl", calm, *words) == 0
    dice, sprung = random.Random(5), Counter()

    def fails(trap):
        sprung[str(trap)] += (failed := dice.random() < 0.06)
        return failed

    # One trap around each function: at its first call.
    for trap in all_traps():
        if trap.at == 1 or trap.owner is pages.PageWriter:
            dataclasses.replace(trap, at=1).set(monkeypatch, fails)
    for _ in range(20):  # who fails four times is launched again, under the same id
        if (code := nutbeam("crawl", wild, *words, "--operation", "wild")) == 0:
            break
        assert code == 3
    assert code == 0
    assert len([name for name, times in sprung.items() if times]) > 10
    assert sum(sprung.values()) > 20
    assert_whole(wild, web.site)
    # What a fetch that died had learnt of hosts is learnt again, by a later batch.
    found, right = (
        {
            name: rows
            for name, rows in contents(table).items()
            if not name.endswith("/host_findings")
        }
        for table in (wild, calm)
    )
    assert_same(found, right)
    assert totals(wild) == totals(calm)


def totals(table):
    """Returns what was counted in all jobs; a page that was adopted was a page before."""
    counts = Counter()
    for manifest in manifests_of(table):
        counts.update(manifest.counts)
    counts.pop("adopted", 0)
    return {
        name: number
        for name, number in counts.items()
        if number and not name.startswith(("protocol/", "not_fetched/"))
    }
