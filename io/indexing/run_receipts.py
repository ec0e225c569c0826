"""Receipts of a run: keys of the parts that have begun, and what was done by those that are done.

A part that is done leaves a receipt, created exclusively under its operation. So an operation that
is started again does not send a part twice. Before a part is sent, its row keys are written beside the
receipts. If the run never commits, the next one corrects these pages in the index.

Compact and purge delete old files of keys, and leave a mark. Then a server may have pages of which
nothing is known, so the next run builds the index again.
"""

import contextlib
import functools
import hashlib
import io
import json
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import polars as pl

from ...policy.components.index_schema import INDEXED, JournalRows, index_component
from ...web.base.dataclass import dataclass
from ...web.base.errors import UserError
from ...web.base.safe_json import read_json
from ..disk.record_checks import check_number
from ..disk.table_names import checked_name, checked_part
from ..snapshots.commit import check_can_commit
from ..snapshots.operations import Operation, has_ended, pinned_operation
from ..storage.file_errors import first_line
from ..storage.files import (
    LARGEST_BYTES,
    create_exclusive,
    list_files,
    read_if_there,
    remove_file,
    size_of,
)
from ..storage.places import Place
from ..tablets.file_lists import file_of_record, file_record
from ..tablets.written import Written

_RECEIPTS = "receipts"
# Ending of the files with the keys that a part is about to send.
_INTENT = ".intent"
_ENDED = "ended.json"
_LOST = "lost"
_NUMBER = re.compile(r"[0-9]{1,18}")
# A run that another one has overtaken stops at its next part: by now it has.
_LONGEST_PART_MS = 600_000


@dataclass(frozen=True)
class PartDone:
    """What a part has done.

    Attributes:
        journal: Changed rows of the journal.
        written: Files, and counts.
    """

    journal: JournalRows
    written: tuple[Written, ...]


def is_intent(path: Place) -> bool:
    """Returns whether a file says what a run is about to send.

    >>> from nutbeam.io.storage.place_addresses import place_of
    >>> is_intent(place_of("table/index/main/receipts/0000000000017-a.index/0123.intent"))
    True
    """
    return path.suffix == _INTENT and path.parents[1].name == _RECEIPTS


def note_lost(path: Place) -> None:
    """Notes that a file of keys will be deleted; called before it is."""
    create_exclusive(path.parents[1] / _LOST, b"")


def is_mark(path: Place) -> bool:
    """Returns whether a file is the mark of ``note_lost``."""
    return path.name == _LOST and path.parent.name == _RECEIPTS


@dataclass(frozen=True)
class Intent:
    """A part of an unfinished run.

    Attributes:
        path: File with the row keys.
        bytes: Its size.
        committed: Whether its run has committed, as the last one: what it sent is in the journal.
    """

    path: Place
    bytes: int
    committed: bool


@dataclass(frozen=True)
class RunReceipts:
    """The receipts of a run of an index, and of those before it.

    Attributes:
        operation: The operation of the run.
        index: Name of the index.
        version: Number of the run.
        last_version: Number of the last run that has committed.
        reads: The components that no other operation may change while the run works.
    """

    operation: Operation
    index: str
    version: int
    last_version: int
    reads: frozenset[str]

    @property
    def folder(self) -> Place:
        """The folder of this run; it exists while the run has not committed."""
        return self._folders / f"{self.version:013d}-{self.operation.id}"

    @functools.cached_property
    def _folders(self) -> Place:
        return self.operation.table / index_component(self.index, _RECEIPTS)

    def do_part_once(self, name: str, keys: pl.Series, work: Callable[[str], PartDone]) -> PartDone:
        """Does a part, or returns what an earlier attempt has done.

        Args:
            name: Name of the part.
            keys: Row keys of its pages.
            work: Does the part with a given id.

        Raises:
            ConflictError: Another run of the index has committed in the meantime.
        """
        part = hashlib.sha256(name.encode()).hexdigest()[:16]
        receipt = self.folder / f"{part}.receipt"
        receipt_bytes = read_if_there(receipt, LARGEST_BYTES)
        if receipt_bytes is None:
            # A rebuild of hours ends here, and not at its commit, when another run was faster.
            check_can_commit(self.operation, self.reads)
            # If this run never commits, the next one deletes what must not stay.
            create_exclusive(self.folder / f"{part}{_INTENT}", keys_to_bytes(keys))
            done = work(part)
            if create_exclusive(receipt, _to_bytes(done), durable=False):
                return done
            # That of another attempt, which was first.
            receipt_bytes = read_if_there(receipt, LARGEST_BYTES)
            if receipt_bytes is None:  # the operation has committed in the meantime
                return done
        return _from_bytes(receipt, receipt_bytes)

    def intents(self) -> Iterator[Intent]:
        """Yields what unfinished runs have begun to send."""
        for file in sorted(list_files(self._folders), key=lambda file: file.path):
            name = file.path.parent.name
            if file.path.suffix == _INTENT and name != self.folder.name:
                yield Intent(file.path, file.bytes, _run_number(name) == self.last_version)

    def were_lost(self) -> bool:
        """Returns whether files of keys were deleted before their pages were corrected."""
        return size_of(self._folders / _LOST) is not None

    def folder_names(self) -> set[str]:
        """Returns the names of the folders of all runs that have left receipts."""
        folders = {file.path.parent for file in list_files(self._folders)}
        return {folder.name for folder in folders - {self._folders}}

    def note_ended(self) -> None:
        """Notes which unfinished runs send nothing any more; called before ``intents``."""
        names = self.folder_names() - {self.folder.name}
        ended = [name for name in names if self._has_ended(name)]
        create_exclusive(self.folder / _ENDED, json.dumps(sorted(ended)).encode())

    def _has_ended(self, folder: str) -> bool:
        version, name = _run_number(folder), folder.partition("-")[2]
        if name == self.operation.id:  # it has lost, and was started again
            return True
        if version < self.last_version < self.version - _LONGEST_PART_MS:
            return True
        operation = pinned_operation(self.operation.address, name)
        return operation is None or has_ended(operation)

    def forget(self, *, corrects: bool, resends_all: bool) -> None:
        """Removes the receipts of this run, which has committed.

        Args:
            corrects: Whether it has corrected the pages of runs that have ended.
            resends_all: Whether writers have got all pages again, so that no keys are lost any more.
        """
        noted = read_if_there(self.folder / _ENDED)
        corrected = _noted_names(noted) if noted is not None and corrects else []
        for name in (*corrected, self.folder.name):
            (self._folders / name).remove_tree()
        if resends_all:
            remove_file(self._folders / _LOST)


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


def keys_to_bytes(keys: pl.Series) -> bytes:
    """Returns keys as the content of a file."""
    sink = io.BytesIO()
    keys.rename("key").to_frame().write_ipc(sink)
    return sink.getvalue()


def keys_of_bytes(data: bytes) -> pl.Series:
    """Returns the keys in a file.

    >>> keys_of_bytes(keys_to_bytes(pl.Series(["com.a:http/"]))).to_list()
    ['com.a:http/']
    """
    return pl.read_ipc(io.BytesIO(data)).get_column("key")


def _noted_names(data: bytes) -> list[str]:
    """Returns the names of folders in a note of ``note_ended``; a damaged note has none.

    >>> _noted_names(b'["0000000000017-a.index"]'), _noted_names(b'["../../state"]'), _noted_names(b"{")
    (['0000000000017-a.index'], [], [])
    """
    with contextlib.suppress(ValueError, TypeError):
        return [checked_part(name) for name in read_json(data)]
    return []


def _run_number(folder: str) -> int:
    """Returns the number of a run by the name of its folder; 0 for other folders.

    >>> _run_number("0000000000017-1790000000-abcd.index"), _run_number("mine")
    (17, 0)
    """
    number = folder.partition("-")[0]
    return int(number) if _NUMBER.fullmatch(number) else 0
