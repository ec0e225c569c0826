"""Parsers of plug-ins, and parse filters in files, in the processes that parse."""

import os

import pyarrow as pa
import pytest

from nutbeam.io.parsing.parse_pool import ParsePool
from nutbeam.policy.parsing.documents import DocumentOptions, documents_of
from nutbeam.transforms.fetching import FETCHED
from nutbeam.transforms.parsing import parse_pages
from nutbeam.web.base.errors import UsageError

TEXT = """
import os
from nutbeam.web.parsers.parser_plugins import ParsedDocument

def parse(source):
    word = source.body.decode()
    if word == "loop":
        while True:
            pass
    if word == "memory":
        return bytearray(1 << 40)
    if word == "crash":
        os.abort()
    if word == "raise":
        raise ValueError("odd")
    return ParsedDocument(word, word, metadata={"process": str(os.getpid())})

def shout(page):
    page.title = page.title.upper()
"""


@pytest.fixture(scope="module")
def pool():
    pool = ParsePool(1, 4 << 30, documents_of.__module__)
    yield pool
    pool.close()


def parsed(pool, path, words, **options):
    path.write_text(TEXT)
    given = {"parsers": (f"text/x-mine={path}:parse",), "parse_filters": (f"{path}:shout",)}
    chunk = [
        {"url": f"http://a.com/{word}", "body": word.encode(), "content_type": "text/x-mine",
         "fetch_status": "success"} for word in words
    ]  # fmt: skip
    options = DocumentOptions(**{**given, "parser_timeout": 1.0, "scope": "any", **options})
    return parse_pages(pa.Table.from_pylist(chunk, FETCHED), options, pool)


def test_a_plug_in_that_loops_crashes_or_eats_memory_costs_its_page_alone(pool, tmp_path):
    words = ("a", "loop", "b", "memory", "crash", "raise", "c")
    documents, dead, counts = parsed(pool, tmp_path / "p.py", words)
    assert documents["title"].to_list() == ["A", "B", "C"]
    messages = dict(zip(dead["url"].str.slice(13), dead["message"], strict=True))
    assert messages == {
        "loop": "parser_p.parse: timeout",
        "memory": "parser_p.parse: out_of_memory",
        "crash": "parser_p.parse: crashed: SIGABRT",
        "raise": "parser_p.parse: ValueError('odd')",
    }
    assert set(dead["reason"]) == {"parser_p.parse"}
    assert counts["failed/parser_p.parse"] == 4
    (process,) = {dict(row)["process"] for row in documents["metadata"].to_list()[:1]}
    assert int(process) != os.getpid()


def test_a_filter_in_a_file_that_does_not_do_is_bad_usage_in_children(pool, tmp_path):
    with pytest.raises(UsageError, match=r"p\.py' defines no 'nope'"):
        parsed(pool, tmp_path / "p.py", ["a"], parse_filters=(f"{tmp_path}/p.py:nope",))
    with pytest.raises(UsageError, match=r"parser '.*p\.py:nope': '.*p\.py' defines no 'nope'"):
        parsed(pool, tmp_path / "p.py", ["a"], parsers=(f"a/b={tmp_path}/p.py:nope",))
