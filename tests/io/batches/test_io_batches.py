import dataclasses

import polars as pl
import pytest
from crawling import manifest_at
from frames import frame_of, table_of

from nutbeam.io.batches.batches import (
    adopted_pages,
    batch_component,
    batch_files,
    claimed_keys,
    named_documents,
    page_name,
    page_order,
    write_file,
)
from nutbeam.io.snapshots.commit import CommitTerms, commit
from nutbeam.io.snapshots.entries import Batch
from nutbeam.io.snapshots.manifest import Manifest
from nutbeam.io.snapshots.operations import begin
from nutbeam.io.storage.parquet_files import collect, scan
from nutbeam.io.tablets.written import Written
from nutbeam.policy.components.document_schema import DOCUMENTS
from nutbeam.policy.components.schema import FETCHLIST, OUTCOME, PAGES

KEYS = [f"com.example:http/{n}" for n in range(9)]


def rows(*keys):
    return frame_of(OUTCOME, *({"key": key} for key in keys))


def none_barred(keys):
    return pl.repeat(False, len(keys), eager=True)


def test_a_file_is_described_by_its_rows_bytes_and_key_range(tmp_path):
    tables = [rows("c", "b"), rows("d").to_arrow(), rows(), table_of(OUTCOME, {"key": None})]
    file = write_file(tmp_path, "1-x", "outcome", iter(tables), partition=3, order=4)
    assert file.path.startswith("batches/1-x/outcome/")
    path = tmp_path / file.path
    assert (file.rows, file.bytes, file.first, file.last) == (4, path.stat().st_size, "b", "d")
    assert (file.partition, file.order) == (3, 4)
    assert collect(scan([path], OUTCOME))["key"].to_list() == ["c", "b", "d", None]


@pytest.mark.parametrize("tables", [[], [rows()]])
def test_a_file_of_no_rows(tmp_path, tables):
    file = write_file(tmp_path, "1-x", "outcome", tables)
    assert (file.rows, file.first, file.last) == (0, None, None)


def test_documents_that_rows_name_are_those_of_pages_wherever_their_file_is_now(tmp_path):
    """A feed in an earlier row group has a part with the URL of the page."""
    given = [
        {"key": "com.a:http/news", "refresh": "part", "part_of": "com.a:http/feed"},
        {"key": "com.a:http/news", "refresh": "page"},
        {"key": "com.a:http/talk", "refresh": "talk"},
    ]
    groups = [frame_of(DOCUMENTS, row) for row in given]
    file = write_file(tmp_path, "1-x", "documents", groups)
    moved = dataclasses.replace(file, formerly="batches/1-x/documents/before.parquet")
    operation = begin(str(tmp_path), "parse", "1-x.parse")
    commit(operation, [Written(batch_component("1-x", "documents"), (moved,))])
    manifest = manifest_at(str(tmp_path), operation.snapshot + 1)
    named = frame_of(
        DOCUMENTS, {"key": "com.a:http/news"}, {"key": "com.a:http/talk"}, {"key": "com.a:http/x"}
    ).select("key", document=pl.Series([moved.formerly, moved.path, "batches/0/documents/gone"]))
    found = named_documents(tmp_path, manifest, named, ("key", "refresh"))
    assert sorted(found.rows()) == [("com.a:http/news", "page"), ("com.a:http/talk", "talk")]


def test_names_are_new_unless_given(tmp_path):
    one, two = (write_file(tmp_path, "1-x", "outcome", []).path for _ in range(2))
    assert one != two
    named = write_file(tmp_path, "1-x", "outcome", [], name="n.parquet")
    assert named.path == f"{batch_component('1-x', 'outcome')}/n.parquet"


def test_a_writer_that_fails_leaves_no_file(tmp_path):
    def tables():
        yield rows("a")
        raise RuntimeError("stop")

    with pytest.raises(RuntimeError):
        write_file(tmp_path, "1-x", "outcome", tables())
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []


def test_files_of_a_batch(tmp_path):
    operation = begin(str(tmp_path), "fetch", "op", batch="1-x")
    files = [write_file(tmp_path, "1-x", "pages", [], order=n) for n in (2, 1)]
    commit(operation, [Written(batch_component("1-x", "pages"), tuple(files))])
    manifest = manifest_at(tmp_path, 1)
    assert batch_files(tmp_path, manifest, "1-x", "pages") == files[::-1]
    assert batch_files(tmp_path, manifest, "1-x", "documents") == []
    assert batch_files(tmp_path, manifest, "1-y", "pages") == []


def test_earlier_attempts_come_first():
    orders = [page_order(*attempt) for attempt in [(1, 0), (1, 1), (1, 99_999), (2, 0)]]
    assert orders == sorted(set(orders))


def test_files_that_earlier_attempts_flushed_are_adopted(tmp_path):
    def flush(partition, started, sequence, *keys):
        return write_file(
            tmp_path, "1-x", "pages", [table_of(PAGES, *({"key": key} for key in keys))],
            partition=partition, order=page_order(started, sequence),
            name=f"p{partition:05d}-{started:013d}-abcd-{sequence:05d}.parquet",
        )  # fmt: skip

    mine = [flush(1, 5, 1, "c"), flush(1, 5, 0, "b", "a"), flush(1, 9, 0)]
    flush(2, 5, 0, "z")
    (tmp_path / batch_component("1-x", "pages") / ".p00001-5-abcd-00002.parquet.writing").touch()
    found = adopted_pages(tmp_path, "1-x", 1, none_barred)
    assert found == [mine[1], mine[0], mine[2]]
    assert adopted_pages(tmp_path, "1-x", 3, none_barred) == []
    assert adopted_pages(tmp_path, "1-y", 1, none_barred) == []


def test_a_page_that_two_attempts_flushed_is_adopted_once(tmp_path):
    def flush(started, token, *groups):
        tables = [table_of(PAGES, *({"key": key, "body": b"x"} for key in keys)) for keys in groups]
        name = page_name(1, started, token, 0)
        return write_file(
            tmp_path, "1-x", "pages", tables, partition=1, order=page_order(started, 0), name=name
        )

    flush(5, "aa", "bc", "d")
    flush(5, "bb", "ab", "cd", "ef")  # by one who began at the same time, superseded and late
    flush(7, "cc", "a", "f")  # nothing new
    last = flush(8, "dd", "g")
    for _ in range(3):  # also if the rewritten files are there
        found = adopted_pages(tmp_path, "1-x", 1, none_barred)
        keys = [collect(scan([tmp_path / f.path], PAGES))["key"].to_list() for f in found]
        assert sorted(key for part in keys for key in part) == list("abcdefg")
        assert [file.rows for file in found] == [len(part) for part in keys]
        assert [(f.first, f.last) for f in found] == [(min(part), max(part)) for part in keys]
        orders = [file.order for file in found]
        assert len(set(orders)) == len(orders)
        assert last in found
        for file in found:
            assert file.bytes == (tmp_path / file.path).stat().st_size
    assert not list((tmp_path / "batches/1-x/pages").glob(".*"))


@pytest.fixture
def table(tmp_path):
    """A table with two open batches: the even keys, and 1, 3, 5."""
    for name, chosen in (("1-x", KEYS[::2]), ("2-y", KEYS[1:6:2])):
        operation = begin(str(tmp_path), "generate", name, batch=name, now=0)
        halves = [chosen[:2], chosen[2:]]
        files = [
            write_file(
                tmp_path, name, "fetchlist", [table_of(FETCHLIST, *({"key": k} for k in half))]
            )
            for half in halves
        ]
        commit(
            operation,
            [Written(batch_component(name, "fetchlist"), tuple(files))],
            CommitTerms(batch=Batch("generated", 0, 1, len(chosen), 99)),
        )
    return tmp_path


@pytest.mark.parametrize(
    ("batches", "low", "high", "expected"),
    [
        (["1-x"], None, None, "02468"),
        (["1-x", "2-y"], None, None, "01234568"),
        (["1-x", "2-y"], KEYS[2], KEYS[5], "2345"),
        (["1-x"], KEYS[3], KEYS[3], ""),
        (["2-y"], KEYS[6], None, ""),
        (["2-y"], None, KEYS[3], "13"),
        ([], None, None, ""),
        (["3-z"], None, None, ""),
    ],
)
def test_claimed_keys(table, batches, low, high, expected):
    found = claimed_keys(table, manifest_at(table, 2), batches, low, high)
    assert sorted(key[-1] for key in found) == list(expected)


def test_nothing_is_claimed_in_a_new_table(tmp_path):
    assert claimed_keys(tmp_path, Manifest(), [], None, None).to_list() == []
