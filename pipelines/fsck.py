"""fsck: says what is wrong with a table's files, and repairs what can be repaired.

::

    manifests ─ newest that can be read ─ lists ─ data files, each read as a whole ─▶ problems
    what is whole ─▶ a new snapshot (--repair)
"""

import dataclasses
import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from ..io.address import check_folder, open_table
from ..io.file_lists import DataFile, load_files
from ..io.fsck import (
    Left,
    Problem,
    check_file,
    check_lists,
    check_manifests,
    check_overlaps,
    check_runs,
    left_over,
    list_problem,
)
from ..io.manifest import Manifest, load_manifest, snapshots
from ..io.operations import new_id
from ..io.places import Place, place_of
from ..io.repair import Repair, repair
from ..io.tablets import TABLETS, tablets
from ..web.errors import UserError
from ..web.options import option
from ..web.progress import PROGRESS
from .command import DONE, TABLE, Invocation
from .history import in_bytes
from .live import live_view

ARGUMENTS = (TABLE,)
HELP = "Look whether the table's files are whole, and repair them"
DAMAGED = 3


@dataclasses.dataclass(frozen=True)
class Options:
    """Options of fsck."""

    quick: bool = option(
        False, "Look at sizes and ends of data files only, do not read them.", group="fsck"
    )
    repair: bool = option(
        False,
        "Make a new snapshot of what is whole: lists made anew from their files, "
        "or the newest snapshot that is whole. Nothing is deleted.",
        group="fsck",
    )
    drop: bool = option(
        False, "With --repair: leave out the data files that are broken.", group="fsck"
    )
    threads: int = option(4, "How many files to read at a time.", minimum=1, group="fsck")

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
    """

    snapshot: int
    problems: tuple[Problem, ...]
    left: Left
    files: int


def run(invocation: Invocation) -> int:
    table, options = str(invocation.table), invocation.options
    check_folder(table, "fsck")
    root = place_of(table)
    if not snapshots(root):
        open_table(table)  # says that there is none
    with live_view(invocation.progress):
        found = look(root, options)
    done = None
    if options.repair and found.problems:
        drop: dict[str, frozenset[str]] = {}
        for problem in found.problems if options.drop else ():
            if problem.component and problem.kind != "list":
                known = drop.get(problem.component, frozenset())
                drop[problem.component] = known | {problem.path}
        done = repair(table, f"{new_id()}.fsck", drop)
        with live_view(invocation.progress):
            found, before = look(root, options), found
        if done.manifest is None and found.problems == before.problems:
            done = None
    if invocation.format == "json":
        print(json.dumps(_record(found, done)))
    else:
        print("\n".join(_lines(found, done, table, options)))
    return DAMAGED if found.problems else DONE


def look(root: Place, options: Options) -> Findings:
    """Looks at a table: at its manifests, and at all files of the newest that can be read."""
    problems = check_manifests(root)
    manifest = _newest(root)
    problems += check_lists(root, manifest)
    files = list(_files(root, manifest))
    PROGRESS.start("fsck", total=len(files), unit="files")
    with ThreadPoolExecutor(options.threads) as pool:
        for problem in pool.map(lambda of: _check(root, of[0], of[1], options.quick), files):
            problems += [problem] if problem else []
    PROGRESS.finish()
    for name, component in manifest.components.items():
        if not list_problem(root, component):
            known = load_files(root, component)
            problems += check_overlaps(name, known)
            broken = {problem.path for problem in problems}
            for tablet in tablets(known) if name in TABLETS and not options.quick else ():
                if tablet.runs and not broken.intersection(tablet.paths):
                    problem = check_runs(root, name, tablet)
                    problems += [problem] if problem else []
    for batch, known_batch in manifest.batches.items():
        # Of one that is updated compact drops what nobody needs.
        needed = known_batch.phase != "updated"
        if needed and f"batches/{batch}/fetchlist" not in manifest.components:
            path = f"batches/{batch}/fetchlist"
            problems.append(Problem("batch", path, "the batch has no fetch list"))
    return Findings(manifest.snapshot, tuple(problems), left_over(root), len(files))


def _check(root: Place, component: str, file: DataFile, quick: bool) -> Problem | None:
    problem = check_file(root, component, file, quick)
    PROGRESS.add()
    return problem


def _newest(root: Place) -> Manifest:
    for number in reversed(snapshots(root)):
        try:
            return load_manifest(root, number)
        except UserError:
            continue
    return Manifest()


def _files(root: Place, manifest: Manifest) -> Iterator[tuple[str, DataFile]]:
    for name, component in manifest.components.items():
        if not list_problem(root, component):
            yield from ((name, file) for file in load_files(root, component))


def _record(found: Findings, done: Repair | None) -> dict[str, Any]:
    record: dict[str, Any] = {
        "snapshot": found.snapshot,
        "clean": not found.problems,
        "files": found.files,
        "problems": [dataclasses.asdict(problem) for problem in found.problems],
        "left": dataclasses.asdict(found.left),
    }
    if done is not None and done.manifest is not None:
        record["repaired"] = {
            "snapshot": done.manifest.snapshot,
            "from": done.base,
            "rebuilt": list(done.rebuilt),
            "dropped": list(done.dropped),
            "lost": list(done.lost),
        }
    return record


def _lines(found: Findings, done: Repair | None, table: str, options: Options) -> Iterator[str]:
    if done is not None and done.manifest is not None:
        yield f"repaired: snapshot {done.manifest.snapshot}, made from snapshot {done.base}"
        yield from (f"  list made anew: {name}" for name in done.rebuilt)
        yield from (f"  left out: {path}" for path in done.dropped)
        yield from (f"  lost: snapshot {number}" for number in done.lost)
    yield from (str(problem) for problem in found.problems)
    left = found.left
    if left.orphans or left.temporary:
        yield (
            f"left over, harmless: {left.orphans + left.temporary:,} files in no snapshot, "
            f"{in_bytes(left.orphan_bytes)}"
        )
    if left.leases:
        yield f"left over, harmless: {left.leases:,} leases of fetches"
    if not found.problems:
        yield f"snapshot {found.snapshot} is whole: {found.files:,} files"
    elif not options.repair:
        yield f"{len(found.problems):,} problems; nutbeam fsck {table} --repair mends what can be"
    elif not options.drop:
        yield (
            f"{len(found.problems):,} problems are left; restore the files from a copy, go back "
            "with nutbeam rollback, or leave them out with --drop"
        )
    else:
        yield f"{len(found.problems):,} problems are left"
