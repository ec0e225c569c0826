"""What a sweep deletes, and above all what it does not."""

import dataclasses
import os
import time

import polars as pl
import pytest
from crawling import files_of, latest_snapshot, manifest_at
from growing_old import DAY, WEEK, file_name, make, pass_time, paths, put, written

from nutbeam.io.snapshots.commit import CommitTerms, commit
from nutbeam.io.snapshots.entries import Batch
from nutbeam.io.snapshots.manifest import store_manifest
from nutbeam.io.snapshots.operations import Operation, begin, find_commit, pinned_operation
from nutbeam.io.snapshots.rounds import history
from nutbeam.io.storage.file_errors import MissingFile, SnapshotTooOld
from nutbeam.io.table.opening import open_table
from nutbeam.io.tablets.file_lists import DataFile, load_files
from nutbeam.io.tablets.written import Written
from nutbeam.io.upkeep import retention as module
from nutbeam.io.upkeep.compaction import KEPT_UNTIL, superseded_files
from nutbeam.io.upkeep.file_shares import LiveRows, Share, count_named_files, sum_rows
from nutbeam.io.upkeep.purge import delete_purged
from nutbeam.io.upkeep.retention import delete_expired, disturbed_by, is_cleaned
from nutbeam.io.upkeep.rollback import roll_back
from nutbeam.policy.components.blocklist import Names
from nutbeam.policy.components.declaration import Flushed, Kept, Kind, Owner
from nutbeam.policy.components.kinds import KINDS
from nutbeam.policy.purging import purge_of
from nutbeam.web.base.errors import UsageError, UserError


def assert_whole(root):
    """Asserts that all snapshots that are there can be read."""
    assert latest_snapshot(root) == 3
    for path in (root / "manifest").glob("*.json"):
        for component in manifest_at(root, int(path.stem)).components.values():
            assert all((root / file.path).exists() for file in load_files(root, component))


def test_only_adoptable_files_of_an_open_batch_are_kept(table):
    known = {"phase": "generated", "created": 1, "partitions": 1, "urls": 1, "blocks_until": 9}
    make(table, "g", batch="1-b", job="generate", **known)
    kept = [
        f"batches/1-b/{name}"
        for name in ("host_findings/l", "leases/p00000-000001.claim", "pages/p")
    ]
    gone = ["aside/a.arrow", "documents/d", "fetchlist/f", "outcome/o", "pages/.p.parquet.writing"]
    for path in [*kept, *(f"batches/1-b/{name}" for name in gone)]:
        put(table, path)
    assert delete_expired(open_table(str(table)), WEEK) == {}
    pass_time(table, 8)
    delete_expired(open_table(str(table)), WEEK)
    assert paths(table, "batches") == kept
    assert not (table / "batches" / "1-b" / "aside").exists()


def test_nothing_that_is_young_goes(table):
    before = paths(table, ".")
    put(table, "state/orphan")
    assert delete_expired(open_table(str(table)), WEEK) == {}
    assert paths(table, ".") == sorted([*before, "state/orphan"])


def test_old_snapshots_go_with_all_that_only_they_name(table):
    put(table, "state/orphan")
    put(table, "state/.d.parquet.writing")
    put(table, "batches/17-gone/aside/f.arrow")
    put(table, "exports/17-0a1b2c3d/part-00000001.json")
    pass_time(table, 8)
    put(table, "state/young")
    counts = delete_expired(open_table(str(table)), WEEK)
    assert counts["deleted/snapshots"] == 2
    assert paths(table, "state") == ["state/all", "state/c", "state/young"]
    assert [path.name for path in (table / "manifest").glob("*.json")] == ["00000003.json"]
    assert paths(table, "manifest/lists") == [
        component.list for component in manifest_at(table, 3).components.values()
    ]
    assert paths(table, "operations", "batches", "exports") == []
    assert not (table / "batches" / "17-gone").exists()
    assert_whole(table)
    assert delete_expired(open_table(str(table)), WEEK) == {}


def test_snapshots_that_were_the_newest_within_the_retention_are_kept(table):
    pass_time(table, 8)
    (table / "manifest" / "00000003.json").touch()  # so snapshot 2 was the newest until now
    delete_expired(open_table(str(table)), WEEK)
    assert paths(table, "state") == ["state/all", "state/b", "state/c"]
    assert_whole(table)


def test_a_reader_of_a_deleted_snapshot_gets_snapshot_too_old(table):
    reader = Operation(str(table), "late", "generate", 1, 0, 0)
    assert reader.files("state")
    pass_time(table, 8)
    delete_expired(open_table(str(table)), WEEK)
    for read in (lambda: reader.files("state"), lambda: read_missing(reader)):
        with pytest.raises(SnapshotTooOld, match=r"^snapshot too old: 1 of table \S+ was deleted"):
            read()
    with pytest.raises(UserError, match=r"^data file is missing"):
        read_missing(Operation(str(table), "new", "generate", 3, 0, 0))


def read_missing(operation):
    with operation.reading():
        raise MissingFile("data file is missing: state/a")


@pytest.mark.parametrize(("job", "kept"), [("dedup", True), ("crawl", False), ("update", False)])
def test_the_snapshot_of_an_operation_that_is_under_way_is_kept(table, job, kept):
    pass_time(table, 8)
    begin(str(table), job, f"late.{job}", batch="closed")
    (table / "operations" / f"late.{job}.json").write_text(
        (table / "operations" / f"late.{job}.json")
        .read_text()
        .replace('"snapshot": 3', '"snapshot": 1')
    )
    put(table, "state/written-by-it")
    delete_expired(open_table(str(table)), 0)
    # A crawl commits nothing itself: that it is there does not mean that it goes on.
    # And what has nothing left to do on its batch commits nothing either.
    assert ("state/a" in paths(table, "state")) == kept
    assert ("state/written-by-it" in paths(table, "state")) == kept
    assert_whole(table)
    pass_time(table, 2)
    delete_expired(open_table(str(table)), 0)
    assert paths(table, "state") == ["state/all", "state/c"]
    assert paths(table, "operations") == []


def test_a_crawl_goes_on_for_as_long_as_its_phases_do(table):
    begin(str(table), "crawl", "17-ab.crawl")
    pass_time(table, 8)
    begin(str(table), "fetch", "17-ab.2.fetch", batch="b")
    delete_expired(open_table(str(table)), WEEK)
    assert paths(table, "operations") == [
        "operations/17-ab.2.fetch.json",
        "operations/17-ab.crawl.json",
    ]
    pass_time(table, 8)
    delete_expired(open_table(str(table)), WEEK)
    assert paths(table, "operations") == []


@pytest.mark.parametrize(
    ("phase", "kept"), [("generated", True), ("fetched", False), ("updated", False)]
)
def test_flushed_files_of_a_batch_that_waits_for_its_fetch_are_kept(table, phase, kept):
    put(table, "batches/b1/pages/p00000-1-a-00001.parquet")
    known = {"phase": phase, "created": 1, "partitions": 1, "urls": 1, "blocks_until": 1}
    operation = begin(str(table), "fetch", "four.fetch", batch="b1")
    pass_time(table, 8)
    manifest = manifest_at(table, 3)
    assert manifest.snapshot == 3
    commit(operation, [written(table, "batches/b1/fetchlist", "batches/b1/fetchlist/f")],
           CommitTerms(others={"b1": Batch(**known)}))  # fmt: skip
    pass_time(table, 8)
    delete_expired(open_table(str(table)), WEEK)
    assert "batches/b1/fetchlist/f" in paths(table, "batches")
    assert ("batches/b1/pages/p00000-1-a-00001.parquet" in paths(table, "batches")) == kept


@pytest.mark.parametrize(
    ("flushed", "kept"), [(Flushed.ADOPTED, True), (Flushed.REPLACED, False), (None, False)]
)
def test_the_declaration_of_a_component_decides_whether_flushed_files_are_kept(
    table, monkeypatch, flushed, kept
):
    kind = Kind("drafts", KINDS["pages"].columns, owner=Owner.BATCH, flushed=flushed)
    monkeypatch.setitem(KINDS, "drafts", kind)
    put(table, "batches/b1/drafts/p00000-1-a-00001.parquet")
    make(table, "more", written(table, "batches/b1/fetchlist", "batches/b1/fetchlist/f"),
         batch="b1", phase="generated", created=1, partitions=1, urls=1, blocks_until=1)  # fmt: skip
    pass_time(table, 8)
    delete_expired(open_table(str(table)), WEEK)
    assert ("batches/b1/drafts/p00000-1-a-00001.parquet" in paths(table, "batches")) == kept


@pytest.mark.parametrize(
    ("kept", "document", "dropped"),
    [
        (Kept.ALWAYS, "d", []),
        (Kept.NAMED, "d", ["b"]),
        (Kept.WITH_DOCUMENTS, "d", []),
        (Kept.WITH_DOCUMENTS, "other", ["a", "b"]),
        (Kept.NO_LONGER, "d", ["a", "b"]),
    ],
)
def test_the_declaration_of_a_component_decides_which_files_compact_keeps(
    table, monkeypatch, kept, document, dropped
):
    kind = Kind("drafts", KINDS["pages"].columns, owner=Owner.BATCH, kept=kept)
    monkeypatch.setitem(KINDS, "drafts", kind)
    names = {kind: f"batches/b1/{kind}/" for kind in ("drafts", "documents")}
    drafts = written(table, "batches/b1/drafts", names["drafts"] + "a", names["drafts"] + "b")
    documents = written(table, "batches/b1/documents", names["documents"] + "d")
    make(table, "more", drafts, documents)
    named = rows_that_name(
        file_name(names["drafts"] + "a"), file_name(names["documents"] + document)
    )
    operation = begin(str(table), "compact", "one.compact")
    parts = {part.component: part.replaced for part in superseded_files(operation, ["b1"], named)}
    found = list(parts.get("batches/b1/drafts", ()))
    assert found == [file_name(names["drafts"] + name) for name in dropped]


def rows_that_name(*files):
    """Returns what rows say that name each of some files once."""
    names = pl.Series(files, dtype=pl.String)
    counted = count_named_files(names, {"b1": Share(0, 1)})
    return LiveRows(sum_rows(rows for _, rows in counted))


def dropped_of_updated(table, kind, made, taken_in):
    """Returns the files of a kind that are dropped; a batch and a component of the table have some."""
    parts = [written(table, name, f"{name}/a") for name in (f"batches/b1/{kind}", made)]
    make(table, "more", *parts, batch="b1", phase="updated", created=1, partitions=1, urls=1,
         blocks_until=1, taken_in=frozenset(taken_in))  # fmt: skip
    operation = begin(str(table), "compact", "one.compact")
    return [
        path
        for part in superseded_files(operation, ["b1"], rows_that_name())
        for path in part.replaced
    ]


@pytest.mark.parametrize(
    ("made", "taken_in", "kept"),
    [("gists", {"links"}, True), ("gists", {"gists"}, False), ("others", {"links"}, False)],
)
def test_compact_keeps_files_until_a_component_has_taken_in_their_batch(
    table, monkeypatch, made, taken_in, kept
):
    columns = KINDS["pages"].columns
    for kind in (
        Kind("drafts", columns, owner=Owner.BATCH, kept=Kept.NO_LONGER),
        Kind("gists", columns),
    ):
        monkeypatch.setitem(KINDS, kind.name, kind)
    monkeypatch.setitem(KEPT_UNTIL, "drafts", "gists")
    dropped = dropped_of_updated(table, "drafts", made, taken_in)
    assert dropped == ([] if kept else [file_name("batches/b1/drafts/a")])


@pytest.mark.parametrize("taken_in", [{"dedup"}, {"dedup", "links"}])
def test_an_outcome_is_kept_until_the_links_of_its_batch_are_in_the_table(table, taken_in):
    dropped = dropped_of_updated(table, "outcome", "links", taken_in)
    assert dropped == ([file_name("batches/b1/outcome/a")] if "links" in taken_in else [])


def test_a_folder_that_stayed_empty_goes(table):
    for name in ("batches/dead/aside", "batches/new/aside"):
        (table / name).mkdir(parents=True)
    for path in (table / "batches/dead/aside", table / "batches/dead"):
        os.utime(path, (0, 0))
    delete_expired(open_table(str(table)), WEEK)
    assert [path.name for path in (table / "batches").iterdir()] == ["new"]


def test_copies_of_seeds_may_be_older_than_their_operation(table):
    put(table, "seeds/1.txt")
    delete_expired(open_table(str(table)), 0)
    assert paths(table, "seeds") == ["seeds/1.txt"]
    pass_time(table, 2)
    delete_expired(open_table(str(table)), 0)
    assert paths(table, "seeds") == []


def test_the_clock_is_the_stores(table, monkeypatch):
    pass_time(table, 6)
    real = time.time
    monkeypatch.setattr(time, "time", lambda: real() + 100 * DAY)
    assert delete_expired(open_table(str(table)), WEEK) == {}


def test_a_sweep_may_be_cut_off_anywhere(table, monkeypatch):
    put(table, "state/orphan")
    pass_time(table, 8)
    real = module.remove_file
    for allowed in range(30):
        left = iter(range(allowed))

        def remove(path, left=left):
            if next(left, None) is None:
                raise KeyboardInterrupt
            return real(path)

        monkeypatch.setattr(module, "remove_file", remove)
        try:
            delete_expired(open_table(str(table)), WEEK)
        except KeyboardInterrupt:
            assert_whole(table)
            continue
        break
    else:
        pytest.fail("it never ends")
    assert paths(table, "state") == ["state/all", "state/c"]
    assert allowed > 0


def test_a_damaged_operation_is_named(table):
    put(table, "operations/x.update.json", "{")
    with pytest.raises(UserError, match=r"^operation file is damaged: \S+x\.update\.json: "):
        delete_expired(open_table(str(table)), WEEK)


@pytest.mark.parametrize("retention", [0, WEEK])
def test_files_of_the_second_in_which_an_operation_began_are_kept(table, retention):
    """The clock of a store may have whole seconds."""
    begin(str(table), "compact", "slow.compact")
    put(table, "state/new")
    second = int(time.time())
    for path in table.rglob("*"):
        if path.name in ("new", "slow.compact.json"):
            os.utime(path, (second, second))
    delete_expired(open_table(str(table)), retention)
    assert "state/new" in paths(table, "state")


def test_the_way_back_ends_where_snapshots_went(table):
    pass_time(table, 10)
    roll_back(str(table), 1, "back.rollback")
    pass_time(table, 1)
    delete_expired(open_table(str(table)), 3 * DAY)  # the third was the newest until a day ago
    assert paths(table, "state") == ["state/a", "state/all", "state/c"]
    with pytest.raises(UsageError, match=r"snapshot 2 was deleted by compact .* has 3 to 4"):
        roll_back(str(table), 2, "again.rollback")
    roll_back(str(table), 3, "again.rollback")
    pass_time(table, 10)
    delete_expired(open_table(str(table)), 3 * DAY)
    assert paths(table, "state") == ["state/all", "state/c"]
    assert paths(table, "manifest") == [f"manifest/{n:08d}.json" for n in (5,)] + [
        manifest_at(table, 5).components["state"].list
    ]


def test_an_operation_whose_snapshot_is_deleted_is_not_reported_as_uncommitted(table):
    """As a sweep leaves it that was cut off before it deleted what is said of operations."""
    for number in (1, 2):
        (table / "manifest" / f"{number:08d}.json").unlink()
    first, third = (
        pinned_operation(str(table), "one.update"),
        pinned_operation(str(table), "three.update"),
    )
    assert find_commit(third).snapshot == 3
    for ask in (find_commit, history):
        with pytest.raises(SnapshotTooOld, match="snapshot too old: 2 "):
            ask(first)
    # Those that a repair has given up are not waited for.
    made = dataclasses.replace(manifest_at(table, 3), snapshot=4, operation="m.fsck", lost=(1, 2))
    assert store_manifest(open_table(str(table)), made)
    assert find_commit(first) is None
    assert sorted(history(first)) == ["m.fsck", "three.update"]


def test_rolled_back_operations_are_under_way_only_if_they_may_come_again(table):
    assert disturbed_by(open_table(str(table)), "compact") == []
    roll_back(str(table), 1, "back.rollback")
    # Pinned before the first snapshot or after it: done, or to be pinned again.
    assert disturbed_by(open_table(str(table)), "compact") == ["two.update"]
    again = begin(str(table), "update", "three.update")
    assert (again.snapshot, again.idle) == (4, "")
    assert disturbed_by(open_table(str(table)), "compact") == ["three.update", "two.update"]
    commit(again, [])
    assert disturbed_by(open_table(str(table)), "compact") == ["two.update"]


def test_lost_snapshots_and_purged_lists_are_not_read(table):
    latest = manifest_at(table, 3)
    (table / manifest_at(table, 1).components["state"].list).unlink()
    (table / "manifest" / "00000002.json").write_text("{")
    made = dataclasses.replace(latest, snapshot=4, operation="mend.fsck", lost=(2,))
    assert store_manifest(open_table(str(table)), made)
    pass_time(table, 10)
    delete_expired(open_table(str(table)), WEEK)
    assert paths(table, "state") == ["state/all", "state/c"]
    assert latest_snapshot(table) == 4


OUTSIDE = "0123456789abcdef.parquet"


@pytest.fixture
def outside(tmp_path_factory):
    """A folder that belongs to no table; its file is old, and has a name as jobs make it."""
    folder = tmp_path_factory.mktemp("outside")
    (folder / OUTSIDE).write_text("precious")
    os.utime(folder / OUTSIDE, (0, 0))
    return folder


def swept(table, names):
    """Sweeps a table as compact does, and as a purge does at once; no snapshot is kept but the last."""
    pass_time(table, 8)
    delete_expired(open_table(str(table)), 0)
    operation = begin(str(table), "purge", "p.purge")
    made = commit(operation, [])
    delete_purged(open_table(str(table)), made.snapshot, purge_of(names))


@pytest.mark.parametrize("link", ["state/x", "batches/x", "exports/x", "operations/x", "seeds/x"])
def test_a_sweep_follows_no_link_in_a_folder(table, outside, link):
    (table / link).parent.mkdir(exist_ok=True)
    (table / link).symlink_to(outside)
    (table / f"{link}-file").symlink_to(outside / OUTSIDE)
    swept(table, Names(hosts=("com.example.a",)))
    assert (outside / OUTSIDE).read_text() == "precious"
    assert (table / link).is_symlink()
    assert (table / f"{link}-file").is_symlink()


@pytest.mark.parametrize("folder", ["batches", "hosts", "exports", "seeds", "changes"])
def test_a_sweep_deletes_nothing_where_a_folder_that_is_a_link_has_no_file_of_the_table(
    table, outside, folder
):
    (table / folder).symlink_to(outside)
    (outside / "empty").mkdir()
    os.utime(outside / "empty", (0, 0))
    swept(table, Names(hosts=("com.example.a",)))
    assert sorted(path.name for path in outside.iterdir()) == [OUTSIDE, "empty"]


@pytest.mark.parametrize("name", [".profile", "manifest/made/00000001"])
def test_a_file_with_a_well_known_name_does_not_prove_that_a_linked_folder_is_ours(
    table, outside, name
):
    (outside / name).parent.mkdir(parents=True, exist_ok=True)
    (outside / name).write_text("known")
    old = outside / "mine" / "pages" / OUTSIDE
    old.parent.mkdir(parents=True)
    old.write_text("precious")
    os.utime(old, (0, 0))
    (table / "batches").symlink_to(outside)
    operation = begin(str(table), "parse", "p.parse")
    size = (outside / name).stat().st_size
    listed = Written("batches/1/pages", (DataFile(f"batches/{name}", 1, size),))
    commit(operation, [listed])
    swept(table, Names(hosts=("com.example.a",)))
    assert old.read_text() == "precious"


@pytest.mark.parametrize("folder", ["history", "state"])
def test_a_folder_that_leads_into_another_table_is_not_followed(table, tmp_path, folder):
    other = tmp_path / "other"
    (other / "manifest").mkdir(parents=True)
    (other / "manifest" / "00000001.json").write_text("{}")
    assert not is_cleaned_link(table, folder, other)


def is_cleaned_link(table, folder, target):
    """Returns whether cleaning deletes files of a folder that becomes a link."""
    if (table / folder).exists():
        (table / folder).rename(table.parent / "moved")
    (table / folder).symlink_to(target)
    return is_cleaned(open_table(str(table)), folder)


def test_a_folder_on_another_disk_is_swept(table, outside):
    put(table, "state/orphan")
    (table / "state").rename(outside / "state")
    (table / "state").symlink_to(outside / "state")
    for path in (outside / "state").iterdir():
        os.utime(path, (path.stat().st_mtime - 8 * DAY,) * 2)
    pass_time(table, 8)
    delete_expired(open_table(str(table)), WEEK)
    kept = {path.name for path in files_of(table, "state")}
    assert {path.name for path in (outside / "state").iterdir()} == kept


def test_files_that_no_job_made_stay(table):
    for name in ("state/notes.txt", "exports/mine.csv", "operations/notes.txt", "batches/README"):
        (table / name).parent.mkdir(exist_ok=True)
        (table / name).write_text("http://a.example.com/")
    swept(table, Names(hosts=("com.example.a",)))
    for name in ("state/notes.txt", "exports/mine.csv", "operations/notes.txt", "batches/README"):
        assert (table / name).read_text() == "http://a.example.com/"


def test_the_time_of_a_file_that_has_another_name_elsewhere_stays(table, outside):
    late = time.time() + 99 * DAY
    for path in (outside / OUTSIDE, outside / "b"):
        path.write_text("backup")
        os.utime(path, (late, late))
    os.link(outside / OUTSIDE, table / "state" / OUTSIDE)
    (table / "state" / "fedcba9876543210.parquet").symlink_to(outside / "b")
    delete_expired(open_table(str(table)), WEEK)
    assert [(outside / name).stat().st_mtime for name in (OUTSIDE, "b")] == [late, late]
