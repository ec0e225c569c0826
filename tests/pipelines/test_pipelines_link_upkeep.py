"""Upkeep of the link table: purge, compact, rollback, copy, export, sql, damage; and links that are lost."""

import json

import pytest
from clocks import DAY, clock_off
from crawling import files_of, nutbeam, rows_of
from linked_batches import document, outcome, put_batch
from linked_web import HOST, HOSTS, fill_links, linked_web, stored_links, true_links

from nutbeam.io.snapshots.manifest import newest_manifest
from nutbeam.policy.components.link_rows import best_inlinks
from nutbeam.policy.components.schema import Status

A, B, C = "http://a.com/", "http://b.org/", "http://c.net/x"
LINKS = {(A, B): ("b", None, 1.0), (A, C): ("c", "ugc", 1.0), (B, C): (None, None, 1.0)}


@pytest.fixture(params=["folder", "gs", "bigtable"])
def table(request, tmp_path, stores, monkeypatch):
    address = str(tmp_path / "table")
    if request.param == "bigtable":
        address = request.getfixturevalue("bigtable").make(tmp_path / "files")
    elif request.param == "gs":
        for name, value in stores.environ("gs").items():
            monkeypatch.setenv(name, value)
        address = stores.address("gs")
    assert nutbeam("inject", address, A) == 0
    fill_links(address, LINKS)
    return address


def pairs(table):
    return {(row["target"], row["source"]) for row in rows_of(table, "links").to_dicts()}


def keys(*links):
    hosts = {A: "com.a:http/", B: "org.b:http/", C: "net.c:http/x"}
    return {(hosts[target], hosts[source]) for target, source in links}


@pytest.mark.few(3)
@pytest.mark.parametrize(
    ("words", "left"),
    [
        (("--host", "b.org"), [(A, C)]),
        (("--url", C), [(A, B)]),
        (("--domain", "c.net"), [(A, B)]),
    ],
)
def test_a_purge_takes_links_from_and_to_a_name(table, words, left):
    assert nutbeam("purge", table, *words, "--now") == 0
    assert pairs(table) == keys(*left)
    assert nutbeam("fsck", table) == 0


def test_copy_export_and_rollback(table, tmp_path, capsys):
    assert nutbeam("copy", table, tmp_path / "copy") == 0
    assert pairs(str(tmp_path / "copy")) == pairs(table) == keys(*LINKS)
    capsys.readouterr()
    assert nutbeam("export", table, "--what", "inlinks") == 0
    found = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert {(row["target"], row["source"]) for row in found} == set(LINKS)
    capsys.readouterr()
    query = "select target, source, anchor from inlinks order by target, source"
    assert nutbeam("sql", table, query, "--format", "csv") == 0
    shown = capsys.readouterr().out.splitlines()
    assert shown[-3:] == [f"{A},{B},b", f"{A},{C},c", f"{B},{C},"]
    assert nutbeam("rollback", table, "--to", "1") == 0
    assert "links" not in newest_manifest(table).components
    assert nutbeam("rollback", table, "--to", "2") == 0
    assert pairs(table) == keys(*LINKS)
    assert nutbeam("fsck", table) == 0


def test_a_damaged_file_of_links_is_found_and_its_links_come_back(tmp_path, capsys):
    table = str(tmp_path / "table")
    (old,) = put_batch(table, "17-1", [[document("com.a:http/", "org.b:http/")]],
                       [outcome("com.a:http/", 0)])  # fmt: skip
    assert nutbeam("invertlinks", table) == 0
    before = stored_links(table)
    (path,) = files_of(table, "links")
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)
    capsys.readouterr()
    assert nutbeam("fsck", table) == 3
    assert path.name in capsys.readouterr().out
    assert nutbeam("fsck", table, "--repair", "--drop") == 0
    assert nutbeam("fsck", table) == 0
    assert stored_links(table) == {}
    put_batch(table, "17-2", [], [outcome("com.a:http/", old, old, Status.DB_NOTMODIFIED)])
    assert nutbeam("invertlinks", table) == 0
    assert stored_links(table) == before != {}


class Crawl:
    """A crawl of a web whose links change."""

    def __init__(self, table, web):
        self.table, self.web = table, web

    def rounds(self, *words):
        assert nutbeam("crawl", self.table, *words, *self.web.words) in (0, 4)


@pytest.fixture
def crawl(tmp_path):
    with linked_web(3) as web:
        found = Crawl(tmp_path / "table", web)
        found.rounds(f"http://{HOST}/", "--rounds", "2", "--links")
        yield found


@pytest.mark.long
def test_links_whose_document_was_lost_stay_until_their_age(crawl, monkeypatch):
    table, web = crawl.table, crawl.web
    before = stored_links(table)
    for page in range(web.pages):
        web.change(page)
    crawl.rounds("--rounds", "1", "--add_days", "200")  # without links
    assert nutbeam("compact", table, "--snapshot_retention", "0", "--keep_batches", "0") == 0
    assert nutbeam("invertlinks", table) == 0
    assert newest_manifest(str(table)).waiting_for("links") == []
    truth, after = true_links(table), stored_links(table)
    assert truth.items() <= after.items()
    stale = after.keys() - truth.keys()
    assert stale
    assert stale <= before.keys()
    with clock_off(monkeypatch, 181 * DAY):  # twice the longest interval, and a day
        crawl.rounds("--rounds", "1", "--links", "--add_days", "200")
    assert stored_links(table) == true_links(table)


@pytest.mark.long
def test_compact_leaves_out_links_that_have_ended(crawl, resize_tables):
    resize_tables(run_share=100)  # else so small a tablet is written again
    table, web = crawl.table, crawl.web
    web.gone = {str(page) for page in range(web.pages)}
    crawl.rounds("--rounds", "1", "--add_days", "200", "--links")
    gone = rows_of(table, "state").filter(status=int(Status.DB_GONE))
    assert len(gone) == web.pages
    assert stored_links(table) == true_links(table) != {}
    ended = rows_of(table, "links").drop_nulls("gone_since")
    assert len(ended)
    assert nutbeam("compact", table, "--full") == 0
    assert not len(rows_of(table, "links").drop_nulls("gone_since"))
    assert stored_links(table) == true_links(table)
    assert len(files_of(table, "links")) == 1
    assert nutbeam("fsck", table) == 0


@pytest.mark.long
@pytest.mark.few(1)
@pytest.mark.parametrize("waits", [True, False])
@pytest.mark.parametrize("moves", [True, False])
def test_pages_that_filterdb_removes_take_their_links_along(crawl, tmp_path, waits, moves):
    table, web = crawl.table, crawl.web
    if waits:
        for page in range(web.pages):
            web.change(page)
        crawl.rounds("--rounds", "1", "--add_days", "200")
    before = stored_links(table)
    words = ["--exclude", "/[12]$"]
    if moves:  # all pages
        (tmp_path / "host-urlnormalizer.txt").write_text(
            "".join(f"{host} moved.example.com\n" for host in HOSTS)
        )
        words = ["--url_rules_dir", tmp_path, "--url_normalizers", "basic,host"]
    assert nutbeam("filterdb", table, *words) == 0
    if waits:
        assert nutbeam("invertlinks", table) == 0
    found = stored_links(table)
    assert found == true_links(table)
    assert any(source.endswith(("/1", "/2")) for _, source in before)
    assert not [s for _, s in found if moves or s.endswith(("/1", "/2"))]
    assert nutbeam("fsck", table) == 0


def test_compact_keeps_only_the_best_inlinks_with_keep_inlinks(tmp_path, resize_tables, capsys):
    resize_tables(tablet_rows=20, row_group_rows=7)
    table = str(tmp_path / "table")
    assert nutbeam("inject", table, A) == 0
    targets = {A: 50, B: 3, C: 2}
    fill_links(table, {
        (target, f"http://s{n}.com/"): (None, None, float(n * 7 % 5))
        for target, most in targets.items() for n in range(most)
    })  # fmt: skip
    best = best_inlinks(rows_of(table, "links"), 3).sort("key")
    assert nutbeam("compact", table) == 0
    assert len(rows_of(table, "links")) == 55
    capsys.readouterr()
    for _ in range(3):  # again where the inlinks of a page fill several tablets
        assert nutbeam("compact", table, "--full", "--keep_inlinks", "3") == 0
    assert "dropped/inlinks" in capsys.readouterr().out
    assert rows_of(table, "links").equals(best)
    assert nutbeam("fsck", table) == 0


@pytest.mark.long
def test_batches_in_the_wrong_order_give_the_newest_links(crawl):
    table, web = crawl.table, crawl.web
    for _ in range(2):
        for page in range(web.pages):
            web.change(page)
        crawl.rounds("--rounds", "1", "--add_days", "200")
    first, second = newest_manifest(str(table)).waiting_for("links")
    for batch in (second, first, first, second):
        assert nutbeam("invertlinks", table, "--batch", batch) == 0
    assert stored_links(table) == true_links(table)
    assert nutbeam("invertlinks", table) == 1


@pytest.mark.long
def test_a_purge_between_update_and_invertlinks(crawl):
    table, web = crawl.table, crawl.web
    for page in range(web.pages):
        web.change(page)
    crawl.rounds("--rounds", "1", "--add_days", "200")
    assert nutbeam("purge", table, "--url", web.url(1)) == 0
    assert nutbeam("invertlinks", table) == 0
    assert stored_links(table) == true_links(table) != {}
    assert not [pair for pair in stored_links(table) if any(key.endswith("/1") for key in pair)]
    assert nutbeam("fsck", table) == 0
