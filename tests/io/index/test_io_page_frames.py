"""Texts on their way into an index: long ones are cut, and memory is bounded."""

import re
import subprocess
import sys
import textwrap
from collections import Counter

import pyarrow as pa
import pytest
from bulk_servers import bulk_server
from crawling import nutbeam
from here import TESTS
from indexed_tables import index, operations_of, page, put

from nutbeam.io.index import page_frames


def test_long_texts_are_cut_and_counted(tmp_path, monkeypatch, capsys):
    table, out = str(tmp_path / "table"), tmp_path / "out"
    monkeypatch.setattr(page_frames, "LONGEST_TEXT", 5)
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
    monkeypatch.setattr(page_frames, "LONGEST_TEXT", 5)
    counts = Counter()
    kind = pa.large_string()
    rows = pa.table({"title": pa.array(["t"] * len(texts), kind), "text": pa.array(texts, kind)})
    found = page_frames.cut_texts(rows, counts)["text"].to_pylist()
    assert found == [text and text[:5] for text in texts]
    assert counts["cut_texts"] == cut


MEASURED = """
    import pathlib, sys
    sys.path.append({support!r})
    from crawling import nutbeam
    if nutbeam(*sys.argv[1:]):
        sys.exit("failed")
    # Not ru_maxrss, which begins with what the parent had.
    peak = pathlib.Path("/proc/self/status").read_text().partition("VmHWM:")[2].split()[0]
    print("MB", int(peak) >> 10)
"""


@pytest.mark.long
@pytest.mark.parametrize("packed", ["false", "true"])
def test_a_document_of_100_mb_needs_less_than_a_gigabyte(tmp_path, packed):
    table = str(tmp_path / "table")
    put(table, "17-1", {"com.a:http/1": page("wörd\x00 " * 15_000_000), "com.a:http/2": page("x")})
    code = textwrap.dedent(MEASURED.format(support=str(TESTS / "support")))
    with bulk_server() as server:
        parameters = f"url={server.url},gzip={packed}"
        words = ("index", table, "--writer", "opensearch", "--writer_parameters", parameters)
        done = subprocess.run(
            [sys.executable, "-c", code, *words], check=True, capture_output=True, text=True
        )
        assert len(server.documents["http://a.com/1"]["content"]) == page_frames.LONGEST_TEXT
        assert server.documents["http://a.com/2"]["content"] == "x"
    print(done.stdout)
    assert int(re.search(r"MB (\d+)", done.stdout)[1]) < 1_000
    assert nutbeam("sql", table, "select count(*) from indexed") == 0
