"""fsck: says what is wrong with a table, and repairs what can be repaired.

::

    manifests ─ newest that can be read ─ lists ─ data files, each read as a whole ─▶ problems
                                                └ in Bigtable all rows, and the last commit
    what is whole ─▶ a new snapshot (--repair)
"""

import dataclasses
import json
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from ...io.snapshots.manifest import Manifest, newest_manifest, readable_manifests
from ...io.snapshots.operations import new_id
from ...io.table.opening import open_table
from ...io.table.web_table import WebTable
from ...io.tablets.file_lists import DataFile, load_files
from ...io.upkeep.clock_repair import KIND as CLOCK
from ...io.upkeep.clock_repair import check_clock, repair_clock
from ...io.upkeep.fsck import (
    Problem,
    Rows,
    check_file,
    check_lists,
    check_manifests,
    list_problem,
    runs,
)
from ...io.upkeep.left_over import Left, left_over
from ...io.upkeep.operation_fsck import KIND as OPERATION
from ...io.upkeep.operation_fsck import Mended, check_operations, mend_operations
from ...io.upkeep.repair import Repair
from ...io.upkeep.table_checks import (
    can_check_rows,
    check_rows,
    finish_commit,
    repair_table,
)
from ...policy.kinds import kinds_in_tablets
from ...policy.schedule import ScheduleOptions
from ...web.base.clock import now_ms
from ...web.base.options import also, option
from ...web.base.progress import PROGRESS
from ...web.base.visible import visible_lines
from ..command_line.command import DONE, TABLE, Invocation
from ..command_line.live import live_view
from ..views.history import in_bytes

ARGUMENTS = (TABLE,)
DAMAGED = 3


@dataclasses.dataclass(frozen=True)
class Options:
    """Options of fsck."""

    quick: bool = option(
        False,
        "Look at sizes and ends of data files only, do not read them, nor rows in Bigtable.",
        group="fsck",
    )
    repair: bool = option(
        False,
        "Make a new snapshot of what is whole: lists made anew from their files, "
        "or the newest snapshot that is whole. Nothing is deleted. In Bigtable, finish a commit "
        "that was cut off.",
        group="fsck",
    )
    drop: bool = option(
        False,
        "With --repair: leave out the data files that are broken. In Bigtable, bring damaged rows "
        "back to a version that is whole, or delete them.",
        group="fsck",
    )
    max_fetch_interval: int = also(ScheduleOptions, "max_fetch_interval")
    threads: int = option(
        4, "How many files, or ranges of rows, to read at a time.", minimum=1, group="fsck"
    )

    def __post_init__(self) -> None:
        if self.drop and not self.repair:
            raise ValueError("--drop needs --repair")


@dataclasses.dataclass(frozen=True)
class Findings:
    """What was found.

    Attributes:
        snapshot: Number of the snapshot that was looked at: the newest that can be read.
        problems: What is wrong.
        left: What lies about.
        files: How many data files were looked at.
        rows: What was found in Bigtable.
    """

    snapshot: int
    problems: tuple[Problem, ...]
    left: Left
    files: int
    rows: Rows = dataclasses.field(default_factory=Rows)


def run(invocation: Invocation) -> int:
    table, options = str(invocation.table), invocation.options
    root = open_table(table)
    if not root.begun_snapshot():
        newest_manifest(table)  # says that there is none
    finished = finish_commit(root, options.drop) if options.repair else None
    with live_view(invocation.progress):
        found = look(root, options)
    mended = _mend_operations(root, found, options)
    if mended:
        with live_view(invocation.progress):
            found = look(root, options)
    done = None
    if options.repair and found.problems:
        done = _repair(table, found, options) if _damage(found) else None
        clock = any(problem.kind == CLOCK for problem in found.problems)
        done = _repair_clock(table, options, done) if clock else done
        with live_view(invocation.progress):
            found, before = look(root, options), found
        if done and done.manifest is None and found.problems == before.problems:
            done = None
    if invocation.format == "json":
        print(json.dumps(_record(found, done, finished, mended)))
    else:
        lines = [*map(str, mended), *_lines(found, done, finished, table, options)]
        print(visible_lines(lines))
    return DAMAGED if found.problems else DONE


def _mend_operations(root: WebTable, found: Findings, options: Options) -> list[Mended]:
    damaged = [problem for problem in found.problems if problem.kind == OPERATION]
    mends = options.repair and not _is_newer(found.problems)
    return mend_operations(root, damaged, options.drop) if mends else []


def _is_newer(problems: Iterable[Problem]) -> bool:
    """Returns whether a later version has made a snapshot."""
    return any(problem.newer and problem.kind == "manifest" for problem in problems)


def _repair(table: str, found: Findings, options: Options) -> Repair:
    root, operation = open_table(table), f"{new_id()}.fsck"
    drop: dict[str, frozenset[str]] = {}
    for problem in found.problems if options.drop else ():
        if problem.component and problem.kind not in ("list", CLOCK):
            known = drop.get(problem.component, frozenset())
            drop[problem.component] = known | {problem.path}
    left_out = drop if options.drop else None
    return repair_table(root, operation, found.snapshot, found.rows, left_out)


def _damage(found: Findings) -> bool:
    return any(problem.kind != CLOCK for problem in found.problems)


def _repair_clock(table: str, options: Options, done: Repair | None) -> Repair:
    """Sets times right, and returns what was done, together with what was done before."""
    made = repair_clock(table, f"{new_id()}.fsck", _schedule(options))
    if done is None or done.manifest is None:
        return made
    return dataclasses.replace(done, manifest=made.manifest, rows={**done.rows, **made.rows})


def _schedule(options: Options) -> ScheduleOptions:
    return ScheduleOptions(max_fetch_interval=options.max_fetch_interval)


def look(root: WebTable, options: Options) -> Findings:
    """Looks at a table: at its manifests, and at all of the newest that can be read."""
    problems, newest = check_manifests(root) + check_operations(root), root.latest_snapshot()
    if _is_newer(problems):
        # What belongs together, and what is left over, only the newer version can say.
        return Findings(newest, tuple(problems), Left(), 0)
    manifest = next(readable_manifests(root), Manifest())
    if not can_check_rows(root, manifest.snapshot):
        return Findings(manifest.snapshot, tuple(problems), left_over(root), 0)
    problems += check_lists(root, manifest)
    files = list(_files(root, manifest))
    PROGRESS.start("fsck", total=len(files), unit="files")
    with ThreadPoolExecutor(options.threads) as pool:
        for problem in pool.map(lambda of: _check(root, of[0], of[1], options.quick), files):
            problems += [problem] if problem else []
    PROGRESS.finish()
    broken = {problem.path for problem in problems}
    rows = check_rows(root, manifest, broken, options.quick, options.threads)
    problems += rows.problems
    now = now_ms(manifest.latest_time)
    problems += check_clock(root, manifest, _schedule(options), now, options.quick)
    for batch, known_batch in manifest.batches.items():
        # Of one that is updated compact drops what nobody needs.
        needed = known_batch.phase != "updated"
        if needed and f"batches/{batch}/fetchlist" not in manifest.components:
            path = f"batches/{batch}/fetchlist"
            problems.append(Problem("batch", path, "the batch has no fetch list"))
    return Findings(manifest.snapshot, tuple(problems), left_over(root), len(files), rows)


def _check(root: WebTable, component: str, file: DataFile, quick: bool) -> Problem | None:
    problem = check_file(root, component, file, quick)
    PROGRESS.add()
    return problem


def _files(root: WebTable, manifest: Manifest) -> Iterator[tuple[str, DataFile]]:
    for name, component in manifest.components.items():
        if root.in_files(name) and not list_problem(root, component):
            yield from ((name, file) for file in load_files(root, component))


def _record(
    found: Findings, done: Repair | None, finished: int | None, mended: list[Mended]
) -> dict[str, Any]:
    record: dict[str, Any] = {
        "snapshot": found.snapshot,
        "clean": not found.problems,
        "files": found.files,
        "problems": [dataclasses.asdict(problem) for problem in found.problems],
        "left": dataclasses.asdict(found.left),
    }
    if found.rows.numbers:
        record["rows"] = dict(found.rows.numbers)
    if found.rows.unfinished is not None:
        record["unfinished"] = found.rows.unfinished
    if finished is not None:
        record["finished"] = finished
    if mended:
        record["operations"] = [dataclasses.asdict(one) for one in mended]
    if done is not None and done.manifest is not None:
        record["repaired"] = {
            "snapshot": done.manifest.snapshot,
            "from": done.base,
            "rebuilt": list(done.rebuilt),
            "dropped": list(done.dropped),
            "lost": list(done.lost),
        }
        if done.rows:
            record["repaired"]["rows"] = dict(done.rows)
    return record


def _lines(
    found: Findings, done: Repair | None, finished: int | None, table: str, options: Options
) -> Iterator[str]:
    if finished is not None:
        yield f"finished: snapshot {finished}, which was not wholly applied"
    if done is not None and done.manifest is not None:
        yield f"repaired: snapshot {done.manifest.snapshot}, made from snapshot {done.base}"
        yield from (f"  list made anew: {name}" for name in done.rebuilt)
        yield from (f"  left out: {path}" for path in done.dropped)
        for first, last in runs(done.lost):
            yield f"  lost: snapshot{f' {first}' if first == last else f's {first} to {last}'}"
        yield from (f"  rows: {name} {number:,}" for name, number in done.rows.items())
    yield from (str(problem) for problem in found.problems)
    left = found.left
    if left.orphans or left.temporary:
        yield (
            f"left over, harmless: {left.orphans + left.temporary:,} files in no snapshot, "
            f"{in_bytes(left.orphan_bytes)}"
        )
    if left.leases:
        yield f"left over, harmless: {left.leases:,} leases of fetches"
    if left.unfinished:
        yield (
            f"left over, harmless: {len(left.unfinished):,} operations that began more than a day "
            f"ago and never committed, such as {left.unfinished[0]}"
        )
    if found.rows.unfinished is not None:
        yield (
            f"snapshot {found.rows.unfinished} is not wholly applied: the next job that changes "
            "the table does that, or --repair"
        )
    if not found.problems:
        rows = "".join(f", {n:,} rows of {name}" for name, n in found.rows.numbers.items())
        yield f"snapshot {found.snapshot} is whole: {found.files:,} files{rows}"
    elif _is_newer(found.problems):
        yield "nothing was repaired: this version cannot tell what is damage"
    elif not options.repair:
        yield f"{len(found.problems):,} problems; nutbeam fsck {table} --repair mends what can be"
    elif not options.drop:
        # Bigtable goes back by what was changed since, and that may be what is lost.
        in_files = all(map(open_table(table).in_files, kinds_in_tablets()))
        back = "go back with nutbeam rollback, " if in_files else ""
        yield (
            f"{len(found.problems):,} problems are left; restore the files from a copy, {back}"
            "or leave them out with --drop"
        )
    else:
        yield f"{len(found.problems):,} problems are left"
