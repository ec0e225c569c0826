"""Sitemaps without an end, through the job: the memory of its process stays bounded."""

import contextlib

import pytest
from crawling import manifests_of
from peak_memory import peak_memory
from web_servers import connect_to, reply, serve

from nutbeam.pipelines.sitemaps.sitemap_fetch import MOST_THREADS

# MB: of one sitemap of 50 MB, which is in memory several times while it is read; and of all.
OF_ONE, OF_ALL = 500, 2_048


def endless(path, connection):
    """Sends a sitemap until the client has enough of it: at most 5 GB."""
    if path == "/robots.txt":
        return reply(b"")
    head = "HTTP/1.1 200 OK\r\nContent-Type: application/xml\r\nContent-Length: 5000000000\r\n\r\n"
    begin = b"<urlset xmlns='http://www.sitemaps.org/schemas/sitemap/0.9'>"
    entries = b"<url><loc>http://h.example.com/a?" + b"x" * 900 + b"</loc></url>\n"
    connection.sendall(head.encode() + begin)
    with contextlib.suppress(OSError):
        for _ in range(5_000):
            connection.sendall(entries * 1_000)
    return None


def peak(server, table, *words):
    """Runs the job in a process of its own; returns its largest size in memory, MB."""
    reached = [word for door in connect_to(server.port) for word in ("--connect_to", door)]
    command = ["sitemap", table, *words, *reached, "--server_delay", "0"]
    return peak_memory(*command, "--progress", "false")[0]


def sitemaps(number):
    return [f"http://h{n}.example.com/s.xml" for n in range(number)]


@pytest.mark.long
def test_sitemaps_without_an_end_take_bounded_memory(tmp_path):
    with serve(lambda path, _: reply(b"<urlset/>")) as server:
        usual = peak(server, tmp_path / "empty", *sitemaps(1))
    with serve(endless) as server:
        one = peak(server, tmp_path / "one", *sitemaps(1))
        # More than are requested at a time.
        many = peak(server, tmp_path / "many", *sitemaps(3 * MOST_THREADS))
    assert dict(manifests_of(tmp_path / "one")[-1].counts)["dropped/too_large"] == 1
    counts = dict(manifests_of(tmp_path / "many")[-1].counts)
    assert (counts["sitemaps"], counts["dropped/too_large"]) == (3 * MOST_THREADS,) * 2
    assert one - usual < OF_ONE
    assert many < OF_ALL
