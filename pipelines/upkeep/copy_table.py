"""copy: makes another table of the current snapshot of this one.

::

    tablets ─ rows, folded ─▶ bases of the copy, or changes to its rows in Bigtable
    files of batches ─ bytes, under the same names ─▶ the copy
    then: its first snapshot
"""

import dataclasses
from collections.abc import Iterable, Iterator
from pathlib import PurePosixPath
from typing import Any

import apache_beam as beam

from ...io.snapshots.commit import commit
from ...io.snapshots.manifest import newest_manifest
from ...io.snapshots.operations import Operation, find
from ...io.storage.errors import ConflictError
from ...io.table.opening import open_table
from ...io.tablets.checksums import check_list, check_tablets, copy_file
from ...io.tablets.file_lists import DataFile
from ...io.tablets.tablets import Tablet, tablets
from ...io.tablets.written import Written
from ...policy.kinds import SEED_HOSTS, kind_of
from ...transforms.metrics import count
from ...transforms.operations import Begin, ForEach, Ticket, Together, gathered, ticket_after
from ...web.base.errors import UsageError
from ...web.base.progress import PROGRESS
from ..command_line.command import TABLE, Argument, Invocation
from ..launch.job import JobOptions, run_job
from ..launch.launch import preflight, worker_address
from ..views.export import Reading

ARGUMENTS = (
    TABLE,
    Argument(
        "to", "Where to: a folder or an address at which no table is; in Bigtable an empty one."
    ),
)


@dataclasses.dataclass(frozen=True)
class Options(JobOptions):
    """Options of copy."""


@dataclasses.dataclass(frozen=True)
class Piece:
    """What is copied at a time.

    Attributes:
        operation: The operation, in the copy.
        reading: The snapshot that is read.
        component: Where it belongs.
        tablet: A tablet, or None.
        file: A file of a batch, or of another list, or None.
    """

    operation: Operation
    reading: Reading
    component: str
    tablet: Tablet | None = None
    file: DataFile | None = None


def run(invocation: Invocation) -> int:
    table, to = str(invocation.table), str(invocation.arguments["to"])
    _check_apart(table, to)
    manifest = newest_manifest(table)
    open_table(to).check_place()
    _check_free(to, invocation.options.operation)
    preflight(table, invocation.options, invocation.beam_args)
    # Pinned at launch, as what only reads a table does: nothing in it is changed.
    reading = Reading(worker_address(table), "", manifest.snapshot)
    return run_job(
        dataclasses.replace(invocation, table=to),
        lambda tickets, options: build(tickets, options, reading),
        "copy",
    )


def _check_apart(table: str, to: str) -> None:
    source, target = (PurePosixPath(str(open_table(address))) for address in (table, to))
    if source == target or source in target.parents or target in source.parents:
        raise UsageError(f"one table cannot be within the other: {table!r} and {to!r}")


def _check_free(to: str, operation: str) -> None:
    """Refuses a place where a table is, unless this operation has made it."""
    snapshots = open_table(to).latest_snapshot()
    if snapshots and not (operation and find(to, f"{operation}.copy")):
        raise UsageError(
            f"there is a table at {to!r} already, with {snapshots:,} snapshots: "
            "copy to a place where none is"
        )


def build(
    tickets: beam.PCollection[Ticket], options: JobOptions, reading: Reading
) -> beam.PCollection[Ticket]:
    """Copies a table; the ticket that comes out is for a job on the copy.

    Args:
        tickets: One ticket, of the copy.
        options: How to launch.
        reading: The snapshot that is copied.
    """
    operations = tickets | "Begin" >> Begin("copy")
    written = operations | "Pieces" >> ForEach(_Pieces(reading), _copy, step="Pieces")
    finish = beam.Map(_finish, reading).with_output_types(Ticket)
    # One small group: descriptors.
    return (operations, written) | Together() | "Commit" >> finish


@dataclasses.dataclass(frozen=True)
class _Pieces:
    reading: Reading

    def __call__(self, operation: Operation) -> Iterator[Piece]:
        found = []
        reading = self.reading
        with reading.reading():
            for name, component in reading.manifest().components.items():
                if name == SEED_HOSTS:
                    continue  # it follows from the hosts, where rows are in Bigtable
                check_list(reading.root, component)
                files = reading.files(name)
                if kind_of(name).in_tablets:
                    found += [Piece(operation, reading, name, t) for t in tablets(files)]
                else:
                    found += [Piece(operation, reading, name, file=file) for file in files]
        PROGRESS.start("copy", total=len(found), unit="files")
        yield from found


def _copy(piece: Piece) -> Iterator[Written]:
    source, target, name = piece.reading.root, piece.operation.root, piece.component
    kind = f"rows/{name.rpartition('/')[2]}"
    with piece.reading.reading():
        if piece.tablet is not None:
            check_tablets(source, piece.tablet)
            for part in target.load(name, source.scan(name, piece.tablet)):
                copied = {kind: sum(f.rows for f in part.files)} if part.component == name else {}
                yield Written(part.component, part.files, (), {**part.counts, **copied})
        elif piece.file is not None:
            copy_file(source, target, piece.file)
            yield Written(name, (piece.file,), (), {kind: piece.file.rows})
    PROGRESS.add()


def _finish(grouped: tuple[int, Iterable[Any]], reading: Reading) -> Ticket:
    operation, written, _ = gathered(grouped, ["Pieces"])
    if operation.idle:
        return ticket_after(operation, nothing=operation.idle == "nothing")
    if operation.snapshot:
        raise ConflictError(f"copy: a table was begun at {operation.table!r}; nothing was written")
    # Whatever has come there meanwhile is another table, too: nothing is mixed.
    source = reading.manifest()
    made = commit(operation, written, reads=frozenset({"*"}), others=source.batches, past=source)
    count(operation.job, made.counts)
    PROGRESS.finish()
    return ticket_after(operation, nothing=False)
