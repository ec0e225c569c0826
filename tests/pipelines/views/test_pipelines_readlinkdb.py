"""readlinkdb, mergelinkdb and explain show and merge inlinks, on each kind of table."""

import json

import pytest
from command_output import printed
from crawling import nutbeam, rows_of
from linked_web import fill_links

from nutbeam.web.urls.row_keys import to_key

A, B = "http://a.com/", "http://b.org/x"
LINKS = {
    (A, B): ("Home", None, 2.0),
    (A, "http://c.net/"): ("Home\nStart", "ugc", 1.0),
    (A, "http://a.com/in"): (None, "nofollow", 1.0),
    (B, A): ("B", None, 1.0),
}


@pytest.fixture(params=["folder", "bigtable"])
def address(request, tmp_path):
    found = str(tmp_path / "table")
    if request.param == "bigtable":
        found = request.getfixturevalue("bigtable").make(tmp_path / "files")
    assert nutbeam("inject", found, A) == 0
    return found


@pytest.fixture
def table(address):
    fill_links(address, LINKS)
    return address


@pytest.mark.long
@pytest.mark.folder_first
def test_a_url_and_its_anchors(table, capsys):
    out = printed(capsys, "readlinkdb", table, A)
    assert out.splitlines() == [
        f"{A}\tInlinks:",
        f" fromUrl: {B} anchor: Home",
        " fromUrl: http://c.net/ anchor: Home",
        " fromUrl: http://c.net/ anchor: Start",
        " fromUrl: http://a.com/in anchor: ",
        "",
    ]
    record = json.loads(printed(capsys, "readlinkdb", table, A, "--format", "json"))
    assert record["anchors"] == ["Home", "Home", "Start"]
    assert [link["rel"] for link in record["inlinks"]] == [None, "ugc", "nofollow"]
    assert printed(capsys, "readlinkdb", table, "http://none.com/", code=1) == (
        "http://none.com/: no link information\n"
    )
    explained = printed(capsys, "explain", table, A)
    assert f"linked from: {B} as 'Home', last seen " in explained
    assert 'anchors: ["Home", "Home", "Start"]' in explained


@pytest.mark.folder_first
def test_dump_regex_and_top(table, capsys, tmp_path):
    whole = printed(capsys, "readlinkdb", table, "--dump", "-")
    assert whole.count("Inlinks:") == 2
    one = printed(capsys, "readlinkdb", table, "--dump", "-", "--regex", ".*b.org.*")
    assert one.splitlines()[0] == f"{B}\tInlinks:"
    assert one.count("Inlinks:") == 1
    path = tmp_path / "links.jsonl"
    printed(capsys, "readlinkdb", table, "--dump", str(path), "--max_inlinks", "1")
    records = [json.loads(line) for line in path.read_text().splitlines()]
    assert [(r["url"], len(r["inlinks"])) for r in records] == [(A, 1), (B, 1)]
    assert printed(capsys, "readlinkdb", table, "--top", "1") == f"3\t{A}\n"


@pytest.mark.folder_first
def test_over_the_limit_the_best_sources_are_shown(address, capsys):
    scores = {"http://a.com/in": 1.0, **{f"http://s{n}.com/": n % 3 / 1 for n in range(20)}}
    fill_links(address, {(A, source): (None, None, score) for source, score in scores.items()})
    best = sorted(scores, key=lambda s: (-scores[s], s.startswith(A), to_key(s)))
    assert best[12:14] == ["http://s7.com/", "http://a.com/in"]  # equal scores: others first
    for most in (1, 13, 14):
        out = printed(
            capsys, "readlinkdb", address, A, "--max_inlinks", str(most), "--format", "json"
        )
        assert [link["source"] for link in json.loads(out)["inlinks"]] == best[:most]


@pytest.mark.long
def test_a_limit_in_the_table_is_for_tables_in_files(table, capsys):
    code = 2 if table.startswith("bigtable:") else 0
    assert nutbeam("compact", table, "--full", "--keep_inlinks", "1") == code
    message = "--keep_inlinks is for link tables in files; in Bigtable compact rewrites no rows"
    assert (message in capsys.readouterr().err) == (code == 2)
    left = printed(capsys, "readlinkdb", table, A, "--format", "json")
    assert len(json.loads(left)["inlinks"]) == (3 if code else 1)


@pytest.mark.long
@pytest.mark.folder_first
def test_links_of_other_tables_are_merged(table, tmp_path, capsys):
    other = str(tmp_path / "other")
    assert nutbeam("inject", other, A) == 0
    fill_links(other, {(A, "http://d.com/"): ("D", None, 9.0), (B, A): ("newer", None, 1.0)}, 2000)
    out = printed(capsys, "mergelinkdb", table, other)
    assert "links_added 1" in out
    record = json.loads(printed(capsys, "readlinkdb", table, A, "--format", "json"))
    assert record["inlinks"][0]["source"] == "http://d.com/"
    assert json.loads(printed(capsys, "readlinkdb", table, B, "--format", "json"))["anchors"] == [
        "newer"
    ]
    assert nutbeam("purge", table, "--host", "d.com") == 0
    assert "dropped/purged 1" in printed(capsys, "mergelinkdb", table, other)


@pytest.mark.long
def test_a_link_table_is_not_merged_with_itself_nor_with_one_that_is_missing(tmp_path, refuse):
    table = tmp_path / "table"
    (tmp_path / "link").symlink_to(table)
    assert nutbeam("inject", table, A) == 0
    for other in (table, f"{table}/", tmp_path / "link", tmp_path / "x" / ".." / "table"):
        error = refuse("mergelinkdb", table, other)
        assert error == f"a table is not merged with itself: {str(other)!r}"
    assert refuse("mergelinkdb", table, tmp_path / "none").startswith("no web table at ")
    assert refuse("mergelinkdb", table, __file__).startswith("the table must be a folder, got ")


@pytest.mark.long
@pytest.mark.folder_first
@pytest.mark.few(2)
@pytest.mark.parametrize("words", [(), ("--filter_links",), ("--normalize_links",)])
def test_merged_links_are_normalized_and_filtered_on_request(address, tmp_path, capsys, words):
    one, www, bad = "http://d.com/", "http://www.d.com/", "http://bad.com/"
    others = [str(tmp_path / name) for name in ("older", "newer")]
    for time, other in enumerate(others, 1):
        assert nutbeam("inject", other, A) == 0
        fill_links(other, {
            (A, one): ("D", None, 9.0), (A, www): ("W", "ugc", 2.0), (one, www): ("", None, 1.0),
            (B, bad): ("", None, 1.0), (bad, B): ("", None, 1.0), (B, A): (str(time), None, 1.0),
        }, time * 1000)  # fmt: skip
    (tmp_path / "host-urlnormalizer.txt").write_text("www.d.com d.com\n")
    rules = ["--url_rules_dir", tmp_path, "--url_normalizers", "basic,host", "--exclude", "bad.com"]
    out = printed(capsys, "mergelinkdb", address, *others, *words, *rules)
    rows = {(row["target"], row["source"]): row for row in rows_of(address, "links").to_dicts()}
    keys = {url: to_key(url) for url in (A, B, one, www, bad)}
    expected = {(A, one), (A, www), (one, www), (B, bad), (bad, B), (B, A)}
    if words == ("--filter_links",):
        expected -= {(B, bad), (bad, B)}
        assert "dropped/filtered 4" in out
    if words == ("--normalize_links",):
        expected -= {(A, www), (one, www)}
        assert "dropped/own_url 2" in out
        merged = rows[keys[A], keys[one]]
        assert (merged["anchor"], merged["rel"], merged["score"]) == ("D\nW", None, 9.0)
    assert rows.keys() == {(keys[target], keys[source]) for target, source in expected}
    assert {(row["first_seen"], row["last_seen"]) for row in rows.values()} == {(1000, 2000)}
    assert rows[keys[B], keys[A]]["anchor"] == "2"  # the newest text counts


@pytest.mark.few(2)
@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([], "give a URL, --dump FILE or --top NUMBER"),
        (["--dump", "x.csv"], "--dump must end in .txt or .jsonl, got 'x.csv'"),
        ([A, "--max_inlinks", "0"], "--max_inlinks must be at least 1, got 0"),
        (["--dump", "-", "--regex", "("], "--regex is no regular expression"),
        (["--dump", "none/x.txt"], "cannot write --dump 'none/x.txt': No such file"),
    ],
)
def test_invalid_options_of_readlinkdb_are_refused(tmp_path, capsys, words, message):
    table = str(tmp_path / "table")
    assert nutbeam("inject", table, A) == 0
    assert nutbeam("readlinkdb", table, *words) == 2
    assert message in capsys.readouterr().err
