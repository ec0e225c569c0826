"""search finds pages from the command line and on its page; hostile texts stay texts."""

import json
import re
import threading
import urllib.error
import urllib.request
from html.parser import HTMLParser

import pytest
from crawling import nutbeam
from index_shards import commit_shards, page, write_shards

from nutbeam.pipelines.base.served_address import ServedAddress
from nutbeam.pipelines.searching import searched_table
from nutbeam.pipelines.searching.search_serving import SearchServer
from nutbeam.pipelines.searching.searched_table import SearchedTable
from nutbeam.web.base.errors import UserError

EVIL = "<script>alert(1)</script><img src=x onerror=alert(2)>\x1b[2J\u202e"
PAGES = [
    page(
        "http://a.com/1", "River guide", "River guide\n\nThe river runs & runs <b>down</b> the hill"
    ),
    page("http://a.com/2", EVIL, f"river {EVIL}", url="javascript:alert('river')"),
    *(page(f"http://b.com/{n}", f"Page {n}", "many words of stone") for n in range(25)),
]


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    folder = tmp_path_factory.mktemp("search") / "table"
    assert nutbeam("inject", folder, "http://a.com/") == 0
    commit_shards(folder, write_shards(folder, PAGES), "first")
    return folder


@pytest.fixture
def search(table, tmp_path, capsys):
    def run(*words, code=0):
        capsys.readouterr()
        assert nutbeam("search", table, *words, "--cache_folder", tmp_path / "cache") == code
        captured = capsys.readouterr()
        if code > 1:
            assert (captured.out, captured.err.count("\n")) == ("", 1)
            return captured.err.strip()
        return captured.out

    return run


def test_a_query_prints_title_url_and_snippet(search):
    out = search("guide")
    assert out.splitlines()[0] == "River guide"
    assert out.splitlines()[1] == "http://a.com/1"
    assert out.splitlines()[2].startswith("The river runs")  # the first line is the title
    assert out.splitlines()[-1] == "1 page"
    assert search("nothing", code=1) == "no page has: nothing\nno page found\n"


def test_hostile_texts_are_shown_and_not_obeyed(search):
    out = search("alert")
    assert "\x1b" not in out
    assert "\u202e" not in out
    assert "<script>alert(1)</script>" in out


def test_json_has_one_page_per_line(search):
    (line,) = search("guide", "--format", "json").splitlines()
    record = json.loads(line)
    assert (record["url"], record["title"]) == ("http://a.com/1", "River guide")
    assert record["fields"]["lang"] == "en"
    assert [record["snippet"][b:e] for b, e in record["marks"]] == []
    assert len(search("stone", "--format", "json").splitlines()) == 10
    assert len(search("stone", "--format", "json", "--top", "20").splitlines()) == 20


def test_a_wrong_query_is_one_line(search):
    assert "a quotation mark is not closed" in search('"a', code=2)
    assert "site: takes a host or a domain, got 'a/b'" in search("site:a/b", code=2)
    assert "give a query, or --serve" in search(code=2)
    assert "leave out the query" in search("x", "--serve", code=2)
    assert "has no index 'other'" in search("x", "--index", "other", code=2)
    assert "--index must be a text that matches" in search("x", "--index", "../x", code=2)


class Parsed(HTMLParser):
    """The elements, the links and the text of a page."""

    def __init__(self, text):
        super().__init__()
        self.tags, self.links, self.handlers, self.text = set(), [], [], ""
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.tags.add(tag)
        self.links += [value for name, value in attrs if name in ("href", "src", "action")]
        self.handlers += [name for name, _ in attrs if name.startswith("on") or name == "style"]

    def handle_data(self, data):
        self.text += data


@pytest.fixture(scope="module")
def server(table, tmp_path_factory):
    searched = SearchedTable(str(table), "main", str(tmp_path_factory.mktemp("served")))
    with SearchServer(searched, ServedAddress(), 10) as made:
        thread = threading.Thread(target=made.serve_forever, args=(0.05,))
        thread.start()
        yield made
        made.shutdown()
        thread.join()


@pytest.fixture
def get(server):
    def fetch(path, host=None):
        request = urllib.request.Request(f"http://127.0.0.1:{server.port}{path}")
        if host:
            request.add_header("Host", host)
        try:
            with urllib.request.urlopen(request, timeout=10) as answer:
                return answer.status, answer.headers, answer.read().decode()
        except urllib.error.HTTPError as error:
            return error.code, error.headers, error.read().decode()

    return fetch


def test_the_page_has_results_and_no_scripts_but_its_own(get):
    status, headers, text = get("/?q=river")
    found = Parsed(text)
    assert status == 200
    policy = headers["Content-Security-Policy"]
    assert policy.startswith("default-src 'none'; ")
    assert re.findall("script-src[^;]*", policy) == ["script-src 'self'"]  # none in the page
    assert headers["X-Content-Type-Options"] == "nosniff"
    assert not found.tags & {"img", "iframe", "object", "base"}
    assert found.handlers == []
    own = [link for link in found.links if not link.startswith("/?")]
    # No link has the scheme javascript.
    assert own == ["/icon.svg", "/opensearch.xml", "/search.js", "/", "/", "http://a.com/1"]
    assert "<script>alert(1)</script><img src=x onerror=alert(2)>\\x1b[2J\\u202e" in found.text
    assert "runs & runs <b>down</b>" in found.text
    assert "mark" in found.tags


def test_the_query_stays_text(get):
    status, _, text = get("/?q=%22%3E%3Cscript%3Ealert(1)%3C/script%3E%22")
    assert (status, text.count("<script")) == (200, 1)  # that of the page
    status, _, text = get("/?q=%22open%3Cb%3E")
    assert status == 400
    assert "a quotation mark is not closed" in Parsed(text).text
    assert "b" not in Parsed(text).tags


def test_results_have_several_pages(get):
    first, second = (Parsed(get(f"/?q=stone&start={start}")[2]) for start in (0, 20))
    assert "25 pages" in first.text
    assert "1–10 of 25 pages" in first.text  # noqa: RUF001 - a range
    assert "21–25 of 25 pages" in second.text  # noqa: RUF001
    assert first.links.count("/?q=stone&start=10") == 2  # the second page, and the next
    assert "/?q=stone&start=10" in second.links
    assert "/?q=stone&start=30" not in second.links
    assert len([link for link in second.links if link.startswith("http")]) == 5
    for start in ("x", "-1", "²", "999999999999", "9" * 5000):
        assert get(f"/?q=stone&start={urllib.request.quote(start)}")[0] == 200


def test_json_is_served(get):
    status, headers, text = get("/search.json?q=guide")
    record = json.loads(text)
    assert (status, record["total"], record["pages"][0]["url"]) == (200, 1, "http://a.com/1")
    assert headers["Content-Type"] == "application/json; charset=utf-8"
    assert get("/search.json?q=%22")[0] == 400
    assert get("/other")[0] == 404


@pytest.mark.parametrize("page", ["/", "/search.json"])
def test_a_query_that_is_not_utf_8_is_refused_in_plain_words(get, page):
    status, _, text = get(f"{page}?q=caf%E9")
    assert (status, "parameter q must be UTF-8, got" in text, "codec" in text) == (400, True, False)


def test_too_many_parameters_are_an_answer(get):
    status, _, text = get("/?q=stone&" + "&".join(f"a{n}=1" for n in range(30)))
    assert (status, "fields" in text) == (400, True)


def test_an_unpacked_index_that_another_process_removes_is_made_again(table, tmp_path, monkeypatch):
    searched, left = SearchedTable(str(table), "main", str(tmp_path)), [1, 1]
    made = searched_table.unpack_index

    def removed_at_once(*given):
        view = made(*given)
        if left:
            left.pop()
            next(view.glob("*.store")).unlink()
        return view

    monkeypatch.setattr(searched_table, "unpack_index", removed_at_once)
    assert searched.newest().documents
    left.extend([1] * 9)
    with pytest.raises(UserError, match="removed by another process"):
        SearchedTable(str(table), "main", str(tmp_path)).newest()


def test_another_host_gets_nothing(get):
    assert get("/?q=river", "evil.example")[0] == 421


def test_the_page_follows_the_table(server, get, table):
    new = write_shards(table, [page("http://c.com/", "Fresh", "newest")], ["http://b.com/0"], 2)
    commit_shards(table, new, "second")
    server.search_pages._checked = 0.0
    assert "Fresh" in get("/?q=newest")[2]
    assert "24 pages" in get("/?q=stone")[2]
