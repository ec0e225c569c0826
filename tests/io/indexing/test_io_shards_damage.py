"""Shards that are damaged, of another version, or that have purged names."""

import json
import subprocess
import sys

import polars as pl
import pyarrow as pa
import pytest
import tantivy
from index_shards import held, page, searched, urls, write_shards
from stores_here import in_stores

from nutbeam.io.indexing import shard_documents, shards
from nutbeam.io.indexing.index_writer import IndexTarget
from nutbeam.io.indexing.shard_merging import edit_shard, merge_shards, stored_documents
from nutbeam.io.indexing.shards import SHARDS
from nutbeam.io.indexing.tantivy_writer import TantivyWriter
from nutbeam.io.storage.parquet_files import row_groups
from nutbeam.io.storage.place_addresses import place_of
from nutbeam.pipelines.indexing.index_search import ShardSearch
from nutbeam.policy.components.blocklist import Names
from nutbeam.policy.components.index_schema import index_component
from nutbeam.policy.purging import purge_of
from nutbeam.web.base.errors import UserError

COMPONENT = index_component("main", "shards")


def test_shards_of_existing_tables_have_the_format_of_this_version():
    # The text is stored in shards: another one would refuse all of them.
    assert shard_documents.shard_format() == "tantivy tantivy v0.27, schema 3"


def test_a_shard_of_another_version_is_reported_in_one_line_with_the_command_to_run(
    tmp_path, monkeypatch
):
    monkeypatch.setattr(shards, "shard_format", lambda: "tantivy 0.9, schema 0")
    files = write_shards(tmp_path / "t", [page("http://a.com/1", "one", "words")])
    monkeypatch.undo()
    with pytest.raises(UserError) as caught:
        searched(tmp_path / "t", files, tmp_path / "c")
    assert str(caught.value) == (
        f"shard {tmp_path / 't' / files[0].path} was made by tantivy 0.9, schema 0, this is "
        f"{shard_documents.shard_format()}: run nutbeam index with --full"
    )


def test_a_view_that_is_cut_off_is_made_again(tmp_path):
    files = write_shards(tmp_path / "t", [page("http://a.com/1", "one", "words")])
    searched(tmp_path / "t", files, tmp_path / "c")
    (view,) = (tmp_path / "c").iterdir()
    next(view.glob("*.term")).write_bytes(b"broken")
    assert urls(searched(tmp_path / "t", files, tmp_path / "c"), "words") == ["http://a.com/1"]


def test_a_panic_of_tantivy_is_one_line(tmp_path):
    files = write_shards(tmp_path / "t", [page("http://a.com/1", "one", "words")])
    searched(tmp_path / "t", files, tmp_path / "c")
    (view,) = (tmp_path / "c").iterdir()
    next(view.glob("*.term")).write_bytes(b"broken")
    with pytest.raises(UserError, match=r"cannot be read: .*: remove this folder") as caught:
        ShardSearch(view)
    assert "\n" not in str(caught.value)


def bytes_of(root, file):
    """Returns all that a shard has: its keys, its files, and its documents, unpacked."""
    found = b""
    for group in row_groups(root / file.path, SHARDS):
        found += "".join(key or "" for key in group["key"].to_pylist()).encode()
        found += b"".join(data or b"" for data in group["data"].to_pylist())
    for rows in stored_documents(root, file):
        found += str(rows.to_dicts()).encode()
    return found


def test_a_purge_removes_a_url_and_the_texts_that_name_it(tmp_path):
    root, names = tmp_path / "t", Names(urls=("com.secret:http/x",), hosts=("org.gone",))
    (file,) = write_shards(
        root,
        [
            page("http://secret.com/x", "Secret words", "hidden text"),
            page("http://gone.org/1", "Gone", "gone text"),
            page(
                "http://a.com/1", "Stays", "a text may name secret.com",
                inlinks=["http://secret.com/x", "http://b.com/"], url="http://gone.org/moved",
                boost=2.0, date=5, anchor=["to a"],
            ),
        ],
        ["http://gone.org/2", "http://a.com/deleted"],
    )  # fmt: skip
    (written,) = edit_shard(root, COMPONENT, file, purge_of(names))
    (new,) = written.files
    assert written.counts == {"rows/shards": 3, "mentions/shards": 2}
    assert (new.formerly, new.order) == (file.path, file.order)
    (kept,) = [row for rows in stored_documents(root, new) for row in rows.to_dicts()]
    assert (kept["id"], kept["url"], kept["title"]) == ("http://a.com/1",) * 2 + ("Stays",)
    assert (kept["boost"], kept["date"], kept["anchor"]) == (2.0, 5, ["to a"])
    assert b"secret.com/x" in bytes_of(root, file)
    for name in (b"secret.com/x", b"com.secret", b"gone.org", b"org.gone", b"Secret", b"hidden"):
        assert name not in bytes_of(root, new)
    assert shards.shard_keys(root / new.path).rows() == [
        ("com.a:http/1", False), ("com.a:http/deleted", True)
    ]  # fmt: skip
    search = searched(root, [new], tmp_path / "c")
    assert urls(search, "text") == ["http://a.com/1"]
    assert [*edit_shard(root, COMPONENT, new, purge_of(names))] == []


def test_strange_documents_are_held_or_refused_with_a_reason(tmp_path):
    writer = TantivyWriter(IndexTarget("main", "w", {}, tmp_path / "t", 1, "op"))
    documents = pl.DataFrame(
        {
            "id": ["http://a.com/1", "http://a.com/2", "no url", "http://a.com/3"],
            "title": ["a\x00b\x1b[2J", "", None, "three"],
            "content": ["x" * 100_000, "word " * 1_000_000, "c", None],
            "date": [2**62, -(2**62), 0, None],
            "boost": [float("inf"), float("nan"), -1.0, 1e300],
            "type": [["text/html"], [], None, [None]],
            "lang": ["xx-unknown", "", None, "EN"],
            "anchor": [["", " "], None, [], ["three"]],
            "strange": [[1, 2], None, [3], []],
            "url": [None, "http://[", None, "https://b.com/"],
        },
        strict=False,
    )
    result = writer.write(documents, pl.Series([], dtype=pl.String))
    assert result.counts == {"added": 3, "refused": 1}
    assert result.refused["reason"].to_list() == ["id_is_no_url"]
    search = searched(tmp_path / "t", writer.close().files, tmp_path / "c")
    assert search.documents == 3
    assert urls(search, "three") == ["https://b.com/"]


MEMORY = """
import sys
import polars as pl
from pathlib import Path
from nutbeam.io.storage.local_place import LocalPlace
from nutbeam.io.indexing.index_writer import IndexTarget
from nutbeam.policy.components.index_schema import index_component
from nutbeam.io.indexing.tantivy_writer import TantivyWriter
writer = TantivyWriter(IndexTarget("main", "w", {}, LocalPlace(sys.argv[1]), 1, "op"))
for number in range(6):
    text = f"word{number} " * 3_000_000
    documents = pl.DataFrame({"id": [f"http://a.com/{number}"], "content": [text]})
    writer.write(documents, pl.Series([], dtype=pl.String))
assert writer.close().files[0].rows > 6
# Not ru_maxrss: it begins with what the parent had when it started us.
print(Path("/proc/self/status").read_text().partition("VmHWM:")[2].split()[0])  # KB
"""


def test_the_memory_of_a_worker_is_bounded(tmp_path):
    # Each text is cut, and text that waits is bounded.
    command = [sys.executable, "-c", MEMORY, tmp_path / "t"]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    assert int(done.stdout) < 1 << 20


def test_kinds_of_shards_follow_their_schema(tmp_path):
    (file,) = write_shards(
        tmp_path / "t", [page("http://a.com/1", "one", "words")], ["http://b.com/"]
    )
    table = pa.concat_tables(row_groups(tmp_path / "t" / file.path, SHARDS))
    assert (len(table), file.first, file.last) == (file.rows, "com.a:http/1", "com.b:http/")
    assert held(searched(tmp_path / "t", [file], tmp_path / "c")) == {"http://a.com/1": "one"}


@pytest.mark.few(1)
@in_stores
def test_shards_in_a_store_are_searched_from_a_copy(address, tmp_path):
    root = place_of(address)
    files = write_shards(root, [page("http://a.com/1", "one", "words")])
    files += write_shards(root, [page("http://a.com/2", "two", "words")], ["http://a.com/1"], 2)
    assert held(searched(root, files, tmp_path / "c")) == {"http://a.com/2": "two"}
    merged = merge_shards(root, COMPONENT, files, files)
    assert held(searched(root, merged.files, tmp_path / "c")) == {"http://a.com/2": "two"}
    names = Names(hosts=("com.a",))
    (written,) = edit_shard(root, COMPONENT, merged.files[0], purge_of(names))
    assert written.counts == {"rows/shards": 1}
    assert held(searched(root, written.files, tmp_path / "c")) == {}


def test_a_shard_with_fields_for_each_language_is_searched_and_merged(tmp_path, monkeypatch):
    """Writes a shard as nutbeam did until November 2026."""
    pages = [
        page("http://a.com/1", "Houses", "The houses on the hill"),
        page("http://a.com/2", "Haus", "Die Häuser", lang="de"),
    ]
    schema = tantivy.SchemaBuilder()
    for name in ("title_en", "content_en", "anchor_en", "title_de", "content_de"):
        schema.add_text_field(name, stored=True)
    schema.add_bytes_field("document", stored=True)
    folder = tmp_path / "former"
    folder.mkdir()
    writer = tantivy.Index(schema.build(), path=str(folder)).writer(15_000_000, 1)
    for one in pages:
        document = json.dumps({name: one[name] for name in ("id", "lang")}).encode()
        texts = {f"{name}_{one['lang']}": one[name] for name in ("title", "content")}
        more = {"anchor_en": ["my house", "my roof"]} if one["lang"] == "en" else {}
        writer.add_document(tantivy.Document(**texts, **more, document=document))
    writer.commit()
    writer.wait_merging_threads()
    keys = pl.DataFrame({"key": ["com.a:http/1", "com.a:http/2"], "deletes": [False, False]})
    root = place_of(str(tmp_path / "t"))
    with monkeypatch.context() as former:
        former.setattr(shards, "shard_format", shard_documents.former_format)
        file = shards.pack_shard(root, COMPONENT, keys, folder, 1)

    search = searched(root, [file], tmp_path / "c")
    assert urls(search, "house hill") == urls(search, "roof") == ["http://a.com/1"]
    assert urls(search, "Häusern") == ["http://a.com/2"]
    newer = write_shards(root, [page("http://a.com/2", "Hof", "Der Hof", lang="de")], version=2)
    files = [file, *newer]
    assert held(searched(root, files, tmp_path / "c"))["http://a.com/1"] == "Houses"
    merged = merge_shards(root, COMPONENT, files, files).files
    search = searched(root, merged, tmp_path / "c")
    assert (urls(search, "roof"), urls(search, "Häuser"), urls(search, "Hof")) == (
        ["http://a.com/1"], [], ["http://a.com/2"])  # fmt: skip
