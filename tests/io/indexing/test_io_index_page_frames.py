"""Texts and inlinks on their way into an index: long texts are cut, and memory is bounded."""

import json
from collections import Counter

import pyarrow as pa
import pytest
from indexed_tables import index, operations_of, page, put
from linked_web import fill_links

from nutbeam.io.indexing import index_page_frames
from nutbeam.transforms.indexing import write_part


def test_long_texts_are_cut_and_counted(tmp_path, monkeypatch, capsys):
    table, out = str(tmp_path / "table"), tmp_path / "out"
    monkeypatch.setattr(index_page_frames, "LONGEST_TEXT", 5)
    put(table, "17-1", {"com.a:http/1": page("éééééé"), "com.a:http/2": page("short")})
    assert index(table, out) == 0
    ((_, adds, _),) = operations_of(out)
    assert {url: found["content"] for url, found in adds.items()} == {
        "http://a.com/1": "ééééé", "http://a.com/2": "short"
    }  # fmt: skip
    assert "cut_texts 2" in capsys.readouterr().out  # its title, too


@pytest.mark.parametrize(
    ("texts", "cut"), [(["abcdef", "é" * 5, None], 1), (["abcde"], 0), ([None], 0)]
)
def test_only_texts_with_too_many_characters_count(monkeypatch, texts, cut):
    monkeypatch.setattr(index_page_frames, "LONGEST_TEXT", 5)
    counts = Counter()
    kind = pa.large_string()
    rows = pa.table({"title": pa.array(["t"] * len(texts), kind), "text": pa.array(texts, kind)})
    found = index_page_frames.cut_texts(rows, counts)["text"].to_pylist()
    assert found == [text and text[:5] for text in texts]
    assert counts["cut_texts"] == cut


def test_many_inlinks_are_read_in_pieces_and_give_the_same_documents(tmp_path, monkeypatch):
    table = str(tmp_path / "table")
    put(table, "17-1", {f"com.a:http/{n}": page(f"t{n}") for n in range(20)}, backwards=True)
    fill_links(
        table,
        {(f"http://a.com/{to}", f"http://s{n}.net/"): (f"to {to}", None, 1.0 + n)
         for to in range(0, 20, 3) for n in range(to)},
    )  # fmt: skip
    words = ("--index_filters", "basic,anchor,links", "--max_inlinks", "9")
    assert index(table, tmp_path / "whole", *words) == 0
    ((_, whole, _),) = operations_of(tmp_path / "whole")
    assert len(whole["http://a.com/9"]["inlinks"]) == len(whole["http://a.com/12"]["inlinks"]) == 9
    assert whole["http://a.com/3"]["anchor"] == ["to 3"] * 3  # once per host
    assert "anchor" not in whole["http://a.com/4"]

    sizes = []

    def spied(*given):
        for facts in index_page_frames.page_frames(*given):
            sizes.append((len(facts.link_rows), facts.link_rows["target"].n_unique()))
            yield facts

    monkeypatch.setattr(index_page_frames, "MOST_LINKS", 12)
    monkeypatch.setattr(write_part, "page_frames", spied)
    assert index(table, tmp_path / "pieces", "--index", "other", *words) == 0
    files = (tmp_path / "pieces").glob("other-*.jsonl")
    lines = [json.loads(line) for file in files for line in file.read_text().splitlines()]
    assert {line["id"]: line for line in lines} == whole
    assert len(sizes) > 3
    assert all(links <= 12 or pages == 1 for links, pages in sizes)
