"""Spans of many pages as a column, and back."""

import numpy as np
import polars as pl
import pyarrow as pa

from ..web.pages.spans import Span
from .components.document_schema import SPANS


class SpanLists:
    """Spans of pages, one after another; pages are numbers of rows, which ascend."""

    def __init__(self) -> None:
        self._spans: list[Span] = []
        self._rows: list[int] = []
        self._ends: list[int] = []

    def add(self, row: int, spans: list[Span]) -> None:
        """Adds the spans of a page."""
        if spans:
            self._spans += spans
            self._rows.append(row)
            self._ends.append(len(self._spans))

    def column(self, rows: int) -> pa.Array:
        """Returns SPANS of all rows; rows without spans are null.

        Args:
            rows: Number of rows.

        >>> lists = SpanLists()
        >>> lists.add(1, [("rule", 0, 0, 0, "")])
        >>> lists.column(2).to_pylist()
        [None, [{'kind': 'rule', 'start': 0, 'end': 0, 'level': 0, 'of': ''}]]
        """
        lengths = np.zeros(rows, np.int64)
        lengths[self._rows] = np.diff(self._ends, prepend=0)
        offsets = np.concatenate(([0], np.cumsum(lengths)))
        fields = [SPANS.value_type.field(number) for number in range(SPANS.value_type.num_fields)]
        columns = zip(*self._spans, strict=True) if self._spans else [()] * len(fields)
        arrays = [
            pa.array(values, field.type) for values, field in zip(columns, fields, strict=True)
        ]
        return pa.LargeListArray.from_arrays(
            offsets, pa.StructArray.from_arrays(arrays, fields=fields), mask=pa.array(lengths == 0)
        )


def spans_of_blocks(blocks: pl.Series) -> list[list[Span]]:
    """Returns the spans of each page; null is no span.

    Args:
        blocks: SPANS.
    """
    numbers = blocks.list.len().fill_null(0)
    rows = blocks.filter(numbers > 0).explode().struct.unnest()
    spans = list(zip(*(column.to_list() for column in rows.iter_columns()), strict=True))
    ends = numbers.cum_sum().to_list()
    return [spans[start:end] for start, end in zip([0, *ends], ends, strict=False)]
