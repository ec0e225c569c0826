"""Shows the progress of a command on standard error.

A terminal gets a live view. Other outputs get a plain line every few seconds, and one at the
end of each phase. Standard output is only for the result.
"""

import contextlib
import os
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, TextIO

from rich.filesize import decimal

from ...web.base.progress import PROGRESS, HostActivity, Phase, Progress

if TYPE_CHECKING:
    from rich.console import Group
    from rich.table import Table

INTERVAL = 5.0  # s between plain lines
_POLL = 0.1  # s
_shown = threading.Lock()
Polls = Iterator[tuple[Sequence[Phase], Phase | None]]  # phases that have ended, the current one


@contextlib.contextmanager
def live_view(
    enabled: bool | None = None,
    *,
    progress: Progress = PROGRESS,
    stream: TextIO | None = None,
    interval: float = INTERVAL,
) -> Iterator[None]:
    """Shows progress while the block runs.

    A view inside another view shows nothing.

    Args:
        enabled: False shows nothing. True and None select the view by the kind of stream.
        progress: The counts to show.
        stream: The output stream; standard error by default.
        interval: Seconds between two plain lines of a phase.
    """
    if enabled is False or not _shown.acquire(blocking=False):
        yield
        return
    out = stream or sys.stderr
    seen = len(progress.snapshot().history)
    view = _live if out.isatty() and os.environ.get("TERM") != "dumb" else _plain
    stop = threading.Event()
    args = (_polls(progress, seen, stop), out, interval)
    thread = threading.Thread(target=view, args=args, name="progress", daemon=True)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()
        _shown.release()


def line(phase: Phase) -> str:
    """Returns one line about a phase: amount, rate, other counts, time left.

    >>> line(Phase("fetch", "pages", 400, 100, {"gone": 3}, elapsed=2.0, finished=False))
    'fetch: 100 of 400 pages, 50 pages/s, gone 3, 6 s left'
    >>> line(Phase("fetch", "pages", 400, 400, {"bytes": 80_000}, elapsed=8.0, finished=True))
    'fetch: 400 pages in 8.0 s, 50 pages/s, 10.0 kB/s'
    """
    of = f" of {phase.total:,}" if phase.total is not None and not phase.finished else ""
    amount = f"{phase.name}: {phase.done:,}{of} {phase.unit}"
    if not phase.done and phase.total is None:
        amount = phase.name
    if phase.finished:
        amount += f" in {duration(phase.elapsed)}"
    return ", ".join([amount, *_details(phase)])


def hosts_line(hosts: HostActivity) -> str:
    """Returns one line about the hosts of a fetch.

    >>> from nutbeam.web.engine.host_activity import SlowHost
    >>> hosts_line(HostActivity(active=3, waiting=2, slowest=(SlowHost("a.com", 40, 200.0),)))
    'hosts: 3 active, 2 waiting, slowest a.com 40 pages 3 m 20 s'
    """
    parts = [f"hosts: {hosts.active:,} active", f"{hosts.waiting:,} waiting"]
    slow = [f"{h.host} {h.pages:,} pages {duration(h.seconds)}" for h in hosts.slowest if h.seconds]
    return ", ".join(parts + ([f"slowest {', '.join(slow)}"] if slow else []))


def duration(seconds: float) -> str:
    """Returns a readable duration.

    >>> duration(0.25), duration(72), duration(7384)
    ('0.2 s', '1 m 12 s', '2 h 03 m')
    """
    if seconds < 60:
        return f"{seconds:.1f} s" if seconds < 10 else f"{seconds:.0f} s"
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} m {rest:02} s" if minutes < 60 else f"{minutes // 60} h {minutes % 60:02} m"


def _details(phase: Phase) -> list[str]:
    rate = f"{phase.rate:,.0f}" if phase.rate >= 10 else f"{phase.rate:.1f}"
    details = [f"{rate} {phase.unit}/s"] if phase.done and phase.elapsed > _POLL else []
    received = phase.counts.get("bytes", 0)
    if received and phase.elapsed > _POLL:
        details.append(f"{decimal(int(received / phase.elapsed))}/s")
    counts = sorted(phase.counts.items())
    details += [f"{name} {count:,}" for name, count in counts if name != "bytes"]
    if phase.left and not phase.finished:
        details.append(
            f"{phase.left:.0f} s left" if phase.left < 60 else f"{duration(phase.left)} left"
        )
    return details


def _polls(progress: Progress, seen: int, stop: threading.Event) -> Polls:
    """Yields the phases that have ended since the last poll, after the first ``seen``."""
    stopping = False
    while not stopping:
        stopping = stop.wait(_POLL)
        snapshot = progress.snapshot()
        yield snapshot.history[seen:], snapshot.current
        seen = len(snapshot.history)


def _plain(polls: Polls, out: TextIO, interval: float) -> None:
    due = time.monotonic() + interval
    for ended, current in polls:
        shown = list(ended)
        if current is not None and not ended and time.monotonic() >= due:
            shown.append(current)
        for phase in shown:
            due = time.monotonic() + interval
            hosts = [hosts_line(phase.hosts)] if phase.hosts and not phase.finished else []
            with contextlib.suppress(OSError, ValueError):  # the reader has closed the stream
                print(", ".join([line(phase), *hosts]), file=out, flush=True)


def _live(polls: Polls, out: TextIO, _: float) -> None:
    from rich.live import Live
    from rich.spinner import Spinner
    from rich.text import Text

    from .console import VisibleConsole

    console, done = VisibleConsole(out), Text("✓", "green")
    spinner = Spinner("dots")
    # Without redirection of streams: it would send the result to standard error, and would
    # interpret control sequences in logs.
    with Live(
        console=console, auto_refresh=False, transient=True,
        redirect_stdout=False, redirect_stderr=False,
    ) as live:  # fmt: skip
        for ended, current in polls:
            if ended:
                live.update("")
            for phase in ended:
                console.print(done, line(phase))
            live.update(_bar(spinner, current) if current else "", refresh=True)


def _bar(spinner: object, phase: Phase) -> "Group | Table":
    from rich.console import Group
    from rich.progress_bar import ProgressBar
    from rich.table import Table

    row = Table.grid(padding=(0, 1))
    bar = ProgressBar(total=phase.total, completed=phase.done, width=20)
    row.add_row(spinner, *([bar] if phase.total else []), line(phase))  # type: ignore[arg-type]
    return Group(row, f"  {hosts_line(phase.hosts)}") if phase.hosts else row
