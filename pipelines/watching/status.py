"""status: shows in ten lines what runs on a table, how the last work ended, and whether all is well."""

import dataclasses
import sys
import time
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Literal

from ...io.storage.least_free import LeastFreeOptions
from ...policy.components.heartbeat import PhaseUnderWay
from ...policy.components.watched_facts import UrlCounts, WatchedFacts
from ...policy.watching.table_health import TableHealth, waiting_line
from ...web.base.dataclass import dataclass
from ...web.base.options import option, seconds, shared_option
from ...web.base.progress import HostActivity, Phase, WaitingHost
from ...web.base.visible import visible
from ...web.base.wording import format_count
from ..base.command import TABLE, Invocation, gives_record
from ..base.live import duration, hosts_lines, line
from .table_watch import TableWatch, WatchedTable, watched_record

if TYPE_CHECKING:
    from rich.table import Table

ARGUMENTS = (TABLE,)
_MOST_SHOWN = 3  # of what runs, of failures
_STATE_COLOURS = {"running": "green", "well": "green", "stale": "yellow", "failed": "red"}


@dataclass(frozen=True)
class WatchOptions:
    """How a table is watched, once or again and again."""

    GROUP = "watching"

    stale_after: float = seconds(
        93_600.0,
        "Longest time since the newest snapshot while nothing runs; then the table is stale.",
    )
    most_counted: int = option(
        20_000_000,
        "Most URLs that are counted by status and by when they are due; of more only the number of "
        "all is shown, for counting reads two columns of the table.",
        minimum=0,
    )
    least_free: int = shared_option(LeastFreeOptions, "least_free")


@dataclass(frozen=True)
class Options(WatchOptions):
    """Options of status."""

    watch: bool = option(False, "Show it again and again, until Ctrl-C.")
    interval: float = seconds(2.0, "With --watch: time between two looks.", minimum=0.1)


def run(invocation: Invocation) -> int:
    options = invocation.options
    table = str(invocation.table)
    watch = TableWatch(table, options.stale_after, options.most_counted, options.least_free)
    if options.watch:
        _show_again(invocation, watch)
    watched = watch.look()
    if not gives_record(invocation, watched_record(watched)):
        print("\n".join(status_lines(watched)))
    return watched.health.exit_code


def _show_again(invocation: Invocation, watch: TableWatch) -> None:
    """Shows the table until a signal: in place on a terminal, as blocks or as JSON lines elsewhere."""
    if invocation.format == "json" or not sys.stdout.isatty():
        while True:
            watched = watch.look()
            if not gives_record(invocation, watched_record(watched)):
                print("\n".join(status_lines(watched)), end="\n\n")
            sys.stdout.flush()
            time.sleep(invocation.options.interval)
    from rich.live import Live

    from ..base.console import VisibleConsole

    console = VisibleConsole(sys.stdout)
    with Live(console=console, auto_refresh=False, redirect_stdout=False) as live:
        while True:
            live.update(_grid(_values(watch.look())), refresh=True)
            time.sleep(invocation.options.interval)


def _grid(values: Mapping[str, str]) -> "Table":
    """Returns the lines for a terminal: long ones are wrapped, but those of strangers are cut."""
    from rich.table import Table
    from rich.text import Text

    grid = Table.grid(padding=(0, 1))
    for name, value in values.items():
        is_cut = name == "errors"
        overflow: Literal["ellipsis", "fold"] = "ellipsis" if is_cut else "fold"
        grid.add_row(f"{name:9}", Text(value, no_wrap=is_cut, overflow=overflow))
    return grid


def status_lines(watched: WatchedTable) -> list[str]:
    """Returns what was seen of a table as ten lines for people, with control characters escaped."""
    return [f"{name:9} {value}" for name, value in _values(watched).items()]


def _values(watched: WatchedTable) -> dict[str, str]:
    facts, health, _ = watched
    values = {
        "table": f"{facts.table}: {health.state}",
        "running": "; ".join(_work_lines(health, facts.now)) or "nothing",
        "hosts": "; ".join(_hosts_lines(health)) or _no_hosts_line(health),
        "errors": "; ".join(_failure_lines(health)) or "none",
        "last": _last_line(health, facts.now),
        "urls": _urls_line(facts.urls),
        "due": _due_line(facts.urls),
        "batches": waiting_line(facts, health.running),
        "snapshot": _snapshot_line(facts),
        "wrong": "; ".join(health.problems) or "nothing",
    }
    return {name: visible(value) for name, value in values.items()}


def _work_lines(health: TableHealth, now: int) -> Iterator[str]:
    for work in health.running[:_MOST_SHOWN]:
        batch = f" of batch {work.batch}" if work.batch else ""
        doing = f", {work.job}{batch}" if work.job and work.job != work.command else batch
        who = f", process {work.pid} on {work.host}" if work.host else ""
        since = duration(max(0, now - work.began) / 1000)
        progress = f": {_progress_line(work.phase)}" if work.phase else ""
        yield f"{work.command}{doing}{progress}; for {since}{who}"
    if len(health.running) > _MOST_SHOWN:
        yield f"and {len(health.running) - _MOST_SHOWN} more"


def _progress_line(phase: PhaseUnderWay) -> str:
    """Returns a line about a phase, of its counts only the bytes."""
    received = {name: number for name, number in phase.counts.items() if name == "bytes"}
    return line(dataclasses.replace(as_phase(phase), counts=received))


def as_phase(phase: PhaseUnderWay) -> Phase:
    """Returns the phase of a heartbeat as one of this process, for lines about it."""
    slowest = (
        WaitingHost(host.host, host.pages, host.seconds, host.wait, host.active)
        for host in phase.slowest
    )
    is_fetch = bool(phase.active or phase.waiting or phase.slowest)
    hosts = HostActivity(phase.active, phase.waiting, tuple(slowest)) if is_fetch else None
    return Phase(
        phase.name, phase.unit, phase.total, phase.done, phase.counts, phase.elapsed,
        finished=False, hosts=hosts, round=phase.round,
    )  # fmt: skip


def _hosts_lines(health: TableHealth) -> Iterator[str]:
    for work in health.running[:_MOST_SHOWN]:
        hosts = as_phase(work.phase).hosts if work.phase else None
        if hosts is not None:
            yield ", ".join(one.removeprefix("hosts: ") for one in hosts_lines(hosts, 0.0))


def _no_hosts_line(health: TableHealth) -> str:
    fetches = [work for work in health.running if work.job == "fetch"]
    if not fetches:
        return "no fetch is seen"
    if any(work.phase is None for work in fetches):
        return "no progress of the fetch is written yet"
    return "not known: workers elsewhere write only how many pages they have"


def _failure_lines(health: TableHealth) -> list[str]:
    """Returns the last failed requests of what runs; if nothing runs, of what has failed."""
    works = health.running or ([health.last] if health.last else [])
    failures = sorted(failure for work in works for failure in work.failures)
    return [f"{_clock(one.time)} {one.reason} {one.url}" for one in failures[::-1][:_MOST_SHOWN]]


def _clock(time_ms: int) -> str:
    return time.strftime("%H:%M:%S", time.gmtime(time_ms / 1000))


def _last_line(health: TableHealth, now: int) -> str:
    last = health.last
    if last is None:
        return "nothing has ended yet"
    ended = f"{duration(max(0, now - last.ended) / 1000)} ago"
    if last.outcome == "well":
        return f"{last.command} ended well {ended}, as snapshot {last.snapshot}"
    return f"{last.command} {last.outcome} {ended}" + (f": {last.message}" if last.message else "")


def _urls_line(urls: UrlCounts | None) -> str:
    if urls is None:
        return "not counted"
    total = format_count(urls.total, "URLs")
    if urls.by_status is None:
        return f"{total}; not counted by status, see --most_counted"
    statuses = sorted(urls.by_status.items(), key=lambda item: -item[1])
    return ": ".join([total, *([", ".join(f"{n} {c:,}" for n, c in statuses)] if statuses else [])])


def _due_line(urls: UrlCounts | None) -> str:
    if urls is None or urls.due is None:
        return "not counted"
    return ", ".join(f"{number:,} {name.replace('_', ' ')}" for name, number in urls.due.items())


def _snapshot_line(facts: WatchedFacts) -> str:
    if not facts.snapshot:
        return "none yet"
    age = duration(max(0, facts.now - facts.committed) / 1000)
    return f"{facts.snapshot}, committed {age} ago by {facts.job or 'a job that cannot be read'}"
