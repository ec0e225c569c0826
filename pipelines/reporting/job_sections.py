"""The sections of a report about jobs as HTML: rounds, their speed, the tails of fetches."""

from collections.abc import Sequence

from ...policy.reporting.crawl_figures import CrawlFigures, RoundFigures
from ...policy.reporting.job_figures import PHASE_ORDER
from ..base.live import duration
from ..base.loopback_server import shown
from .charts import Chart, titled_chart
from .fragments import Cell, foreign, side_by_side, table, time_text

_MOST_ROUNDS = 60
# Series and their colours: green, blue, orange-red.
_ROUND_SERIES = {"fetched": 2, "redirected": 0, "failed": 1}


def rounds_section(figures: CrawlFigures, end: str) -> str:
    """Returns what each round did, and how the table grew.

    Args:
        figures: The crawl.
        end: End of captions.
    """
    rounds, labels = _newest_rounds(figures)
    numbers = {name: [getattr(one, name) for one in rounds] for name in _ROUND_SERIES}
    colors = tuple(_ROUND_SERIES.values())
    sizes = {"URLs": [one.urls for one in rounds]}
    rows: list[Sequence[Cell]] = [
        (
            label,
            time_text(one.time),
            one.chosen,
            one.fetched,
            one.redirected,
            one.failed,
            one.added,
            one.urls,
        )
        for label, one in zip(labels, rounds, strict=True)
    ]
    heads = (
        "round",
        "began (UTC)",
        "chosen",
        "fetched",
        "redirected",
        "failed",
        "new URLs",
        "URLs after it",
    )
    cut = (
        f"the newest {len(rounds)} of {len(figures.rounds):,} rounds"
        if len(rounds) < len(figures.rounds)
        else "rounds"
    )
    return side_by_side(
        titled_chart(Chart("stacked", f"Pages by round{end}", labels, numbers, "pages", colors)),
        titled_chart(
            Chart("lines", f"URLs in the table after each round{end}", labels, sizes, "URLs")
        ),
    ) + table(f"The {cut}{end}", heads, reversed(rows))


def speed_section(figures: CrawlFigures, end: str) -> str:
    """Returns how long phases took, and what held fetches up at their ends; arguments as for ``rounds_section``."""
    rounds, labels = _newest_rounds(figures)
    phases = [name for name in PHASE_ORDER if any(name in one.seconds for one in rounds)]
    seconds = {name: [one.seconds.get(name) for one in rounds] for name in phases}
    chart = titled_chart(Chart("stacked", f"Seconds by phase and round{end}", labels, seconds, "s"))
    return side_by_side(chart, _phase_table(figures, end)) + _tail_table(figures, end)


def _newest_rounds(figures: CrawlFigures) -> tuple[Sequence[RoundFigures], list[str]]:
    """Returns the rounds that are shown, and their numbers, which begin at 1."""
    rounds = figures.rounds[-_MOST_ROUNDS:]
    first = len(figures.rounds) - len(rounds) + 1
    return rounds, [str(number) for number in range(first, len(figures.rounds) + 1)]


def _phase_table(figures: CrawlFigures, end: str) -> str:
    rows: list[Sequence[Cell]] = []
    names = dict.fromkeys((*PHASE_ORDER, *(name for one in figures.rounds for name in one.seconds)))
    for name in names:
        seconds = sum(one.seconds.get(name, 0.0) for one in figures.rounds)
        done = sum(one.done.get(name, 0) for one in figures.rounds if name in one.seconds)
        if seconds:
            rate = f"{done / seconds:,.1f}" if done else "-"
            rows.append((name, done or None, duration(seconds), rate))
    caption = f"Speed by phase, over the rounds whose snapshots are kept{end}"
    return table(caption, ("phase", "done", "time", "per second"), rows)


def _tail_table(figures: CrawlFigures, end: str) -> str:
    rows: list[Sequence[Cell]] = [
        (
            shown(one.batch), one.requests, duration(one.seconds),
            f"{one.requests / one.seconds:,.1f}" if one.seconds else "-", duration(one.tail_seconds),
            ", ".join(f"{foreign(host)} ({number:,})" for host, number in one.tail_hosts) or "-",
        )
        for one in reversed(figures.fetches)
    ]  # fmt: skip
    heads = (
        "batch",
        "requests",
        "time",
        "per second",
        "wait for the last 5 % of answers",
        "hosts of these answers",
    )
    return table(f"Fetches, and their tails{end}", heads, rows)
