"""batches and mergesegs copy, filter, slice and merge batches; updatedb takes the results elsewhere."""

import json

import polars as pl
import pytest
from command_output import printed
from crawling import files_of, manifest_of, nutbeam, reach, rows_of, state_of
from simulated_web import served_web

from nutbeam.web.urls.row_keys import from_key

pytestmark = pytest.mark.folder_first

web = served_web(hosts=3, pages=5, scope="module")
OF_RESULTS = ("key", "status", "http_code", "signature", "fetch_time", "last_fetch_time")


@pytest.fixture(scope="module")
def table(web, backend, kept_crawls):
    """A table with two updated batches, and one that is only generated."""
    made = str(backend.fresh())
    kept_crawls.make(web, made, "--rounds", "2")
    return made


def of_batches(table, kind, column="key"):
    """Returns the values of a column of all batches of a table, sorted."""
    names = manifest_of(table).batches
    return sorted(v for name in names for v in rows_of(table, f"batches/{name}/{kind}")[column])


def results(table):
    return state_of(table).select(OF_RESULTS).sort("key").rows()


@pytest.mark.long
def test_batches_that_are_copied_and_updated_make_the_same_table(table, out, capsys):
    before = results(table)
    printed(capsys, "batches", "copy", out, f"{table}/batches")
    copied = manifest_of(out).batches
    assert {n: (b.phase, b.urls) for n, b in copied.items()} == {
        n: ("parsed", b.urls) for n, b in manifest_of(table).batches.items()
    }
    assert nutbeam("fsck", out) == 0
    while nutbeam("updatedb", out) == 0:
        pass
    fetched = {row[0] for row in before if row[5] is not None}
    assert [r for r in results(out) if r[0] in fetched] == [r for r in before if r[0] in fetched]


def test_rows_that_are_merged_after_a_copy_keep_their_texts(table, out, capsys):
    printed(capsys, "batches", "copy", out, f"{table}/batches")
    printed(capsys, "mergedb", out, table)
    columns = ("key", "document", "page", "batch_id", "etag")
    assert state_of(out).select(columns).equals(state_of(table).select(columns))
    assert printed(capsys, "pages", out) == printed(capsys, "pages", table)


@pytest.mark.long
def test_rows_that_are_merged_after_a_filtered_copy_keep_the_texts_that_came_along(
    table, out, backend, capsys
):
    rules = ["--filter_urls", "--exclude", "//h1.example.com/"]
    printed(capsys, "batches", "copy", out, f"{table}/batches", *rules)
    printed(capsys, "mergedb", out, table)
    before = state_of(table).select("key", "document", "etag").drop_nulls("document")
    here = ~pl.col("key").str.contains("h1:")
    after = state_of(out).select("key", "document", "etag")
    assert after.drop_nulls("document").sort("key").equals(before.filter(here).sort("key"))
    # A server that is asked with the mark of a body that is not here would send none.
    assert after.filter(~here)["etag"].null_count() == len(after.filter(~here))
    urls, kept_urls = (
        [json.loads(page)["url"] for page in printed(capsys, "pages", of).splitlines()]
        for of in (table, out)
    )
    assert sorted(kept_urls) == sorted(url for url in urls if "//h1." not in url)
    assert nutbeam("fsck", out) == 0


def test_a_damaged_fetch_list_is_not_copied(table, backend, out, refuse):
    copy = backend.copy(table)
    path = files_of(copy, f"batches/{min(manifest_of(copy).batches)}/fetchlist")[0]
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)
    assert "data file is damaged" in refuse("batches", "copy", out, f"{copy}/batches", code=3)


@pytest.mark.long
def test_a_merge_is_one_batch_with_each_url_once(table, out, capsys):
    (first, *others) = sorted(manifest_of(table).batches)
    each = [word for name in others for word in ("-dir", f"{table}/batches/{name}")]
    line = printed(capsys, "mergesegs", out, "-dir", f"{table}/batches/{first}", *each)
    ((name, batch),) = manifest_of(out).batches.items()
    assert line == f"mergesegs: batch {name}: parsed, URLs {batch.urls:,}\n"
    for kind in ("pages", "documents", "fetchlist"):
        keys = of_batches(out, kind)
        assert keys == sorted(set(of_batches(table, kind)))
    assert nutbeam("updatedb", out) == 0
    assert {row[:3] for row in results(out)} == {row[:3] for row in results(table)}
    assert nutbeam("fsck", out) == 0


@pytest.mark.long
def test_the_newest_batch_of_a_url_wins_with_its_own_text(table, out, backend, web, capsys):
    """The same pages are fetched again, with other texts: those are in the merge."""
    again = str(backend.fresh())
    assert nutbeam("mergedb", again, table) == 0
    assert nutbeam("generate", again, "--add_days", "99") == 0
    assert nutbeam("fetch", again, *reach(web)) == 0
    assert nutbeam("parse", again, "--signature", "simhash") == 0
    (newest,) = manifest_of(again).batches
    segments = [f"{table}/batches/{name}" for name in sorted(manifest_of(table).batches)]
    # The order in which they are typed does not matter.
    printed(capsys, "mergesegs", out, f"{again}/batches/{newest}", *segments)
    signed = dict(rows_of(again, f"batches/{newest}/documents").select("key", "signature").rows())
    (merged,) = manifest_of(out).batches
    found = dict(rows_of(out, f"batches/{merged}/documents").select("key", "signature").rows())
    assert {key: found[key] for key in signed} == signed
    pages = dict(rows_of(again, f"batches/{newest}/pages").select("key", "fetch_time").rows())
    found = dict(rows_of(out, f"batches/{merged}/pages").select("key", "fetch_time").rows())
    assert {key: found[key] for key in pages} == pages


@pytest.mark.long
@pytest.mark.few(1)
@pytest.mark.parametrize("size", [1, 4, 1000])
def test_slices_have_the_given_number_of_urls_and_lose_none(table, out, capsys, size):
    record = json.loads(
        printed(capsys, "mergesegs", out, "-dir", f"{table}/batches", "-slice", size,
                "--format", "json")
    )  # fmt: skip
    numbers = [batch["urls"] for batch in record["batches"].values()]
    assert all(number == size for number in numbers[:-1])
    assert 0 < numbers[-1] <= size
    assert list(record["batches"]) == sorted(record["batches"])  # so none is taken for an older one
    for kind in ("pages", "documents"):
        assert of_batches(out, kind) == of_batches(table, kind)


@pytest.mark.parametrize("verb", ["copy", "merge"])
def test_rules_apply_on_request_to_pages_texts_and_lists(table, out, tmp_path, capsys, verb):
    (tmp_path / "host-urlnormalizer.txt").write_text("h2.example.com h9.example.com\n")
    rules = ["--url_rules_dir", tmp_path, "--url_normalizers", "basic,host"]
    words = ["--filter_urls", "--normalize_urls", "--exclude", "//h1.example.com/", *rules]
    line = printed(capsys, "batches", verb, out, f"{table}/batches", *words)
    assert "dropped/excluded " in line
    for kind in ("pages", "documents", "fetchlist"):
        expected = {
            from_key(key).replace("h2.example.com", "h9.example.com")
            for key in of_batches(table, kind) if "h1:" not in key
        }  # fmt: skip
        assert set(map(from_key, of_batches(out, kind))) == expected


def test_only_files_that_all_batches_have_are_merged(table, out, backend, web, capsys, caplog):
    other = str(backend.fresh())
    assert nutbeam("inject", other, "http://h0.example.com/new", *web.seeds) == 0
    assert nutbeam("generate", other) == 0
    printed(capsys, "mergesegs", out, "-dir", f"{table}/batches", f"{other}/batches")
    assert caplog.messages[-1] == "left out, because not all batches have them: pages, documents"
    (batch,) = manifest_of(out).batches.values()
    assert batch.phase == "generated"
    assert of_batches(out, "fetchlist") == sorted(
        {*of_batches(table, "fetchlist"), *of_batches(other, "fetchlist")}
    )
    assert nutbeam("fetch", out, *reach(web)) == 0


def test_purged_names_stay_out_and_the_same_operation_changes_nothing(table, out, capsys):
    assert nutbeam("inject", out, "http://h1.example.com/") == 0
    assert nutbeam("purge", out, "--host", "h1.example.com") == 0
    words = ["batches", "copy", out, f"{table}/batches", "--operation", "one"]
    assert "dropped/purged " in printed(capsys, *words)
    assert not any("h1:" in key for key in of_batches(out, "pages"))
    assert printed(capsys, *words) == "batches: done before\n"


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["move", "out", "{table}"], "the first word must be copy or merge, got 'move'"),
        (["copy", "{table}", "{table}/batches"], "batch '{batch}' is in table '{table}' already"),
        (["copy", "out"], "expected batches, as TABLE/batches/ID, or a table"),
        (["copy", "out", "{table}/batches/1-a"], "no batch '1-a' in table '{table}'; newest"),
        (["copy", "out/batches/1-a", "{table}"], "expected a table, or TABLE/batches, got 'out/"),
        (["copy", "out", "none"], "no web table at 'none'"),
        (["merge", "out", "{table}", "--slice", "-1"], "--slice must be at least 0, got"),
        (["merge", "out", "{table}", "--url_filter_file", "none"], "a file of rules must be read"),
    ],
)
def test_bad_words_for_batches_get_one_line(table, refuse, tmp_path, monkeypatch, words, expected):
    monkeypatch.chdir(tmp_path)
    names = {"table": table, "batch": min(manifest_of(table).batches)}
    error = refuse("batches", *(word.format(**names) for word in words))
    assert error.startswith(expected.format(**names)), error
    assert list(tmp_path.iterdir()) == []


def test_a_batch_is_copied_once(table, out, refuse, tmp_path, capsys):
    printed(capsys, "batches", "copy", out, f"{table}/batches")
    assert refuse("batches", "copy", out, f"{table}/batches").startswith(
        f"table {out!r} has a batch '"
    )
    batch = min(manifest_of(table).batches)
    words = [f"{table}/batches/{batch}", f"{out}/batches/{batch}"]
    expected = f"batch {batch!r} is in tables {table!r} and {out!r}: give one"
    for command in (
        ["batches", "copy", tmp_path / "new"],
        ["dump", "-outputDir", tmp_path / "dump"],
    ):
        assert refuse(*command, *words) == expected
    assert list(tmp_path.iterdir()) == []


def test_urls_that_were_only_listed_are_rewritten_too(out, tmp_path, capsys):
    (tmp_path / "urls.txt").write_text(f"http://h0.example.com/?PHPSESSID={'a' * 32}\n")
    assert nutbeam("freegen", tmp_path / "urls.txt", tmp_path / "listed") == 0
    (batch,) = manifest_of(tmp_path / "listed").batches
    words = ("mergesegs", out, f"{tmp_path}/listed/batches/{batch}", "-normalize")
    assert json.loads(printed(capsys, *words, "--format", "json"))["counts"]["moved"] == 1
    assert of_batches(out, "fetchlist") == ["com.example.h0:http/"]
