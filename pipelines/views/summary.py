"""Makes the summary at the end of a crawl: results, speed, and dropped URLs by reason."""

import json
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

from ...io.snapshots.manifest import Manifest
from ...policy.rule_counts import capped, is_of_rule
from ...web.base.progress import PROGRESS
from ...web.base.terminal import unwrapped
from ..command_line.command import Invocation
from ..launch.launch import LaunchOptions
from .readdb import read_statistics

BEST = 5


def print_summary(invocation: Invocation, made: Sequence[Manifest]) -> None:
    """Prints the summary of a crawl as JSON for scripts, or as readable tables."""
    # Computed in this process, because a job on a cluster would take long to start.
    record = summary_of(str(invocation.table), made, invocation.options)
    if invocation.format == "json":
        print(json.dumps(record))
    else:
        _print_tables(record, str(invocation.table))


def summary_of(table: str, made: Sequence[Manifest], options: LaunchOptions) -> dict[str, Any]:
    """Returns the results of a crawl as one record.

    Args:
        table: Address of the table.
        made: The snapshots that its jobs made.
        options: Options of the launch.
    """
    total: Counter[str] = Counter()
    for manifest in made:
        total.update(manifest.counts)
    counts = Counter(capped(total))
    phases = PROGRESS.snapshot().by_phase()
    known, best = read_statistics(table, options, (), BEST)
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
    from ..command_line.console import VisibleConsole

    rounds = f"{record['rounds']} round{'s' if record['rounds'] != 1 else ''}"
    last = f"{record['fetched']:,} requests in {rounds}; the table is in {table}"
    console = VisibleConsole(sys.stdout)
    # In one write, and not by rich, which ends the process if the reader has closed the stream.
    with console.capture() as captured:
        console.print(*_tables(record), last, sep="\n")
    print(captured.get(), end="", file=unwrapped(sys.stdout))


def _tables(record: dict[str, Any]) -> Iterator[Any]:
    from rich.table import Column, Table

    phases = [
        (name, f"{p['done']:,} {p['unit']}", f"{p['seconds']:.2f}", f"{p['per_second']:,.0f}")
        for name, p in record["phases"].items()
    ]
    best = [(page["url"], f"{page['score']:.3g}") for page in record["best"]]
    sections = (
        ("URLs by status", ("status", "URLs"), _texts(record["status"])),
        ("Speed", ("phase", "done", "seconds", "per second"), phases),
        ("Not fetched", ("reason", "times"), _texts(record["not_fetched"])),
        ("Links and pages left out", ("reason", "times"),
         _texts(record["dropped"] | record["not_parsed"])),
        ("URLs refused by rule", ("rule", "times"), _texts(record["refused_by"])),
        ("Types without a parser", ("type", "pages"), _texts(record["no_parser"])),
        (f"Best {BEST} by score", ("URL", "score"), best),
    )  # fmt: skip
    for title, (first, *heads), rows in sections:
        if rows:
            numbers = [Column(head, justify="right", overflow="fold") for head in heads]
            columns = [Column(first, overflow="fold"), *numbers]
            shown = Table(*columns, title=title, title_justify="left", title_style="bold")
            for row in rows:
                shown.add_row(*row)
            yield shown


def _texts(counts: dict[str, int]) -> list[tuple[str, str]]:
    return [(name, f"{number:,}") for name, number in counts.items()]
