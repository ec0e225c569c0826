"""Parts of pages that are documents of their own, and what parse filters see of a page."""

import pytest
from frames import frame_of, table_of

from nutbeam.policy.components.document_schema import DOCUMENTS, ParseMinor
from nutbeam.policy.components.host_rows import Seeds
from nutbeam.policy.components.page_facts import unique_documents
from nutbeam.policy.components.schema import PAGES, ParseStatus
from nutbeam.policy.parsing import documents as module
from nutbeam.policy.parsing.documents import DocumentOptions, ParseRules, documents_of
from nutbeam.web.content.signature import md5
from nutbeam.web.exchange.status import FETCH_SUCCESS
from nutbeam.web.pages import page as page_module
from nutbeam.web.pages.page import Page
from nutbeam.web.urls.row_keys import from_key, to_key

URL = "http://www.example.com/dir/page"
KEY = to_key(URL)


def page(body="", url=URL):
    return {"key": to_key(url), "score": 0.5, "distance": 3, "fetch_status": FETCH_SUCCESS,
            "fetch_time": 7, "content_type": "text/html", "body": body.encode()}  # fmt: skip


def documents(*pages):
    table, counts = documents_of(table_of(PAGES, *pages), ParseRules(DocumentOptions(), Seeds()))
    return table.to_pylist(), counts


def give_parts(monkeypatch, by_path, **columns):
    """Makes pages consist of parts: (URL, text) by path; other pages are parsed as ever."""

    def parse(source, options):
        made = Page(base=source.url, text="whole")
        for name, value in columns.items():
            setattr(made, name, value)
        path = source.url.removeprefix("http://www.example.com")
        if path not in by_path:
            return real(source, options)
        made.parts = [(u, Page(f"T {t}", t, base=u)) for u, t in by_path[path]]
        return made

    real = module.parse_document
    monkeypatch.setattr(module, "parse_document", parse)


def test_parts_are_documents_of_their_own(monkeypatch):
    give_parts(monkeypatch, {"/feed": [("http://www.example.com:80/a#x", "one"),
                                       ("http://www.example.com/b", "")]})  # fmt: skip
    feed = "http://www.example.com/feed"
    (whole, other, a, b), counts = documents(page(url=feed), page("<p>other"))
    assert (whole["text"], other["text"]) == ("whole", "other")
    assert a == {
        "key": to_key("http://www.example.com/a"),
        "part_of": to_key(feed),
        "score": 0.0,
        "distance": 4,
        "fetch_time": 7,
        "parse_status": ParseStatus.SUCCESS,
        "parse_minor": ParseMinor.OK,
        "parse_message": None,
        "title": "T one",
        "text": "one",
        "outlinks": None,
        "refresh": None,
        "refresh_seconds": None,
        "directives": [],
        "language": None,
        "charset": "utf-8",
        "content_type": None,
        "signature": md5(b"one", ""),
        "metadata": [],
        "usage": None,
        "nofollow_links": None,
        "blocks": None,
        "main": None,
        "structured_data": None,
        "extracted": None,
    }
    # Without text the URL stands for it: such parts are no duplicates of each other.
    assert b["signature"] == md5(b"", "http://www.example.com/b")
    assert (counts["parsed"], counts["parts"]) == (2, 2)


def test_links_of_parts_are_theirs(monkeypatch):
    item = Page("T", "text", base="http://www.example.com/a/", hrefs=["x"], anchors=["X"],
                rels=[""])  # fmt: skip
    made = Page(base=URL, parts=[("http://www.example.com/a/", item)])
    monkeypatch.setattr(module, "parse_document", lambda source, options: made)
    (whole, part), _ = documents(page())
    assert whole["outlinks"] is None
    assert [from_key(link["key"]) for link in part["outlinks"]] == ["http://www.example.com/a/x"]


def test_parts_that_are_not_taken_are_counted_with_a_reason(monkeypatch):
    feed, again = "http://www.example.com/feed", "http://www.example.com/feed2"
    urls = [feed, "http://example.com/a", "https://www.example.com/ok", "http://elsewhere.org/",
            "mailto:x@y", "http://www.example.com/x.png", "https://www.example.com/ok"]  # fmt: skip
    parts = {"/feed": [(url, "x") for url in urls], "/feed2": [(urls[2], "x")]}
    give_parts(monkeypatch, parts)
    found, counts = documents(page(url=feed), page(url=again))
    assert [from_key(d["key"]) for d in found if d["part_of"]] == ["https://www.example.com/ok"]
    assert {name: n for name, n in counts.items() if name.startswith("dropped/")} == {
        "dropped/part_own_url": 1,
        "dropped/foreign_part": 2,
        "dropped/part_scheme_not_allowed": 1,
        "dropped/part_filtered": 1,
        "dropped/part_repeated": 2,
    }


@pytest.mark.parametrize("word", ["noindex", "nofollow"])
def test_a_page_that_forbids_it_has_no_parts(monkeypatch, word):
    give_parts(monkeypatch, {"/feed": [("http://www.example.com/a", "x")]}, directives={word})
    found, counts = documents(page(url="http://www.example.com/feed"))
    assert (len(found), counts[f"dropped/part_{word}"]) == (1, 1)
    assert "parts" not in counts


def test_the_document_of_the_page_itself_has_priority_over_parts():
    rows = [{"key": "a", "part_of": "z", "text": "told"}, {"key": "a", "text": "page"},
            {"key": "a", "text": "late"}, {"key": "b", "part_of": "z", "text": "1"},
            {"key": "b", "part_of": "y", "text": "2"}]  # fmt: skip
    found = unique_documents(frame_of(DOCUMENTS, *rows))
    assert dict(found.select("key", "text").rows()) == {"a": "page", "b": "1"}


def filtered(*filters, body="<title>t</title><p>x"):
    """The result of a page after filters."""
    named = [(function.__name__, function) for function in filters]
    options = DocumentOptions()
    table, counts = documents_of(table_of(PAGES, page(body)), ParseRules(options, Seeds(), named))
    return table.to_pylist(), counts


def test_the_soup_is_built_once_and_only_if_a_filter_uses_it(monkeypatch):
    built, real = [], page_module.soup
    monkeypatch.setattr(page_module, "soup", lambda body: built.append(body) or real(body))

    def asks(page):
        page.metadata["h1"] = page.soup.h1.get_text()

    def asks_too(page):
        page.metadata["again"] = page.soup.h1.get_text() + page.soup.title.get_text()

    def asks_not(page):
        page.title = page.title.upper()

    body = "<title>t</title><h1>H</h1>"
    filtered(body=body)
    filtered(asks_not, body=body)
    assert built == []
    ((document,), _) = filtered(asks, asks_not, asks_too, body=body)
    assert built == [body.encode()]
    assert dict(document["metadata"]) == {"h1": "H", "again": "Ht"}


def test_filters_may_add_parts():
    def add(page):
        page.add_part("sub", "Title", "a \ud800 text", kind="news")

    (whole, part), counts = filtered(add)
    assert (whole["text"], counts["parts"]) == ("x", 1)
    names = ("key", "part_of", "title", "text", "metadata")
    assert [part[name] for name in names] == [
        to_key("http://www.example.com/dir/sub"), KEY, "Title", "a ? text", [("kind", "news")]
    ]  # fmt: skip

    def wrong(page):
        page.add_part("sub", 5)

    ((failed,), _) = filtered(wrong)
    assert "title must be a text, got 5" in failed["parse_message"]
