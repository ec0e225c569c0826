"""freegen makes a batch of a list of URLs, typed as Nutch's users type it; the table need not know them."""

import gzip
import io

import pytest
from command_output import printed
from crawling import manifest_of, nutbeam, reach, rows_of, state_of
from simulated_web import served_web

from nutbeam.web.urls.row_keys import from_key

pytestmark = pytest.mark.folder_first

web = served_web(hosts=2, pages=5, scope="module")
LINES = """http://h0.example.com/
HTTP://H1.example.com:80/a/../old
http://h0.example.com/
# no comment

mailto:x@y
http://h0.example.com/logo.png\tnutch.score=5
http://h0.example.com/logo.png
"""


@pytest.fixture
def urls(tmp_path):
    folder = tmp_path / "urls"
    folder.mkdir()
    (folder / "a.txt").write_text(LINES)
    with gzip.open(folder / "b.gz", "wt") as file:
        file.write("http://h1.example.com/old\n")
    (folder / "nested").mkdir()
    return folder


@pytest.fixture
def table(backend):
    return str(backend.fresh())


def listed(table, batch):
    return rows_of(table, f"batches/{batch}/fetchlist")


def test_each_url_is_once_in_a_batch_that_fetch_parse_and_updatedb_take(urls, table, web, capsys):
    out = printed(capsys, "freegen", urls, f"{table}/batches", "-numFetchers", "2")
    (batch,) = manifest_of(table).batches
    assert out == (
        f"freegen batch {batch}: chosen 3, dropped/malformed 1, dropped/scheme_not_allowed 1, "
        "dropped/values_after_url 1, duplicate_lines 2, lines 8\n"
    )
    rows = listed(table, batch)
    # As in Nutch nothing is filtered without -filter.
    assert [from_key(key) for key in rows["key"]] == [
        "http://h0.example.com/",
        "http://h0.example.com/logo.png",
        "http://h1.example.com/old",
    ]
    assert rows["score"].to_list() == [0.0] * 3
    assert manifest_of(table).batches[batch].partitions == 2
    for job in (("fetch", *reach(web)), ("parse",), ("updatedb",)):
        assert nutbeam(job[0], table, *job[1:]) == 0
    state = state_of(table)
    assert set(rows["key"]) <= set(state["key"])
    assert state.filter(key="com.example.h0:http/")["http_code"].to_list() == [200]


def test_urls_of_an_open_batch_are_left_out_of_the_next_generate(urls, table, capsys):
    assert nutbeam("inject", table, "http://h0.example.com/", "http://h1.example.com/") == 0
    assert nutbeam("freegen", urls, table) == 0
    assert nutbeam("generate", table) == 0
    batches = sorted(
        manifest_of(table).batches, key=lambda n: manifest_of(table).batches[n].created
    )
    assert list(listed(table, batches[1])["key"]) == ["com.example.h1:http/"]


@pytest.mark.parametrize(
    ("words", "paths"),
    [
        ([], ["/", "/index.html?sid=1", "/logo.png"]),
        (["-filter"], ["/", "/index.html?sid=1"]),
        (["-normalize"], ["/", "/index.html", "/logo.png"]),
        (["-filter", "-normalize", "--exclude", "index"], ["/"]),
    ],
)
def test_rules_apply_on_request(table, tmp_path, capsys, words, paths):
    (tmp_path / "rules").mkdir()
    (tmp_path / "rules" / "regex-normalize.xml").write_text(
        r"<regex-normalize><regex><pattern>\?sid=\d+</pattern><substitution></substitution>"
        "</regex></regex-normalize>"
    )
    lines = [f"http://a.example.com{path}\n" for path in ("/", "/index.html?sid=1", "/logo.png")]
    (tmp_path / "urls.txt").write_text("".join(lines))
    rules = ["--url_rules_dir", tmp_path / "rules"]
    assert nutbeam("freegen", tmp_path / "urls.txt", table, *words, *rules) == 0
    (batch,) = manifest_of(table).batches
    keys = listed(table, batch)["key"]
    assert [from_key(key).removeprefix("http://a.example.com") for key in keys] == paths


def test_a_list_on_standard_input_and_the_same_operation_again(table, monkeypatch, capsys):
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"http://a.example.com/\n")))
    first = printed(capsys, "freegen", "-", table, "--operation", "one")
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"http://b.example.com/\n")))
    assert printed(capsys, "freegen", "-", table, "--operation", "one") == first
    (batch,) = manifest_of(table).batches
    assert list(listed(table, batch)["key"]) == ["com.example.a:http/"]


def test_purged_names_are_left_out_and_without_urls_there_is_no_batch(table, tmp_path, capsys):
    assert nutbeam("inject", table, "http://a.example.com/") == 0
    assert nutbeam("purge", table, "--host", "a.example.com") == 0
    (tmp_path / "urls.txt").write_text("http://a.example.com/x\n")
    out = printed(capsys, "freegen", tmp_path / "urls.txt", table, code=1)
    assert out == "freegen: dropped/purged 1, lines 1\n"
    assert manifest_of(table).batches == {}


def test_a_line_with_a_zero_byte_is_dropped_and_the_others_are_not(table, tmp_path, capsys):
    (tmp_path / "urls.txt").write_bytes(b"http://a.example.com/\nhttp://b.example.com/\0\n")
    line = printed(capsys, "freegen", tmp_path / "urls.txt", table)
    (batch,) = manifest_of(table).batches
    assert line == f"freegen batch {batch}: chosen 1, dropped/malformed 1, lines 2\n"


@pytest.mark.parametrize("word", ["urls.txt", "-"])
def test_a_list_without_a_url_makes_no_table(refuse, tmp_path, monkeypatch, word):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "urls.txt").write_text(" \n\n")
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"\n")))
    error = refuse("freegen", word, "t", code=1)
    assert error == f"nothing to do: no URL in the list {word!r}"
    assert [path.name for path in tmp_path.rglob("*") if path.is_file()] == ["urls.txt"]


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["missing.txt", "t"], "cannot read seeds 'missing.txt': No such file or directory"),
        (["empty", "t"], "no seed files in folder 'empty'"),
        (["binary", "t"], "seed file 'binary' is binary, expected lines of text"),
        (["urls.txt"], "missing argument TARGET: "),
        (["urls.txt", "urls.txt"], "the table must be a folder, got the file 'urls.txt'"),
        (["urls.txt", "t/batches/1-a"], "expected a table, or TABLE/batches, got 't/batches/1-a'"),
        (["urls.txt", "t", "-force"], "unknown option '-force'"),
        (["urls.txt", "t", "-topN", "4"], "unknown option '-topN'"),
    ],
)
def test_bad_words_for_freegen_get_one_line(refuse, tmp_path, monkeypatch, words, expected):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "empty").mkdir()
    (tmp_path / "binary").write_bytes(b"\x7fELF\0\0")
    (tmp_path / "urls.txt").write_text("http://a.example.com/\n")
    assert refuse("freegen", *words).startswith(expected)
    assert not (tmp_path / "t").exists()
