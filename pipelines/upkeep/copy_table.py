"""copy: copies the newest snapshot of a table into a new table.

::

    tablets ─ rows, folded ─▶ bases of the copy, or changes to its rows in Bigtable
    files of batches ─ bytes, under the same names ─▶ the copy
    then: its first snapshot
"""

import dataclasses
import functools
from collections.abc import Iterator
from pathlib import PurePosixPath
from typing import Any

import apache_beam as beam

from ...io.reading.extract_runs import copy_extract_runs
from ...io.snapshots.commit import CommitTerms, commit
from ...io.snapshots.manifest import Manifest, newest_manifest
from ...io.snapshots.operations import Operation, pinned_operation
from ...io.storage.file_errors import ConflictError
from ...io.table.opening import open_table
from ...io.tablets.checksums import copy_file, verify_tablets
from ...io.tablets.file_lists import DataFile
from ...io.tablets.tablets import Tablet, tablets
from ...io.tablets.written import Written
from ...policy.components.kinds import kind_of
from ...transforms.for_each import ForEach
from ...transforms.operations import Begin, Finish
from ...transforms.tickets import Ticket
from ...web.base.dataclass import dataclass
from ...web.base.errors import UsageError
from ...web.base.progress import PROGRESS
from ..base.command import TABLE, Argument, Invocation
from ..launch.job import run_job
from ..launch.job_options import JobOptions
from ..launch.launch import preflight
from ..views.reading_job import Reading

ARGUMENTS = (
    TABLE,
    Argument(
        "to", "The new table: a folder or an address without a table; in Bigtable an empty table."
    ),
)


Options = JobOptions


@dataclass(frozen=True)
class _Item:
    """A work item of a copy: a tablet or a file.

    Attributes:
        operation: The operation, in the copy.
        reading: The snapshot of the source.
        component: Component of the tablet or file.
        tablet: A tablet, or None.
        file: A file of a batch, or of another list, or None.
    """

    operation: Operation
    reading: Reading
    component: str
    tablet: Tablet | None = None
    file: DataFile | None = None


def run(invocation: Invocation) -> int:
    address, to = str(invocation.table), str(invocation.arguments["to"])
    _check_apart(address, to)
    manifest = newest_manifest(address)
    open_table(address).check_rows_known(manifest.components, "copy")
    open_table(to).check_place()
    _check_free(to, invocation.options.operation)
    preflight(address, invocation.options, invocation.beam_args)
    # The launcher pins the snapshot, as in all commands that only read a table.
    reading = Reading(open_table(address).worker_address(), "", manifest.snapshot)
    return run_job(
        dataclasses.replace(invocation, table=to),
        lambda tickets, options: build(tickets, options, reading),
        "copy",
    )


def _check_apart(address: str, to: str) -> None:
    source, target = (PurePosixPath(str(open_table(one))) for one in (address, to))
    if source == target or source in target.parents or target in source.parents:
        raise UsageError(f"one table cannot be inside the other: {address!r} and {to!r}")


def _check_free(to: str, operation: str) -> None:
    """Checks that a place has no table, except one that this operation has made."""
    snapshots = open_table(to).latest_snapshot()
    if snapshots and not (operation and pinned_operation(to, f"{operation}.copy")):
        raise UsageError(
            f"there is a table at {to!r} already, with {snapshots:,} snapshots: "
            "copy to a place where none is"
        )


def build(
    tickets: beam.PCollection[Ticket], options: JobOptions, reading: Reading
) -> beam.PCollection[Ticket]:
    """Copies a table; the returned ticket is for a job on the copy.

    Args:
        tickets: One ticket, for the copy.
        options: Options of the launch.
        reading: The snapshot to copy.
    """
    operations = tickets | "Begin" >> Begin("copy")
    items = functools.partial(_items, reading=reading)
    written = operations | "Pieces" >> ForEach(items, _copy, step="Pieces")
    commit = functools.partial(_commit, reading=reading)
    return (operations, written) | Finish(commit, whole=("Pieces",))


def _items(operation: Operation, reading: Reading) -> Iterator[_Item]:
    items = []
    with reading.reading():
        for name in reading.manifest().components:
            kind = kind_of(name)
            if kind.made_from:
                continue
            files = reading.files(name)
            if kind.in_tablets:
                items += [_Item(operation, reading, name, t) for t in tablets(files)]
            else:
                items += [_Item(operation, reading, name, file=file) for file in files]
    PROGRESS.start("copy", total=len(items), unit="files")
    yield from items


def _copy(item: _Item) -> Iterator[Written]:
    source, target, name = item.reading.table, item.operation.table, item.component
    kind = f"rows/{name.rpartition('/')[2]}"
    with item.reading.reading():
        if item.tablet is not None:
            verify_tablets(source, item.tablet)
            for part in target.load(name, source.scan(name, item.tablet)):
                copied = {kind: sum(f.rows for f in part.files)} if part.component == name else {}
                yield Written(part.component, part.files, (), {**part.counts, **copied})
        elif item.file is not None:
            copy_file(source, target, item.file)
            yield Written(name, (item.file,), (), {kind: item.file.rows})
    PROGRESS.add()


def _commit(
    operation: Operation, written: list[Written], _: list[Any], reading: Reading
) -> Manifest:
    if operation.snapshot:
        raise ConflictError(
            f"copy: a table was begun at {operation.address!r}; nothing was written"
        )
    source = reading.manifest()
    copy_extract_runs(reading.table.files, operation.table.files)
    # If another table was created there in the meantime, the commit fails: tables are not mixed.
    return commit(
        operation, written, CommitTerms(reads=frozenset({"*"}), others=source.batches, past=source)
    )
