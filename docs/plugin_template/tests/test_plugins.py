"""Tests of the plug-ins, without a crawl: each is called as nutbeam calls it."""

import socket

import polars as pl
from nutbeam_example import chunks, documents, gopher, pages, rows, urls

from nutbeam.policy.parsing.parse_filters import FilteredPage
from nutbeam.web.clients.protocol_plugins import ProtocolRequest
from nutbeam.web.pages.page import Page, Source

MENU = b"iWelcome\tx\tx\t1\r\n0About us\t/about\tgopher.example\t70\r\n1More\t/a b\tb.example\t7070\r\n.\r\n"


def test_the_url_filter_refuses_pages_for_printers():
    column = pl.Series(["http://a/?print=1", "http://a/?print=10", "http://a/"])
    assert urls.no_print_versions(column).to_list() == [False, True, True]


def test_the_url_normalizer_removes_tracking_and_leaves_its_own_results():
    column = pl.Series(
        ["http://a/?utm_source=x&b=1", "http://a/?b=1&gclid=2", "http://a/?fbclid=3"]
    )
    shorter = urls.without_tracking(column, "outlink")
    assert shorter.to_list() == ["http://a/?b=1", "http://a/?b=1", "http://a/"]
    assert urls.without_tracking(shorter, "outlink").to_list() == shorter.to_list()


def test_the_protocol_sends_the_selector_and_returns_the_answer():
    server, client = socket.socketpair()
    with server:
        server.sendall(MENU)
        server.shutdown(socket.SHUT_WR)
        request = ProtocolRequest(
            "gopher://a.example/1/x%20y", "a.example", None, None, -1, 10.0, lambda *_: client
        )
        answer = gopher.fetch(request)
        assert server.recv(100) == b"/x y\r\n"
    assert (answer.status, answer.body, answer.content_type) == (200, MENU, gopher.MENU)


def test_the_parser_reads_text_and_links_of_a_menu():
    document = gopher.parse_menu(Source("gopher://a.example/1", MENU, gopher.MENU))
    assert (document.title, document.text) == ("Welcome", "Welcome About us More")
    assert list(document.links) == [
        ("gopher://gopher.example/0/about", "About us"),
        ("gopher://b.example:7070/1/a%20b", "More"),
    ]


def test_the_parse_filter_adds_the_time_and_drops_pages_without_words():
    long, empty = (
        FilteredPage("http://a/", "text/html", Page(text=text), {}) for text in ("a " * 1000, "")
    )
    for page in (long, empty):
        pages.reading_time(page)
    assert long.metadata == {"reading_minutes": "5"}
    assert empty.dropped == "no_words"


def test_the_schedule_fetches_front_pages_daily():
    visits = pl.DataFrame(
        {"key": ["com.a:http/", "com.a:http/b"], "fetch_interval": [9, 9], "modified_time": [0, 0],
         "event.fetch_time": [1000, 1000], "modified": [False, True]}
    )  # fmt: skip
    scheduled = rows.daily_front_pages(visits, None)
    assert scheduled["fetch_interval"].to_list() == [86_400, 9]
    assert scheduled["modified_time"].to_list() == [0, 1000]


def test_the_scoring_prefers_pages_near_the_seeds():
    frame = pl.DataFrame({"sort_value": [1.0, 1.0], "distance": [0, 3]})
    assert rows.Shallow(None).sort_value(frame)["sort_value"].to_list() == [1.0, 0.25]


def test_the_index_filter_counts_words():
    frame = pl.DataFrame(
        {"id": ["a", "b"], "dropped_by": [None, None]}, schema_overrides={"dropped_by": pl.String}
    )
    filtered = documents.Words(None).apply(frame, pl.DataFrame({"text": ["one two", " "]}))
    assert filtered["words"].to_list() == [2, 0]
    assert filtered["dropped_by"].to_list() == [None, "words"]


def test_the_tokenizer_counts_four_characters_as_a_token():
    assert chunks.quarters(["", "a", "abcd", "abcde"]) == [0, 1, 1, 2]


def test_the_embedding_compares_letters():
    vectors = chunks.Letters()(pl.DataFrame({"text": ["tea", "Eat", "mill", ""]}))
    likeness = (vectors @ vectors[0]).round(3).tolist()
    assert likeness == [1.0, 1.0, 0.0, 0.0]
