"""What parse makes of pages of all kinds, job by job, and what later jobs and readers see of it."""

import json

import pytest
from crawling import manifests_of, nutbeam, statuses_of
from plugins import install
from web_servers import reply, serve

from nutbeam.io.parsing.shared_pools import shared_pool

# Stands for the parser of a feed: each article of a page is a document of its own.
FILTER = """
def articles(page):
    for article in page.soup.find_all("article"):
        page.add_part(article["id"], article.h2.get_text(), article.get_text(" ", strip=True),
                      kind="article")
"""
NAMES = ("feed", "one", "cut", "picture", "moved")
HOME = "<title>home</title>" + "".join(f"<a href=/{name}>{name}</a>" for name in NAMES)
FEED = """<title>feed</title><article id=/one><h2>One</h2>told</article>
<article id=item/1><h2>First</h2>the same</article><article id=/item/2#x><h2>First</h2>the same
</article><article id=/item/3><h2>Third</h2></article><article id=/item/1><h2>No</h2></article>
<article id=http://b.com/><h2>Far</h2></article>"""
PAGES = {
    "/": HOME,
    "/feed": FEED,
    "/one": "<title>one</title>itself <a href=/deep></a>",
    "/cut": "<title>cut</title>whole",
    "/moved": "<meta http-equiv=refresh content='0; url=/one'>",
}
URL = "http://a.com"


def answer(path, _):
    if path == "/picture":
        return reply(b"\x89PNG\r\n\x1a\n" + bytes(40), "200 OK", "Content-Type: image/png")
    if path not in PAGES:
        return reply(b"", "404 Not Found")
    return reply(PAGES[path].encode(), "200 OK", "Content-Type: text/html")


def words(server, tmp_path):
    return ("--connect_to", f"a.com:80:127.0.0.1:{server.port}", "--server_delay", "0",
            "--content_limit", "3000")  # fmt: skip


@pytest.fixture
def parsing(tmp_path, monkeypatch):
    """Options of parse: a pool of its own, whose children find the filter."""
    install(tmp_path / "site", "articles", {"articles_filter.py": FILTER},
            {"articles": "articles_filter:articles"})  # fmt: skip
    monkeypatch.setenv("PYTHONPATH", str(tmp_path / "site"))
    monkeypatch.syspath_prepend(str(tmp_path / "site"))
    shared_pool.cache_clear()  # another test's children may be of the same number and memory
    yield ("--parse_filters", "articles", "--parse_processes", "1", "--parser_memory", "3GiB")
    shared_pool.cache_clear()


def lines(capsys, *command):
    capsys.readouterr()
    assert nutbeam(*command) == 0
    return [json.loads(line) for line in capsys.readouterr().out.splitlines()]


def round_of(table, capsys, server, tmp_path, parsing, *generating):
    """Does a round, job by job; returns what parse counted."""
    (generated,) = lines(capsys, "generate", table, "--format", "json", *generating)
    batch = ("--batch", generated["batch"], "--format", "json")
    lines(capsys, "fetch", table, *batch, *words(server, tmp_path))
    (parsed,) = lines(capsys, "parse", table, *batch, *parsing)
    made = len(manifests_of(table))
    # What is parsed is skipped.
    (again,) = lines(capsys, "parse", table, *batch, *parsing)
    assert (again["changed"], len(manifests_of(table))) == (False, made)
    lines(capsys, "updatedb", table, *batch)
    lines(capsys, "dedup", table, *batch)
    return parsed["counts"]


@pytest.mark.long
def test_parse_job_by_job(tmp_path, parsing, capsys, monkeypatch):
    table = tmp_path / "table"
    with serve(answer) as server:
        args = (table, capsys, server, tmp_path, parsing)
        assert nutbeam("inject", table, f"{URL}/") == 0
        round_of(*args)
        counts = round_of(*args)
        assert counts == {
            "parsed": 4, "parts": 4, "outlinks": 1, "skipped/no_parser": 1,
            "no_parser/image/png": 1, "dropped/foreign_part": 1, "dropped/part_repeated": 1,
        }  # fmt: skip
        assert sorted(server.paths) == ["/", *sorted(f"/{n}" for n in NAMES), "/robots.txt"]
        found = statuses_of(table)
        alike = {found.pop(f"{URL}/item/{n}") for n in (1, 2)}
        assert alike == {"db_fetched", "db_duplicate"}
        assert {name: n for name, n in found.items() if n != "db_fetched"} == {
            f"{URL}/deep": "db_unfetched"
        }
        check_readers(table, capsys)

        # A month later some of it has changed. What was told of is asked for itself.
        monkeypatch.setitem(PAGES, "/cut", "<title>cut</title>" + "word " * 1_000)
        monkeypatch.setitem(PAGES, "/item/3", "<title>third</title>itself")
        counts = round_of(*args, "--add_days", "31")
        assert (counts["skipped/truncated"], counts["parts"]) == (1, 4)
    found = statuses_of(table)
    # Fetched, though not parsed: Nutch says "not modified" here, its defect 30.
    assert found[f"{URL}/cut"] == "db_fetched"
    assert found[f"{URL}/picture"] == "db_notmodified"  # it has a signature
    assert {found[f"{URL}/item/{n}"] for n in (1, 2)} == {"db_gone"}
    assert nutbeam("compact", table, "--keep_batches", "0", "--snapshot_retention", "0") == 0
    pages = {page["url"]: page for page in lines(capsys, "pages", table)}
    third = pages[f"{URL}/item/3"]
    assert (third["text"], third["part_of"], third["http_code"]) == ("itself", None, 200)


@pytest.mark.long
def test_the_first_request_of_a_part_has_no_conditions(tmp_path, capsys):
    table, rss = tmp_path / "table", "<rss><channel><title>news</title>{}</channel></rss>"
    item = "<item><title>Cut</title><link>/power.html</link><description>soon</description></item>"
    feeds = [rss.format(item), rss.format(""), rss.format("")]
    page = reply(b"<title>Cut</title>itself", "200 OK", "Content-Type: text/html")

    def feed_and_page(path, _):
        if path == "/feed.xml":
            return reply(feeds.pop(0).encode(), "200 OK", "Content-Type: application/rss+xml")
        if path == "/robots.txt":
            return reply(b"", "404 Not Found")
        unchanged = "if-modified-since" in server.current.head.lower()
        return b"HTTP/1.1 304 Not Modified\r\n\r\n" if unchanged else page

    def power():
        pages = {page["url"]: page for page in lines(capsys, "pages", table)}
        found = pages[f"{URL}/power.html"]
        return found["text"], found["status"]

    with serve(feed_and_page) as server:
        crawl = ("crawl", table, f"{URL}/feed.xml", "--feed_documents", "--rounds", "1",
                 *words(server, tmp_path))  # fmt: skip
        assert nutbeam(*crawl) == 0
        assert (power(), "/power.html" in server.paths) == (("soon", "db_fetched"), False)
        assert nutbeam(*crawl, "--add_days", "31") == 0
        assert power()[0] == "itself"
        # Now there is a body.
        assert nutbeam(*crawl, "--add_days", "62") == 0
        assert power() == ("itself", "db_notmodified")


def check_readers(table, capsys):
    """Asserts what the commands that read a table say of it."""
    everything = ("pages", table, "--status", "fetched,duplicate")
    pages = {page["url"].removeprefix(URL): page for page in lines(capsys, *everything)}
    fine, names = ("success", "ok", None), ("parse_status", "parse_minor", "parse_message")
    assert {url: tuple(page[name] for name in names) for url, page in pages.items()} == {
        "/": fine, "/cut": fine, "/feed": fine, "/one": fine,
        "/moved": ("success", "redirect", None),
        "/picture": ("notparsed", "ok", "no_parser: image/png"),
        "/item/1": fine, "/item/2": fine, "/item/3": fine,
    }  # fmt: skip
    # The page that was fetched itself is not overwritten.
    assert (pages["/one"]["text"], pages["/one"]["part_of"]) == ("itself", None)
    first = pages["/item/1"]
    shown = ("title", "text", "part_of", "metadata", "http_code", "distance")
    assert [first[name] for name in shown] == [
        "First", "First the same", f"{URL}/feed", {"kind": "article"}, None, 2
    ]  # fmt: skip

    def asked(sql):
        return lines(capsys, "sql", table, sql, "--format", "json")

    parts = asked("SELECT part_of AS whole FROM batch_documents WHERE part_of IS NOT NULL")
    assert parts == [{"whole": f"{URL}/feed"}] * 4
    links = asked(f"SELECT target_url FROM outlinks WHERE url = '{URL}/one'")
    assert links == [{"target_url": f"{URL}/deep"}]
    exported = lines(capsys, "export", table, "--what", "batch_documents", "--format", "jsonl")
    assert sum(row["part_of"] == f"{URL}/feed" for row in exported) == 4

    def record(path):
        (found,) = lines(capsys, "readdb", table, "--url", f"{URL}{path}", "--format", "json")
        return found

    item = record("/item/1")
    names = ("parse_status", "parse_minor", "part_of", "page")
    assert [item[name] for name in names] == ["success", "ok", f"{URL}/feed", None]
    picture = record("/picture")
    assert picture["parse_status"] == "notparsed"
    assert picture["parse_message"] == "no_parser: image/png"
    assert record("/one")["part_of"] is None
