"""index and clean: what each writer gets, and what the table's other commands do with an index."""

import json

import polars as pl
import pytest
from crawling import files_of, manifest_of, nutbeam, reach, rows_of
from geo_databases import database
from index_bytes import holders
from indexed_tables import FETCHED, index, operations_of, page, put, visible, writer
from linked_web import fill_links, linked_web
from simulated_web import SimWeb

from nutbeam.io.table.opening import open_table
from nutbeam.policy.components.schema import ParseStatus, Status
from nutbeam.web.urls.row_keys import from_key

GONE = {"status": int(Status.DB_GONE)}


@pytest.fixture
def table(tmp_path):
    """A table with three pages."""
    pages = {f"com.a:http/{n}": page(f"text {n}") for n in (1, 2, 3)}
    put(tmp_path / "table", "17-1", pages)
    return str(tmp_path / "table")


@pytest.fixture
def out(tmp_path):
    return tmp_path / "out"


def journal_of(table, name="main"):
    """Returns the state of each key that a journal has."""
    rows = rows_of(table, f"index/{name}/indexed").filter(pl.col("deleted").is_null())
    return dict(rows.select("key", "state").iter_rows())


@pytest.mark.long
def test_a_row_that_leaves_the_table_is_deleted(table, out):
    assert index(table, out) == 0
    put(table, "17-2", {"com.a:http/1": None, "com.a:http/2": GONE})
    assert index(table, out) == 0
    assert visible(out) == {"http://a.com/3": "text 3"}
    assert journal_of(table) == {"com.a:http/3": 1}
    assert dict(manifest_of(table).counts) == {"deleted_gone": 1, "deleted_unknown": 1}


@pytest.mark.long
def test_the_exit_code_says_that_there_was_nothing_to_do(table, out, capsys):
    assert index(table, out) == 0
    capsys.readouterr()
    assert nutbeam("clean", table, *writer(out)) == 0  # it looks at every page
    assert capsys.readouterr().out == "clean: nothing changed\n"
    assert index(table, out) == 1
    assert capsys.readouterr().out == "index: nothing to do\n"


@pytest.mark.long
def test_clean_deletes_and_adds_nothing(table, out):
    assert index(table, out) == 0
    put(table, "17-2", {"com.a:http/2": GONE, "com.a:http/4": page("new")})
    assert nutbeam("clean", table, *writer(out)) == 0
    assert sorted(visible(out)) == ["http://a.com/1", "http://a.com/3"]
    assert index(table, out) == 0
    assert sorted(visible(out)) == ["http://a.com/1", "http://a.com/3", "http://a.com/4"]


STATUSES = ("DB_REDIR_TEMP", "DB_REDIR_PERM", "DB_DUPLICATE", "DB_ORPHAN", "DB_GONE")


@pytest.mark.few(1)
@pytest.mark.parametrize("delete_gone", [True, False])
def test_clean_deletes_redirected_duplicate_and_orphan_pages(table, out, delete_gone):
    ended = {f"com.b:http/{name}": page(name) for name in STATUSES}
    put(table, "17-2", ended)
    assert index(table, out) == 0
    known = rows_of(table, "state").select("key", "document", "parse_status").to_dicts()
    kept = {row.pop("key"): row for row in known}
    put(table, "17-3", {
        key: {**kept[key], "status": int(Status[key.rpartition("/")[2]])} for key in ended
    })  # fmt: skip
    words = ("--delete_gone", str(delete_gone).lower())
    assert nutbeam("clean", table, *writer(out), *words) == 0
    left = {f"http://a.com/{n}" for n in (1, 2, 3)}
    assert set(visible(out)) == (
        left if delete_gone else left | {f"http://b.com/{s}" for s in STATUSES}
    )
    if delete_gone:
        counts = {"deleted_redirects": 2, "deleted_duplicates": 1, "deleted_gone": 2}
        assert dict(manifest_of(table).counts) == counts
        assert nutbeam("clean", table, *writer(out)) == 0


@pytest.mark.long
@pytest.mark.few(1)
@pytest.mark.parametrize("job", [("index",), ("index", "--full"), ("clean",)], ids=" ".join)
def test_a_page_whose_new_body_was_not_parsed_leaves_the_index(table, out, job):
    assert index(table, out) == 0
    put(table, "17-2", {"com.a:http/1": page("", parse_status=int(ParseStatus.FAILED))})
    assert nutbeam(job[0], table, *writer(out), *job[1:]) == 0
    assert sorted(visible(out)) == ["http://a.com/2", "http://a.com/3"]
    assert set(journal_of(table)) == {"com.a:http/2", "com.a:http/3"}
    assert manifest_of(table).counts["deleted_not_parsed"] == 1


@pytest.mark.long
@pytest.mark.few(1)
@pytest.mark.parametrize(
    ("words", "left"),
    [
        (("--delete_gone", "false"), {"http://a.com/2", "http://a.com/3"}),
        (("--delete_skipped", "false", "--index_filters", "basic,expr",
          "--index_expr", "content != 'text 2'"), {"http://a.com/3"}),
        (("--batch", "17-1"), {"http://a.com/2", "http://a.com/3"}),
    ],
    ids=["gone", "filtered", "batch"],
)  # fmt: skip
def test_the_journal_of_a_rebuilt_index_has_the_pages_of_the_index(table, out, words, left):
    put(table, "17-2", {"com.a:http/4": page("new")})
    assert index(table, out) == 0
    put(table, "17-3", {"com.a:http/1": GONE, "com.a:http/4": GONE})
    assert index(table, out, "--full", *words) == 0
    assert set(visible(out)) == left
    assert {from_key(key) for key in journal_of(table)} == left


@pytest.mark.long
def test_a_batch_alone(table, out):
    put(table, "17-2", {"com.a:http/4": page("new")})
    assert index(table, out, "--batch", "17-2") == 0
    assert sorted(visible(out)) == ["http://a.com/4"]
    assert index(table, out) == 0
    assert len(visible(out)) == 4


@pytest.mark.long
def test_two_indexes_do_not_disturb_each_other(table, out, tmp_path):
    assert index(table, out) == 0
    assert index(table, tmp_path / "two", "--index", "two") == 0
    put(table, "17-2", {"com.a:http/1": page("new")})
    assert index(table, out) == 0
    assert index(table, out) == 1
    assert visible(out)["http://a.com/1"] == "new"
    assert set(journal_of(table)) == set(journal_of(table, "two"))
    (name,) = {path.name.partition("-")[0] for path in (tmp_path / "two").glob("*.jsonl")}
    assert name == "two"


def test_several_writers_get_the_documents_that_routes_assign(table, tmp_path):
    rules = tmp_path / "writers.toml"
    rules.write_text(f"""
        [[writer]]
        name = "first"
        kind = "jsonl"
        path = "{tmp_path}/first"
        only = "content == 'text 1'"
        rename = {{ content = "body" }}
        [[writer]]
        name = "rest"
        kind = "dummy"
        path = "{tmp_path}/rest"
        otherwise = true
    """)
    words = ("index", table, "--index_writers", rules)
    assert nutbeam(*words) == 0
    (first,) = (tmp_path / "first").glob("*.jsonl")
    assert json.loads(first.read_text())["body"] == "text 1"
    (rest,) = (tmp_path / "rest").glob("*.txt")
    assert rest.read_text() == "add\thttp://a.com/2\nadd\thttp://a.com/3\n"
    # A document that another writer gets now is deleted from the one before.
    put(table, "17-2", {"com.a:http/1": page("other")})
    assert nutbeam(*words) == 0
    *_, added, deleted = (
        sorted((tmp_path / "rest").glob("*.txt")),
        *(tmp_path / "first").glob("*-deletes.jsonl"),
    )
    assert added[-1].read_text() == "add\thttp://a.com/1\n"
    assert json.loads(deleted.read_text()) == {"id": "http://a.com/1"}
    writers = dict(rows_of(table, "index/main/indexed").select("key", "writers").iter_rows())
    assert writers["com.a:http/1"] == ["rest"]


@pytest.mark.long
def test_a_document_that_moves_to_another_writer_leaves_the_embedded_index(table, tmp_path, capsys):
    rules = tmp_path / "writers.toml"
    rules.write_text(f"""
        [[writer]]
        name = "searched"
        kind = "tantivy"
        only = "content == 'text 1'"
        [[writer]]
        name = "rest"
        kind = "dummy"
        path = "{tmp_path}/rest"
        otherwise = true
    """)
    words = ("index", table, "--index_writers", rules)
    search = ("search", table, "text", "--format", "json", "--cache_folder", tmp_path / "cache")
    assert nutbeam(*words) == 0
    capsys.readouterr()
    assert nutbeam(*search) == 0
    assert json.loads(capsys.readouterr().out)["url"] == "http://a.com/1"
    put(table, "17-2", {"com.a:http/1": page("text of another kind")})
    assert nutbeam(*words) == 0
    assert nutbeam(*search) == 1


@pytest.mark.long
def test_purge_takes_a_url_out_and_the_next_run_deletes_it(table, out):
    assert index(table, out) == 0
    assert holders(open_table(table).files / "index", ("com.a:http/2",))
    assert nutbeam("purge", table, "--url", "http://a.com/2", "--now") == 0
    assert set(journal_of(table)) == {"com.a:http/1", "com.a:http/3"}
    assert holders(open_table(table).files / "index", ("com.a:http/2", "http://a.com/2")) == []
    # The older journal is gone, so the index is built from the beginning.
    assert index(table, out) == 0
    assert sorted(visible(out)) == ["http://a.com/1", "http://a.com/3"]
    assert [len(adds) for _, adds, _ in operations_of(out)] == [2]


@pytest.mark.long
def test_a_purge_that_keeps_older_snapshots_costs_one_delete(table, out):
    assert index(table, out) == 0
    assert nutbeam("purge", table, "--url", "http://a.com/2") == 0
    assert index(table, out) == 0
    assert [(len(adds), gone) for _, adds, gone in operations_of(out)] == [
        (3, []),
        (0, ["http://a.com/2"]),
    ]
    assert set(journal_of(table)) == {"com.a:http/1", "com.a:http/3"}


@pytest.mark.long
def test_after_a_rollback_the_index_is_built_again(table, out):
    assert index(table, out) == 0
    put(table, "17-2", {"com.a:http/4": page("new")})
    before = manifest_of(table).snapshot - 1
    assert index(table, out) == 0
    assert nutbeam("rollback", table, "--to", before) == 0
    assert set(journal_of(table)) == {f"com.a:http/{n}" for n in (1, 2, 3)}
    assert index(table, out) == 0
    assert sorted(visible(out)) == [f"http://a.com/{n}" for n in (1, 2, 3)]


@pytest.mark.long
def test_copy_fsck_and_compact_know_an_index(table, out, tmp_path, capsys):
    assert index(table, out) == 0
    put(table, "17-2", {"com.a:http/2": GONE})
    assert index(table, out) == 0
    assert nutbeam("copy", table, tmp_path / "copy") == 0
    assert journal_of(tmp_path / "copy") == journal_of(table)
    assert nutbeam("compact", table, "--full", "true", "--snapshot_retention", "0") == 0
    assert len(files_of(table, "index/main/indexed")) == 1
    for one in (table, tmp_path / "copy"):
        assert nutbeam("fsck", one) == 0
        assert index(one, out) == 1
    capsys.readouterr()
    assert nutbeam("export", table, "--what", "indexed", "--format", "jsonl") == 0
    rows = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert {(row["index_name"], row["url"], row["state"]) for row in rows} == {
        ("main", "http://a.com/1", "held"),
        ("main", "http://a.com/3", "held"),
    }
    (path,) = files_of(table, "index/main/indexed")
    path.write_bytes(path.read_bytes()[:-9] + b"damaged!!")
    assert nutbeam("fsck", table) == 3
    assert path.name in capsys.readouterr().out


@pytest.mark.long
@pytest.mark.bigtable
def test_a_table_in_bigtable(bigtable, tmp_path, out):
    table = bigtable.make(tmp_path / "files")
    put(table, "17-1", {f"com.a:http/{n}": page(f"text {n}") for n in (1, 2, 3)})
    assert index(table, out) == 0
    put(table, "17-2", {"com.a:http/1": None, "com.a:http/2": page("new")})
    assert index(table, out) == 0
    assert index(table, out) == 1
    assert visible(out) == {"http://a.com/2": "new", "http://a.com/3": "text 3"}
    assert [(len(adds), gone) for _, adds, gone in operations_of(out)] == [
        (3, []),
        (1, ["http://a.com/1"]),
    ]


def test_crawl_brings_each_round_into_the_index(tmp_path, out):
    table, here = str(tmp_path / "table"), {"country": {"iso_code": "XX"}}
    places = database(tmp_path / "places.mmdb", "GeoLite2-Country", {"127.0.0.0/8": here})
    with SimWeb(hosts=2, pages=3, seed=7, crawl_delay=0) as web:
        words = (*web.seeds, "--rounds", "2", "--links", "true", "--index", "main", *writer(out),
                 "--index_filters", "basic,anchor,geoip", "--geoip_databases", places)  # fmt: skip
        assert nutbeam("crawl", table, *words, *reach(web)) == 0
        assert len(operations_of(out)) == 2
        state = rows_of(table, "state").filter(pl.col("status") == FETCHED)
        noindex = 1
        assert len(visible(out)) == len(state) - noindex
        documents = [d for _, adds, _ in operations_of(out) for d in adds.values()]
        assert any("anchor" in document for document in documents)
        assert {document["countryIsoCode"] for document in documents} == {"XX"}


@pytest.mark.long
def test_a_page_that_has_changed_gets_the_texts_of_links_as_they_are_now(table, out, tmp_path):
    target, source, other = "http://a.com/1", "http://b.com/", tmp_path / "other"
    fill_links(table, {(target, source): ("old text", None, 1.0)})
    assert index(table, out) == 0
    assert nutbeam("inject", other, target) == 0
    fill_links(other, {(target, source): ("new text", None, 1.0)}, 2000)
    assert nutbeam("mergelinkdb", table, other) == 0
    put(table, "17-2", {"com.a:http/1": page("changed")})
    assert index(table, out) == 0
    anchors = [adds[target]["anchor"] for _, adds, _ in operations_of(out)]
    assert anchors == [["old text"], ["new text"]]


@pytest.mark.long
def test_an_index_has_the_texts_of_links_as_they_are_now(tmp_path, out):
    with linked_web(0) as web:
        web.links = {page: [] for page in range(web.pages)}
        words = ("--links", "--index", "main", *writer(out), "--index_filters", "basic,anchor")
        for text in ("old text", "new text"):
            web.links |= {1: [(2, text, "")], 2: [(1, text, "")]}
            web.versions |= {1: text, 2: text}
            more = ("--rounds", "2", "--add_days", "200", *words, *web.words)
            assert nutbeam("crawl", tmp_path / "table", web.url(0), web.url(1), *more) == 0
            last = [adds[web.url(2)] for _, adds, _ in operations_of(out) if web.url(2) in adds][-1]
            assert last["anchor"] == [text]


def test_texts_of_links_that_say_nofollow_are_no_anchors(table, out):
    target, links = "http://a.com/1", {
        "http://b.com/": ("bad", "nofollow"), "http://c.com/": ("good", None),
        "http://d.com/": ("paid", "nofollow sponsored"), "http://e.com/": ("ugc", "ugc"),
    }  # fmt: skip
    rows = {(target, source): (*link, 1.0) for source, link in links.items()}
    fill_links(table, rows | {("http://a.com/2", "http://b.com/"): ("bad", "nofollow", 1.0)})
    assert index(table, out) == 0
    ((_, documents, _),) = operations_of(out)
    assert documents[target]["anchor"] == ["good", "ugc"]
    assert "anchor" not in documents["http://a.com/2"]


def test_bad_input_is_one_line(table, out, capsys):
    def refused(*words):
        capsys.readouterr()
        assert nutbeam("index", table, *words) in (2, 3)
        error = capsys.readouterr().err
        assert error.count("\n") == 1
        return error

    assert "no index writer 'nope' is installed" in refused("--writer", "nope")
    assert "needs the parameter 'path'" in refused("--writer", "jsonl")
    assert "has no parameter 'pth'" in refused("--writer", "jsonl", "--writer_parameters", "pth=x")
    assert "must have name=value, got 'x'" in refused("--writer_parameters", "x")
    assert "no index filter 'basc' is installed" in refused(*writer(out), "--index_filters", "basc")
    geoip = (*writer(out), "--index_filters", "geoip", "--geoip_databases", "nowhere.mmdb")
    assert "got 'nowhere.mmdb': No such file or directory" in refused(*geoip)
    assert "no batch 'x'" in refused(*writer(out), "--batch", "x")
    assert "must be" in refused(*writer(out), "--index", "a/b")
    assert "cannot write" in refused(*writer("/proc/none"))
    assert index(table, out) == 0
    assert "was written by jsonl:jsonl" in refused(*writer(out, "dummy"))
