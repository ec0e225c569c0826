"""Transforms in windows, and in a stream: a collection of which Beam does not know the end."""

import time

import apache_beam as beam
import pytest
from apache_beam.options.pipeline_options import PipelineOptions
from apache_beam.testing.test_stream import TestStream
from apache_beam.testing.util import assert_that, equal_to
from apache_beam.transforms.trigger import AccumulationMode, AfterCount, AfterWatermark, Repeatedly
from apache_beam.transforms.window import (
    FixedWindows,
    GlobalWindows,
    SlidingWindows,
    TimestampedValue,
)
from fetching_web import asked, options

from nutbeam import (
    DedupByHash,
    FetchPages,
    GraphBlocks,
    JoinByHash,
    LeadNearPages,
    NearPairs,
    ParsePages,
    PartitionByHost,
    TopNPerKey,
)

MINUTE = 60


def in_windows():
    return beam.WindowInto(FixedWindows(MINUTE))


def in_panes():
    return beam.WindowInto(
        GlobalWindows(),
        trigger=Repeatedly(AfterCount(1)),
        accumulation_mode=AccumulationMode.DISCARDING,
    )


def run_stream(build, first, second):
    """Runs a pipeline on a stream of rows: some in the first minute, some in the second."""
    stream = TestStream()
    for minute, rows in enumerate((first, second)):
        stream = stream.advance_watermark_to(minute * MINUTE)
        stream = stream.add_elements([TimestampedValue(row, minute * MINUTE) for row in rows])
    stream = stream.advance_watermark_to_infinity()
    # The only runner in this process that has TestStream.
    streaming = PipelineOptions(["--streaming"])
    with beam.Pipeline("BundleBasedDirectRunner", options=streaming) as pipeline:
        build(
            pipeline
            | stream
            | "Row" >> beam.Map(lambda row: beam.Row(**row)).with_output_types(ROW)
        )


ROW = beam.typehints.row_type.RowTypeConstraint.from_fields(
    [("url", str), ("host", str), ("key", str), ("hash", int), ("score", float)]
)


def row_of(url, number=0):
    return {
        "url": url, "host": url.split("/")[2], "key": url, "hash": number, "score": float(number),
    }  # fmt: skip


def minute_and(*names):
    def of(row, window=beam.DoFn.WindowParam):
        return (int(window.start) // MINUTE, *(getattr(row, name) for name in names))

    return beam.Map(of)


@pytest.mark.parametrize("windows", [in_windows, in_panes])
def test_pages_are_fetched_while_a_stream_goes_on(web, windows):
    began = time.monotonic()
    urls = [url for url in sorted(web.site.urls("page")) if "/private/" not in url][:3]

    def build(rows):
        fetched = rows | windows() | FetchPages(**options(web))
        titles = (fetched.pages | ParsePages()).documents | beam.Map(lambda page: page.url)
        assert_that(titles, equal_to([urls[0], urls[1], urls[0], urls[2]]), "Pages")
        dead = fetched.dead_letters | "Reasons" >> beam.Map(lambda letter: letter.reason)
        assert_that(dead, equal_to(["malformed"]), "Dead")

    first = [row_of(urls[0]), row_of(urls[1]), row_of("no://nothing") | {"url": "nothing"}]
    run_stream(build, first, [row_of(urls[0]), row_of(urls[2])])
    requests = [request.path for request in asked(web, began)]
    assert len(requests) == 4


def test_the_delay_of_a_host_holds_from_one_window_to_the_next(web):
    began = time.monotonic()
    url = next(url for url in sorted(web.site.urls("page")) if "/private/" not in url)
    fetch = FetchPages(**options(web) | {"server_delay": 0.3})
    run_stream(lambda rows: rows | in_windows() | fetch, [row_of(url)], [row_of(url)])
    first, second = (request.time for request in asked(web, began))
    assert second - first >= 0.3 * 0.99


def test_each_window_has_its_own_best_rows_duplicates_and_pairs():
    a, b, c = (row_of(f"http://{name}/", number) for name, number in (("a", 1), ("b", 3), ("c", 3)))

    def build(rows):
        rows = rows | in_windows()
        top = rows | TopNPerKey(1, "host", "score") | "Top" >> minute_and("host")
        kept = (rows | DedupByHash("hash", "url")).kept | "Kept" >> minute_and("url")
        hosts = rows | PartitionByHost() | "Hosts" >> minute_and("host")
        pairs = rows | NearPairs(1) | "Pairs" >> minute_and("hash", "other")
        led = rows | LeadNearPages(1, "url") | "Led" >> minute_and("key", "winner")
        joined = (rows, rows) | JoinByHash("hash", {"url": "twin"}) | "Twins" >> minute_and("twin")
        all_rows = [(0, "a"), (0, "b"), (1, "a"), (1, "c")]
        urls = [(minute, f"http://{name}/") for minute, name in all_rows]
        assert_that(top, equal_to(all_rows), "TopIs")
        assert_that(kept, equal_to(urls), "KeptIs")
        assert_that(hosts, equal_to(all_rows), "HostsAre")
        assert_that(joined, equal_to(urls), "TwinsAre")
        assert_that(
            pairs | beam.Map(lambda pair: (pair[0], sum(pair[1:]))), equal_to([(0, 4), (1, 4)])
        )
        winners = [(0, "b", "b"), (0, "a", "b"), (1, "c", "c"), (1, "a", "c")]
        named = [(n, f"http://{key}/", f"http://{winner}/") for n, key, winner in winners]
        assert_that(led, equal_to(named), "LedAre")

    run_stream(build, [a, b], [a, c])


def when_two_came():
    return beam.WindowInto(
        SlidingWindows(2 * MINUTE, MINUTE),
        trigger=AfterWatermark(early=AfterCount(2)),
        accumulation_mode=AccumulationMode.DISCARDING,
    )


def test_all_outputs_have_the_trigger_that_beam_makes_at_a_shuffle(caplog):
    """Else the next shuffle counts duplicates and dead letters again."""
    rows = beam.Pipeline("FnApiRunner") | beam.Create([beam.Row(url="http://a/")]) | when_two_came()
    kept, duplicates = rows | DedupByHash("url", "url")
    pages, dead_letters = rows | FetchPages(agent_name="mybot", agent_email="you@your-site.org")
    assert kept.windowing.triggerfn == AfterWatermark(early=AfterCount(1))
    assert kept.windowing == duplicates.windowing == pages.windowing == dead_letters.windowing
    assert caplog.text == ""  # Beam warns of a Flatten of different triggers


def test_duplicates_stay_in_their_windows_with_a_trigger():
    a, b, c = (row_of(f"http://{name}/") for name in "abc")

    def build(rows):
        lost = (rows | when_two_came() | DedupByHash("hash", "url")).duplicates
        in_first_and_second = [(-1, "http://a/"), (0, "http://a/"), (0, "http://b/")]
        assert_that(lost | minute_and("url"), equal_to(in_first_and_second))

    run_stream(build, [a, b], [c])


def test_a_graph_is_of_all_links_so_windows_are_refused():
    links = beam.Pipeline("FnApiRunner") | beam.Create([beam.Row(source="a", target="b")])
    with pytest.raises(ValueError, match="GraphBlocks takes a collection without windows"):
        links | in_windows() | GraphBlocks("graph")
