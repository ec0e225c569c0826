import contextlib
import io
import os
import pty
import threading
import time

import rich.live  # noqa: F401 (the view's thread need not load it then, while its time runs)
from terminals import EVIL, obeyed, terminal

from nutbeam.pipelines.command_line.live import duration, line, live_view
from nutbeam.web.base.progress import Phase, Progress
from nutbeam.web.engine.host_activity import HostActivity, SlowHost


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


def test_plain_lines_every_interval():
    progress, stream = Progress(), io.StringIO()
    with live_view(progress=progress, stream=stream, interval=0.15):
        crawl(progress, seconds=1.0)
    running = [text for text in stream.getvalue().splitlines() if " of 4 pages" in text]
    assert 2 <= len(running) <= 7
    assert " left" in running[-1]


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


def read(terminal):
    with contextlib.suppress(OSError):  # what a terminal says once its other end is closed
        while chunk := os.read(terminal, 1 << 16):
            yield chunk


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


def test_names_of_strangers_are_text_in_a_live_view(monkeypatch):
    monkeypatch.setenv("TERM", "xterm")
    progress, chunks, name = Progress(), [], f"[red]:cat:[link=http://x/]{EVIL}"
    with (
        terminal(chunks) as slave,
        open(slave, "w", closefd=False) as stream,
        live_view(progress=progress, stream=stream),
    ):
        progress.start(name, total=4)
        progress.watch(lambda: HostActivity(7, 30, (SlowHost(name, 50, 250.0),)))
        progress.add(1, **{name: 1})
        time.sleep(0.5)
        progress.finish()
    shown = b"".join(chunks)
    assert obeyed(shown, "xterm") == []
    assert shown.count(b"[red]:cat:[link=http://x/]\\x1b]0;") >= 4


def test_line_without_anything_done():
    assert line(Phase("commit", "files", None, 0, {}, 1.0, False)) == "commit"
    assert line(Phase("fetch", "pages", 0, 0, {}, 1.0, True)) == "fetch: 0 pages in 1.0 s"
    assert duration(59.99) == "60 s"
    assert duration(3600) == "1 h 00 m"


def test_hosts_and_bytes_are_shown(monkeypatch):
    progress, stream = Progress(), io.StringIO()
    progress.start("fetch", total=100)
    progress.watch(lambda: HostActivity(7, 30, (SlowHost("slow.example.com", 50, 250.0),)))
    with live_view(progress=progress, stream=stream, interval=0.1):
        for _ in range(10):
            progress.add(2, bytes=40_000, success=2)
            time.sleep(0.05)
        progress.finish()
    *running, ended = stream.getvalue().splitlines()
    assert running[-1].endswith(
        "4 m 10 s left, hosts: 7 active, 30 waiting, slowest slow.example.com 50 pages 4 m 10 s"
    )
    assert "hosts" not in ended
    # A line that is shown before the first page has no success yet.
    assert all(" pages/s, " in text and "kB/s, success " in text for text in (running[-1], ended))
