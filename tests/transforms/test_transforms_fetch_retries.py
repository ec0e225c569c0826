"""Attempts of FetchPages: retries, the spool, and engines that end."""

import collections
import itertools
import threading
import time

import apache_beam as beam
import pytest
from apache_beam.options.pipeline_options import PipelineOptions
from apache_beam.transforms.window import GlobalWindow
from fetching_web import asked, by_url, fetched, options, pages_of, plain, rows_of, wanted_of
from waiting import wait_until
from web_servers import connect_to, reply, serve

from nutbeam.policy.components.schema import conform
from nutbeam.transforms import fetch_pages as module
from nutbeam.transforms import fetching as twin
from nutbeam.transforms.fetch_pages import FetchPages
from nutbeam.transforms.fetching import (
    DEAD_LETTERS_OUTPUT,
    PAGES_OUTPUT,
    WANTED,
    FetchPagesOptions,
    RowsFetching,
    fetch_pages,
)

KEPT = {PAGES_OUTPUT: [], DEAD_LETTERS_OUTPUT: []}


def keep(element, tag):
    KEPT[tag].append(element)


def retried(web, monkeypatch, **more):
    """Returns (pages, dead letters, requests) of a run whose fetching fails at two pages."""
    for kept in KEPT.values():
        kept.clear()
    visits = []
    right = twin.page_row

    def failing(result):
        visits.append(result.task.url)
        if len(visits) in (4, 9):
            raise OSError("the worker is gone")
        return right(result)

    monkeypatch.setattr(module, "_FLUSH_SECONDS", 0.0)  # each page is on its way at once
    monkeypatch.setattr(twin, "page_row", failing)
    began = time.monotonic()
    urls = [*pages_of(web)[:12], "nonsense", "http://127.0.0.1/"]
    with beam.Pipeline("BundleBasedDirectRunner", options=PipelineOptions([])) as pipeline:
        parts = pipeline | beam.Create(rows_of(*urls)) | FetchPages(**options(web, **more))
        for tag, part in parts.items():
            part | f"Plain {tag}" >> beam.Map(plain) | f"Keep {tag}" >> beam.Map(keep, tag)
    assert len(visits) >= 9  # it did fail
    monkeypatch.setattr(twin, "page_row", right)
    return KEPT[PAGES_OUTPUT], KEPT[DEAD_LETTERS_OUTPUT], asked(web, began)


@pytest.mark.long
def test_a_retry_gives_the_same_and_each_url_once(web, monkeypatch):
    delay = 0.2
    pages, dead, requests = retried(web, monkeypatch, server_delay=delay)
    once, letters = fetched(
        rows_of(*pages_of(web)[:12], *(letter["url"] for letter in dead)),
        FetchPages(**options(web)),
    )
    assert by_url(pages) == by_url(once)
    assert by_url(dead) == by_url(letters)
    assert len(requests) > len(pages)  # they were asked for again,
    times = collections.defaultdict(list)
    for request in requests:
        times[request.host].append(request.time)
    gaps = [b - a for some in times.values() for a, b in itertools.pairwise(some)]
    assert min(gaps) >= delay * 0.99  # but with no less delay


def test_a_retry_with_a_spool_requests_no_stored_page_again(web, monkeypatch, tmp_path):
    spool = str(tmp_path / "spool")
    pages, dead, requests = retried(web, monkeypatch, spool=spool, server_delay=0.1)
    assert sorted(page["url"] for page in pages) == sorted(pages_of(web)[:12])
    assert len(dead) == 2
    # At each of the two faults a page is not kept yet, and some are under way.
    assert 12 < len(requests) <= 12 + 2 * 4
    kept = [path for path in (tmp_path / "spool").rglob("*") if path.is_file()]
    assert {path.suffix for path in kept} == {".arrow"}
    # What is kept is what a retry gives, the time of the request and all.
    again, _ = fetched(
        rows_of(*pages_of(web)[:12]),
        FetchPages(**options(web, spool=spool)),
    )
    assert sorted(again, key=str) == sorted(pages, key=str)


def threads():
    ours = ("nutbeam-fetch", "nutbeam-loop")
    return [t for t in threading.enumerate() if t.name in ours and t.is_alive()]


@pytest.mark.parametrize("client", ["threads", "asyncio"])
def test_closing_ends_the_engine(web, client):
    wait_until(lambda: not threads())
    options = FetchPagesOptions(connect_to=web.connect_to, http_client=client, server_delay=0.3)
    rows = fetch_pages(RowsFetching(wanted_of(*web.site.urls("page")), options))
    assert next(rows)[0] == PAGES_OUTPUT
    assert threads()
    rows.close()
    wait_until(lambda: not threads())
    assert next(rows, None) is None
    wait_until(lambda: no_more_requests(web))


def no_more_requests(web):
    """Tells whether a server is asked nothing for three delays; what was sent it may still read."""
    number = len(web.requests())
    time.sleep(1.0)
    return len(web.requests()) == number


def test_a_pipeline_that_fails_leaves_no_engine_running(web, monkeypatch):
    monkeypatch.setattr(module, "_FLUSH_SECONDS", 0.0)
    wait_until(lambda: not threads())
    began = time.monotonic()
    urls = web.site.urls("page")
    pipeline = beam.Pipeline("FnApiRunner", options=PipelineOptions([]))
    found = pipeline | beam.Create(rows_of(*urls)) | FetchPages(**options(web, server_delay=0.5))
    found[PAGES_OUTPUT] | beam.Map(always_fail)
    with pytest.raises(Exception, match="always"):
        pipeline.run()
    wait_until(lambda: not threads())
    assert len(asked(web, began)) < len(urls) / 2


def test_an_attempt_ends_the_one_that_it_replaces(web):
    began = time.monotonic()
    fetch = module._Fetch(
        FetchPagesOptions(connect_to=web.connect_to, server_delay=0.3), 1, "", "a transform"
    )
    chunk = conform(wanted_of(*pages_of(web)), WANTED)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "_FLUSH_SECONDS", 0.0)
        forgotten = fetch.process((0, [chunk]), GlobalWindow())
        next(forgotten)
        second = fetch.process((0, [chunk]), GlobalWindow())
        list(itertools.islice(second, 8))
    with pytest.raises(RuntimeError, match="another attempt at this partition has taken over"):
        list(forgotten)  # what it gave is not all, and must not count as such
    second.close()
    times = collections.defaultdict(list)
    for request in asked(web, began):
        times[request.host].append(request.time)
    gaps = [b - a for some in times.values() for a, b in itertools.pairwise(some)]
    assert gaps
    assert min(gaps) >= 0.3 * 0.99


def always_fail(row):
    raise OSError("always")


def test_a_page_and_then_silence_is_kept_in_the_spool(monkeypatch, tmp_path):
    monkeypatch.setattr(module, "_FLUSH_SECONDS", 2.0)
    kept = []

    def answer(path, _):
        if path == "/2":
            kept.append(wait_for_file(tmp_path / "spool"))
        return reply(b"", "404 Not Found") if path == "/robots.txt" else reply(b"x")

    urls = ["http://a.example.com/1", "http://b.example.com/2"]
    with serve(answer) as server:
        chosen = {
            "connect_to": connect_to(server.port),
            "server_delay": 0,
            "spool": str(tmp_path / "spool"),
        }
        pages, _ = fetched(rows_of(*urls), FetchPages(**chosen))
    assert [page["url"] for page in sorted(pages, key=str)] == urls
    assert kept == [True]  # while the server had not answered yet


def wait_for_file(folder):
    """Returns whether a file comes into a folder."""
    return bool(wait_until(lambda: list(folder.rglob("*.arrow"))))
