"""Looks at a table: damage, its clock, what waits, who holds it, and what compact would do."""

import time
from collections.abc import Iterator, Sequence

from rich import filesize

from ...io.snapshots.hold import HOLD
from ...io.snapshots.manifest import Manifest, load_manifest, newest_manifest
from ...io.storage.files import list_files
from ...io.storage.places import Found
from ...io.table.opening import open_table
from ...io.table.web_table import WebTable
from ...io.tablets.file_lists import load_files
from ...io.tablets.tablets import tablets
from ...io.upkeep.fsck import (
    Problem,
    check_history,
    check_lists,
    check_manifests,
    file_problem,
    files_to_check,
)
from ...io.upkeep.operation_fsck import check_operations
from ...io.upkeep.row_checks import check_clock
from ...io.upkeep.table_weight import weigh_files
from ...policy.components.clocks import RightTimes
from ...policy.components.kinds import components_in_tablets
from ...policy.estimating.disk_weights import weigh_components
from ...web.base.clock import now_ms
from ...web.base.wording import format_count
from ..launch.launch import LaunchOptions, preflight
from .findings import Finding, ok, warning, wrong
from .machine_looks import look_at_disk

_SHOWN = 3  # problems of a table
# Without a sign of life for this long, a lease or a hold is void, s.
_ALIVE_S = 60
_DAY_MS, _OLD_DAYS = 86_400_000, 7
# More runs than these for each tablet slow down reading.
_MANY_RUNS = 4


class SeenTable:
    """A table as the doctor sees it; it is opened when a look needs it, and written by none."""

    def __init__(self, address: str) -> None:
        self.address = address

    @property
    def table(self) -> WebTable:
        """The table."""
        return open_table(self.address)

    @property
    def manifest(self) -> Manifest:
        """Its newest snapshot."""
        return newest_manifest(self.address)


def look_at_damage(seen: SeenTable, limit_s: float) -> Iterator[Finding]:
    """Makes the quick checks of fsck, as many as the time allows."""
    end = time.monotonic() + 0.8 * limit_s
    table, manifest = seen.table, seen.manifest
    problems = [*check_manifests(table), *check_history(table), *check_operations(table)]
    problems += check_lists(table, manifest)
    files = [
        (name, file) for name, listed in files_to_check(table, manifest.components) for file in listed
    ]  # fmt: skip
    number = 0
    for name, file in files:
        problem = file_problem(table, name, file, quick=True)
        problems += [problem] if problem else []
        number += 1
        if time.monotonic() > end:
            break
    yield from _problem_findings(seen, problems)
    if number < len(files):
        text = f"only {number:,} of {format_count(len(files), 'files')} were looked at in the time"
        cure = f"--look_seconds gives more, and nutbeam fsck {seen.address} --quick checks all"
        yield warning("damage", text if problems else f"{text}; none is damaged", cure)
    elif not problems:
        whole = f"all {format_count(number, 'files')} have their size"
        yield ok("damage", f"snapshot {manifest.snapshot}: {whole}")


def _problem_findings(seen: SeenTable, problems: Sequence[Problem]) -> Iterator[Finding]:
    for problem in problems[:_SHOWN]:
        yield wrong("damage", str(problem), f"nutbeam fsck {seen.address}, then --repair")
    if len(problems) > _SHOWN:
        yield wrong("damage", f"{len(problems) - _SHOWN:,} more problems", "see the line before")


def look_at_table_clock(seen: SeenTable) -> Iterator[Finding]:
    """Compares the clock of this machine with the times in a table."""
    manifest = seen.manifest
    problems = list(check_clock(seen.table, manifest, RightTimes(now_ms()), quick=True))
    for problem in problems[:_SHOWN]:
        cure = f"set the clock right; nutbeam fsck {seen.address} --repair corrects the table"
        yield wrong("clock of the table", str(problem), cure)
    if not problems:
        yield ok("clock of the table", "no time of it is in the future")


def look_at_waiting(seen: SeenTable) -> Iterator[Finding]:
    """Looks at open batches, and whether somebody works on them."""
    manifest = seen.manifest
    files = list_files(seen.table / "batches")
    beats = [file for file in files if file.path.suffix == ".beat"]
    waiting = manifest.unfinished
    if not waiting:
        yield ok("batches", "none waits")
    for name, batch in list(waiting.items())[:_SHOWN]:
        age = (now_ms() - batch.created) / _DAY_MS
        text = f"batch {name} with {format_count(batch.urls, 'URLs')} is {batch.phase} for {age:.1f} days"
        own = [file for file in beats if f"/{name}/" in str(file.path)]
        if seconds := _seconds_since(own):
            text += f"; the last sign of life of a fetch is {seconds:,.0f} s old"
        if seconds is not None and seconds < _ALIVE_S:
            yield ok("batches", f"{text}: a fetch runs")
        elif age > _OLD_DAYS:
            yield warning("batches", text, f"nutbeam crawl {seen.address} finishes it")
        else:
            yield ok("batches", f"{text}; nutbeam crawl {seen.address} finishes it")
    if len(waiting) > _SHOWN:
        text = f"{len(waiting) - _SHOWN:,} more batches wait"
        yield warning("batches", text, f"nutbeam crawl {seen.address} finishes them")


def _seconds_since(files: Sequence[Found]) -> float | None:
    """Returns how long ago the newest of some files was written, s; None if there is none."""
    newest = max((file.changed for file in files), default=None)
    return None if newest is None else max(0.001, now_ms() / 1000 - newest)


def look_at_holds(seen: SeenTable) -> Iterator[Finding]:
    """Checks that no purge makes other jobs wait."""
    holds = [file for file in list_files(seen.table / "operations")
             if file.path == seen.table / HOLD]  # fmt: skip
    seconds = _seconds_since(holds)
    if seconds is None:
        yield ok("holds", "no purge makes other jobs wait")
    elif seconds < _ALIVE_S:
        yield ok("holds", "a purge is about to commit, and other jobs wait for it")
    else:
        text = f"a purge began to commit {seconds:,.0f} s ago and does not live"
        yield warning("holds", text, "nothing: the next job goes on after a minute at most")


def look_at_upkeep(seen: SeenTable) -> Iterator[Finding]:
    """Looks at what compact would fold, and what it would free."""
    manifest, table = seen.manifest, seen.table
    all_tablets = [
        tablet
        for name in components_in_tablets(manifest.components)
        if table.in_files(name) and (component := manifest.components.get(name)) is not None
        for tablet in tablets(load_files(table, component))
    ]
    runs = sum(len(tablet.runs) for tablet in all_tablets)
    text = f"{format_count(runs, 'runs')} on {format_count(len(all_tablets), 'tablets')}"
    cure = f"nutbeam compact {seen.address}, after each crawl or once a week"
    many = runs > _MANY_RUNS * max(1, len(all_tablets))
    yield warning("runs", text, cure) if many else ok("runs", text)
    weights = weigh_components(weigh_files(table))
    current, older = (sum(getattr(one, name) for one in weights) for name in ("current", "waiting"))
    text = f"{filesize.decimal(current)}, and {filesize.decimal(older)} of older snapshots"
    yield warning("size", text, cure) if older > 2 * current else ok("size", text)


def look_at_table_disk(seen: SeenTable, least: int) -> Iterator[Finding]:
    """Looks at the disk of a table's files."""
    cure = f"make room: nutbeam table describe {seen.address} says what compact frees"
    yield from look_at_disk("disk", str(seen.table.files), least, cure)


def look_at_place(seen: SeenTable) -> Iterator[Finding]:
    """Opens a table: its store or Bigtable, the credentials, its newest snapshot."""
    table = seen.table
    table.files.check_client()
    manifest = (
        load_manifest(table, table.latest_snapshot()) if table.begun_snapshot() else seen.manifest
    )
    hours = (now_ms() - manifest.time) / 3_600_000
    text = f"snapshot {manifest.snapshot} of {manifest.job}, {hours:,.1f} hours old"
    yield ok("table", f"{seen.address}: {text}")


def look_at_runner(
    address: str, options: LaunchOptions, beam_args: Sequence[str]
) -> Iterator[Finding]:
    """Checks the runner, its workers' way to the table, and plug-ins, as a job does before its start."""
    preflight(address, options, beam_args)
    where = next((word for word in beam_args if word.startswith("--runner")), "in this process")
    yield ok("runner", where)
