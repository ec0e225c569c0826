"""Which capture a replay shows of a URL."""

import polars as pl

from nutbeam.policy.archives.capture_index import REPLAYED, CaptureIndex, choose_capture

ROWS = [
    ("com.a:http/", 10, 200, "text/html", 0, 0),
    ("com.a:http/", 20, 304, None, 0, 1),
    ("com.a:http/", 30, 500, "text/html", 0, 2),
    ("com.a:https/s", 10, 200, "text/css", 0, 3),
    ("com.a:http:8080/s", 10, 200, "text/css", 0, 4),
    ("com.ab:http/", 10, 200, "text/html", 0, 5),
    ("com.a:http/caf%C3%A9", 10, 200, "text/html", 0, 6),
]
INDEX = CaptureIndex(pl.DataFrame(ROWS[::-1], schema=pl.Schema(REPLAYED), orient="row"))


def rows_of(url):
    return INDEX.captures_of(url)["row"].to_list()


def test_captures_are_those_of_the_url_or_of_its_normal_form_or_its_other_scheme():
    assert rows_of("http://a.com/") == [0, 1, 2]
    assert rows_of("https://a.com/") == [0, 1, 2]
    assert rows_of("http://a.com/s") == [3]
    assert rows_of("http://a.com:8080/s") == [4]
    assert rows_of("http://a.com/caf%c3%a9") == [6]
    assert rows_of("http://a.com/other") == rows_of("no url") == rows_of("mailto:x") == []


def test_the_nearest_one_is_shown_and_of_304_the_answer_that_it_confirms():
    rows = INDEX.captures_of("http://a.com/")
    shown = {time: choose_capture(rows, time)["time"] for time in (None, 0, 14, 16, 24, 26, 99)}
    assert shown == {None: 30, 0: 10, 14: 10, 16: 10, 24: 10, 26: 30, 99: 30}
    only_304 = rows.filter(pl.col("status") == 304)
    assert choose_capture(only_304, None) is None
    assert choose_capture(rows.clear(), None) is None


def test_hosts_and_pages_of_a_host_are_listed():
    assert INDEX.hosts().rows() == [("a.com", 4), ("ab.com", 1)]
    assert INDEX.pages_of("com.a")["row"].to_list() == [2, 6, 4, 3]
