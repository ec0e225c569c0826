"""What a crawl says at its end: what was found, how fast, and what was left out."""

import json
import sys
from collections import Counter
from collections.abc import Sequence
from typing import Any

from ...io.snapshots.manifest import Manifest
from ...policy.rule_counts import capped, is_of_rule
from ...web.base.progress import PROGRESS
from ...web.base.terminal import unwrapped
from ..command_line.command import Invocation
from ..launch.launch import LaunchOptions
from .readdb import look

BEST = 5


def print_summary(invocation: Invocation, made: Sequence[Manifest]) -> None:
    """Prints the end of a crawl: JSON for scripts, tables for people."""
    # In this process: it sees the table, and a cluster would take its time to start.
    record = summary_of(str(invocation.table), made, invocation.options)
    if invocation.format == "json":
        print(json.dumps(record))
    else:
        _print_tables(record, str(invocation.table))


def summary_of(table: str, made: Sequence[Manifest], options: LaunchOptions) -> dict[str, Any]:
    """Returns what a crawl found as one record.

    Args:
        table: Address of the table.
        made: The snapshots that its jobs made.
        options: How to launch.
    """
    total: Counter[str] = Counter()
    for manifest in made:
        total.update(manifest.counts)
    counts = Counter(capped(total))
    phases = PROGRESS.snapshot().by_phase()
    known, best = look(table, options, (), BEST)
    return {
        "rounds": sum(manifest.job == "dedup" for manifest in made),
        "urls": known["total_urls"],
        "status": known["status"],
        "fetched": counts["pages"],
        "parsed": counts["parsed"],
        "not_fetched": _named(counts, "not_fetched/"),
        "dropped": _named(counts, "dropped/"),
        "refused_by": {n: c for n, c in _named(counts, "").items() if is_of_rule(n)},
        "not_parsed": _named(counts, "failed/") | _named(counts, "skipped/"),
        "no_parser": _named(counts, "no_parser/"),
        "phases": {
            name: {"done": p.done, "unit": p.unit, "seconds": round(p.elapsed, 3),
                   "per_second": round(p.rate, 1)}
            for name, p in phases.items()
        },
        "best": best,
    }  # fmt: skip


def _named(counts: Counter[str], prefix: str) -> dict[str, int]:
    found = {n.removeprefix(prefix): c for n, c in counts.items() if n.startswith(prefix)}
    return dict(sorted(found.items(), key=lambda item: -item[1]))


def _print_tables(record: dict[str, Any], table: str) -> None:
    from rich.table import Table

    from ..command_line.console import VisibleConsole

    console = VisibleConsole(sys.stdout)
    parts: list[Any] = []

    def show(title: str, heads: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
        if not rows:
            return
        shown = Table(title=title, title_justify="left", title_style="bold")
        for at, head in enumerate(heads):
            shown.add_column(head, justify="left" if at == 0 else "right", overflow="fold")
        for row in rows:
            shown.add_row(*row)
        parts.append(shown)

    show("URLs by status", ("status", "URLs"),
         [(name, f"{n:,}") for name, n in record["status"].items()])  # fmt: skip
    show("Speed", ("phase", "done", "seconds", "per second"),
         [(name, f"{p['done']:,} {p['unit']}", f"{p['seconds']:.2f}", f"{p['per_second']:,.0f}")
          for name, p in record["phases"].items()])  # fmt: skip
    show("Not fetched", ("reason", "times"),
         [(n, f"{c:,}") for n, c in record["not_fetched"].items()])  # fmt: skip
    show("Links and pages left out", ("reason", "times"),
         [(n, f"{c:,}") for n, c in (record["dropped"] | record["not_parsed"]).items()])  # fmt: skip
    show("URLs refused by rule", ("rule", "times"),
         [(n, f"{c:,}") for n, c in record["refused_by"].items()])  # fmt: skip
    show("Types without a parser", ("type", "pages"),
         [(n, f"{c:,}") for n, c in record["no_parser"].items()])  # fmt: skip
    show(f"Best {BEST} by score", ("URL", "score"),
         [(page["url"], f"{page['score']:.3g}") for page in record["best"]])  # fmt: skip
    rounds = f"{record['rounds']} round{'s' if record['rounds'] != 1 else ''}"
    parts.append(f"{record['fetched']:,} requests in {rounds}; the table is in {table}")
    # At once, and not by rich: it ends the process where nobody reads any more.
    with console.capture() as captured:
        console.print(*parts, sep="\n")
    print(captured.get(), end="", file=unwrapped(sys.stdout))
