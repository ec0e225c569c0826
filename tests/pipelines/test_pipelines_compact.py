"""compact changes nothing that a table says, whatever else goes on."""

import json
import os
import shutil

import polars as pl
import pytest
from command_output import printed_pages
from crawling import contents, files_of, json_lines, manifest_of, nutbeam, reach, state_of
from frames import frame_of
from simulated_web import SimWeb

from nutbeam.io.batches.batches import live_file
from nutbeam.io.snapshots.commit import CommitTerms, commit
from nutbeam.io.snapshots.operations import UPKEEP, begin
from nutbeam.io.storage.file_errors import ConflictError
from nutbeam.io.storage.parquet_files import collect, scan
from nutbeam.io.table.opening import open_table
from nutbeam.io.tablets.file_lists import DataFile, load_files
from nutbeam.io.tablets.fold import fold_tablet
from nutbeam.io.tablets.resolve import write_bases
from nutbeam.io.tablets.tablet_writer import write_run
from nutbeam.io.tablets.tablets import ROW_NUMBER, Tablet, read_tablets, tablets
from nutbeam.io.tablets.written import Written
from nutbeam.io.upkeep.compaction import fold, plan_folds
from nutbeam.policy.components.document_schema import DOCUMENTS
from nutbeam.policy.components.schema import STATE

DAY = 86_400


def rows_of(numbers, score):
    return frame_of(STATE, *(
        {"key": f"com.h{n // 10:02d}:http/{n:03d}", "score": score, "status": 1, "fetch_time": 1,
         "retries": 0, "fetch_interval": 1}
        for n in numbers
    ))  # fmt: skip


def add_run(table, numbers, score, name):
    """Commits a run as an update does that changes some rows of the first tablet."""
    operation = begin(str(table), "update", name)
    (tablet, *_) = tablets(operation.files("state"))
    rows = rows_of(numbers, score).with_columns(
        pl.Series(ROW_NUMBER, list(numbers), dtype=pl.UInt32)
    )
    run = write_run(operation.table, "state", tablet.base, rows, 0, operation.snapshot + 1)
    return operation, Written("state", (run,))


@pytest.fixture
def table(tmp_path, resize_tables):
    """Four tablets of 50 rows; the first has two runs."""
    resize_tables(tablet_rows=50)
    operation = begin(str(tmp_path), "inject", "made.inject")
    files = write_bases(tmp_path, "state", [rows_of(range(200), 1.0)])
    commit(operation, [Written("state", files)])
    for name, numbers, score in (("a", range(5), 2.0), ("b", range(3, 7), 3.0)):
        operation, run = add_run(tmp_path, numbers, score, f"{name}.update")
        commit(operation, [run], CommitTerms(reads=frozenset({"state"})))
    return tmp_path


def compact(table, *words, code=0):
    assert nutbeam("compact", table, *words) == code


def test_all_is_as_it_was_without_runs(table, capsys):
    before = state_of(table)
    assert before["score"].to_list()[:8] == [2, 2, 2, 3, 3, 3, 3, 1]
    bases = set(files_of(table, "state")[1:])
    compact(table, "--format", "json")
    counts = json.loads(capsys.readouterr().out)["counts"]
    assert counts == {"tablets/folded": 1, "tablets/written": 1}
    assert state_of(table).equals(before)
    files = load_files(table, manifest_of(table).components["state"])
    assert all(file.base is None for file in files)
    assert len(bases & set(files_of(table, "state"))) == 3  # what had no runs is as it was
    assert manifest_of(table).components["state"].rows == 200


def test_full_rewrites_all_files(table):
    before, files = state_of(table), set(files_of(table, "state"))
    compact(table, "--full", "true")
    assert state_of(table).equals(before)
    assert not files & set(files_of(table, "state"))


def test_tiny_neighbours_become_one_and_large_ones_are_split(table, resize_tables):
    before = state_of(table)
    resize_tables(tablet_rows=1000)
    compact(table)
    assert len(files_of(table, "state")) == 1
    resize_tables(tablet_rows=60)
    compact(table)
    assert len(files_of(table, "state")) == 4
    assert state_of(table).equals(before)


def test_which_tablets_are_folded(resize_tables):
    resize_tables(tablet_rows=100)

    def tablet(rows, runs=0):
        base = DataFile(f"{rows}-{runs}", rows, rows)
        files = (DataFile("r", 1, 1, base=base.path, fresh=1) for _ in range(runs))
        return Tablet(base, tuple(files))

    sizes = [tablet(80), tablet(10), tablet(5), tablet(90), tablet(24), tablet(70, 1), tablet(201),
             tablet(150)]  # fmt: skip
    groups = [[one.base.rows for one in group] for group in plan_folds(sizes)]
    assert groups == [[80, 10, 5], [24, 70], [201]]
    full = [[one.base.rows for one in group] for group in plan_folds(sizes, full=True)]
    assert full == [[80, 10, 5], [90], [24, 70], [201], [150]]


def test_the_same_operation_again_changes_nothing(table, capsys):
    compact(table, "--operation", "x")
    snapshot = manifest_of(table).snapshot
    compact(table, "--operation", "x")
    assert manifest_of(table).snapshot == snapshot


def compacting(table):
    """Begins to compact: returns the operation and what it has written, not committed."""
    operation = begin(str(table), "compact", "slow.compact", allows=UPKEEP)
    groups = plan_folds(tablets(operation.files("state")))
    return operation, [fold(operation, "state", group) for group in groups]


def test_compact_does_not_disturb_readers(table):
    reader = begin(str(table), "generate", "slow.generate", batch="b", allows=("compact",))
    compact(table)
    before = read_tablets(
        table, "state", tablets(reader.files("state")), ("key", "score")
    )  # fmt: skip
    assert before.sort("key").rows() == state_of(table).select("key", "score").rows()
    commit(
        reader, [Written(counts={"chosen": 1})], CommitTerms(reads=frozenset({"state", "batches"}))
    )


def test_an_update_that_is_under_way_finds_its_tablets(table, capsys):
    operation, run = add_run(table, range(2), 9.0, "slow.update")
    before = files_of(table, "state")
    compact(table, "--format", "json")
    assert json_lines(capsys.readouterr().out)[0]["counts"]["tablets/in_use"] == 1
    assert files_of(table, "state") == before
    commit(operation, [run], CommitTerms(reads=frozenset({"state"})))
    assert state_of(table)["score"].to_list()[:2] == [9.0, 9.0]
    compact(table)
    assert len(files_of(table, "state")) == 4


def test_an_update_that_lost_does_not_stop_compact(table, capsys):
    lost, run = add_run(table, range(2), 9.0, "slow.update")
    other, its_run = add_run(table, range(2), 8.0, "fast.update")
    commit(other, [its_run], CommitTerms(reads=frozenset({"state"})))
    with pytest.raises(ConflictError):
        commit(lost, [run], CommitTerms(reads=frozenset({"state"})))
    before = state_of(table)
    compact(table, "--format", "json")
    assert json_lines(capsys.readouterr().out)[0]["counts"]["tablets/folded"] == 1
    assert state_of(table).equals(before)


def test_an_update_that_began_too_late_to_be_seen_fails_clearly(table):
    folding, written = compacting(table)
    operation, run = add_run(table, range(2), 9.0, "slow.update")
    commit(folding, written)
    before = state_of(table)
    with pytest.raises(ConflictError, match=r"^update: state was compacted in the meantime"):
        commit(operation, [run], CommitTerms(reads=frozenset({"state"})))
    assert state_of(table).equals(before)


def test_tablets_that_were_changed_in_the_meantime_are_left(table):
    operation, written = compacting(table)
    late, run = add_run(table, range(2), 9.0, "late.update")
    commit(late, [run], CommitTerms(reads=frozenset({"state"})))
    before, files = state_of(table), files_of(table, "state")
    commit(operation, written)
    assert state_of(table).equals(before)
    assert files_of(table, "state") == files


def test_two_at_once(table):
    before = state_of(table)
    operation, written = compacting(table)
    compact(table)
    commit(operation, written)
    assert state_of(table).equals(before)


def test_updates_and_folds_take_turns(table):
    for at in range(6):
        operation, run = add_run(table, range(at, at + 4), 10.0 + at, f"u{at}.update")
        commit(operation, [run], CommitTerms(reads=frozenset({"state"})))
        if at % 2:
            compact(table)
    assert state_of(table)["score"].to_list()[:10] == [10, 11, 12, 13, 14, 15, 15, 15, 15, 1]
    assert state_of(table)["score"].to_list()[10:] == [1] * 190


# --- bodies and old snapshots


@pytest.fixture(scope="module")
def crawled(kept_crawls, tmp_path_factory):
    """A table whose oldest batch has no page that is still the newest of its URL."""
    table = tmp_path_factory.mktemp("compact") / "table"
    with SimWeb(hosts=2, pages=8, seed=7, crawl_delay=0) as web:
        kept_crawls.make(web, table)
    operation = begin(str(table), "update", "made.update")
    oldest = pl.col("page").str.starts_with(f"batches/{min(manifest_of(table).batches)}/")
    names = [pl.when(~oldest).then(name).alias(name) for name in ("page", "document")]
    known = tablets(operation.files("state"))
    frames = [rows.with_columns(names) for one in known for rows in fold_tablet(table, STATE, one)]
    replaced = tuple(path for one in known for path in one.paths)
    commit(operation, [Written("state", write_bases(table, "state", frames), replaced)])
    return table


def pass_time(table, days):
    for path in table.rglob("*"):
        if path.is_file():
            then = path.stat().st_mtime - days * DAY
            os.utime(path, (then, then))


def live_paths(table, name):
    """Returns the present path of each file that rows of the state name."""
    web_table, manifest = open_table(str(table)), manifest_of(table)
    named = set(state_of(table)[name].drop_nulls())
    return {path: live_file(web_table, manifest, path).path for path in named}


def rows_without(table, name):
    """Returns the keys of rows of the state whose file does not have them."""
    paths = live_paths(table, name)
    keys = {path: set(pl.read_parquet(table / path)["key"]) for path in set(paths.values())}
    rows = state_of(table).select("key", name).drop_nulls().rows()
    return [key for key, path in rows if key not in keys[paths[path]]]


@pytest.mark.long
def test_superseded_bodies_go_by_age(crawled, tmp_path, capsys):
    table = tmp_path / "table"
    shutil.copytree(crawled, table)
    before, pages = contents(table), printed_pages(table, capsys)
    batches = set(manifest_of(table).batches)
    compact(table)  # all is young
    assert set(manifest_of(table).batches) == batches
    compact(table, "--snapshot_retention", "0", "--keep_batches", "100")
    assert set(manifest_of(table).batches) == batches
    compact(table, "--snapshot_retention", "0")
    left = set(manifest_of(table).batches)
    assert batches - left == {min(batches)}
    for name in ("state", "hosts"):  # of batches, not all is kept
        assert contents(table)[name].equals(before[name])
    assert printed_pages(table, capsys) == pages
    # All that rows name is there, under that name or a new one.
    for name in ("page", "document"):
        assert rows_without(table, name) == []
    for name in batches - left:
        assert not (table / "batches" / name).exists()
    documents = [table / path for path in set(live_paths(table, "document").values())]
    assert len(collect(scan(documents, DOCUMENTS))) >= len(pages)
    # And the table goes on.
    with SimWeb(hosts=2, pages=8, seed=7, crawl_delay=0) as web:
        assert nutbeam("crawl", table, "--rounds", "1", "--add_days", "62", *reach(web)) == 0
    compact(table)


@pytest.mark.long
def test_retention_keeps_the_snapshots_that_readers_need(crawled, tmp_path):
    table = tmp_path / "table"
    shutil.copytree(crawled, table)
    snapshot = manifest_of(table).snapshot
    compact(table, "--full", "true")
    assert len(list((table / "manifest").glob("*.json"))) == snapshot + 1
    pass_time(table, 8)
    compact(table)
    kept = [int(path.stem) for path in (table / "manifest").glob("*.json")]
    assert sorted(kept) == [snapshot + 1, snapshot + 2]
    assert nutbeam("readdb", table) == 0


@pytest.mark.long
def test_bodies_that_a_purge_rewrote_stay(crawled, tmp_path, capsys):
    """Rows of the state go on naming the files that those have taken the place of."""
    table = tmp_path / "table"
    shutil.copytree(crawled, table)
    named = set(state_of(table)["document"].drop_nulls())
    (page, *_) = [row for row in json_lines_of(table, capsys) if row["url"].endswith(".html")]
    assert nutbeam("purge", table, "--url", page["url"]) == 0
    pages = printed_pages(table, capsys)
    assert set(state_of(table)["document"].drop_nulls()) <= named
    compact(table, "--snapshot_retention", "0")
    assert printed_pages(table, capsys) == pages
    assert pages
    assert nutbeam("fsck", table) == 0


def json_lines_of(table, capsys):
    return [json.loads(line) for line in printed_pages(table, capsys)]
