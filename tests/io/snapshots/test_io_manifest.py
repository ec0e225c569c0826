import dataclasses
import json
import shutil

import pytest
from crawling import latest_snapshot, manifest_at
from dropping import as_nobody

from nutbeam.io.snapshots.entries import Batch
from nutbeam.io.snapshots.manifest import MANIFEST_FORMAT, Manifest, store_manifest
from nutbeam.io.table.folder_table import manifest_path
from nutbeam.io.table.opening import open_table
from nutbeam.io.tablets.file_lists import Component, DataFile, load_files, store_files
from nutbeam.web.base.errors import UserError

FILE = DataFile("state/a", 3, 100, "com.a:http/", "com.b:http/", None, 0, 0, 1, 2, 0.5, 6)
MANIFEST = Manifest(
    snapshot=3,
    operation="1-x.update",
    job="update",
    batch="2-y",
    time=4,
    counts={"added": 5},
    components={"state": Component("manifest/lists/state-1.parquet", 1, 3, 100)},
    batches={"2-y": Batch("updated", 4, 1, 10, 99)},
)


def damage(path, change):
    record = json.loads(path.read_text())
    change(record)
    path.write_text(json.dumps(record))


def copy_of(folder):
    """Copies a table: the process that has written its manifests and lists does not read them."""
    return shutil.copytree(folder, folder.with_name(f"{folder.name}-copy"))


def manifest_in_copy(folder):
    return manifest_at(copy_of(folder), 3)


@pytest.fixture
def stored(tmp_path):
    assert store_manifest(open_table(str(tmp_path)), MANIFEST)
    return manifest_path(tmp_path, 3)


def test_a_manifest_comes_back(tmp_path, stored):
    assert stored.name == "00000003.json"
    assert manifest_at(tmp_path, 3) == manifest_in_copy(tmp_path) == MANIFEST
    assert latest_snapshot(tmp_path) == 3


@pytest.mark.parametrize(
    ("taken_in", "fields"),
    [
        ((), {"deduped": False, "inverted": False, "taken_in": []}),
        (("links",), {"deduped": False, "inverted": True, "taken_in": []}),
        (("b", "dedup", "a"), {"deduped": True, "inverted": False, "taken_in": ["a", "b"]}),
    ],
)
def test_consumers_of_a_batch_are_stored_in_the_fields_of_older_versions(
    tmp_path, taken_in, fields
):
    batch = dataclasses.replace(MANIFEST.batches["2-y"], taken_in=frozenset(taken_in))
    made = dataclasses.replace(MANIFEST, batches={"2-y": batch})
    assert store_manifest(open_table(str(tmp_path)), made)
    record = json.loads(manifest_path(tmp_path, 3).read_text())["batches"]["2-y"]
    assert {name: record[name] for name in fields} == fields
    assert manifest_at(tmp_path, 3) == manifest_in_copy(tmp_path) == made


@pytest.mark.parametrize("flags", [{}, {"deduped": True}, {"deduped": True, "inverted": True}])
def test_an_older_record_of_a_batch_is_read(tmp_path, stored, flags):
    def change(record):
        older = record["batches"]["2-y"]
        for name in ("deduped", "inverted", "taken_in"):
            del older[name]
        older.update(flags)
        del record["digest"]

    damage(stored, change)
    names = {"deduped": "dedup", "inverted": "links"}
    assert manifest_at(tmp_path, 3).batches["2-y"].taken_in == {names[flag] for flag in flags}


def test_a_number_is_given_once(tmp_path, stored):
    other = dataclasses.replace(MANIFEST, operation="other")
    assert store_manifest(open_table(str(tmp_path)), other) is False
    assert manifest_at(tmp_path, 3) == MANIFEST


def test_before_the_first_commit(tmp_path):
    assert latest_snapshot(tmp_path) == 0
    assert manifest_at(tmp_path, 0) == Manifest()


def test_the_newest_snapshot_by_number_not_by_name(tmp_path):
    for number in (9, 10, 123_456_789):
        store_manifest(open_table(str(tmp_path)), dataclasses.replace(MANIFEST, snapshot=number))
    for stray in (".00000999.json.abc", "lists", "notes.json", "00000999.json.bak"):
        (tmp_path / "manifest" / stray).touch()
    assert latest_snapshot(tmp_path) == 123_456_789
    assert manifest_at(tmp_path, 123_456_789).snapshot == 123_456_789


def test_fields_that_a_newer_version_adds_are_ignored(tmp_path, stored):
    def change(record):
        record["new"] = record["components"]["state"]["new"] = record["batches"]["2-y"]["new"] = 1
        del record["digest"]  # that version has one of its own making

    damage(stored, change)
    assert manifest_at(tmp_path, 3) == MANIFEST


def test_a_newer_format_is_refused(tmp_path, stored):
    damage(stored, lambda record: record.update(format=MANIFEST_FORMAT + 1))
    with pytest.raises(
        UserError,
        match=rf"has format {MANIFEST_FORMAT + 1}, this version reads up to {MANIFEST_FORMAT}: upgrade",
    ):
        manifest_at(tmp_path, 3)


@pytest.mark.parametrize("part", [0.0, 0.01, 0.5, 0.99])
def test_a_manifest_cut_short(tmp_path, stored, part):
    data = stored.read_bytes()
    stored.write_bytes(data[: int(len(data) * part)])
    with pytest.raises(UserError, match=r"^manifest is damaged: .*00000003.json: [^\n]+$"):
        manifest_at(tmp_path, 3)


@pytest.mark.parametrize(
    "text",
    ["[]", "null", "{}", '{"format": "1"}', '{"format": 1}', "\ud800", '"a"',
     '{"format": 1, "components": null, "batches": {}}',
     '{"format": 1, "components": {"state": 1}, "batches": {}}',
     '{"format": 1, "components": {"state": {}}, "batches": {}, "snapshot": 3}',
     '{"format": 1, "components": {}, "batches": {}, "snapshot": 2}'],
)  # fmt: skip
def test_a_manifest_that_is_none(tmp_path, stored, text):
    stored.write_bytes(text.encode("utf-8", "surrogatepass"))
    with pytest.raises(UserError, match=r"^manifest is damaged: .*00000003.json: [^\n]+$"):
        manifest_at(tmp_path, 3)


def test_a_manifest_is_read_again_if_its_file_was_replaced(tmp_path, stored):
    manifest_at(tmp_path, 3)
    stored.unlink()
    store_manifest(open_table(str(tmp_path)), dataclasses.replace(MANIFEST, operation="other"))
    assert manifest_at(tmp_path, 3).operation == "other"


def test_a_manifest_that_is_missing(tmp_path, stored):
    manifest_at(tmp_path, 3)
    stored.unlink()
    with pytest.raises(UserError, match=r"is missing: .*00000003.json"):
        manifest_at(tmp_path, 3)


def test_a_table_that_is_a_file(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(UserError, match=r"^cannot read table .*file: Not a directory$"):
        latest_snapshot(tmp_path / "file")


def test_a_table_that_may_not_be_written(locked):
    error = as_nobody(store_manifest, open_table(str(locked / "table")), MANIFEST)
    assert isinstance(error, UserError)
    assert str(error).endswith("Permission denied")


@pytest.mark.parametrize("files", [[], [FILE], [DataFile("a", 0, 1), DataFile("b", 1, 2)]])
def test_file_lists_come_back(tmp_path, files):
    component = store_files(tmp_path, "batches/1/pages", files)
    assert (component.files, component.rows) == (len(files), sum(file.rows for file in files))
    assert load_files(tmp_path, component) == load_files(copy_of(tmp_path), component) == files
    assert store_files(tmp_path, "batches/1/pages", files).list != component.list


def test_files_are_in_key_order_or_in_the_order_of_their_batch(tmp_path):
    tablets = [DataFile(name, 1, 1, first=name) for name in "cab"]
    places = [(1, 5), (0, 9), (1, 2)]
    pages = [DataFile(f"{p}-{o}", 1, 1, partition=p, order=o) for p, o in places]
    components = [store_files(tmp_path, "state", tablets), store_files(tmp_path, "pages", pages)]
    for folder in (tmp_path, copy_of(tmp_path)):
        paths = [[file.path for file in load_files(folder, one)] for one in components]
        assert paths == [["a", "b", "c"], ["0-9", "1-2", "1-5"]]


def test_no_component_has_no_files(tmp_path):
    assert load_files(tmp_path, None) == []


def test_a_file_list_that_is_missing(tmp_path):
    component = store_files(tmp_path, "state", [FILE])
    (tmp_path / component.list).unlink()
    with pytest.raises(UserError, match=r"is missing: .*state-"):
        load_files(tmp_path, component)


@pytest.mark.parametrize("part", [0.0, 0.1, 0.5, 0.9, 0.99])
def test_a_file_list_cut_short(tmp_path, part):
    component = store_files(tmp_path, "state", [FILE])
    path = tmp_path / component.list
    data = path.read_bytes()
    path.write_bytes(data[: int(len(data) * part)])
    with pytest.raises(UserError, match=r"^file list is damaged: .*state-[^\n]*$"):
        load_files(tmp_path, component)


@pytest.mark.parametrize(
    ("phase", "blocks_until", "is_open"),
    [("generated", 11, True), ("parsed", 11, True), ("updated", 11, False), ("fetched", 10, False)],
)
def test_open_batches(phase, blocks_until, is_open):
    manifest = Manifest(batches={"b": Batch(phase, 0, 1, 1, blocks_until)})
    assert manifest.open_batches(now=10) == (["b"] if is_open else [])


@pytest.mark.parametrize(
    "fields",
    [
        {"rules": None}, {"rules": [1]}, {"rules": {"scope": {}}}, {"rules": {"depth": 2**53 + 1}},
        {"options": {"parsed": [1]}}, {"options": {"updated": {"exclude": [["x"]]}}},
        {"options": {"min_score": float("nan")}}, {"options": {"top_n": {"a": 1}}},
    ],
)  # fmt: skip
def test_options_and_rules_that_cannot_be_are_damage(tmp_path, fields):
    made = dataclasses.replace(MANIFEST, **fields)
    assert store_manifest(open_table(str(tmp_path)), made)
    with pytest.raises(UserError, match=r"^manifest is damaged: .*00000003.json: [^\n]+$"):
        manifest_in_copy(tmp_path)


def test_options_and_rules_of_jobs_come_back(tmp_path):
    rules = {"scope": "host", "exclude": ["/a", "b"], "depth": 2, "max_parameters": None}
    options = {"parsed": rules, "updated": {}, "min_score": 0.5, "filter": False}
    made = dataclasses.replace(MANIFEST, rules=rules, options=options)
    assert store_manifest(open_table(str(tmp_path)), made)
    assert manifest_at(tmp_path, 3) == manifest_in_copy(tmp_path) == made
