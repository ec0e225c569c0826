"""Tablets: parts of a component by key range, each a base file with runs on it.

A base has the rows of its range in key order. A run is a small file with the
rows of the range that an operation changed or added. If several files have a row of
the same key, the row of the newest run counts. ``ranges`` plans tablets, ``resolve``
writes them, ``fold`` reads them.
"""

import dataclasses
from collections.abc import Iterable
from functools import cached_property

import pyarrow as pa

from ...policy.components.kinds import kind_of
from ...web.urls.row_keys import host_key_of
from .file_lists import DataFile

# Each row of a tablet has a number: its position in the base. The numbers of rows that runs
# have added follow. A run has the number of each of its rows, so folding compares no keys.
ROW_NUMBER = "row_number"


@dataclasses.dataclass(frozen=True)
class Due:
    """Times at which a row is due, ms: ``until`` or earlier, or later than ``far``."""

    until: int
    far: int | None = None


@dataclasses.dataclass(frozen=True)
class Tablet:
    """A base and its runs, with the zone map of all these files.

    Attributes:
        base: The base.
        runs: Runs on it, oldest first.
    """

    base: DataFile
    runs: tuple[DataFile, ...] = ()

    @cached_property
    def files(self) -> tuple[DataFile, ...]:
        return (self.base, *self.runs)

    @property
    def paths(self) -> tuple[str, ...]:
        return tuple(file.path for file in self.files)

    @property
    def rows(self) -> int:
        """Number of rows; no row is counted twice."""
        return sum(file.live_rows for file in self.files)

    @property
    def run_rows(self) -> int:
        return sum(run.rows for run in self.runs)

    @property
    def bytes(self) -> int:
        return sum(file.bytes for file in self.files)

    @cached_property
    def first(self) -> str | None:
        return min((file.first for file in self.files if file.first is not None), default=None)

    @cached_property
    def last(self) -> str | None:
        return max((file.last for file in self.files if file.last is not None), default=None)

    @cached_property
    def min_time(self) -> int | None:
        """Lower bound of the times of ``Kind.zone``, ms; None if unknown."""
        times = [file.min_time for file in self.files]
        return min(time for time in times if time is not None) if None not in times else None

    @cached_property
    def max_time(self) -> int | None:
        """Upper bound of the times of ``Kind.zone``, ms; None if unknown."""
        times = [file.max_time for file in self.files]
        return max(time for time in times if time is not None) if None not in times else None

    def may_have(self, due: Due) -> bool:
        """Returns whether a row may be due, by the zone map."""
        if self.min_time is None or self.max_time is None:
            return True
        far = due.far is not None and self.max_time > due.far
        return self.min_time <= due.until or far


def tablets(files: Iterable[DataFile]) -> list[Tablet]:
    """Returns the tablets of a component in key order.

    Args:
        files: Its live files, in any order.
    """
    runs: dict[str, list[DataFile]] = {}
    bases = []
    for file in files:
        if file.base is None:
            bases.append(file)
        else:
            runs.setdefault(file.base, []).append(file)
    component_tablets = [
        Tablet(base, tuple(sorted(runs.get(base.path, ()), key=lambda run: run.order)))
        for base in bases
    ]
    return sorted(component_tablets, key=lambda tablet: (tablet.first or "", tablet.last or ""))


def tablets_of_component(component: str, files: Iterable[DataFile]) -> list[Tablet]:
    """Returns the tablets of a component; if it is not in tablets, one tablet per file."""
    return tablets(files) if kind_of(component).in_tablets else [Tablet(file) for file in files]


def rows_of_large_hosts(files: Iterable[DataFile]) -> dict[str, int]:
    """Returns the number of rows of large hosts (reversed) in tablets that have no other host.

    Args:
        files: The state's live files, in any order.
    """
    rows_by_host: dict[str, int] = {}
    for tablet in tablets(files):
        first, last = host_key_of(tablet.first or ""), host_key_of(tablet.last or "")
        if first and first == last:
            rows_by_host[first] = rows_by_host.get(first, 0) + tablet.rows
    return rows_by_host


def with_number(schema: pa.Schema) -> pa.Schema:
    """Returns the columns of a run: those of its rows, and the row's number in the tablet."""
    return schema.append(pa.field(ROW_NUMBER, pa.uint32()))


def run_schema(component: str) -> pa.Schema:
    """Returns the declared columns of a component's runs."""
    return with_number(kind_of(component).schema)


def host_start(key: str) -> str:
    """Returns the smallest key of the host of ``key``.

    >>> host_start("com.foo:http/a"), host_start("[::1]:http/"), host_start("com.foo")
    ('com.foo:', '[::1]:', 'com.foo')
    """
    return key[: len(host_key_of(key)) + 1]
