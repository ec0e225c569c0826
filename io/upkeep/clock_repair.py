"""Finds times that a wrong clock has left in a table, and sets them right by a commit of its own."""

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

import polars as pl

from ...policy.clocks import COUNT, set_right, set_right_hosts, wrong_hosts, wrong_times
from ...policy.schedule import TOLERANCE_MS, ScheduleOptions
from ...web.base.errors import UserError
from ..snapshots.commit import Written, commit
from ..snapshots.manifest import Manifest
from ..snapshots.operations import Operation, begin
from ..snapshots.table_clock import date_of, oldest_open
from ..table.web_table import WebTable
from ..tablets.file_lists import load_files
from ..tablets.ranges import Range
from ..tablets.resolve import Resolved
from ..tablets.tablets import Tablet, tablets
from .fsck import Problem
from .repair import Repair

KIND = "clock"
_COMPONENTS = ("state", "hosts")


def check_clock(
    root: WebTable, manifest: Manifest, options: ScheduleOptions, now: int, quick: bool
) -> Iterator[Problem]:
    """Finds times that cannot be: of the manifest, of batches, and of rows.

    Args:
        root: The table.
        manifest: The snapshot.
        options: How late a row may be due.
        now: ms.
        quick: Whether to leave rows unread.
    """
    late, says = now + TOLERANCE_MS, f"the clock says {date_of(now)}"
    if manifest.latest_time > late:
        text = f"{date_of(manifest.latest_time)} has counted as now, {says}"
        yield Problem(KIND, root.record_name(manifest.snapshot), text)
    for name, batch in manifest.batches.items():
        if batch.created > late:
            text = f"was made at {date_of(batch.created)}, {says}"
            yield Problem(KIND, f"batches/{name}", text)
    for component in () if quick else _COMPONENTS:
        for tablet, keys in _wrong(root, manifest, component, options, now):
            text = f"{len(keys):,} rows of {component} have times that cannot be, {says}"
            yield Problem(KIND, tablet.base.path, text)


def _wrong(
    root: WebTable, manifest: Manifest, component: str, options: ScheduleOptions, now: int
) -> Iterator[tuple[Tablet, pl.DataFrame]]:
    """Yields tablets, and the keys of those of their rows whose times cannot be."""
    root = root.at(manifest.snapshot)
    wrong = wrong_times(now, options) if component == "state" else wrong_hosts(now)
    with contextlib.suppress(UserError):  # damage is told of elsewhere
        known = tablets(load_files(root, manifest.components.get(component)))
        for tablet in known:
            keys = _keys(root, component, tablet, wrong)
            if len(keys):
                yield tablet, keys


def _keys(root: WebTable, component: str, tablet: Tablet, wrong: pl.Expr) -> pl.DataFrame:
    try:
        return root.read(component, [tablet], ["key"], lambda rows: rows.filter(wrong))
    except UserError:
        return pl.DataFrame({"key": []}, schema={"key": pl.String})


def repair_clock(table: str, operation: str, options: ScheduleOptions) -> Repair:
    """Makes a snapshot in which no row has a time that cannot be.

    Args:
        table: The table's address.
        operation: Id of this operation.
        options: How late a row may be due.

    Raises:
        ConflictError: Somebody else has changed rows meanwhile.
    """
    pinned = begin(table, "fsck", operation)
    before = pinned.manifest()
    written = [
        Written(part.component, part.files, part.replaced, part.counts)
        for component in _COMPONENTS
        for tablet, keys in _wrong(pinned.root, before, component, options, pinned.now)
        for part in pinned.root.resolve(
            component, Range(None, None, tablet), keys,
            _resolver(component, pinned, options), {}, before.snapshot + 1,
        )
    ]  # fmt: skip
    made = commit(pinned, written, reads=frozenset(_COMPONENTS), past=Manifest())
    return Repair(made, before.snapshot, rows=made.counts)


def _resolver(component: str, pinned: Operation, options: ScheduleOptions) -> Callable[..., Any]:
    now, since = pinned.now, oldest_open(pinned.manifest(), pinned.now)

    def resolve(rows: pl.DataFrame, _: pl.DataFrame) -> Resolved:
        if component == "state":
            fixed, number = set_right(rows, now, options, since)
        else:
            fixed, number = set_right_hosts(rows, now)
        return Resolved(fixed, counts={COUNT: number})

    return resolve
