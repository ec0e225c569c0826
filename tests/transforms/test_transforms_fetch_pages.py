import collections
import contextlib
import itertools
import time

import apache_beam as beam
import polars as pl
import pyarrow as pa
import pytest
from apache_beam.options.pipeline_options import PipelineOptions
from apache_beam.typehints.row_type import RowTypeConstraint
from crawling import answer
from fetching_web import VOLATILE, asked, by_url, fetched, options, plain, rows_of, some, wanted_of
from running import apply, run
from web_servers import serve

from nutbeam.policy.components.schema import conform, to_frame
from nutbeam.transforms import fetch_pages as module
from nutbeam.transforms.elements.chunks import MAX_BYTES, Chunk
from nutbeam.transforms.elements.records import DeadLetter, FetchedPage
from nutbeam.transforms.fetch_pages import FetchPages
from nutbeam.transforms.fetching import (
    DEAD_LETTERS_OUTPUT,
    FETCHED,
    PAGES_OUTPUT,
    WANTED,
    FetchPagesOptions,
    RowsFetching,
    admit,
    fetch_pages,
)

BAD = {
    None: "malformed",
    "": "malformed",
    "nonsense": "malformed",
    "http://": "malformed",
    "ftp://h0.example.com/": "scheme_not_allowed",
    "javascript:alert(1)": "scheme_not_allowed",
    "http://h0.example.com/" + "x" * 5000: "url_too_long",
    "http://127.0.0.1/": "address_denied",
    "http://2130706433/x": "address_denied",
    "http://[::1]/x": "address_denied",
    "http://169.254.169.254/latest/meta-data/": "address_denied",
    "http://127.0.0.1:22/": "port_denied",
}


@pytest.mark.long
@pytest.mark.parametrize("client", ["threads", "asyncio"])
def test_answers_of_servers_become_columns_of_pages(web, client):
    urls = [url for url in some(web.site) if "/private/" not in url]
    began = time.time() * 1000
    pages, dead = fetched(
        rows_of(*urls), FetchPages(**options(web, partitions=3, http_client=client))
    )
    assert dead == []
    assert sorted(page["url"] for page in pages) == sorted(urls)
    for page in pages:
        right = answer(web.site, page["url"])
        assert list(page) == list(FetchedPage._fields)
        assert page["http_code"] == right.status
        assert page["host"] in page["url"]
        assert page["ip"] == "127.0.0.1"
        assert began <= page["fetch_time"] <= time.time() * 1000
        headers = {h["name"].lower(): h["value"] for h in page["headers"]}
        assert page["content_type"] == headers.get("content-type") == right.content_type
        for name, value in right.headers:
            assert headers[name.lower()] == value
        if right.kind == "page":
            assert (page["fetch_status"], page["protocol_status"]) == ("success", "success")
            assert page["body"] == right.body
            assert page["etag"] == dict(right.headers)["ETag"]
        elif right.kind == "redirect":
            assert page["fetch_status"] in ("redir_temp", "redir_perm")
            assert page["redirect"] == dict(right.headers)["Location"]
        else:
            assert page["fetch_status"] == "gone"
            assert page["body"] is None


def test_rows_and_chunks_agree(web):
    urls = [*some(web.site), "nonsense"]
    frame = pl.DataFrame({"url": urls, "score": range(len(urls)), "key": range(len(urls))})
    transform = FetchPages(**options(web))
    elements = [beam.Row(url=r[0], score=float(r[1]), key=str(r[2])) for r in frame.rows()]
    by_row = fetched(elements, transform)
    by_chunk = fetched([part.to_arrow() for part in frame.iter_slices(7)], transform)
    for rows, chunks in zip(by_row, by_chunk, strict=True):
        flat = [row | VOLATILE for chunk in chunks for row in chunk]
        assert sorted((r | VOLATILE for r in rows), key=str) == sorted(flat, key=str)


def test_pages_and_dead_letters_have_declared_types(web):
    pipeline = beam.Pipeline("FnApiRunner")
    rows = pipeline | beam.Create(rows_of("http://h0.example.com/"))
    found = rows | FetchPages(**options(web))
    assert {tag: part.element_type for tag, part in found.items()} == {
        PAGES_OUTPUT: FetchedPage,
        DEAD_LETTERS_OUTPUT: DeadLetter,
    }
    chunks = pipeline | "Chunks" >> beam.Create([pa.table({"url": ["http://h0.example.com/"]})])
    found = chunks | "Fetch" >> FetchPages(**options(web))
    assert {part.element_type for part in found.values()} == {Chunk}


def test_bad_urls_are_dead_letters(web):
    rows = [beam.Row(url=url, key=f"k{n}") for n, url in enumerate(BAD)]
    element = RowTypeConstraint.from_fields([("url", str | None), ("key", str)])

    def build(p):
        typed = p | beam.Create(rows).with_output_types(element)
        found = typed | FetchPages(**options(web, partitions=2))
        return {tag: part | tag >> beam.Map(plain) for tag, part in found.items()}

    found = run(build)
    assert found[PAGES_OUTPUT] == []
    got = {
        letter["url"]: (letter["reason"], letter["key"]) for letter in found[DEAD_LETTERS_OUTPUT]
    }
    assert got == {url: (reason, f"k{n}") for n, (url, reason) in enumerate(BAD.items())}


def test_robots_txt_is_obeyed_and_named_in_the_dead_letter(web):
    hosts = [host for host in web.site.names if "/private/" in (web.site.robots(host) or "")]
    pages, (letter,) = fetched(
        rows_of(f"http://{hosts[0]}/private/0.html"), FetchPages(**options(web))
    )
    assert pages == []
    assert (letter["reason"], letter["message"]) == ("robots_denied", "robots.txt")


def test_each_url_is_requested_once_in_any_spelling(web):
    began = time.monotonic()
    urls = ["http://h1.example.com/", "HTTP://H1.example.com:80/#x", " http://h1.example.com/ "]
    rows = [beam.Row(url=url, score=float(n), key=f"k{n % 2}") for n, url in enumerate(urls * 10)]
    (page,), dead = fetched(rows, FetchPages(**options(web)))
    assert dead == []
    assert [request.path for request in asked(web, began)] == ["/"]
    assert (page["url"], page["score"], page["key"]) == ("http://h1.example.com/", 29.0, "k1")


def test_urls_with_the_best_scores_are_requested_first(web):
    began = time.monotonic()
    urls = [u for u in web.site.urls("page") if u.startswith("http://h0.")][:8]
    rows = [beam.Row(url=url, score=float(hash(url) % 101)) for url in urls]
    fetched(rows, FetchPages(**options(web)))
    paths = [f"http://{request.host}{request.path}" for request in asked(web, began)]
    assert paths == [row.url for row in sorted(rows, key=lambda row: (-row.score, row.url))]


def test_unchanged_pages_are_answered_without_a_body(web):
    url = web.seeds[0]
    etag = dict(answer(web.site, url).headers)["ETag"]
    (page,), _ = fetched([beam.Row(url=url, etag=etag)], FetchPages(**options(web)))
    assert (page["fetch_status"], page["http_code"], page["body"]) == ("notmodified", 304, None)


def test_a_delay_of_its_own_holds_for_the_host(web):
    began = time.monotonic()
    urls = [u for u in web.site.urls("page") if u.startswith("http://h0.")][:4]
    rows = [beam.Row(url=url, delay=0.2 if url == urls[1] else None) for url in urls]
    rows += [beam.Row(url=url, delay=-1.0) for url in urls[:1]]
    pages, dead = fetched(
        [beam.Row(url=row.url, delay=row.delay) for row in rows], FetchPages(**options(web))
    )
    assert len(pages) == 4
    assert [(letter["url"], letter["reason"]) for letter in dead] == [(urls[0], "bad_delay")]
    times = sorted(request.time for request in asked(web, began))
    assert all(b - a >= 0.2 * 0.99 for a, b in itertools.pairwise(times)), times


def test_a_server_that_fails_costs_its_own_urls_only():
    def speak(path, connection):
        if path == "/reset":
            connection.close()
            return None
        body = b"x" * 10
        length = 100 if path == "/short" else 10
        status = "503 Later\r\nRetry-After: 0" if path == "/later" else "200 OK"
        return f"HTTP/1.1 {status}\r\nContent-Length: {length}\r\n\r\n".encode() + (
            body if path != "/short" else body + b"\r\n"
        )

    with serve(speak) as server, contextlib.closing(closed_port()) as nobody:
        connect_to = [f"a.test:80:127.0.0.1:{server.port}", f"b.test:80:127.0.0.1:{nobody.port}"]
        urls = [f"http://a.test/{name}" for name in ("fine", "later", "reset", "short")]
        pages, dead = fetched(
            rows_of(*urls, "http://b.test/", "http://b.test/2"),
            FetchPages(
                connect_to=connect_to, server_delay=0, timeout=1.0, max_exceptions_per_host=9,
                exceptions_delay=0,
            ),
        )  # fmt: skip
    assert {(page["url"], page["fetch_status"]) for page in pages} == {
        (urls[0], "success"),
        (urls[1], "retry"),
    }
    reasons = {letter["url"]: letter["reason"] for letter in dead}
    assert reasons.keys() == {*urls[2:], "http://b.test/", "http://b.test/2"}
    assert reasons["http://b.test/"] == "refused"
    assert reasons[urls[3]] in ("timeout", "incomplete")


class closed_port:
    """A port of loopback at which nobody listens."""

    def __init__(self):
        import socket

        self._socket = socket.socket()
        self._socket.bind(("127.0.0.1", 0))
        self.port = self._socket.getsockname()[1]

    def close(self):
        self._socket.close()


@pytest.mark.parametrize(
    ("more", "reason"),
    [
        ({"fetch_time_limit": 0.0}, "time_limit"),
        ({"max_exceptions_per_host": 1}, "too_many_exceptions"),
    ],
)
def test_urls_that_the_engine_leaves_out_are_dead_letters(more, reason):
    def fail(path, connection):
        return b"HTTP/1.1 500 Oh\r\nContent-Length: 0\r\n\r\n"

    with serve(fail) as server:
        urls = [f"http://a.test/{n}" for n in range(20)]
        connect_to = [f"a.test:80:127.0.0.1:{server.port}"]
        transform = FetchPages(connect_to=connect_to, server_delay=0, exceptions_delay=0, **more)
        pages, dead = fetched(rows_of(*urls), transform)
    assert sorted(row["url"] for row in [*pages, *dead]) == sorted(urls)
    assert {letter["reason"] for letter in dead} <= {reason, "robots_deferred"}
    assert len(dead) >= 19


def test_a_host_is_left_in_peace_with_two_partitions_at_once(web):
    delay, began = 0.4, time.monotonic()
    urls = [url for url in web.site.urls("page") if url.count("/private/") == 0]
    by_host = collections.defaultdict(list)
    for url in urls:
        by_host[url.split("/")[2]].append(url)
    chosen = [url for some in by_host.values() for url in some[:7]]
    transform = FetchPages(
        connect_to=list(web.connect_to), server_delay=delay, partitions=2, fetch_time_limit=60.0
    )
    flags = ["--direct_running_mode=multi_threading", "--direct_num_workers=2"]
    with beam.Pipeline("FnApiRunner", options=PipelineOptions(flags)) as pipeline:
        pipeline | beam.Create(rows_of(*chosen)) | transform
    times = collections.defaultdict(list)
    requests = [request for request in web.requests() if request.time >= began]
    for request in requests:
        times[request.host].append(request.time)
    gaps = [b - a for some in times.values() for a, b in itertools.pairwise(some)]
    assert len(asked(web, began)) == len(chosen)
    assert min(gaps) >= delay * 0.99, gaps
    # All hosts in one engine's turn, or in two at once, never one after the other.
    assert max(times[host][0] for host in times) < min(times[host][-1] for host in times)


def test_the_twin_gives_the_same_rows_as_the_transform(web):
    urls = [*some(web.site), "http://127.0.0.1/"]
    found = {PAGES_OUTPUT: [], DEAD_LETTERS_OUTPUT: []}
    opened = FetchPagesOptions(connect_to=web.connect_to, server_delay=0.0)
    for tag, row in fetch_pages(RowsFetching(wanted_of(*urls), opened)):
        found[tag].append(row)
    pages, dead = fetched(rows_of(*urls), FetchPages(opened))
    assert by_url(pages) == by_url(found[PAGES_OUTPUT])
    assert by_url(dead) == by_url(found[DEAD_LETTERS_OUTPUT])


def collected(rows):
    found = module._Collected(None)
    for row in rows:
        found.add(PAGES_OUTPUT, row)
    found.flush()
    return found.take()


def test_bodies_lie_in_chunks_of_bounded_size():
    row = dict.fromkeys(FETCHED.names) | {"headers": [], "url": "u", "body": b"x" * (7 << 20)}
    chunks = collected(row | {"key": str(n)} for n in range(5))
    assert sorted(key for chunk in chunks for key in chunk["key"].to_pylist()) == list("01234")
    assert max(chunk.nbytes for chunk in chunks) <= MAX_BYTES
    assert all(chunk.schema == FETCHED for chunk in chunks)
    # A row of many headers, which are not counted one by one.
    big = row | {"body": None, "headers": [{"name": "x", "value": "y" * 100_000}]}
    chunks = collected(big for _ in range(400))
    assert sum(map(len, chunks)) == 400
    assert max(chunk.nbytes for chunk in chunks) <= MAX_BYTES * 1.01


def test_rows_that_cross_the_shuffle_have_a_declared_schema():
    wanted, dead = admit(pl.DataFrame({"url": ["http://a.test/"], "score": [1], "key": [7]}))
    row = to_frame(conform(wanted, WANTED)).row(0, named=True)
    assert (row["host"], row["score"], row["key"]) == ("a.test", 1.0, "7")
    assert dead.is_empty()


def test_a_column_of_another_type_is_an_error_that_names_it():
    with pytest.raises(ValueError, match="column 'score' must hold double"):
        admit(pl.DataFrame({"url": ["http://a.test/"], "score": ["much"]}))


@pytest.mark.parametrize("chunks", [True, False])
def test_a_column_that_is_not_there_is_an_error_that_names_it(web, chunks):
    rows = [pa.table({"link": ["a"]})] if chunks else [beam.Row(link="a")]
    message = "FetchPages needs the column 'url', there are 'link'"
    with pytest.raises(Exception, match=message):
        apply(rows, FetchPages(**options(web)))


AGENT = {"agent_name": "bot", "agent_email": "me@a.test"}


@pytest.mark.parametrize(
    ("keywords", "error", "message"),
    [
        ({}, ValueError, "add agent_name=NAME and agent_url=URL or agent_email=ADDRESS$"),
        ({**AGENT, "partitions": 0}, ValueError, "^partitions must be at least 1, got 0$"),
        ({**AGENT, "server_delay": -1}, ValueError, "^server_delay must be at least 0 s, got -1"),
        ({**AGENT, "server_delay": "soon"}, ValueError, "^server_delay must be a number.*'soon'"),
        ({**AGENT, "connect_to": "a:b"}, ValueError, "connect_to must be HOST:PORT.*'a:b'"),
        ({**AGENT, "content_limit": -1}, ValueError, "content_limit must be 0 to .* got -1"),
        ({**AGENT, "threads_per_address": 0}, ValueError, "threads_per_address must be at least"),
        ({**AGENT, "delay": 1}, TypeError, "unexpected keyword argument 'delay'"),
        ({**AGENT, "error_handling": {"output": "pages"}}, ValueError, "another name than 'pages'"),
        ({**AGENT, "error_handling": {"to": "x"}}, ValueError, "must be {'output': name}"),
        ({"options": FetchPagesOptions(**AGENT), "threads": 1}, TypeError, "or keywords"),
    ],
)
def test_bad_arguments(keywords, error, message):
    with pytest.raises(error, match=message):
        FetchPages(**keywords)


def test_options_are_read_as_on_the_command_line():
    one = FetchPages(server_delay="500ms", threads="7", allowed_ports="80,81", **AGENT).options
    assert (one.server_delay, one.threads, one.allowed_ports) == (0.5, 7, ("80", "81"))
    other = FetchPagesOptions(server_delay=0.5, threads=7, allowed_ports=("80", "81"), **AGENT)
    assert one == other == FetchPages(other).options


def test_display_data_has_the_options():
    shown = FetchPages(partitions=3, **AGENT).display_data()
    assert (shown["partitions"], shown["agent_name"], shown["server_delay"]) == (3, "bot", 5.0)


def test_outcomes_and_dead_letters_are_counted(web):
    pipeline = beam.Pipeline("FnApiRunner", options=PipelineOptions([]))
    urls = ["http://h0.example.com/", "http://h0.example.com/nope", "http://127.0.0.1/"]
    pipeline | beam.Create(rows_of(*urls)) | FetchPages(**options(web))
    counters = pipeline.run().metrics().query()["counters"]
    found = {c.key.metric.name: c.result for c in counters if "fetcher" in c.key.metric.namespace}
    assert found == {"success": 1, "notfound": 1, "dead_letters_address_denied": 1}
