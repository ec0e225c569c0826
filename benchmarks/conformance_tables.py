"""Tables of kept results, in Markdown, for docs/comparison.md."""

import pathlib
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import conformance_sites as sites
from rivals import NOT_RUN, RIVALS

PAGE = pathlib.Path(__file__).parent.parent / "docs" / "comparison.md"
BLOCK = re.compile(r"(?<=<!-- benchmarks/conformance.py -->\n).*(?=<!-- end -->)", re.DOTALL)
RULES_HEAD = """
### robots.txt, rule by rule

Forbidden URLs requested / allowed URLs not requested; an empty cell is what RFC 9309 asks for.
"""
Result = Mapping[str, Any]
Results = Mapping[str, Mapping[str, Result]]


def tables(results: Results) -> str:
    """Returns the tables: what was counted, robots.txt by rule, speed, settings, what was not run.

    Args:
        results: What each crawler did, by its name and the scenario.
    """
    blocks = [
        "### What the servers counted\n",
        _table(results, {label: row for label, row in ROWS.items() if row[0] != "speed"}),
        RULES_HEAD,
        _table(results, _rule_rows()),
    ]
    if any("speed" in each for each in results.values()):
        speed = {label: row for label, row in ROWS.items() if row[0] == "speed"}
        blocks += ["\n### The documentation site\n", _table(results, speed)]
    blocks += [
        "\n### Versions and settings\n",
        _settings(results),
        "\n### Not run\n",
        _not_run(results),
    ]
    return "\n".join(blocks) + "\n"


def write_page(page: pathlib.Path, text: str) -> None:
    """Replaces the tables in a page."""
    page.write_text(BLOCK.sub(lambda _: f"\n{text}\n", page.read_text()))


def _of(tally: Sequence[int]) -> str:
    return f"{tally[0]} of {tally[1]}"


def _not_done(tally: Sequence[int]) -> str:
    return f"{tally[1] - tally[0]} of {tally[1]}"


def _sum(result: Result, place: int) -> tuple[int, int]:
    pairs = [pair[place] for pair in result["rules"].values()]
    return sum(number for number, _ in pairs), sum(most for _, most in pairs)


def _memory(result: Result) -> str:
    peak = result["used"]["peak"] / 1e6
    return f"over {peak:,.0f}, ended" if result["used"]["end"] == "memory" else f"{peak:,.0f}"


def _seconds(result: Result) -> str:
    end = {"time": ", ended", "memory": ", ended", "by itself": ""}
    return f"{result['used']['seconds']:.0f}{end.get(result['used']['end'], ', crashed')}"


def _while_busy(result: Result, place: int) -> str:
    reached = result["pages"][place] > sites.FIRST_BUSY
    return str(result["after"][place]) if reached else "not reached"


def _trapped(result: Result) -> str:
    ends = {"by itself": "", "killed": "over "}
    return f"{ends.get(result['used']['end'], 'not ended: ')}{result['urls']:,}"


# Label: scenario, and the text of a cell.
Rows = dict[str, tuple[str, Callable[[Result], str]]]
ROWS: Rows = {
    "gaps shorter than the delay of 1 s": ("delays", lambda r: _of(r["gaps"])),
    "the shortest of these gaps, s": ("delays", lambda r: f"{r['shortest']:.2f}"),
    "gaps shorter than a `Crawl-delay` of 3 s": ("delays", lambda r: _of(r["crawl_delay"])),
    "forbidden URLs requested": ("robots", lambda r: _of(_sum(r, 0))),
    "allowed URLs not requested": ("robots", lambda r: _not_done(_sum(r, 1))),
    "requests in the minute after 429 with `Retry-After: 60`": (
        "busy",
        lambda r: _while_busy(r, 0),
    ),
    "the same after 503 with a date": ("busy", lambda r: _while_busy(r, 1)),
    "connections to private addresses": ("private", lambda r: str(r["connections"])),
    f"reached by {len(sites.SPELLINGS)} spellings in links": ("private", lambda r: _of(r["link"])),
    f"reached by {len(sites.REDIRECTED)} redirects": ("private", lambda r: _of(r["redirect"])),
    "bombs: peak memory, MB": ("bombs", _memory),
    "bombs: seconds": ("bombs", _seconds),
    "bombs: honest pages not requested": ("bombs", lambda r: _not_done(r["honest"])),
    "endless answers: peak memory, MB": ("endless", _memory),
    "endless answers: seconds": ("endless", _seconds),
    "endless answers: honest pages not requested": ("endless", lambda r: _not_done(r["honest"])),
    "URLs of a calendar without an end": ("trap", _trapped),
    f"pages lost after {sites.KILLS} kills": ("kills", lambda r: _of(r["lost"])),
    f"pages requested again after {sites.KILLS} kills": ("kills", lambda r: str(r["repeated"])),
    "pages": ("speed", lambda r: f"{r['pages']:,}"),
    "pages/s": ("speed", lambda r: f"{r['pages'] / r['used']['seconds']:.0f}"),
    "seconds": ("speed", _seconds),
    "CPU s": ("speed", lambda r: f"{r['used']['cpu']:.1f}"),
    "peak memory, MB": ("speed", _memory),
    "load of the machine at the end": ("speed", lambda r: f"{r['load']:.1f}"),
}


def _rule_rows() -> Rows:
    rules = dict(sites.RULES) | {sites.RESET_HOST.removesuffix(".example.com"): sites.RESET_RULES}
    return {
        rule.about: ("robots", lambda r, name=name: _rule_cell(r["rules"][name]))
        for name, rule in rules.items()
    }


def _rule_cell(pair: Sequence[Sequence[int]]) -> str:
    (forbidden, _), (allowed, most) = pair
    return f"{forbidden} / {most - allowed}" if forbidden or allowed < most else ""


def _table(results: Results, rows: Rows) -> str:
    lines = [["", *results], ["---"] * (1 + len(results))]
    for label, (scenario, cell) in rows.items():
        cells = [
            cell(each[scenario]) if scenario in each else "not run" for each in results.values()
        ]
        lines.append([label, *cells])
    return _lines(lines)


def _lines(rows: Iterable[Sequence[str]]) -> str:
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


def _settings(results: Results) -> str:
    lines = [["crawler", "version", "settings"], ["---"] * 3]
    lines += [[name, RIVALS[name].version or "this one", RIVALS[name].settings] for name in results]
    return _lines(lines)


def _not_run(results: Results) -> str:
    lines = [f"- {name}: {why}." for name, why in NOT_RUN.items()]
    lines += [
        f"- {name} {rival.version}: {rival.why_not() or rival.unbuilt}."
        for name, rival in RIVALS.items()
        if name not in results
    ]
    return "\n".join(lines)
