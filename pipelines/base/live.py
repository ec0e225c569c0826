"""Shows the progress of a command on standard error.

A terminal gets a live view, which stays below warnings and other lines. Other outputs get a plain
line every few seconds, and one at the end of each phase; phases on a cluster have one at their begin,
too. Standard output is only for the result.
"""

import contextlib
import os
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, TextIO

from rich.filesize import decimal

from ...web.base.progress import PROGRESS, HostActivity, Phase, Progress, WaitingHost
from ...web.base.terminal import LiveView, view_at
from ...web.base.wording import format_count, singular
from .ending import ENDING

if TYPE_CHECKING:
    from rich.console import Group
    from rich.table import Table

INTERVAL = 5.0  # s between plain lines
_POLL = 0.1  # s
_viewed = threading.Lock()
_SAVING = "interrupted: what was fetched is saved; a second Ctrl-C ends at once"
# The phases that have ended, the current one, the round.
Polls = Iterator[tuple[Sequence[Phase], Phase | None, str]]


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
    if enabled is False or not _viewed.acquire(blocking=False):
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
        _viewed.release()


def line(phase: Phase) -> str:
    """Returns one line about a phase: round, amount, rate, other counts, time left.

    >>> line(Phase("fetch", "pages", 400, 100, {"gone": 3}, elapsed=2.0, finished=False))
    'fetch: 100 of 400 pages, 50 pages/s, gone 3, 6 s left'
    >>> line(Phase("fetch", "pages", 1, 1, {"bytes": 8_000}, 8.0, finished=True, round="2 of 3"))
    'round 2 of 3, fetch: 1 page in 8.0 s, 0.1 pages/s, 1.0 kB/s'
    """
    return ", ".join([_amount(phase), *_details(phase)])


def _cut_off(phase: Phase) -> str:
    """Returns one line about a phase that did not come to its end.

    >>> _cut_off(Phase("fetch", "pages", 400, 100, {}, elapsed=2.0, finished=False))
    'fetch: 100 of 400 pages, not finished'
    """
    return f"{_amount(phase)}, not finished"


def _name(phase: Phase) -> str:
    return f"round {phase.round}, {phase.name}" if phase.round else phase.name


def _amount(phase: Phase) -> str:
    name = _name(phase)
    if not phase.done and phase.total is None:
        amount = name if phase.finished else f"{name}, {duration(phase.elapsed)} so far"
    elif phase.total is not None and not phase.finished:
        unit = singular(phase.unit) if phase.total == 1 else phase.unit
        amount = f"{name}: {phase.done:,} of {phase.total:,} {unit}"
    else:
        amount = f"{name}: {format_count(phase.done, phase.unit)}"
    return f"{amount} in {duration(phase.elapsed)}" if phase.finished else amount


def hosts_lines(hosts: HostActivity, now: float) -> list[str]:
    """Returns a line about the hosts of a fetch, and one about the host that all else waits for.

    Args:
        hosts: The hosts.
        now: Time on the monotonic clock.

    >>> slow = WaitingHost("a.com", 40, 200.0, next_at=104.0)
    >>> hosts_lines(HostActivity(active=3, waiting=2, slowest=(slow,)), now=100.0)
    ['hosts: 3 active, 2 waiting', 'slowest: a.com, 40 pages take 3 m 20 s, next request in 4.0 s']
    >>> hosts_lines(HostActivity(active=1, slowest=(WaitingHost("b.com", 0, 0.0, active=True),)), 0.0)
    ['hosts: 1 active, 0 waiting', 'slowest: b.com, a request is under way']
    """
    lines = [f"hosts: {hosts.active:,} active, {hosts.waiting:,} waiting"]
    slow = hosts.slowest[0] if hosts.slowest else None
    if slow is not None and slow.seconds:
        pages = f"{format_count(slow.pages, 'pages')} take{'s' if slow.pages == 1 else ''}"
        lines.append(
            f"slowest: {slow.host}, {pages} {duration(slow.seconds)}, {_next_request(slow, now)}"
        )
    elif slow is not None and hosts.active == 1 and not hosts.waiting:
        lines.append(f"slowest: {slow.host}, {_next_request(slow, now)}")
    return lines


def _next_request(slow: WaitingHost, now: float) -> str:
    if slow.active:
        return "a request is under way"
    wait = slow.next_at - now
    return f"next request in {duration(wait)}" if wait > _POLL else "next request now"


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
    if phase.seconds_left and not phase.finished:
        details.append(
            f"{phase.seconds_left:.0f} s left"
            if phase.seconds_left < 60
            else f"{duration(phase.seconds_left)} left"
        )
    return details


def _polls(progress: Progress, seen: int, stop: threading.Event) -> Polls:
    """Yields the phases that have ended since the last poll, after the first ``seen``."""
    stopping = False
    while not stopping:
        stopping = stop.wait(_POLL)
        snapshot = progress.snapshot()
        yield snapshot.history[seen:], snapshot.current, snapshot.round
        seen = len(snapshot.history)


def _plain(polls: Polls, out: TextIO, interval: float) -> None:
    due, current, announced = time.monotonic() + interval, None, ""
    # The reader may have closed the stream: that does not end the work.
    with contextlib.suppress(OSError, ValueError):
        for ended, current, _ in polls:
            lines = list(map(line, ended))
            begun = _name(current) if current is not None and current.elsewhere else ""
            is_due = time.monotonic() >= due and not ended
            if current is not None and (is_due or begun not in ("", announced)):
                hosts = hosts_lines(current.hosts, time.monotonic()) if current.hosts else []
                lines.append(", ".join([line(current), *hosts]))
            announced = begun
            for text in lines:
                due = time.monotonic() + interval
                print(text, file=out, flush=True)
        if current is not None:
            print(_cut_off(current), file=out, flush=True)


def _live(polls: Polls, out: TextIO, _: float) -> None:
    from rich.live import Live
    from rich.spinner import Spinner
    from rich.text import Text

    from .console import VisibleConsole

    console, current = VisibleConsole(out), None
    spinner = Spinner("dots")
    # Without redirection of streams: it would send the result to standard error, and would
    # interpret control sequences in logs. Lines of other writers come through ``view_at``.
    live = Live(
        console=console, auto_refresh=False, transient=True,
        redirect_stdout=False, redirect_stderr=False,
    )  # fmt: skip
    # Their text is escaped already.
    view = LiveView(lambda lines: console.print(Text(lines), soft_wrap=True), live.stop)
    # The view must be gone from the screen before others write there themselves.
    with contextlib.suppress(OSError, ValueError), view_at(view, _terminals(out)), live:
        for ended, current, round_ in polls:
            if ended:
                live.update("")
            for phase in ended:
                console.print(Text("✓", "green"), line(phase))
            live.update(_draw_view(spinner, current, round_), refresh=True)
        if current is not None:
            console.print(Text("✗", "red"), _cut_off(current))
    if view.unfinished_line():
        console.print(Text(view.unfinished_line()), end="", soft_wrap=True)


def _terminals(out: TextIO) -> list[TextIO]:
    streams = (out, sys.stdout, sys.stderr)
    return [stream for stream in streams if stream and not stream.closed and stream.isatty()]


def _draw_view(spinner: object, phase: Phase | None, round_: str) -> "Group | Table":
    from rich.console import Group
    from rich.progress_bar import ProgressBar
    from rich.table import Table

    # Before the first phase, pipelines are built.
    text = line(phase) if phase is not None else f"round {round_}" if round_ else "starting"
    row = Table.grid(padding=(0, 1))
    bar = [ProgressBar(total=phase.total, completed=phase.done, width=20)] if (
        phase is not None and phase.total
    ) else []  # fmt: skip
    row.add_row(spinner, *bar, text)  # type: ignore[arg-type]
    hosts = phase.hosts if phase is not None else None
    more = hosts_lines(hosts, time.monotonic()) if hosts else []
    more += [_SAVING] if ENDING.signalled else []
    return Group(row, *(f"  {text}" for text in more)) if more else row
