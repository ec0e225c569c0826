"""Finds wrong times in a table, caused by a wrong clock, and corrects them in a new snapshot."""

import contextlib
from collections.abc import Callable, Iterator
from operator import methodcaller

import polars as pl

from ...policy.components.clocks import COUNT, RightTimes, set_right, wrong_times
from ...policy.components.kinds import KINDS, components_of, kind_of
from ...web.base.clock import TOLERANCE_MS
from ...web.base.errors import UserError
from ...web.base.wording import format_count
from ..snapshots.commit import CommitTerms, commit
from ..snapshots.manifest import Manifest
from ..snapshots.operations import begin
from ..snapshots.table_clock import date_of, oldest_open
from ..table.web_table import TableRows, WebTable
from ..tablets.file_lists import load_files
from ..tablets.ranges import Range
from ..tablets.resolve import Resolution, Resolved
from ..tablets.tablets import Tablet, tablets
from .fsck import Problem
from .repair import Repair

CLOCK_PROBLEM = "clock"


def check_clock(
    table: WebTable, manifest: Manifest, right: RightTimes, quick: bool
) -> Iterator[Problem]:
    """Finds impossible times: of the manifest, of batches, and of rows.

    Args:
        table: The table.
        manifest: The snapshot.
        right: Which times are right.
        quick: Whether to skip reading the rows.
    """
    late, says = right.now + TOLERANCE_MS, f"the clock says {date_of(right.now)}"
    if manifest.latest_time > late:
        text = f"{date_of(manifest.latest_time)} has counted as now, {says}"
        yield Problem(CLOCK_PROBLEM, table.record_name(manifest.snapshot), text)
    for name, batch in manifest.batches.items():
        if batch.created > late:
            text = f"was made at {date_of(batch.created)}, {says}"
            yield Problem(CLOCK_PROBLEM, f"batches/{name}", text)
    if not quick:
        for component, tablet, keys in _wrong_rows(table, manifest, right):
            text = f"{format_count(len(keys), 'rows')} of {component} with times that cannot be, {says}"
            yield Problem(CLOCK_PROBLEM, tablet.base.path, text)


def _wrong_rows(
    table: TableRows, manifest: Manifest, right: RightTimes
) -> Iterator[tuple[str, Tablet, pl.DataFrame]]:
    """Yields (component, tablet, keys of its rows with impossible times)."""
    table = table.at(manifest.snapshot)
    for name in _with_times(manifest):
        wrong = wrong_times(kind_of(name).columns, right.now, right.options)
        with contextlib.suppress(UserError):  # other checks report damage
            for tablet in tablets(load_files(table, manifest.components.get(name))):
                with contextlib.suppress(UserError):
                    keys = table.read(name, [tablet], ["key"], methodcaller("filter", wrong))
                    if len(keys):
                        yield name, tablet, keys


def _with_times(manifest: Manifest) -> list[str]:
    """Returns the components in tablets whose rows have times."""
    kinds = [kind for kind in KINDS.values() if kind.in_tablets and kind.columns.times]
    return [name for kind in kinds for name in components_of(kind, manifest.components)]


def repair_clock(address: str, operation: str, right_at: Callable[[int], RightTimes]) -> Repair:
    """Makes a snapshot in which no row has an impossible time.

    Args:
        address: The address of the table.
        operation: Id of this operation.
        right_at: Returns which times are right at a time, ms.

    Raises:
        ConflictError: Another operation has changed rows during the repair.
    """
    pinned = begin(address, "fsck", operation)
    base = pinned.manifest()
    since = oldest_open(base, pinned.now)
    right = right_at(pinned.now)._replace(since=since)
    written = [
        part
        for name, tablet, keys in _wrong_rows(pinned.table, base, right)
        for how in [_resolution(name, tablet, right, pinned.snapshot + 1)]
        for part in pinned.table.resolve(how, keys)
    ]
    manifest = commit(
        pinned, written, CommitTerms(reads=frozenset(_with_times(base)), past=Manifest())
    )
    return Repair(manifest, base.snapshot, rows=manifest.counts)


def _resolution(name: str, tablet: Tablet, right: RightTimes, order: int) -> Resolution:
    columns = kind_of(name).columns

    def correct(rows: pl.DataFrame, changes: pl.DataFrame) -> Resolved:
        fixed, number = set_right(columns, rows, right)
        return Resolved(fixed, counts={COUNT: number})

    return Resolution(name, Range(None, None, tablet), correct, order=order)
