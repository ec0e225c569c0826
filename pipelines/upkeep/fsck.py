"""fsck: finds damage of a table, and repairs it where that is possible.

::

    manifests ─ newest that can be read ─ lists ─ data files, each read as a whole ─▶ problems
                                                └ in Bigtable all rows, and the last commit
    intact data ─▶ a new snapshot (--repair)
"""

import dataclasses
import functools
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from rich import filesize

from ...io.batches.batches import batch_component
from ...io.snapshots.manifest import Manifest, newest_manifest, readable_manifests
from ...io.snapshots.operations import new_id
from ...io.storage.places import Folder
from ...io.table.opening import open_table
from ...io.table.web_table import WebTable
from ...io.tablets.file_lists import DataFile
from ...io.upkeep.batch_repair import check_batch_lists, with_rebuilt_batches
from ...io.upkeep.fsck import (
    HISTORY_PROBLEM,
    Problem,
    Rows,
    check_history,
    check_lists,
    check_manifests,
    file_problem,
    files_to_check,
    runs,
)
from ...io.upkeep.lost_files import LOST_FILE_PROBLEM, check_named_files, repair_named_files
from ...io.upkeep.operation_fsck import (
    OPERATION_PROBLEM,
    Leftovers,
    RepairedRecord,
    check_operations,
    left_over,
    repair_operations,
)
from ...io.upkeep.repair import Repair
from ...io.upkeep.row_checks import (
    CLOCK_PROBLEM,
    can_check,
    check_clock,
    check_rows,
    finish_commit,
    repair_clock,
    repair_table,
)
from ...policy.components.clocks import RightTimes
from ...policy.components.kinds import KINDS
from ...policy.schedules.schedule import ScheduleOptions
from ...web.base.clock import now_ms
from ...web.base.dataclass import dataclass
from ...web.base.options import option, shared_option
from ...web.base.progress import PROGRESS
from ...web.base.visible import visible_lines
from ...web.base.wording import format_count
from ..base.command import DONE, TABLE, Invocation, gives_record
from ..base.live import live_view
from ..launch.heartbeat import settle_failures

ARGUMENTS = (TABLE,)
DAMAGED = 3


@dataclass(frozen=True)
class Options:
    """Options of fsck."""

    quick: bool = option(
        False,
        "Check only the size and the end of each data file; do not read the rest, nor rows in "
        "Bigtable.",
    )
    repair: bool = option(
        False,
        "Make a new snapshot: rebuild lists from their files, or return to the newest snapshot "
        "with intact lists. Damaged data files stay: use rollback, or --drop. Nothing is deleted. "
        "In Bigtable, finish an interrupted commit.",
    )
    drop: bool = option(
        False,
        "With --repair: leave out damaged data files; pages whose file is lost are due again. In "
        "Bigtable, return damaged rows to an intact version, or delete them.",
    )
    max_fetch_interval: int = shared_option(ScheduleOptions, "max_fetch_interval")
    readers: int = option(4, "How many files, or ranges of rows, to read at a time.", minimum=1)

    def __post_init__(self) -> None:
        if self.drop and not self.repair:
            raise ValueError("--drop needs --repair")


@dataclass(frozen=True)
class CheckResult:
    """The result of a check.

    Attributes:
        snapshot: Number of the checked snapshot: the newest that can be read.
        problems: All defects.
        leftovers: Leftover files.
        files: Number of data files that were checked.
        rows: Result of the check of rows in Bigtable.
        unchecked: Components in rows that belong to a newer version, so that they are left alone.
    """

    snapshot: int
    problems: tuple[Problem, ...]
    leftovers: Leftovers
    files: int = 0
    rows: Rows = dataclasses.field(default_factory=Rows)
    unchecked: tuple[str, ...] = ()

    @property
    def of_newer_version(self) -> bool:
        """Whether a later version of nutbeam has made a snapshot."""
        return any(problem.newer and problem.kind == "manifest" for problem in self.problems)

    @property
    def damage(self) -> list[Problem]:
        """The problems that this version can repair: not those that only a newer one can judge."""
        return [p for p in self.problems if not p.newer and p.component not in self.unchecked]


@dataclass(frozen=True)
class Repairs:
    """All changes of a repair.

    Attributes:
        finished: Number of a snapshot in Bigtable whose changes are applied now.
        operations: Repaired records of operations.
        snapshot: Result of the repair by a new snapshot.
    """

    finished: int | None = None
    operations: list[RepairedRecord] = dataclasses.field(default_factory=list)
    snapshot: Repair | None = None


def run(invocation: Invocation) -> int:
    address, options, began = str(invocation.table), invocation.options, now_ms()
    table = open_table(address)
    if not table.begun_snapshot():
        newest_manifest(address)  # raises the error for a table that does not exist

    def look_live() -> CheckResult:
        with live_view(invocation.progress):
            return check_table(table, options)

    finished = finish_commit(table, options.drop) if options.repair else None
    check_result, repairs = look_live(), Repairs(finished)
    if options.repair and not check_result.of_newer_version:
        damaged = [
            problem for problem in check_result.problems if problem.kind == OPERATION_PROBLEM
        ]
        repairs = Repairs(finished, repair_operations(table, damaged, options.drop))
        if repairs.operations:
            check_result = look_live()
    if options.repair and check_result.problems:
        done = _repair(table, check_result, options)
        check_result = look_live()
        if done.manifest is not None:
            repairs = dataclasses.replace(repairs, snapshot=done)
    if repairs != Repairs() and not check_result.problems:
        settle_failures(table.files, began)
    if not gives_record(invocation, _record(check_result, repairs)):
        print(visible_lines(_lines(check_result, repairs, address, options)))
    return DAMAGED if check_result.problems else DONE


def _repair(table: WebTable, check_result: CheckResult, options: Options) -> Repair:
    """Makes a snapshot of intact files and rows; with ``drop`` one whose rows name no lost file; then
    one with corrected times.
    """
    done, operation = Repair(None), f"{new_id()}.fsck"
    others = (CLOCK_PROBLEM, HISTORY_PROBLEM, LOST_FILE_PROBLEM)
    if any(problem.kind not in others for problem in check_result.problems):
        drop: dict[str, frozenset[str]] = {}
        for problem in check_result.damage if options.drop else ():
            if problem.component and problem.kind not in ("list", CLOCK_PROBLEM):
                paths = drop.get(problem.component, frozenset())
                drop[problem.component] = paths | {problem.path}
        left_out = drop if options.drop else None
        done = repair_table(table, operation, check_result.snapshot, check_result.rows, left_out)
    if options.drop:
        done = _join_repairs(done, repair_named_files(str(table), f"{new_id()}.fsck"))
    if any(problem.kind == CLOCK_PROBLEM for problem in check_result.problems):
        right_at = functools.partial(_right_times, options)
        done = _join_repairs(done, repair_clock(str(table), f"{new_id()}.fsck", right_at))
    return done


def _join_repairs(first: Repair, second: Repair) -> Repair:
    """Returns the result of two repairs, of which the second one was made on top of the first."""
    if first.manifest is None or second.manifest is None:
        return second if first.manifest is None else first
    rows = {**first.rows, **second.rows}
    return dataclasses.replace(first, manifest=second.manifest, rows=rows)


def _right_times(options: Options, now: int) -> RightTimes:
    schedule = ScheduleOptions(max_fetch_interval=options.max_fetch_interval)
    return RightTimes(now, options=schedule)


def check_table(table: WebTable, options: Options) -> CheckResult:
    """Checks all manifests of a table, and the files and rows of the newest that can be read."""
    problems = [*check_manifests(table), *check_history(table), *check_operations(table)]
    check_result = CheckResult(table.latest_snapshot(), tuple(problems), Leftovers())
    if check_result.of_newer_version:
        return check_result  # only the newer version can determine its files
    manifest = next(readable_manifests(table), Manifest())
    check_result = CheckResult(manifest.snapshot, tuple(problems), left_over(table))
    if not can_check(table, manifest.snapshot):
        return check_result
    problems += check_batch_lists(table, manifest)
    manifest = with_rebuilt_batches(table, manifest)
    problems += check_lists(table, manifest)
    unchecked = tuple(table.unknown_rows(manifest.components))
    judged = {name: c for name, c in manifest.components.items() if name not in unchecked}
    files = [(name, file) for name, listed in files_to_check(table, judged) for file in listed]
    problems += _check_files(table, files, options)
    broken = {problem.path for problem in problems}
    rows = check_rows(table, manifest, broken, options.quick, options.readers)
    problems += rows.problems
    right = _right_times(options, now_ms(manifest.latest_time))
    problems += check_clock(table, manifest, right, options.quick)
    if not options.quick and "state" not in unchecked:
        problems += check_named_files(table, manifest)
    for batch, entry in manifest.unfinished.items():
        # A batch that was imported has none, and compact drops that of a batch after its update.
        path = batch_component(batch, "fetchlist")
        if entry.phase == "generated" and path not in manifest.components:
            problems.append(
                Problem("batch", path, "missing: a batch must have it before its fetch")
            )
    return dataclasses.replace(
        check_result, problems=tuple(problems), files=len(files), rows=rows, unchecked=unchecked
    )


def _check_files(
    table: Folder, files: list[tuple[str, DataFile]], options: Options
) -> list[Problem]:
    def check(named: tuple[str, DataFile]) -> Problem | None:
        problem = file_problem(table, *named, options.quick)
        PROGRESS.add()
        return problem

    PROGRESS.start("fsck", total=len(files), unit="files")
    with ThreadPoolExecutor(options.readers) as pool:
        problems = [problem for problem in pool.map(check, files) if problem]
    PROGRESS.finish()
    return problems


def _record(check_result: CheckResult, repairs: Repairs) -> dict[str, Any]:
    record: dict[str, Any] = {
        "snapshot": check_result.snapshot,
        "clean": not check_result.problems,
        "files": check_result.files,
        "problems": [dataclasses.asdict(problem) for problem in check_result.problems],
        "left": dataclasses.asdict(check_result.leftovers),
    }
    done = repairs.snapshot
    optional = {
        "rows": dict(check_result.rows.numbers),
        "unchecked": list(check_result.unchecked),
        "unfinished": check_result.rows.unfinished,
        "finished": repairs.finished,
        "operations": [dataclasses.asdict(one) for one in repairs.operations],
        "repaired": _repair_record(done, done.manifest) if done and done.manifest else None,
    }
    return record | {name: value for name, value in optional.items() if value not in (None, {}, [])}


def _repair_record(done: Repair, manifest: Manifest) -> dict[str, Any]:
    record: dict[str, Any] = {
        "snapshot": manifest.snapshot,
        "from": done.base,
        "rebuilt": list(done.rebuilt),
        "dropped": list(done.dropped),
        "lost": list(done.lost),
    }
    return record | ({"rows": dict(done.rows)} if done.rows else {})


def _lines(
    check_result: CheckResult, repairs: Repairs, address: str, options: Options
) -> Iterator[str]:
    yield from map(str, repairs.operations)
    if repairs.finished is not None:
        yield f"finished: snapshot {repairs.finished}, which was not wholly applied"
    done = repairs.snapshot
    if done is not None and done.manifest is not None:
        yield f"repaired: snapshot {done.manifest.snapshot}, made from snapshot {done.base}"
        yield from (f"  list rebuilt: {name}" for name in done.rebuilt)
        yield from (f"  left out: {path}" for path in done.dropped)
        for first, last in runs(done.lost):
            yield f"  lost: snapshot{f' {first}' if first == last else f's {first} to {last}'}"
        yield from (f"  rows: {name} {number:,}" for name, number in done.rows.items())
    yield from map(str, check_result.problems)
    yield from (
        f"{name}: belongs to a newer nutbeam, not checked" for name in check_result.unchecked
    )
    yield from (f"left over, harmless: {text}" for text in _left_lines(check_result.leftovers))
    if check_result.rows.unfinished is not None:
        yield (
            f"snapshot {check_result.rows.unfinished} is not wholly applied: the next job that changes "
            "the table does that, or --repair"
        )
    yield _conclusion(check_result, address, options)


def _left_lines(leftovers: Leftovers) -> Iterator[str]:
    if leftovers.orphans or leftovers.temporary:
        number = leftovers.orphans + leftovers.temporary
        yield f"{format_count(number, 'files')} in no snapshot, {filesize.decimal(leftovers.orphan_bytes)}"
    if leftovers.leases:
        yield f"{format_count(leftovers.leases, 'leases')} of fetches"
    if leftovers.unfinished:
        yield (
            f"{format_count(len(leftovers.unfinished), 'operations')} that began more than a day "
            f"ago and never committed, such as {leftovers.unfinished[0]}"
        )


def _conclusion(check_result: CheckResult, address: str, options: Options) -> str:
    if not check_result.problems:
        rows = "".join(
            f", {format_count(n, 'rows')} of {name}"
            for name, n in check_result.rows.numbers.items()
        )
        return f"snapshot {check_result.snapshot} is whole: {format_count(check_result.files, 'files')}{rows}"
    if check_result.of_newer_version:
        return "nothing was repaired: this version cannot recognize damage in a newer format"
    number = format_count(len(check_result.problems), "problems")
    if not check_result.damage:
        return f"{number}; upgrade nutbeam: only a newer version can judge that"
    if not options.repair:
        return f"{number}; nutbeam fsck {address} --repair repairs what it can"
    remaining_line = f"{number} {'is' if len(check_result.problems) == 1 else 'are'} left"
    if options.drop:
        return remaining_line
    # A rollback in Bigtable needs the rows changed since then, and these may be lost.
    in_files = all(map(open_table(address).in_files, KINDS))
    back = "go back with nutbeam rollback, " if in_files else ""
    return f"{remaining_line}; restore the files from a copy, {back}or leave them out with --drop"
