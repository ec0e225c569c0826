"""The URL by which people know a page is shown beside its own, where a command shows a page."""

import json
import shutil

import pytest
from crawling import nutbeam
from web_servers import connect_to, reply, serve

SEED = "http://site.example.com/"
TARGET = f"{SEED}home/index.html"


def answer(path, _):
    if path == "/":
        return reply(b"", "302 Found", "Location: /home/index.html")
    if path == "/home/index.html":
        text = b"<title>Home</title>words <a href='/'>start</a>"
        return reply(text, "200 OK", "Content-Type: text/html")
    return reply(b"", "404 Not Found")


@pytest.fixture(scope="module")
def crawled(tmp_path_factory):
    """A table of a page that a temporary redirect leads to; (table, what crawl has printed)."""
    table = tmp_path_factory.mktemp("shown") / "table"
    with serve(answer) as server:
        reach = [word for mapping in connect_to(server.port) for word in ("--connect_to", mapping)]
        words = ("--rounds", "2", "--server_delay", "0", "--agent_name", "test",
                 "--agent_email", "a@example.com")  # fmt: skip
        assert nutbeam("crawl", table, SEED, *words, *reach) == 0
    return table


@pytest.fixture
def said(crawled, capsys):
    def run(command, *words):
        capsys.readouterr()
        assert nutbeam(command, crawled, *words) == 0
        return capsys.readouterr().out

    return run


@pytest.mark.long
def test_explain_and_readdb_show_both_urls(said):
    assert f"\nshown as: {SEED}\n" in said("explain", TARGET)
    assert "shown as" not in said("explain", SEED)
    lines = said("readdb", "--top", "5").splitlines()
    (found,) = (line for line in lines if f"\t{TARGET}" in line)
    assert found.endswith(f"\t{TARGET}\tshown as {SEED}")
    best = [
        json.loads(line) for line in said("readdb", "--top", "5", "--format", "json").splitlines()
    ]
    assert {row["url"]: row["repr_url"] for row in best} == {SEED: None, TARGET: SEED}
    assert f"repr_url: {SEED}\n" in said("readdb", TARGET)


@pytest.mark.long
def test_an_index_has_its_own_url_as_id_and_shows_the_other(crawled, said, tmp_path):
    pytest.importorskip("tantivy")
    assert nutbeam("index", crawled) == 0
    words = ("--cache_folder", tmp_path / "cache")
    (hit,) = (
        json.loads(line)
        for line in said("search", "words", "--format", "json", *words).splitlines()
    )
    assert (hit["url"], hit["fields"]["id"]) == (SEED, TARGET)
    assert said("search", "words", *words).splitlines()[1] == SEED
    assert TARGET not in said("search", "words", *words)
    said("search", "site:site.example.com", *words)
    # The journal of the index knows pages by their own URLs.
    assert said("sql", "select url from indexed", "--format", "csv").split() == ["url", TARGET]


@pytest.mark.long
def test_an_index_learns_later_which_url_stands_for_a_page(tmp_path, capsys):
    pytest.importorskip("tantivy")
    table, found = tmp_path / "table", []
    with serve(answer) as server:
        reach = [word for mapping in connect_to(server.port) for word in ("--connect_to", mapping)]
        words = ("--rounds", "1", "--server_delay", "0", "--agent_name", "test",
                 "--agent_email", "a@example.com")  # fmt: skip
        for seeds, code in (((TARGET,), 0), ((), 4)):  # the second round only finds the redirect
            assert nutbeam("crawl", table, *seeds, *words, *reach) == code
            assert nutbeam("index", table) == 0
            capsys.readouterr()
            cache = ("--cache_folder", tmp_path / "cache")
            assert nutbeam("search", table, "words", "--format", "json", *cache) == 0
            found.append(json.loads(capsys.readouterr().out)["url"])
    assert found == [TARGET, SEED]


@pytest.mark.long
def test_after_a_purge_an_index_elsewhere_shows_the_url_of_the_page_itself(crawled, tmp_path):
    table, out = tmp_path / "table", tmp_path / "out"
    shutil.copytree(crawled, table)
    words = ("--index", "outside", "--writer", "jsonl", "--writer_parameters", f"path={out}")
    assert nutbeam("index", table, *words) == 0
    assert shown_in(out) == {TARGET: SEED}
    assert nutbeam("purge", table, "--url", SEED) == 0
    assert nutbeam("index", table, *words) == 0
    assert shown_in(out) == {TARGET: TARGET}


def shown_in(folder):
    """Returns the URL that the newest document of each page shows, by id."""
    files = [path for path in sorted(folder.glob("*.jsonl")) if "deletes" not in path.name]
    rows = [json.loads(line) for path in files for line in path.read_text().splitlines()]
    return {row["id"]: row["url"] for row in rows}


@pytest.mark.long
def test_sql_and_export_have_both_urls(said, tmp_path):
    (row,) = said("sql", f"select url, repr_url from state where url = '{TARGET}'", "--format",
                  "csv").splitlines()[1:]  # fmt: skip
    assert row == f"{TARGET},{SEED}"
    rows = [json.loads(line) for line in said("export", "--format", "jsonl").splitlines()]
    assert {row["url"]: row["repr_url"] for row in rows} == {SEED: None, TARGET: SEED}


@pytest.mark.long
def test_links_are_between_the_urls_themselves(crawled, said):
    said("invertlinks")  # the first batch has no document, as it fetched the redirect alone
    assert f" fromUrl: {TARGET} anchor: start\n" in said("readlinkdb", SEED)
    assert nutbeam("readlinkdb", crawled, TARGET) == 1  # a redirect is no link


def test_pages_have_both_urls(said):
    (page,) = (json.loads(line) for line in said("pages").splitlines())
    assert (page["url"], page["repr_url"]) == (TARGET, SEED)
