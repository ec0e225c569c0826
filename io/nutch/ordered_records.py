"""Reads the records of a map file from one URL to the next; such a file is in the order of its URLs."""

from collections.abc import Iterator

import polars as pl

from ...web.hadoop.hadoop_faults import HadoopFault, OnFault
from .nutch_sources import NutchFile
from .sequence_reading import first_url_after, read_part

# The file is read from a place that is at most so far before the first URL.
_STEP_BYTES = 8 << 20


class OrderedRecords:
    """The records of a file; they are read once, from a URL on, as far as they are taken.

    Args:
        file: The file.
        schema: Columns of its records, see ``read_part``.
        first: The first URL; None: from the start.
        on_fault: Called for each damaged part from there on.
    """

    def __init__(
        self, file: NutchFile, schema: pl.Schema, first: str | None, on_fault: OnFault
    ) -> None:
        self._first = first
        self._on_fault = on_fault
        self._waiting = self._none = pl.DataFrame(schema=schema)
        self._frames = self._read(file)

    def take_before(self, end: str | None) -> pl.DataFrame:
        """Returns the records that were not taken and whose URL is less; None: all that follow."""
        taken, rows = [self._none], self._waiting
        while rows.is_empty() or end is None or str(rows.item(-1, "url")) < end:
            taken.append(rows)
            following = next(self._frames, None)
            if following is None:
                rows = self._none
                break
            rows = following
        is_before = pl.col("url") < end
        self._waiting = rows.filter(~is_before)
        return pl.concat([*taken, rows.filter(is_before)])

    def _read(self, file: NutchFile) -> Iterator[pl.DataFrame]:
        faults = list[HadoopFault]()
        start = 0 if self._first is None else _start_of(file, self._first)
        for rows in read_part(file.kind, file.address, (start, None), faults.append):
            if self._first is not None:
                rows = rows.filter(pl.col("url") >= self._first)
            if self._first is None or len(rows):
                self._report(faults)
            faults.clear()  # others come before the first URL
            yield rows
        self._report(faults)

    def _report(self, faults: list[HadoopFault]) -> None:
        for fault in faults:
            self._on_fault(fault)


def _start_of(file: NutchFile, url: str) -> int:
    """Returns a place in a file before its first record with this URL or a later one."""
    start, end = 0, file.size
    while end - start > _STEP_BYTES:
        middle = (start + end) // 2
        first = first_url_after(file.kind, file.address, middle)
        if first is not None and first < url:
            start = middle
        else:
            end = middle
    return start
