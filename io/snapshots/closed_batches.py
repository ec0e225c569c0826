"""Lists of closed batches: so that a commit writes few bytes, however long the history is.

A batch is closed when it is updated. A manifest has the entries of the newest closed batches itself.
Those of older ones are in immutable lists, ``manifest/closed/NAME.json``, and the manifest names these.
``close_batches`` decides what goes where when a manifest is stored: it writes a new list when the
manifest has many closed batches, together with the entries of smaller lists, so that there are few
lists. A list whose batches have changed is written again. Each batch is in one list, or in the manifest.

Readers see all entries as one mapping, ``Listed``, which reads a list when one of its entries is
needed.
"""

import functools
import json
import zlib
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from pathlib import PurePosixPath
from typing import Any, Generic, TypeVar

from ...web.base.dataclass import dataclass
from ...web.base.errors import UserError
from ...web.base.safe_json import json_object
from ..disk.record_checks import (
    WRITER,
    Check,
    check_count,
    check_fields,
    check_format,
    check_number,
    check_text,
    each,
    this_version,
)
from ..disk.table_names import checked_name
from ..storage.file_errors import first_line, repair_advice
from ..storage.files import new_name, read_bytes, write_bytes
from ..storage.places import Folder, Place
from ..storage.table_sizes import table_sizes
from ..tablets.file_lists import Component
from .entries import (
    Batch,
    Entries,
    batch_of_component,
    entries_of_record,
    from_fields,
    record_of_entries,
)

CLOSED_FOLDER = "manifest/closed"
_FORMAT = 1
ListedEntry = TypeVar("ListedEntry")


@dataclass(frozen=True)
class BatchList:
    """A manifest's entry for a list of closed batches.

    Attributes:
        list: Path of the list.
        crc32: Its checksum.
        batches: Number of its batches.
        first: The smallest id of a batch.
        last: The largest id.
        created: The latest time of creation, ms.
        updated: The largest ``Batch.updated``.
        taken_in: Names that ``Batch.taken_in`` of all its batches has.
    """

    list: str
    crc32: int
    batches: int
    first: str
    last: str
    created: int
    updated: int
    taken_in: tuple[str, ...] = ()


_CHECKS: dict[str, Check] = {
    "list": checked_name,
    **dict.fromkeys(("crc32", "batches", "updated"), check_count),
    **dict.fromkeys(("first", "last"), check_text),
    "created": check_number,
    "taken_in": each(check_text),
}
IsNeeded = Callable[[BatchList], bool]


def batch_lists_of(records: Iterable[Mapping[str, Any]]) -> tuple[BatchList, ...]:
    """Returns the lists that a manifest names.

    Raises:
        ValueError: One of the records cannot be; or TypeError, AttributeError.
    """
    lists = [from_fields(BatchList, {**one, "taken_in": tuple(one["taken_in"])}) for one in records]
    for one in lists:
        check_fields(one, _CHECKS)
    return tuple(lists)


@dataclass(frozen=True)
class ClosedBatches:
    """The lists that a manifest names.

    Attributes:
        root: The table.
        lists: The lists, each batch in one.
        explain: Called when a list cannot be read; it raises if the snapshot has expired.
    """

    root: Folder
    lists: tuple[BatchList, ...]
    explain: Callable[[], None] = lambda: None

    def load(self, one: BatchList) -> Entries:
        """Returns the entries of a list.

        Raises:
            UserError: It is missing or damaged.
        """
        try:
            return load_batch_list(self.root, one)
        except UserError:
            self.explain()
            raise

    def around(self, batch: str) -> Iterator[BatchList]:
        """Yields the lists that may have a batch."""
        return (one for one in self.lists if one.first <= batch <= one.last)


class Listed(Mapping[str, ListedEntry], Generic[ListedEntry]):
    """Entries of a manifest: its own, and those of its lists.

    Args:
        part: Name of the field of ``Entries`` that this is.
        own: The entries of the manifest; None: the entry that a list has is gone.
        closed: The lists. An own entry counts more than that of a list.
    """

    def __init__(
        self, part: str, own: Mapping[str, ListedEntry | None], closed: ClosedBatches
    ) -> None:
        self._part, self.own, self.closed = part, own, closed

    def __getitem__(self, name: str) -> ListedEntry:
        if name not in self.own:
            batch = name if self._part == "batches" else batch_of_component(name)
            for one in self.closed.around(batch) if batch is not None else ():
                entries = self._of(one)
                if name in entries:
                    return entries[name]
        value = self.own.get(name)
        if value is None:
            raise KeyError(name)
        return value

    def __iter__(self) -> Iterator[str]:
        return (name for name, _ in self.items_of(lambda _: True))

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def __repr__(self) -> str:
        return f"Listed({self._part!r}, {self.own!r}, {self.closed.lists!r})"

    def items_of(self, is_needed: IsNeeded) -> Iterator[tuple[str, ListedEntry]]:
        """Yields the own entries, and those of the lists that are needed."""
        yield from ((name, value) for name, value in self.own.items() if value is not None)
        for one in filter(is_needed, self.closed.lists):
            yield from ((n, value) for n, value in self._of(one).items() if n not in self.own)

    def _of(self, one: BatchList) -> Mapping[str, ListedEntry]:
        entries: Mapping[str, ListedEntry] = getattr(self.closed.load(one), self._part)
        return entries

    def changed(self, changes: Mapping[str, ListedEntry | None]) -> "Listed[ListedEntry]":
        """Returns the entries after changes; None: the entry is gone."""
        return Listed(self._part, {**self.own, **changes}, self.closed)


def entries_after(
    entries: Mapping[str, ListedEntry], changes: Mapping[str, ListedEntry | None]
) -> Mapping[str, ListedEntry]:
    """Returns entries of a manifest after changes, without reading lists.

    >>> entries_after({"a": 1, "b": 2}, {"a": None, "c": 3})
    {'b': 2, 'c': 3}
    """
    if isinstance(entries, Listed):
        return entries.changed(changes)
    return _without_none({**entries, **changes})


def items_of(
    entries: Mapping[str, ListedEntry], is_needed: IsNeeded = lambda _: False
) -> Iterator[tuple[str, ListedEntry]]:
    """Yields the entries that a manifest has itself, and those of the lists that are needed."""
    return entries.items_of(is_needed) if isinstance(entries, Listed) else iter(entries.items())


def close_batches(
    root: Folder, batches: Mapping[str, Batch], components: Mapping[str, Component]
) -> tuple[Entries, tuple[BatchList, ...]]:
    """Returns the entries for a manifest that is stored now, and its lists; writes new lists.

    Args:
        root: The table.
        batches: All batches.
        components: All components.
    """
    own, lists = _written_again(root, batches, components)
    closed = sorted(name for name, batch in own.batches.items() if batch.phase == "updated")
    sizes = table_sizes()
    if len(closed) < 2 * sizes.closed_batches:
        return own, tuple(lists)
    moving, own = _divided(own, frozenset(closed[: -sizes.closed_batches]))
    while lists and lists[-1].batches <= min(
        len(moving.batches), sizes.listed_batches - len(moving.batches)
    ):
        moving = _united(load_batch_list(root, lists.pop()), moving)
    names = sorted(moving.batches)
    for start in range(0, len(names), sizes.listed_batches):
        chunk, _ = _divided(moving, frozenset(names[start : start + sizes.listed_batches]))
        lists.append(_store_list(root, chunk))
    return own, tuple(lists)


def _written_again(
    root: Folder, batches: Mapping[str, Batch], components: Mapping[str, Component]
) -> tuple[Entries, list[BatchList]]:
    """Returns the entries that are in no list, and the lists; those with changed batches are new."""
    if not (isinstance(batches, Listed) and isinstance(components, Listed)):
        return Entries(dict(batches), dict(components)), []
    if batches.closed.lists != components.closed.lists:
        return Entries(dict(batches), dict(components)), []
    own = Entries(dict(batches.own), dict(components.own))  # type: ignore[arg-type]
    ids = {*own.batches, *(name for one in own.components if (name := batch_of_component(one)))}
    lists: list[BatchList] = []
    for one in batches.closed.lists:
        near = [name for name in ids if one.first <= name <= one.last]
        if near and not batches.closed.load(one).batches.keys().isdisjoint(near):
            new_lists, own = _write_again(root, batches.closed.load(one), own)
            lists += new_lists
        else:
            lists.append(one)
    return Entries(_without_none(own.batches), _without_none(own.components)), lists


def _write_again(root: Folder, listed: Entries, own: Entries) -> tuple[list[BatchList], Entries]:
    """Writes a list with the changes of ``own``; returns it, and the entries that are in no list."""
    changed, rest = _divided(own, frozenset(listed.batches))
    whole = _united(listed, changed)
    whole = Entries(_without_none(whole.batches), _without_none(whole.components))
    closed = frozenset(n for n, batch in whole.batches.items() if batch.phase == "updated")
    still_closed, opened = _divided(whole, closed)
    lists = [_store_list(root, still_closed)] if still_closed.batches else []
    return lists, _united(rest, opened)


def _without_none(entries: Mapping[str, ListedEntry | None]) -> dict[str, ListedEntry]:
    return {name: value for name, value in entries.items() if value is not None}


def _united(one: Entries, other: Entries) -> Entries:
    return Entries(one.batches | other.batches, one.components | other.components)


def _divided(entries: Entries, batches: frozenset[str]) -> tuple[Entries, Entries]:
    """Returns the entries of some batches, and all others."""
    chosen, rest = Entries({}, {}), Entries({}, {})
    for name, batch in entries.batches.items():
        (chosen if name in batches else rest).batches[name] = batch
    for name, files in entries.components.items():
        (chosen if batch_of_component(name) in batches else rest).components[name] = files
    return chosen, rest


def _store_list(root: Folder, entries: Entries) -> BatchList:
    record = {"format": _FORMAT, WRITER: this_version()} | record_of_entries(*entries)
    data = json.dumps(record).encode()
    path = PurePosixPath(CLOSED_FOLDER) / new_name(".json")
    write_bytes(root / path, data)
    return described_list(str(path), zlib.crc32(data), entries.batches)


def described_list(path: str, crc32: int, batches: Mapping[str, Batch]) -> BatchList:
    """Returns a manifest's entry for a list that has some batches."""
    taken_in = frozenset.intersection(*(batch.taken_in for batch in batches.values()))
    return BatchList(
        path,
        crc32,
        len(batches),
        min(batches),
        max(batches),
        max(batch.created for batch in batches.values()),
        max(batch.updated for batch in batches.values()),
        tuple(sorted(taken_in)),
    )


def load_batch_list(root: Folder, one: BatchList) -> Entries:
    """Returns the entries of a list; each process reads it once.

    Raises:
        UserError: It is missing or damaged.
    """
    path = root / one.list
    return _parse_list(path, one.crc32, path.version(path.name))


@functools.lru_cache(maxsize=64)
def _parse_list(path: Place, crc32: int, version: Hashable) -> Entries:
    data = read_bytes(path)
    try:
        if zlib.crc32(data) != crc32:
            raise ValueError("its checksum differs")
        record = json_object(data)
        check_format(record, _FORMAT, f"list of batches {path}")
        return entries_of_record(record)
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise UserError(
            f"list of batches is damaged: {path}: {first_line(error)[:200]}{repair_advice(path)}"
        ) from error
