"""What update makes of the answers of a real server, months after one another."""

import pathlib

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from crawling import files_of, manifest_of, nutbeam, rows_of, statuses_of
from web_servers import reply, serve

from nutbeam.io.batches import batches
from nutbeam.policy.components.page_facts import EARLIER_COLUMNS
from nutbeam.policy.components.schema import Status
from nutbeam.policy.schedules.schedule import DAY_MS
from nutbeam.web.base.clock import now_ms, replaced_clock
from nutbeam.web.urls.row_keys import from_key

HOST = "http://a.example.com"
DAY_S = 86_400


class Site:
    """A site that answers 304, has pages that link, and redirects.

    Attributes:
        links: From the path of a page to the paths that it links to.
        moved: From the path of a redirect to its target.
        refreshes: From the path of a page to the content of its meta refresh.
        now: The time, ms.
    """

    def __init__(self):
        self.links, self.moved, self.refreshes, self.now = {}, {}, {}, now_ms()

    def __call__(self, path, _):
        if path in self.moved:
            return reply(b"", "302 Found", f"Location: {self.moved[path]}")
        if path not in self.links:
            return reply(b"", "404 Not Found")
        links = "".join(f'<a href="{to}">{to}</a>' for to in self.links[path])
        tag = f'ETag: "{hash(links)}"'
        if f"If-None-Match: {tag.split()[1]}" in self.server.current.head:
            return reply(b"", "304 Not Modified", tag)
        refresh = self.refreshes.get(path)
        head = f'<meta http-equiv="refresh" content="{refresh}">' if refresh else ""
        page = f"<html><title>{path}</title>{head}{path} {links}</html>"
        return reply(page.encode(), "200 OK", "Content-Type: text/html", tag)

    def round(self, table, *words, days=0, fetch=(), update=(), before=lambda: None):
        """One round after some days; ``before`` is called before its update."""
        self.now += days * DAY_MS
        door = ("--connect_to", f"a.example.com:80:127.0.0.1:{self.server.port}")
        assert nutbeam("generate", table, *words) == 0
        assert nutbeam("fetch", table, *door, "--server_delay", "0", *fetch) == 0
        assert nutbeam("parse", table) == 0
        before()
        assert nutbeam("updatedb", table, *update) == 0
        return manifest_of(table).counts


@pytest.fixture
def site():
    site = Site()
    with serve(site) as site.server, replaced_clock(lambda: site.now):
        yield site


def state_of(table):
    """The rows of the state by path."""
    rows = rows_of(table, "state").to_dicts()
    return {from_key(row["key"]).removeprefix(HOST): row for row in rows}


@pytest.fixture
def table(tmp_path):
    return str(tmp_path / "table")


def injected(table, tmp_path, *lines):
    (tmp_path / "seeds.txt").write_text("".join(f"{HOST}{line}\n" for line in lines))
    assert nutbeam("inject", table, tmp_path / "seeds.txt") == 0


def repeat_pages(table):
    """Writes each page of the batch twice, as a resumed attempt may do."""
    (batch,) = [name for name, each in manifest_of(table).batches.items() if each.phase == "parsed"]
    for file in files_of(table, f"batches/{batch}/pages"):
        rows = pq.read_table(file)
        pq.write_table(pa.concat_tables([rows, rows]), file)


@pytest.mark.long
def test_a_304_renews_the_links_of_the_page_and_a_lost_document_is_counted(site, table, tmp_path):
    site.links = {"/": ["/leaf"], "/leaf": []}
    injected(table, tmp_path, "/")
    site.round(table)
    first = state_of(table)["/leaf"]
    counts = site.round(table, days=31)
    row, leaf = state_of(table)["/"], state_of(table)["/leaf"]
    assert (row["status"], row["http_code"]) == (Status.DB_NOTMODIFIED, 304)
    assert leaf["last_inlink_day"] == first["last_inlink_day"] + 31
    assert leaf["score"] == first["score"]
    assert "documents_missing" not in counts
    lost = row["document"].rpartition("/")[0]
    missing = sum(each["document"].startswith(lost) for each in state_of(table).values())
    for file in files_of(table, lost):
        file.unlink()
    counts = site.round(table, days=31, before=lambda: repeat_pages(table))
    assert state_of(table)["/"]["http_code"] == 304
    assert counts["documents_missing"] == missing
    assert state_of(table)["/leaf"]["last_inlink_day"] == leaf["last_inlink_day"]


@pytest.mark.long
def test_pages_that_answer_304_read_each_old_file_once_and_only_columns_for_links(
    site, table, tmp_path, monkeypatch
):
    names = [f"/{number}" for number in range(6)]
    site.links = {name: [f"{name}/leaf"] for name in names}
    injected(table, tmp_path, *names)
    for _ in range(3):
        site.round(table, "--top_n", "2", "--max_distance", "0")  # each with a file of documents
    first = state_of(table)
    old = {first[name]["document"] for name in names}
    assert len(old) == 3
    for path in old:
        spoil_columns(f"{table}/{path}", kept={*EARLIER_COLUMNS})
    read, scan = [], batches.scan

    def noted(paths, schema):
        read.extend(str(path).removeprefix(f"{table}/") for path in paths)
        return scan(paths, schema)

    monkeypatch.setattr(batches, "scan", noted)
    slow = ("--flush_seconds", "0.001", "--server_delay", "0.05")
    site.round(table, "--max_distance", "0", days=31, fetch=slow)
    batch = max(manifest_of(table).batches)
    assert len(files_of(table, f"batches/{batch}/pages")) > 1
    assert sorted(path for path in read if path in old) == sorted(old)
    rows = state_of(table)
    assert {rows[name]["http_code"] for name in names} == {304}
    assert {rows[name]["document"] for name in names} == old
    for name in names:
        seen = [some[f"{name}/leaf"]["last_inlink_day"] for some in (first, rows)]
        assert seen[1] - seen[0] == 31


def spoil_columns(path, kept):
    """Overwrites all columns of a Parquet file but some."""
    found = pq.ParquetFile(path).metadata
    groups = [found.row_group(number) for number in range(found.num_row_groups)]
    chunks = [group.column(at) for group in groups for at in range(group.num_columns)]
    with pathlib.Path(path).open("r+b") as file:
        for chunk in chunks:
            if chunk.path_in_schema.partition(".")[0] not in kept:
                file.seek(chunk.dictionary_page_offset or chunk.data_page_offset)
                file.write(b"\xff" * chunk.total_compressed_size)


@pytest.mark.long
def test_a_304_brings_back_no_url_that_filterdb_has_dropped(site, table, tmp_path):
    site.links = {"/": ["/leaf", "/calendar/1"], "/leaf": [], "/calendar/1": []}
    injected(table, tmp_path, "/")
    site.round(table)
    first = state_of(table)
    assert set(first) == {"/", "/leaf", "/calendar/1"}
    assert nutbeam("filterdb", table, "--exclude", "/calendar/") == 0
    site.round(table, days=31)
    rows = state_of(table)
    assert rows["/"]["http_code"] == 304
    assert set(rows) == {"/", "/leaf"}
    assert rows["/leaf"]["last_inlink_day"] == first["/leaf"]["last_inlink_day"] + 31


@pytest.mark.long
def test_after_a_purge_the_links_of_a_304_are_those_of_the_rewritten_document(
    site, table, tmp_path
):
    site.links = {"/": ["/leaf", "/other"], "/leaf": [], "/other": []}
    injected(table, tmp_path, "/")
    site.round(table)
    first = state_of(table)["/leaf"]
    assert nutbeam("purge", table, "--url", f"{HOST}/other", "--now") == 0
    document = state_of(table)["/"]["document"]
    folder = document.rpartition("/")[0]
    assert document not in {f"{folder}/{file.name}" for file in files_of(table, folder)}
    counts = site.round(table, days=31)
    rows = state_of(table)
    assert rows["/"]["http_code"] == 304
    assert "documents_missing" not in counts
    assert set(rows) == {"/", "/leaf"}
    assert rows["/leaf"]["last_inlink_day"] == first["last_inlink_day"] + 31


@pytest.mark.long
def test_a_304_renews_the_target_of_the_refresh_of_the_page(site, table, tmp_path):
    site.links, site.refreshes = {"/": [], "/x/y": []}, {"/": "0; url=/x/y"}
    injected(table, tmp_path, "/")
    for _ in range(2):
        site.round(table)
    first = state_of(table)["/x/y"]
    assert first["repr_url"] == f"{HOST}/"
    site.round(table, days=31)
    rows = state_of(table)
    assert {row["http_code"] for row in rows.values()} == {304}
    assert rows["/x/y"]["last_inlink_day"] == first["last_inlink_day"] + 31
    assert rows["/x/y"]["repr_url"] == f"{HOST}/"
    lost = rows["/"]["document"].rpartition("/")[0]
    for file in files_of(table, lost):
        file.unlink()
    site.round(table, days=31)
    rows = state_of(table)
    assert rows["/"]["http_code"] == 304
    assert rows["/x/y"]["repr_url"] == f"{HOST}/"


def test_the_target_of_a_redirect_inherits_at_each_hop(site, table, tmp_path):
    site.links, site.moved = {"/x/y": []}, {"/": "/x", "/x": "/x/y"}
    injected(table, tmp_path, "/\tnutch.fetchInterval=86400\tnutch.fetchInterval.fixed=172800\ta=b")
    site.round(table, fetch=("--redirect_max", "2"))
    rows = state_of(table)
    assert rows["/x/y"]["status"] == Status.DB_FETCHED
    for path in ("/x", "/x/y"):
        assert rows[path]["fixed_interval"] == 172_800
        assert rows[path]["metadata"] == rows["/"]["metadata"]
        assert rows[path]["repr_url"] == f"{HOST}/"


@pytest.mark.long
def test_a_url_stands_for_a_page_only_while_it_redirects_to_it(site, table, tmp_path):
    site.links, site.moved = {"/home": [], "/other": []}, {"/": "/home"}
    injected(table, tmp_path, "/", "/home", "/other")
    site.round(table)
    assert state_of(table)["/home"]["repr_url"] == f"{HOST}/"
    site.moved = {"/": "/other"}
    site.round(table, days=31)
    rows = state_of(table)
    assert [rows[path]["repr_url"] for path in ("/home", "/other")] == [None, f"{HOST}/"]
    site.links["/"], site.moved = [], {}
    site.round(table, days=31)
    rows = state_of(table)
    assert {rows[path]["repr_url"] for path in rows} == {None}
    assert len(statuses_of(table)) == 3


@pytest.mark.long
def test_a_page_that_answers_304_stands_for_no_url_that_has_an_own_page_now(site, table, tmp_path):
    site.links, site.moved = {"/home": []}, {"/": "/home"}
    injected(table, tmp_path, "/", "/home")
    site.round(table)
    assert state_of(table)["/home"]["repr_url"] == f"{HOST}/"
    site.links["/"], site.moved = [], {}
    site.round(table, days=31)  # both answers are in one file
    home = state_of(table)["/home"]
    assert (home["http_code"], home["repr_url"]) == (304, None)


@pytest.mark.long
def test_a_url_that_filterdb_has_dropped_stands_no_more(site, table, tmp_path):
    site.links, site.moved = {"/home": []}, {"/": "/home"}
    injected(table, tmp_path, "/", "/home")
    site.round(table)
    assert state_of(table)["/home"]["repr_url"] == f"{HOST}/"
    assert nutbeam("filterdb", table, "--exclude", "com/$") == 0
    site.round(table, days=31)
    rows = state_of(table)
    assert (list(rows), rows["/home"]["repr_url"]) == (["/home"], None)


@pytest.mark.parametrize("lost", [pytest.param(False, marks=pytest.mark.long), True])
def test_a_url_answered_in_another_batch_is_no_longer_representative(site, table, tmp_path, lost):
    site.links, site.moved = {"/home": []}, {"/": "/home"}
    injected(table, tmp_path, "/\tnutch.fetchInterval=86400", "/home\tnutch.fetchInterval=432000")
    site.round(table)
    site.links["/"], site.moved = [], {}
    site.round(table, days=2)
    assert state_of(table)["/home"]["repr_url"] == f"{HOST}/"  # it was not fetched
    if lost:  # The document may have had a refresh.
        for file in files_of(table, state_of(table)["/"]["document"].rpartition("/")[0]):
            file.unlink()
    site.round(table, "--top_n", "1", "--expr", "fetchInterval > 86400", days=4)
    assert state_of(table)["/home"]["repr_url"] == (f"{HOST}/" if lost else None)


@pytest.mark.long
def test_settings_of_a_host_change_the_next_date(site, table, tmp_path):
    site.links = {"/": []}
    injected(table, tmp_path, "/")
    settings = tmp_path / "hosts.txt"
    settings.write_text("a.example.com\tmax_interval=86400\n")
    assert nutbeam("hostinject", table, settings) == 0
    site.round(table)
    row = state_of(table)["/"]
    assert (row["fetch_interval"], row["fetch_time"] - row["last_fetch_time"]) == (DAY_S, DAY_MS)


@pytest.mark.long
def test_an_orphan_is_made_and_revived_and_dropped(site, table, tmp_path):
    orphan = ("--scoring", "opic,orphan")
    site.links = {"/": ["/leaf", "/other"], "/leaf": [], "/other": []}
    injected(table, tmp_path, "/")
    for days in (0, 1):
        site.round(table, days=days, update=orphan)
    site.links["/"] = []
    for days in (31, 31):
        site.round(table, days=days, update=orphan)
    assert statuses_of(table)[f"{HOST}/leaf"] == "db_orphan"
    due = state_of(table)["/leaf"]["fetch_time"]
    site.links["/"] = ["/leaf"]
    site.round(table, "--top_n", "1", days=31, update=orphan)
    statuses = statuses_of(table)
    if statuses[f"{HOST}/leaf"] == "db_orphan":  # it was not the seed's turn
        site.round(table, "--top_n", "1", update=orphan)
    assert statuses_of(table)[f"{HOST}/leaf"] != "db_orphan"
    assert state_of(table)["/leaf"]["fetch_time"] >= due
    assert statuses_of(table)[f"{HOST}/other"] == "db_orphan"
    assert nutbeam("filterdb", table, "--drop_orphans", "60d") == 0
    assert set(statuses_of(table)) == {f"{HOST}/", f"{HOST}/leaf"}
