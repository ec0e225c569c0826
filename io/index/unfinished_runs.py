"""Finds the pages that interrupted index runs may have sent.

Before a run sends a part of the work, it writes the row keys of the part into its folder of
receipts. If it never commits, the next run corrects these pages in the index.
"""

import contextlib
import dataclasses
import json
import re
from collections.abc import Iterator

from ...web.base.safe_json import read_json
from ..disk.table_names import checked_part
from ..snapshots.operations import has_ended, pinned_operation
from ..storage.files import create_exclusive, list_files, read_if_there, remove_file
from ..storage.places import Place
from .index_run import IndexRun
from .receipts import INTENT, lost_mark

_ENDED = "ended.json"
_NUMBER = re.compile(r"[0-9]{1,18}")
# A run that another one has overtaken stops at its next part: by now it has.
_LONGEST_PART_MS = 600_000


@dataclasses.dataclass(frozen=True)
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


def intents(task: IndexRun) -> Iterator[Intent]:
    """Yields what unfinished runs have begun to send."""
    for file in sorted(list_files(task.all_receipts), key=lambda file: file.path):
        folder = file.path.parent.name
        if file.path.suffix == INTENT and folder != task.receipts.name:
            yield Intent(file.path, file.bytes, _version(folder) == task.last.version)


def note_ended(task: IndexRun) -> None:
    """Notes which unfinished runs send nothing any more; called before ``intents``."""
    own = task.receipts.name
    folders = {file.path.parent for file in list_files(task.all_receipts)} - {task.all_receipts}
    names = {folder.name for folder in folders} - {own}
    ended = [name for name in names if _has_ended(task, name)]
    create_exclusive(task.receipts / _ENDED, json.dumps(sorted(ended)).encode())


def _has_ended(task: IndexRun, folder: str) -> bool:
    version, name = _version(folder), folder.partition("-")[2]
    if name == task.operation.id:  # it has lost, and was started again
        return True
    if version < task.last.version < task.version - _LONGEST_PART_MS:
        return True
    operation = pinned_operation(task.operation.address, name)
    return operation is None or has_ended(operation)


def forget_receipts(task: IndexRun) -> None:
    """Removes the receipts of a run that has committed, and of those whose pages it corrected."""
    noted = read_if_there(task.receipts / _ENDED)
    # A run that only deletes has sent no text again.
    corrected = _names_in(noted) if noted is not None and not task.cleans else []
    for name in (*corrected, task.receipts.name):
        (task.all_receipts / name).remove_tree()
    if task.full or not task.outside:
        remove_file(lost_mark(task.all_receipts))


def _names_in(data: bytes) -> list[str]:
    """Returns the names of folders in a note of ``note_ended``; a damaged note has none.

    >>> _names_in(b'["0000000000017-a.index"]'), _names_in(b'["../../state"]'), _names_in(b"{")
    (['0000000000017-a.index'], [], [])
    """
    with contextlib.suppress(ValueError, TypeError):
        return [checked_part(name) for name in read_json(data)]
    return []


def _version(folder: str) -> int:
    """Returns the number of a run by the name of its folder; 0 for other folders.

    >>> _version("0000000000017-1790000000-abcd.index"), _version("mine")
    (17, 0)
    """
    number = folder.partition("-")[0]
    return int(number) if _NUMBER.fullmatch(number) else 0
