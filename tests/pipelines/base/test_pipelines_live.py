import contextlib
import dataclasses
import io
import logging
import os
import pty
import re
import sys
import threading
import time

import rich.live  # noqa: F401 (the view's thread need not load it then, while its time runs)
from terminals import EVIL, Screen, obeyed, read, terminal
from waiting import wait_until

from nutbeam.pipelines.base.live import duration, line, live_view
from nutbeam.web.base.progress import Phase, Progress
from nutbeam.web.base.terminal import close_views, visible_streams
from nutbeam.web.engine.host_reports import HostActivity, WaitingHost


def crawl(progress, seconds=0.0):
    progress.start("generate", unit="rows")
    progress.add(7)
    progress.start("fetch", total=4)
    for _ in range(4):
        time.sleep(seconds / 4)
        progress.add(1, gone=1)
    progress.finish()


def test_plain_lines_for_each_phase_that_ended():
    progress, stream = Progress(), io.StringIO()
    progress.start("before")
    progress.finish()  # over before the view: not shown
    with live_view(progress=progress, stream=stream):
        crawl(progress)
    lines = stream.getvalue().splitlines()
    assert [text.partition(",")[0].rpartition(" in ")[0] for text in lines] == [
        "generate: 7 rows",
        "fetch: 4 pages",
    ]
    assert lines[1].endswith("gone 4")


def test_lines_show_the_round_and_unfinished_phases():
    progress, stream = Progress(), io.StringIO()
    with live_view(progress=progress, stream=stream):
        progress.start("inject", unit="lines")
        progress.add(1)
        for number in (1, 2):
            progress.begin_round(number, 3)
            progress.start("fetch", total=2)
            progress.add(1)
    inject, *rounds = stream.getvalue().splitlines()
    assert inject.startswith("inject: 1 line in ")
    assert rounds[0].startswith("round 1 of 3, fetch: 1 page in ")
    assert rounds[1] == "round 2 of 3, fetch: 1 of 2 pages, not finished"
    assert len(rounds) == 2


def test_plain_lines_every_interval():
    progress, stream = Progress(), io.StringIO()
    with live_view(progress=progress, stream=stream, interval=0.15):
        crawl(progress, seconds=1.0)
    running = [text for text in stream.getvalue().splitlines() if " of 4 pages" in text]
    assert len(running) >= 2
    assert " left" in running[-1]


def test_a_phase_on_a_cluster_has_a_line_at_its_begin():
    progress, stream = Progress(), io.StringIO()
    with live_view(progress=progress, stream=stream):
        progress.relay(Phase("start of workers", "", None, 0, {}, 3.0, finished=False))
        for name, total in (("generate", None), ("fetch", 9)):
            begun = Phase(name, "pages", total, 0, {}, 1.0, finished=False, elsewhere=True)
            progress.relay(begun)
            wait_until(lambda name=name: name in stream.getvalue())
            progress.relay(dataclasses.replace(begun, elapsed=7.0, finished=True))
    assert stream.getvalue().splitlines() == [
        "generate, 1.0 s so far",
        "generate in 7.0 s",
        "fetch: 0 of 9 pages",
        "fetch: 0 pages in 7.0 s",
    ]


def test_nothing_where_disabled_and_no_view_within_a_view():
    progress, stream, inner = Progress(), io.StringIO(), io.StringIO()
    with live_view(False, progress=progress, stream=stream):
        crawl(progress)
    assert stream.getvalue() == ""
    with live_view(progress=progress, stream=stream), live_view(progress=progress, stream=inner):
        crawl(progress)
    assert stream.getvalue().count("\n") == 2
    assert inner.getvalue() == ""


def test_a_closed_stream_does_not_stop_the_work():
    progress, stream = Progress(), io.StringIO()
    stream.isatty = lambda: False
    stream.close()
    with live_view(progress=progress, stream=stream):
        crawl(progress)
    assert len(progress.snapshot().history) == 2


def test_a_live_view_on_a_terminal(monkeypatch):
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "120")
    progress = Progress()
    master, slave = pty.openpty()
    chunks = []
    reader = threading.Thread(target=lambda: chunks.extend(read(master)))
    reader.start()
    with os.fdopen(slave, "w") as terminal, live_view(progress=progress, stream=terminal):
        crawl(progress, seconds=0.6)
    reader.join()
    os.close(master)
    shown = b"".join(chunks).decode()
    assert "generate: 7 rows in " in shown
    assert " of 4 pages" in shown
    assert "fetch: 4 pages in " in shown


@contextlib.contextmanager
def on_screen(monkeypatch, progress, width=100):
    """Shows a live view on a terminal; yields what comes to it, and a visible standard error there."""
    monkeypatch.setenv("TERM", "xterm")
    chunks = []
    with (
        terminal(chunks, width, rows=12) as slave,
        open(slave, "w", closefd=False) as stream,
        monkeypatch.context() as patch,
    ):
        patch.setattr(sys, "stderr", stream)
        with visible_streams(), live_view(progress=progress):
            yield chunks


def test_something_is_shown_before_the_first_phase(monkeypatch):
    with on_screen(monkeypatch, Progress()) as chunks:
        shown(chunks, "starting")
    assert Screen(200, 12).after(b"".join(chunks))[0] == []


def shown(chunks, text):
    """Waits until the last line of the screen has a text; returns the lines."""
    lines = []

    def is_there():
        lines[:] = Screen(200, 12).after(b"".join(chunks))[0]
        return lines and text in lines[-1]

    wait_until(is_there)
    return lines


def test_warnings_and_errors_scroll_above_the_view(monkeypatch):
    progress, log = Progress(), logging.getLogger("test_live")
    progress.begin_round(2, 3)
    progress.start("fetch", total=40)
    with on_screen(monkeypatch, progress, 200) as chunks:
        # Commands of other tests change the root's level, and pytest has handlers there.
        log.propagate, log.handlers = False, [logging.StreamHandler(sys.stderr)]
        log.setLevel(logging.WARNING)
        for number in range(20):
            log.warning("warning %d %s", number, "x" * 220 if number == 7 else EVIL)
            progress.add(1)
            time.sleep(0.05)
        sys.stderr.write("begun, ")
        # The view is the last line: it is drawn once, and nothing is drawn over it.
        lines = shown(chunks, "fetch: 20 of 40 pages")
        assert sum("round 2 of 3" in line for line in lines) == 1
        sys.stderr.write("ended\nTraceback\n  a frame\nno line feed")
        progress.finish()
    lines, cursor = Screen(200, 12).after(b"".join(chunks))
    assert cursor
    found = [line.partition(" ")[2][:2].strip() for line in lines if line.startswith("warning ")]
    assert found == list(map(str, range(20)))
    assert lines[8] == "x" * 30  # long lines are not cut
    assert lines[21:24] == ["begun, ended", "Traceback", "  a frame"]
    assert "✓ round 2 of 3, fetch: 20 pages in " in lines[24]
    assert lines[25:] == ["no line feed"]
    assert obeyed(b"".join(chunks), "xterm") == []


def test_the_view_names_the_host_that_all_waits_for(monkeypatch):
    progress = Progress()
    progress.start("fetch", total=41)
    slow = WaitingHost("slow.example.com", 40, 200.0, time.monotonic() + 60)
    progress.watch(lambda: HostActivity(0, 1, (slow,)))
    with on_screen(monkeypatch, progress) as chunks:
        progress.add(1)
        lines = shown(chunks, "slow.example.com")
    assert lines[-2] == "  hosts: 0 active, 1 waiting"
    assert re.fullmatch(
        "  slowest: slow.example.com, 40 pages take 3 m 20 s, next request in (60|[45].) s",
        lines[-1],
    )
    # What was under way stays to be seen.
    assert Screen(100, 12).after(b"".join(chunks)) == (
        ["✗ fetch: 1 of 41 pages, not finished"], True,
    )  # fmt: skip


def test_a_view_that_is_closed_from_elsewhere_leaves_the_terminal_as_it_was(monkeypatch):
    progress = Progress()
    progress.start("fetch", total=41)
    with on_screen(monkeypatch, progress) as chunks:
        shown(chunks, "fetch")
        assert not Screen(100, 12).after(b"".join(chunks))[1]
        close_views()  # as before the process is ended by force
        print("interrupted", file=sys.stderr, flush=True)
        wait_until(lambda: Screen(100, 12).after(b"".join(chunks)) == (["interrupted"], True))


def test_names_of_strangers_are_text_in_a_live_view(monkeypatch):
    monkeypatch.setenv("TERM", "xterm")
    progress, chunks, name = Progress(), [], f"[red]:cat:[link=http://x/]{EVIL}"
    with (
        terminal(chunks) as slave,
        open(slave, "w", closefd=False) as stream,
        live_view(progress=progress, stream=stream),
    ):
        progress.start(name, total=4)
        progress.watch(lambda: HostActivity(7, 30, (WaitingHost(name, 50, 250.0),)))
        progress.add(1, **{name: 1})
        wait_until(lambda: b"".join(chunks).count(b"[red]:cat:[link=http://x/]") >= 4)
        progress.finish()
    shown = b"".join(chunks)
    assert obeyed(shown, "xterm") == []
    assert shown.count(b"[red]:cat:[link=http://x/]\\x1b]0;") >= 4


def test_line_without_anything_done():
    assert line(Phase("commit", "files", None, 0, {}, 1.0, False)) == "commit, 1.0 s so far"
    assert line(Phase("fetch", "pages", 0, 0, {}, 1.0, True)) == "fetch: 0 pages in 1.0 s"
    assert duration(59.99) == "60 s"
    assert duration(3600) == "1 h 00 m"


def test_hosts_and_bytes_are_shown(monkeypatch):
    progress, stream = Progress(), io.StringIO()
    progress.start("fetch", total=100)
    progress.watch(lambda: HostActivity(7, 30, (WaitingHost("slow.example.com", 50, 250.0),)))
    with live_view(progress=progress, stream=stream, interval=0.1):
        for _ in range(10):
            progress.add(2, bytes=40_000, success=2)
            time.sleep(0.05)
        progress.finish()
    *running, ended = stream.getvalue().splitlines()
    assert running[-1].endswith(
        "4 m 10 s left, hosts: 7 active, 30 waiting, slowest: slow.example.com, 50 pages take "
        "4 m 10 s, next request now"
    )
    assert "hosts" not in ended
    # A line that is shown before the first page has no success yet.
    assert all(" pages/s, " in text and "kB/s, success " in text for text in (running[-1], ended))
