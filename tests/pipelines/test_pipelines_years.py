"""Months pass in seconds: the clock of a process can be replaced."""

import pytest
from crawling import nutbeam, rows_of
from web_servers import reply, serve

from nutbeam.policy.schedules.schedule import DAY_MS
from nutbeam.web.base.clock import now_ms, replaced_clock

PAGES = {"/": b'<a href="/news">news</a>', "/news": b'<a href="/">home</a>'}


def answer(path, _):
    if path not in PAGES:
        return reply(b"", "404 Not Found")
    return reply(PAGES[path], "200 OK", "Content-Type: text/html")


@pytest.mark.long
def test_each_month_every_page_is_fetched_once(tmp_path, capsys):
    table, time = tmp_path / "table", [now_ms()]
    with serve(answer) as server, replaced_clock(lambda: time[0]):
        words = ["--connect_to", f"a.example.com:80:127.0.0.1:{server.port}", "--server_delay", "0"]
        assert nutbeam("crawl", table, "http://a.example.com/", *words) == 0
        for month in range(2, 8):
            time[0] += 15 * DAY_MS
            assert nutbeam("crawl", table, *words) == 1  # nothing is due yet
            time[0] += 16 * DAY_MS
            assert nutbeam("crawl", table, *words) == 0
            assert [server.paths.count(path) for path in PAGES] == [month] * 2
            due = rows_of(table, "state")["fetch_time"]
            assert due.to_list() == [time[0] + 30 * DAY_MS] * 2
    assert now_ms() < time[0] - 100 * DAY_MS
    assert "clock" not in capsys.readouterr().err
