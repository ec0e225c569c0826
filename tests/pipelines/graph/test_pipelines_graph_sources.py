"""webgraph makes the same graph of the link table and of the documents, also of duplicates."""

import dataclasses

import pytest
from crawling import nutbeam, rows_of
from linked_tables import graph_in
from web_servers import reply, serve

from nutbeam.policy.components.schema import Status
from nutbeam.policy.graph.link_limits import LinkLimits

HOST = "a.example.com"
# Paths, and the links of their pages; /1 and /2 are equal, and /5 is gone.
LINKS = {
    "/": ["/1", "/2", "/3", "/5"],
    "/1": ["/3", "/4"],
    "/2": ["/3", "/4"],
    "/3": ["/1", "/3", "/1"],
    "/4": [],
}
NO_LIMITS = [f"--{field.name}=false" for field in dataclasses.fields(LinkLimits)]


def pages(path, _):
    if path not in LINKS:
        return reply(b"", "404 Not Found")
    links = "".join(f'<a href="{to}">to {to}</a>' for to in LINKS[path])
    text = "twins" if path in ("/1", "/2") else f"the page {path}"
    never = '<a href="/4" rel="nofollow">never</a>' if path == "/3" else ""
    html = f"<html><body>{text} {links} {never}</body></html>"
    return reply(html.encode(), "200 OK", "Content-Type: text/html")


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    table = tmp_path_factory.mktemp("crawled") / "table"
    with serve(pages) as server:
        words = ["--connect_to", f"{HOST}:80:127.0.0.1:{server.port}", "--server_delay", "0"]
        words += ["--rounds", "3", "--links"]
        assert nutbeam("crawl", table, f"http://{HOST}/", *words) in (0, 4)
    statuses = rows_of(table, "state")["status"].to_list()
    assert statuses.count(int(Status.DB_DUPLICATE)) == 1
    return table


@pytest.mark.long
@pytest.mark.few(1)
@pytest.mark.parametrize("source", ["links", "documents", "auto"])
def test_links_are_those_of_all_pages_that_are_alive(table, source):
    assert nutbeam("webgraph", table, "--links_from", source, *NO_LIMITS) == 0
    nodes, links = graph_in(table)
    keys = [row[0] for row in nodes]
    found = {
        (keys[s], keys[t])
        for _, _, sources, targets, *_ in links
        for s, t in zip(sources, targets, strict=True)
    }
    key = "com.example.a:http"
    assert found == {(key + s, key + t) for s, some in LINKS.items() for t in some if s != t}


@pytest.mark.long
def test_a_warning_counts_the_batches_without_links_in_the_link_table(tmp_path, caplog):
    table = tmp_path / "table"
    with serve(pages) as server:
        words = ["--connect_to", f"{HOST}:80:127.0.0.1:{server.port}", "--server_delay", "0"]
        crawl = ["crawl", table, f"http://{HOST}/", *words, "--rounds", "1"]
        assert nutbeam(*crawl, "--links") == 0
        assert nutbeam(*crawl) in (0, 4)
    line = f"the links of 1 of 2 batches are not in the link table, and so not in the graph: nutbeam invertlinks {table}"
    assert nutbeam("webgraph", table, *NO_LIMITS) == 0
    assert line in caplog.text
    caplog.clear()
    assert nutbeam("invertlinks", table) == 0
    assert nutbeam("webgraph", table, *NO_LIMITS) == 0
    assert "not in the link table" not in caplog.text
