"""history shows what each job did to a table; rollback goes back, and nothing is lost by it."""

import datetime
import json

import polars as pl
import pytest
from clocks import clock_off
from command_output import printed
from crawling import (
    asked,
    assert_same,
    assert_whole,
    contents,
    crawl,
    files_of,
    latest_snapshot,
    manifest_at,
    manifest_of,
    manifests_of,
    nutbeam,
    reach,
    state_of,
    tree,
)
from short_form import first
from simulated_web import served_web
from web_tables import copied_folder

import nutbeam as nutbeam_package
from nutbeam.io.snapshots.commit import CommitTerms, commit
from nutbeam.io.snapshots.manifest import Manifest
from nutbeam.io.snapshots.operations import begin, find_commit, pinned_operation
from nutbeam.io.storage.file_errors import ConflictError
from nutbeam.io.tablets.file_lists import Component, load_files
from nutbeam.io.tablets.written import Written
from nutbeam.io.upkeep.rollback import sizes
from nutbeam.policy.components.views import views
from nutbeam.policy.components.vocabulary import iso

web = served_web(hosts=2, pages=8, scope="module")


@pytest.fixture(scope="module")
def original(web, kept_crawls, tmp_path_factory):
    """A table with a whole crawl, made under the operation id ``first``; tests only read it."""
    folder = tmp_path_factory.mktemp("history") / "table"
    kept_crawls.make(web, folder)
    return folder


table = copied_folder()


def refused(capsys, *words, code=2):
    capsys.readouterr()
    assert nutbeam(*words) == code
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.count("\n") == 1
    return captured.err.strip()


def rows_of(table, number):
    manifest = manifest_at(table, number)
    files = load_files(table, manifest.components["state"])
    return pl.concat([pl.read_parquet(table / file.path) for file in files])


# history


def test_history_has_a_line_for_each_snapshot_and_the_sizes(original, capsys):
    lines = printed(capsys, "history", original, "--last", 0).splitlines()
    made = manifests_of(original)
    for manifest, line in zip(made, lines, strict=False):
        assert line.startswith(f"{manifest.snapshot}  20")
        assert f"Z  {manifest.job}  {manifest.operation}  " in line
        assert f"  committed {iso(manifest.committed)}  " in line
        assert manifest.time <= manifest.committed
    assert "state +1 file +1 row +" in lines[0]
    assert "hosts +1 file +1 row +" in lines[0]
    assert "  batch_fetchlist +1 file +1 row +" in lines[1]
    assert [line.partition(":")[0] for line in lines[len(made) :]] == list(sizes(made[-1]))
    assert lines[0].count("\n") == 0
    short = printed(capsys, "history", original, "--last", 2, "--counts").splitlines()
    assert short[0] == lines[len(made) - 2]
    assert any(line.startswith("    ") for line in short)


def test_changes_in_the_history_add_up_to_the_sizes_of_the_table(original, capsys):
    record = json.loads(printed(capsys, "history", original, "--last", 0, "--format", "json"))
    assert [s["snapshot"] for s in record["snapshots"]] == [
        m.snapshot for m in manifests_of(original)
    ]
    totals = {}
    for snapshot in record["snapshots"]:
        assert snapshot["undone"] is False
        for name, change in snapshot["changes"].items():
            assert change["exact"]
            assert change["what"] in views()
            for what in ("files", "rows", "bytes"):
                total = totals.setdefault(name, {"files": 0, "rows": 0, "bytes": 0})
                total[what] += change["added"][what] - change["removed"][what]
    components = manifest_of(original).components
    assert totals == {
        name: {"files": c.files, "rows": c.rows, "bytes": c.bytes} for name, c in components.items()
    }
    assert record["sizes"]["state"] == totals["state"]


def test_sizes_are_summed_over_batches_and_over_indexes():
    one = Component("manifest/lists/x", 1, 20, 300)
    names = ["state", "batches/1/pages", "batches/2/pages", "batches/2/later", "index/main/shards",
             "index/two/shards", "index/two/later"]  # fmt: skip
    summed = {
        "state": 1,
        "batch_later": 1,
        "batch_pages": 2,
        "later": 1,
        "shards": 2,
    }
    assert sizes(Manifest(components=dict.fromkeys(names, one))) == {
        name: (n, 20 * n, 300 * n) for name, n in summed.items()
    }


def test_history_of_no_table_and_of_a_damaged_one(table, tmp_path, capsys):
    assert "no web table at" in refused(capsys, "history", tmp_path / "none")
    newest = table / "manifest" / f"{latest_snapshot(table):08d}.json"
    newest.write_bytes(newest.read_bytes()[:40])
    (table / manifest_of_before(table).components["state"].list).unlink()
    out = printed(capsys, "history", table)
    assert "manifest is damaged" in out.splitlines()[-1]
    assert len(out.splitlines()) == latest_snapshot(table)


def manifest_of_before(table):
    return manifest_at(table, latest_snapshot(table) - 1)


# rollback


@pytest.mark.parametrize("to", [1, 3, -1])
def test_rollback_is_a_new_snapshot_with_the_old_content(table, capsys, to):
    newest = latest_snapshot(table)
    to = to if to > 0 else newest + to
    before = tree(table, ignore=())
    out = printed(capsys, "rollback", table, "--to", to)
    assert out == f"rollback: to {to}\n"
    made, old = manifest_of(table), manifest_at(table, to)
    assert made.snapshot == newest + 1
    assert (made.components, made.batches) == (old.components, old.batches)
    assert (made.job, made.restores) == ("rollback", to)
    assert state_of(table).drop("url").equals(rows_of(table, to))
    after = tree(table, ignore=())
    assert {name: after[name] for name in before} == before  # nothing is deleted or changed
    lines = printed(capsys, "history", table, "--last", 0).splitlines()
    assert f"as snapshot {to}" in lines[newest]
    assert [i + 1 for i in range(newest) if "(undone)" in lines[i]] == [*range(to + 1, newest + 1)]


@pytest.mark.long
@pytest.mark.parametrize("to", first(2, [4, 11, 1, 2, 7]))
def test_the_same_crawl_again_does_the_lost_work(web, original, table, to):
    assert nutbeam("rollback", table, "--to", to) == 0
    requests = len(asked(web))
    words = [*web.seeds, "--operation", "first"]
    assert crawl(table, web, *words) == 0
    assert_whole(table, web.site)
    assert_same(contents(table), contents(original))
    # A batch that the table went back to, or has chosen again, adopts its flushed pages.
    assert len(asked(web)) < requests + len(web.site.reachable())
    # And now it is done.
    newest = latest_snapshot(table)
    assert crawl(table, web, *words) in (0, 1)
    assert latest_snapshot(table) == newest


@pytest.mark.long
def test_another_crawl_goes_on_from_where_the_table_went_back_to(web, original, table):
    assert nutbeam("rollback", table, "--to", 1) == 0
    assert crawl(table, web) == 0
    assert_same(contents(table), contents(original))


def test_a_rollback_can_be_rolled_back(web, original, table):
    newest = latest_snapshot(table)
    assert nutbeam("rollback", table, "--to", 2) == 0
    assert nutbeam("rollback", table, "--to", newest) == 0
    assert state_of(table).equals(state_of(original))
    # What was done is done again: the crawl changes nothing.
    crawl(table, web, *web.seeds, "--operation", "first")
    assert latest_snapshot(table) == newest + 2


def test_the_same_rollback_again_changes_nothing(table):
    words = ["rollback", table, "--to", 2, "--operation", "back"]
    assert nutbeam(*words) == 0
    newest = latest_snapshot(table)
    assert nutbeam(*words) == 0
    assert latest_snapshot(table) == newest


def test_rollback_refuses_snapshots_that_are_missing_current_or_damaged(table, capsys):
    newest = latest_snapshot(table)
    words = ("rollback", table, "--to")
    assert f"no snapshot 99 in this table, it has 1 to {newest}" in refused(capsys, *words, 99)
    assert "there is nothing to go back to" in refused(capsys, *words, newest)
    assert "--to must be the number of a snapshot" in refused(capsys, "rollback", table)
    gone = table / load_files(table, manifest_at(table, 1).components["state"])[0].path
    gone.unlink()
    error = refused(capsys, *words, 1, code=3)
    assert "1 of its files are missing" in error
    assert str(gone) in error
    assert latest_snapshot(table) == newest


def test_the_time_of_the_commit_stands_beside_the_pinned_one(table, monkeypatch, capsys):
    opened = begin(str(table), "dedup", "slow.dedup")
    with clock_off(monkeypatch, 3_600):
        commit(opened, [], CommitTerms())
    entry = nutbeam_package.open(table).history()[0]
    assert entry.operation == "slow.dedup"
    assert entry.committed - entry.time >= datetime.timedelta(hours=1)
    line = printed(capsys, "history", table, "--last", 1).splitlines()[0]
    assert f"  committed {entry.committed:%Y-%m-%dT%H:%M}" in line


def test_an_operation_that_was_open_during_a_rollback_fails_or_begins_again(table):
    newest = latest_snapshot(table)
    opened = begin(str(table), "dedup", "open.dedup")
    assert nutbeam("rollback", table, "--to", 3) == 0
    file = load_files(table, manifest_at(table, newest).components["state"])[0]
    with pytest.raises(ConflictError, match="state was changed by rollback"):
        commit(opened, [Written("state", (file,))], CommitTerms(reads=frozenset({"state"})))
    # Under the same id it reads what there is now.
    again = begin(str(table), "dedup", "open.dedup")
    assert again.snapshot == newest + 1
    assert not again.idle
    assert pinned_operation(str(table), "open.dedup") == again
    made = commit(again, [], CommitTerms(reads=frozenset({"state"})))
    assert find_commit(again) == made
    assert begin(str(table), "dedup", "open.dedup").idle == "done"


def test_an_operation_that_was_done_before_the_snapshot_stays_done(table):
    first = manifest_at(table, 1)
    assert first.job == "inject"
    assert nutbeam("rollback", table, "--to", 3) == 0
    assert begin(str(table), "inject", first.operation).idle == "done"
    last = manifest_at(table, latest_snapshot(table) - 1)
    assert pinned_operation(str(table), last.operation) is None or not find_commit(
        pinned_operation(str(table), last.operation)
    )


@pytest.mark.long
def test_files_of_rolled_back_snapshots_are_not_deleted(table, web):
    paths = files_of(table, "state")
    assert nutbeam("rollback", table, "--to", 1) == 0
    assert nutbeam("generate", table) == 0
    assert nutbeam("fetch", table, *reach(web)) == 0
    assert all(path.exists() for path in paths)


def shown_jobs(capsys, table, *words):
    capsys.readouterr()
    assert nutbeam("history", table, "--counts", "--format", "json", *words) == 0
    return json.loads(capsys.readouterr().out)["snapshots"]


def test_counts_of_jobs_stay_when_their_snapshots_expire(table, capsys):
    names = ("snapshot", "time", "job", "operation", "batch", "counts", "undone")
    before = [{name: job[name] for name in names} for job in shown_jobs(capsys, table, "--last", 0)]
    for _ in range(2):  # the second time, the first compact expires
        assert nutbeam("compact", table, "--full", "--snapshot_retention", "0") == 0
        capsys.readouterr()
    jobs = shown_jobs(capsys, table, "--last", 0)
    assert [{name: job[name] for name in names} for job in jobs][: len(before)] == before
    assert {job["snapshot"] for job in jobs if not job["expired"]} == {latest_snapshot(table)}
    assert [job["snapshot"] for job in jobs] == [*range(1, len(jobs) + 1)]
    assert shown_jobs(capsys, table, "--last", 3) == jobs[-3:]
    assert nutbeam("history", table) == 0
    assert capsys.readouterr().out.count("(expired)") == 0
    assert nutbeam("history", table, "--counts", "--last", "0") == 0
    assert capsys.readouterr().out.count("(expired)") == len(jobs) - 1
    assert nutbeam("fsck", table) == 0


def test_a_damaged_file_of_past_jobs_is_one_line(table, capsys):
    assert nutbeam("compact", table, "--snapshot_retention", "0") == 0
    file = min((table / "history").iterdir())
    whole = file.read_text()
    for damaged in (whole[:-9], "[" * 100_000, "{}", whole.replace('"time": ', '"time": "x"+'),
                    whole.replace('"counts": {', '"counts": {"a": "b", ', 1), "\0", "7"):  # fmt: skip
        file.write_text(damaged)
        assert "history/" in refused(capsys, "history", table, "--counts", "--last", "0", code=3)
    assert nutbeam("history", table) == 0
