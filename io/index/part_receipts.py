"""Receipts of the parts of an index that are done, and keys of those that have begun.

A part that is done leaves a receipt, created exclusively under its operation. So an operation that
is started again does not send a part twice.
"""

import dataclasses
import hashlib
import io
import json
from collections.abc import Callable, Mapping
from typing import Any

import polars as pl

from ...policy.components.index_schema import INDEXED, JournalRows
from ...web.base.errors import UserError
from ...web.base.safe_json import read_json
from ..disk.record_checks import check_number
from ..disk.table_names import checked_name
from ..snapshots.commit import check_can_commit
from ..storage.file_errors import first_line
from ..storage.files import LARGEST_BYTES, create_exclusive, read_if_there
from ..storage.places import Place
from ..tablets.file_lists import file_of_record, file_record
from ..tablets.written import Written
from .candidate_facts import keys_to_bytes
from .index_run import IndexRun
from .receipts import INTENT


@dataclasses.dataclass(frozen=True)
class PartDone:
    """What a part has done.

    Attributes:
        journal: Changed rows of the journal.
        written: Files, and counts.
    """

    journal: JournalRows
    written: tuple[Written, ...]


def do_part_once(
    task: IndexRun, name: str, keys: pl.Series, work: Callable[[str], PartDone]
) -> PartDone:
    """Does a part, or returns what an earlier attempt has done.

    Args:
        task: The run.
        name: Name of the part.
        keys: Row keys of its pages.
        work: Does the part with a given id.

    Raises:
        ConflictError: Another run of the index has committed in the meantime.
    """
    part = hashlib.sha256(name.encode()).hexdigest()[:16]
    receipt = task.receipts / f"{part}.receipt"
    receipt_bytes = read_if_there(receipt, LARGEST_BYTES)
    if receipt_bytes is None:
        # A rebuild of hours ends here, and not at its commit, when another run was faster.
        check_can_commit(task.operation, task.reads)
        # If this run never commits, the next one deletes what must not stay.
        create_exclusive(task.receipts / f"{part}{INTENT}", keys_to_bytes(keys))
        done = work(part)
        if create_exclusive(receipt, _to_bytes(done), durable=False):
            return done
        # That of another attempt, which was first.
        receipt_bytes = read_if_there(receipt, LARGEST_BYTES)
        if receipt_bytes is None:  # the operation has committed in the meantime
            return done
    return _from_bytes(receipt, receipt_bytes)


def _to_bytes(done: PartDone) -> bytes:
    """Returns a receipt: a line of JSON, and the rows of the journal in Arrow's format."""
    head = json.dumps([*map(_record, done.written)]).encode()
    rows = io.BytesIO()
    done.journal.write_ipc(rows)
    return head + b"\n" + rows.getvalue()


def _record(part: Written) -> dict[str, Any]:
    return {**vars(part), "files": [*map(file_record, part.files)]}


def _from_bytes(receipt: Place, data: bytes) -> PartDone:
    """Returns what a part has done, from its receipt.

    Raises:
        UserError: The receipt is damaged.
    """
    head, _, rows = data.partition(b"\n")
    try:
        journal = pl.read_ipc(io.BytesIO(rows)).select(INDEXED.names)
        return PartDone(journal, tuple(map(_read_written, read_json(head))))
    except (
        *(ValueError, TypeError, KeyError, OSError),
        *(pl.exceptions.PolarsError, pl.exceptions.PanicException),
    ) as error:
        raise UserError(f"receipt is damaged: {receipt}: {first_line(error)[:200]}") from error


def _read_written(part: Mapping[str, Any]) -> Written:
    files, counts = tuple(map(file_of_record, part["files"])), dict(part["counts"])
    for number in counts.values():
        check_number(number)
    component = part["component"]  # empty: it only has counts
    return Written(component and checked_name(component), files, counts=counts)
