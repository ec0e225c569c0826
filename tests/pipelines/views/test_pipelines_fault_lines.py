"""The end of a crawl names each plug-in that failed, and a command that shows why."""

import pytest
from crawling import nutbeam
from web_servers import connect_to, reply, serve

SITE = "http://site.example.com"
FILE = """
from nutbeam.web.parsers.parser_plugins import ParsedDocument


def parse(source):
    if b"bad" in source.body:
        raise ValueError("no tea")
    return ParsedDocument(text="tea")


def headings(page):
    if page.url.endswith("/headings"):
        raise KeyError("h1")


def no_ads(urls):
    return ["ad" if url.index("/p") < 9 else None for url in urls]
"""
PAGES = {
    "/p": ("text/html", (b"<a href=/p/1>1</a><a href='/p/2?a=b&c'>2</a><a href=/p/headings>3</a>"
           b"<a href=/q>4</a>")),
    "/p/headings": ("text/html", b"<title>x</title>"),
    "/p/1": ("application/x-tea", b"good"),
    "/p/2?a=b&c": ("application/x-tea", b"bad"),
}  # fmt: skip


def answer(path, head):
    if path not in PAGES:
        return reply(b"", "404 Not Found")
    content_type, body = PAGES[path]
    return reply(body, "200 OK", f"Content-Type: {content_type}")


@pytest.mark.long
@pytest.mark.few(1)
@pytest.mark.parametrize("parses", ["true", "false"], ids=["while-fetching", "after"])
def test_a_crawl_ends_with_a_line_to_paste_for_each_plug_in_that_failed(
    tmp_path, monkeypatch, capsys, parses
):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "my rules.py").write_text(FILE)
    with serve(answer) as server:
        reach = ("--connect_to", *connect_to(server.port), "--server_delay", "0")
        words = (
            "--parsers", "application/x-tea=./my rules.py:parse", "--parse_filters",
            "./my rules.py:headings", "--url_filters", "./my rules.py:no_ads",
            "--rounds", "-1", "--parse_while_fetching", parses,
        )  # fmt: skip
        assert nutbeam("crawl", "table", f"{SITE}/p", *words, *reach) == 0
    lines = [line for line in capsys.readouterr().out.splitlines() if "plugin try" in line]
    assert sorted(lines) == [
        (
            "warning: the plug-in my_rules.headings (parse filter) failed 1 time, counted as "
            "filter_my_rules.headings: nutbeam plugin try "
            f"parse_filter './my rules.py:headings' {SITE}/p/headings shows why"
        ),
        (
            "warning: the plug-in my_rules.no_ads (url filter) failed 1 time, counted as "
            "url_filter_my_rules.no_ads: nutbeam plugin try "
            "url_filter './my rules.py:no_ads' URL shows why; the log of the job names a URL"
        ),
        (
            "warning: the plug-in my_rules.parse (parser) failed 1 time, counted as parser_my_rules.parse: "
            f"nutbeam plugin try parser './my rules.py:parse' '{SITE}/p/2?a=b&c' shows why"
        ),
    ]
