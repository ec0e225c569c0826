"""mergedb merges the URLs of tables, typed as Nutch's users type it: the newest row of each wins."""

import pytest
from command_output import printed
from crawling import nutbeam, reach, rows_of, state_of
from simulated_web import served_web
from web_tables import Snapshot

from nutbeam.io.rows.seed_hosts import read_seed_hosts

pytestmark = pytest.mark.folder_first

web = served_web(hosts=3, pages=5, scope="module")


@pytest.fixture(scope="module")
def crawled(web, backend, kept_crawls):
    made = str(backend.fresh())
    kept_crawls.make(web, made, "--rounds", "2")
    return made


@pytest.mark.long
@pytest.mark.few(1)
def test_a_new_table_gets_the_rows_of_all_tables_and_the_next_crawl_goes_on(
    crawled, out, backend, web, capsys
):
    other = str(backend.fresh())
    assert nutbeam("inject", other, "http://new.example.com/", web.seeds[0]) == 0
    assert "left out: no web table at" not in printed(capsys, "mergedb", out, other, crawled)
    before, merged = state_of(crawled), state_of(out)
    assert set(merged["key"]) == {*before["key"], "com.example.new:http/"}
    assert rows_of(out, "state").sort("key")["key"].is_unique().all()
    fetched = merged.filter(key="com.example.h0:http/").row(0, named=True)
    same = before.filter(key="com.example.h0:http/").row(0, named=True)
    # The fetched row wins over the injected one. Its body is in no file of this table.
    for name in ("status", "fetch_time", "last_fetch_time", "score", "signature", "http_code"):
        assert fetched[name] == same[name], name
    for name in ("document", "page", "batch_id", "etag", "last_modified"):
        assert fetched[name] is None, name
    assert printed(capsys, "mergedb", out, other, crawled).endswith("nothing changed\n")
    assert nutbeam("fsck", out) == 0
    assert nutbeam("crawl", out, "--rounds", "1", *reach(web)) == 0


def test_hosts_of_seeds_come_along_so_the_scope_is_that_of_all_tables(crawled, out):
    assert nutbeam("mergedb", out, crawled) == 0
    found, before = (
        read_seed_hosts(pinned).host_keys.to_list() for pinned in (Snapshot(out), Snapshot(crawled))
    )
    assert found == before
    assert len(found) == 1


@pytest.mark.few(2)
@pytest.mark.parametrize("words", [["-filter"], ["-normalize"], ["-filter", "-normalize"], []])
def test_rules_apply_to_arriving_rows_on_request(out, backend, tmp_path, capsys, words):
    other = str(backend.fresh())
    urls = ["http://www.d.com/", "http://d.com/", "http://bad.com/"]
    assert nutbeam("inject", other, *urls) == 0
    (tmp_path / "host-urlnormalizer.txt").write_text("www.d.com d.com\n")
    rules = ["--url_rules_dir", tmp_path, "--url_normalizers", "basic,host", "--exclude", "bad.com"]
    printed(capsys, "mergedb", out, other, *words, *rules)
    expected = {"com.d:http/", "com.d.www:http/", "com.bad:http/"}
    expected -= {"com.bad:http/"} if "-filter" in words else set()
    expected -= {"com.d.www:http/"} if "-normalize" in words else set()
    assert set(state_of(out)["key"]) == expected


def test_purged_names_stay_out(crawled, out, capsys):
    assert nutbeam("inject", out, "http://h0.example.com/") == 0
    assert nutbeam("purge", out, "--host", "h0.example.com") == 0
    assert "dropped/purged " in printed(capsys, "mergedb", out, crawled)
    assert not any(key.startswith("com.example.h0:") for key in state_of(out)["key"])


def test_a_missing_table_is_left_out_with_a_warning_unless_it_is_the_only_one(
    crawled, tmp_path, caplog, refuse
):
    out = tmp_path / "out"
    assert nutbeam("mergedb", out, crawled, tmp_path / "none") == 0
    assert [r.getMessage() for r in caplog.records if r.name == "nutbeam.mergedb"] == [
        f"left out: no web table at '{tmp_path}/none': it does not exist"
    ]


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["{table}", "{table}"], "a table is not merged with itself: '{table}'"),
        (["out", "./out"], "a table is not merged with itself: './out'"),
        (["out", "urls.txt"], "the table must be a folder, got the file 'urls.txt'"),
        (["urls.txt", "{table}"], "the table must be a folder, got the file 'urls.txt'"),
        (["out"], "missing argument OTHERS"),
        (["out", "{table}", "-force"], "unknown option '-force'"),
        (
            ["out", "{table}", "--url_filter_file", "none"],
            "a file of rules must be readable, got 'none'",
        ),
    ],
)
def test_bad_words_for_mergedb_get_one_line(
    crawled, refuse, tmp_path, monkeypatch, words, expected
):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "urls.txt").touch()
    error = refuse("mergedb", *(word.format(table=crawled) for word in words))
    assert expected.format(table=crawled) in error
    assert not (tmp_path / "out").exists()
