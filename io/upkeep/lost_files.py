"""Finds and repairs rows of the state that name files of batches which are in no list of the table."""

import contextlib
from collections.abc import Iterator
from operator import methodcaller
from typing import NamedTuple

import polars as pl

from ...policy.components.kinds import kind_of
from ...policy.components.lost_files import (
    STATE_FILES,
    folder_of,
    forget_lost_files,
    names_lost_file,
)
from ...web.base.errors import UserError
from ...web.base.wording import format_count
from ...web.urls.row_keys import shown_url
from ...web.urls.userinfo import without_user
from ..batches.batches import batch_component
from ..snapshots.commit import CommitTerms, commit
from ..snapshots.manifest import Manifest, load_manifest
from ..snapshots.operations import begin
from ..table.opening import open_table
from ..table.web_table import TableRows
from ..tablets.file_lists import load_files
from ..tablets.ranges import Range
from ..tablets.resolve import Resolution, Resolved
from ..tablets.tablets import Tablet, tablets
from .fsck import Problem
from .repair import Repair

LOST_FILE_PROBLEM = "lost"
_EXAMPLES = 3
_STATE = "state"


class NamedFiles(NamedTuple):
    """Files of a kind of all batches.

    Attributes:
        names: All names under which rows may know them.
        unknown: Components whose files are not known.
    """

    names: set[str]
    unknown: set[str]


def check_named_files(table: TableRows, manifest: Manifest) -> Iterator[Problem]:
    """Finds rows of the state that name files which no list of the snapshot has.

    Rows that name a file of a damaged list are left out: other checks report the list.

    Args:
        table: The table.
        manifest: The snapshot.
    """
    rows_by_folder: dict[str, tuple[int, list[str]]] = {}
    for _, rows in _rows_with_lost_files(table, manifest):
        for column in STATE_FILES:
            lost = rows.drop_nulls(column).sort("key").group_by(folder_of(column).alias("folder"))
            for folder, number, keys in lost.agg(
                pl.len(), pl.col("key").head(_EXAMPLES).alias("keys")
            ).iter_rows():
                before, examples = rows_by_folder.get(folder, (0, []))
                rows_by_folder[folder] = (before + number, [*examples, *keys][:_EXAMPLES])
    for folder, (number, keys) in sorted(rows_by_folder.items()):
        urls = ", ".join(without_user(shown_url(key)) for key in keys)
        named = f"{format_count(number, 'rows')} of the state"
        text = f"no list has the files here that {named} name, such as {urls}"
        yield Problem(LOST_FILE_PROBLEM, folder, text)


def repair_named_files(address: str, operation: str) -> Repair:
    """Makes a snapshot in which no row names a lost file; makes none if no row does.

    Args:
        address: The address of the table.
        operation: Id of this operation.

    Raises:
        ConflictError: Another operation has changed rows during the repair.
    """
    table = open_table(address)
    newest = load_manifest(table, table.latest_snapshot())
    if next(_rows_with_lost_files(table, newest), None) is None:
        return Repair(None)
    pinned = begin(address, "fsck", operation)
    base = pinned.manifest()
    written = [
        part
        for tablet, lost in _rows_with_lost_files(pinned.table, base)
        for part in pinned.table.resolve(_resolution(tablet, pinned.now, pinned.snapshot + 1), lost)
    ]
    manifest = commit(pinned, written, CommitTerms(reads=frozenset([_STATE]), past=Manifest()))
    return Repair(manifest, base.snapshot, rows=manifest.counts)


def _resolution(tablet: Tablet, now: int, order: int) -> Resolution:
    def correct(rows: pl.DataFrame, changes: pl.DataFrame) -> Resolved:
        changed, counts = forget_lost_files(rows, changes, now)
        return Resolved(changed, counts=counts)

    return Resolution(_STATE, Range(None, None, tablet), correct, order=order)


def _rows_with_lost_files(
    table: TableRows, manifest: Manifest
) -> Iterator[tuple[Tablet, pl.DataFrame]]:
    """Yields (tablet, ``key`` and ``STATE_FILES`` of rows, null where the file is there)."""
    table = table.at(manifest.snapshot)
    files = {name: _named_files(table, manifest, kind) for name, kind in STATE_FILES.items()}
    lost = {name: names_lost_file(name, *of_kind) for name, of_kind in files.items()}
    is_lost = methodcaller("filter", pl.any_horizontal(*lost.values()))
    with contextlib.suppress(UserError):  # other checks report damage
        for tablet in tablets(load_files(table, manifest.components.get(_STATE))):
            with contextlib.suppress(UserError):
                rows = table.read(_STATE, [tablet], ["key", *STATE_FILES], is_lost)
                if len(rows):
                    yield (
                        tablet,
                        rows.select("key", *(pl.when(lost[n]).then(n).alias(n) for n in lost)),
                    )


def _named_files(table: TableRows, manifest: Manifest, kind: str) -> NamedFiles:
    names, unknown = set[str](), set[str]()
    for component in manifest.components:
        if kind_of(component).name == kind:
            try:
                for file in load_files(table, manifest.components[component]):
                    names.update(filter(None, (file.path, file.formerly)))
            except UserError:
                unknown.add(component)
    if kind == "documents":  # rows of an import name those that an update of their batch brings
        unknown |= {batch_component(name, kind) for name in manifest.unfinished}
    return NamedFiles(names, unknown)
