"""doctor: looks at the machine, the network, the crawler's identity and a table, and says what is wrong.

Each look has its own thread and a time limit, so the command ends in a few seconds, without a network and
without a table, too. It changes nothing.
"""

import functools
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from ...io.storage.least_free import LeastFreeOptions
from ...transforms.parsing import PoolOptions
from ...web.base.dataclass import dataclass
from ...web.base.options import option, seconds, shared_option
from ...web.base.visible import visible_lines
from ...web.base.wording import format_count
from ...web.engine.pace import FetchOptions
from ...web.exchange.http_options import HttpOptions
from ..base.command import DONE, Argument, Invocation, gives_record
from ..launch.launch import LaunchOptions
from .findings import Finding, FindingMark, Look, run_looks
from .machine_looks import (
    look_at_bytecode,
    look_at_clock,
    look_at_memory,
    look_at_open_files,
    look_at_scratch,
)
from .network_looks import (
    look_at_certificates,
    look_at_identity,
    look_at_names,
    look_at_proxy,
)
from .table_looks import (
    SeenTable,
    look_at_damage,
    look_at_holds,
    look_at_place,
    look_at_runner,
    look_at_table_clock,
    look_at_table_disk,
    look_at_upkeep,
    look_at_waiting,
)

ARGUMENTS = (
    Argument("table", "Folder of the web table, or its address; without it only the rest.", "?"),
)
SOMETHING_WRONG = 3


@dataclass(frozen=True)
class Options(FetchOptions, HttpOptions, LaunchOptions, LeastFreeOptions):
    """Options of doctor: those of the crawl that it looks at."""

    GROUP = "doctor"

    parse_processes: int = shared_option(PoolOptions, "parse_processes")
    look_seconds: float = seconds(5.0, "Longest time of all looks together.", minimum=0.1)
    all_findings: bool = option(True, "Show what is well, too.")


def run(invocation: Invocation) -> int:
    options = invocation.options
    findings = _without_repeats(run_looks(list(_looks(invocation)), options.look_seconds))
    code = SOMETHING_WRONG if any(one.mark is FindingMark.WRONG for one in findings) else DONE
    numbers = {mark.value: sum(one.mark is mark for one in findings) for mark in FindingMark}
    shown = [one for one in findings if options.all_findings or one.mark is not FindingMark.OK]
    record = {"table": invocation.table, "exit_code": code, "marks": numbers,
              "findings": [_record(one) for one in shown]}  # fmt: skip
    if not gives_record(invocation, record):
        print(visible_lines([*map(_line, shown), _conclusion(numbers)]))
    return code


def _looks(invocation: Invocation) -> Iterator[Look]:
    options: Any = invocation.options
    limit_s = options.look_seconds
    yield Look("memory", functools.partial(look_at_memory, options.parse_processes))
    yield Look("TMPDIR", look_at_scratch)
    yield Look("open files", functools.partial(look_at_open_files, options.threads))
    yield Look("clock", look_at_clock)
    yield Look("bytecode", look_at_bytecode)
    yield Look("DNS", functools.partial(look_at_names, options))
    yield Look("proxy", functools.partial(look_at_proxy, options, limit_s))
    yield Look("TLS roots", functools.partial(look_at_certificates, options))
    yield Look("identity", functools.partial(look_at_identity, options, 0.4 * limit_s))
    if invocation.table is not None:
        yield from _looks_at_table(invocation, limit_s)


def _looks_at_table(invocation: Invocation, limit_s: float) -> Iterator[Look]:
    options: Any = invocation.options
    seen = SeenTable(str(invocation.table))
    yield Look("table", functools.partial(look_at_place, seen))
    yield Look("disk", functools.partial(look_at_table_disk, seen, options.least_free))
    words: Sequence[str] = invocation.beam_args
    yield Look("runner", functools.partial(look_at_runner, seen.address, options, words))
    yield Look("damage", functools.partial(look_at_damage, seen, limit_s))
    yield Look("clock of the table", functools.partial(look_at_table_clock, seen))
    yield Look("batches", functools.partial(look_at_waiting, seen))
    yield Look("holds", functools.partial(look_at_holds, seen))
    yield Look("runs", functools.partial(look_at_upkeep, seen))


def _without_repeats(findings: Iterable[Finding]) -> list[Finding]:
    """Returns findings without those that say what an earlier one says, as all looks at a lost table do."""
    by_text: dict[str, Finding] = {}
    for finding in findings:
        by_text.setdefault(finding.text, finding)
    return list(by_text.values())


def _record(finding: Finding) -> dict[str, str]:
    return {**finding._asdict(), "mark": finding.mark.value}


def _line(finding: Finding) -> str:
    """Returns the line of a finding.

    >>> _line(Finding("disk", FindingMark.WRONG, "1 MB free", "make room"))
    'wrong    disk: 1 MB free -> make room'
    """
    cure = f" -> {finding.cure}" if finding.cure else ""
    return f"{finding.mark.value:<8} {finding.subject}: {finding.text}{cure}"


def _conclusion(numbers: dict[str, int]) -> str:
    wrong, warnings = numbers[FindingMark.WRONG.value], numbers[FindingMark.WARNING.value]
    if not wrong and not warnings:
        return "all is well"
    return f"{format_count(wrong, 'faults')}, {format_count(warnings, 'warnings')}"
