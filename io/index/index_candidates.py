"""Finds the tablets and files in which pages may have changed their place in an index.

Its cost follows what has changed since the last run: rows in new files of the state, and in
Bigtable cells of later snapshots.
"""

import dataclasses
import functools
from collections.abc import Callable, Iterable, Iterator

from ..snapshots.manifest import load_manifest
from ..snapshots.operations import Operation
from ..tablets.file_lists import DataFile, load_files
from ..tablets.tablets import Tablet, tablets
from .index_run import IndexRun, journal_before
from .unfinished_runs import Intent, intents

_INTENTS_AT_ONCE = 64 << 20  # bytes of keys of unfinished runs that one item looks at


@dataclasses.dataclass(frozen=True)
class Changed:
    """A tablet of the state, whose rows may have changed since the index was written.

    Attributes:
        operation: The operation.
        number: Number of the item.
        tablet: The tablet.
        since: The snapshot that the index shows; 0: all rows count.
        indexed_paths: Paths of the state's files in that snapshot.
    """

    operation: Operation
    number: int
    tablet: Tablet
    since: int
    indexed_paths: frozenset[str] = frozenset()


@dataclasses.dataclass(frozen=True)
class Removed:
    """A tablet of the journal, some of whose pages may have left the table.

    Attributes:
        operation: The operation.
        number: Number of the item.
        tablet: The tablet.
        ranges: Ranges of keys, both ends included, that may have lost rows; None: everything.
    """

    operation: Operation
    number: int
    tablet: Tablet
    ranges: tuple[tuple[str, str], ...] | None = None


@dataclasses.dataclass(frozen=True)
class PurgedPages:
    """A tablet of an older journal, some of whose rows a purge may have removed."""

    operation: Operation
    number: int
    tablet: Tablet


@dataclasses.dataclass(frozen=True)
class IndexedPages:
    """A tablet of the journal, all of whose pages are looked up, to delete those that must go."""

    operation: Operation
    number: int
    tablet: Tablet


@dataclasses.dataclass(frozen=True)
class Unfinished:
    """Pages that runs have begun to send that never committed: a server may have them.

    Attributes:
        operation: The operation.
        number: Number of the item.
        intents: The parts of these runs.
        share: Number of the item among those that share the pages, by hashes of their keys.
        shares: How many these are.
    """

    operation: Operation
    number: int
    intents: tuple[Intent, ...]
    share: int = 0
    shares: int = 1


@dataclasses.dataclass(frozen=True)
class RefusedPages:
    """Files of dead letters, whose pages are sent again if they have not changed.

    Attributes:
        operation: The operation.
        number: Number of the item.
        files: The files.
    """

    operation: Operation
    number: int
    files: tuple[DataFile, ...]


Candidate = Changed | Removed | PurgedPages | IndexedPages | Unfinished | RefusedPages


def candidates(task: IndexRun) -> Iterator[Candidate]:
    """Yields the tablets and files that a run must read."""
    for number, make in enumerate(_items(task)):
        yield make(task.operation, number)


def _items(task: IndexRun) -> Iterator[Callable[[Operation, int], Candidate]]:
    """Yields functions that make items of an operation and their numbers."""
    # A page is in one item, so that it is not deleted twice.
    parts = () if task.full or not task.outside else tuple(intents(task))
    shares = 1 + sum(part.bytes for part in parts) // _INTENTS_AT_ONCE if parts else 0
    for share in range(shares):
        yield functools.partial(Unfinished, intents=parts, share=share, shares=shares)
    if task.cleans:
        for tablet in tablets(task.files("indexed")):
            yield functools.partial(IndexedPages, tablet=tablet)
        return
    operation = task.operation
    again = task.retries_refused and not task.full
    for file in task.files("dead_letters") if again else ():
        yield functools.partial(RefusedPages, files=(file,))
    old_files = _indexed_state_files(task)
    paths = frozenset(file.path for file in old_files)
    changed, ranges = operation.table.changed_tablets("state", old_files, operation.files("state"))
    for tablet in changed:
        yield functools.partial(Changed, tablet=tablet, since=task.since, indexed_paths=paths)
    for tablet in tablets(task.files("indexed")):
        near = _near(tablet, ranges) if task.since else None
        if near is None or near:
            yield functools.partial(Removed, tablet=tablet, ranges=near)
    for tablet in () if task.full else tablets(journal_before(operation, task.index)):
        yield functools.partial(PurgedPages, tablet=tablet)


def _indexed_state_files(task: IndexRun) -> list[DataFile]:
    """Returns the state's files in the snapshot that the index shows."""
    table = task.operation.table
    components = load_manifest(table, task.since).components if task.since else {}
    return load_files(table, components.get("state"))


def _near(tablet: Tablet, ranges: Iterable[tuple[str, str]]) -> tuple[tuple[str, str], ...]:
    first, last = str(tablet.first), str(tablet.last)
    return tuple((low, high) for low, high in ranges if low <= last and first <= high)
