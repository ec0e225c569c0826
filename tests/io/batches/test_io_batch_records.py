"""Rows of a batch, joined by key: each URL once, also after attempts that were superseded."""

import pyarrow as pa
import pytest

from nutbeam.io.batches.batch_records import RowColumns, read_batch
from nutbeam.io.batches.batches import batch_component, write_file
from nutbeam.io.snapshots.commit import CommitTerms, commit
from nutbeam.io.snapshots.entries import Batch
from nutbeam.io.snapshots.operations import begin
from nutbeam.io.snapshots.pinned import Snapshot
from nutbeam.io.tablets.written import Written
from nutbeam.policy.components.document_schema import DOCUMENTS
from nutbeam.policy.components.schema import FETCHLIST, PAGES

SCHEMAS = {"fetchlist": FETCHLIST, "pages": PAGES, "documents": DOCUMENTS}


@pytest.fixture
def pinned(tmp_path):
    """Two files of pages: the second one has a page again, and its text and a part of it."""
    operation = begin(str(tmp_path / "t"), "test", "one")
    files = {kind: [] for kind in SCHEMAS}

    def add(kind, *rows, partition=0, order=0):
        table = pa.Table.from_pylist(list(rows), SCHEMAS[kind])
        root = operation.table.files
        files[kind].append(write_file(root, "1-a", kind, [table], partition=partition, order=order))

    add("fetchlist", *({"key": f"com.{name}:http/"} for name in "abd"))
    add("pages", {"key": "com.a:http/", "ip": "1"}, {"key": "com.b:http/", "ip": "1"}, order=1)
    add("documents", {"key": "com.a:http/", "title": "1"}, order=1)
    again = [{"key": "com.a:http/", "ip": "2"}, {"key": "com.c:http/", "ip": "2"}]
    add("pages", *again, partition=1, order=2)
    texts = [{"key": "com.a:http/", "title": "2"}, {"key": "com.c:http/", "title": "2"},
             {"key": "com.a:http/part", "part_of": "com.a:http/"},
             {"key": "com.c:http/part", "part_of": "com.c:http/"}]  # fmt: skip
    add("documents", *texts, partition=1, order=2)
    written = [Written(batch_component("1-a", kind), tuple(f)) for kind, f in files.items()]
    record = Batch("parsed", 0, 2, 3, 0)
    commit(operation, written, CommitTerms(others={"1-a": record}))
    return Snapshot(str(tmp_path / "t"), 1)


def test_each_url_comes_once_with_its_text_and_other_urls_of_the_list_come_last(pinned):
    found = [[frame["key"].to_list() for frame in rows] for rows, _ in read_batch(pinned, "1-a")]
    assert found == [
        [["com.a:http/", "com.b:http/"], ["com.a:http/", "com.b:http/"], ["com.a:http/"]],
        [[], ["com.c:http/"], ["com.c:http/", "com.c:http/part"]],
        [["com.d:http/"], [], []],
    ]
    first = next(read_batch(pinned, "1-a")).rows
    assert first.pages["ip"].to_list() == ["1", "1"]
    assert first.documents["title"].to_list() == ["1"]


def test_a_component_without_columns_is_not_read(pinned, monkeypatch):
    for file in (*pinned.files("batches/1-a/documents"), *pinned.files("batches/1-a/fetchlist")):
        (pinned.table / file.path).unlink()
    columns = RowColumns((), ("ip",), ())
    assert [len(rows.pages) for rows, _ in read_batch(pinned, "1-a", columns)] == [2, 1]
