"""Reads the values of records one at a time, where their form has too many parts for columns."""

from collections.abc import Callable
from typing import TypeVar

from .byte_spans import bytes_of
from .hadoop_faults import HadoopFault, OnFault
from .sequence_files import RecordBlock
from .writables import BadWritable

_Value = TypeVar("_Value")


def read_single_values(
    block: RecordBlock, read_one: Callable[[bytes], _Value], expected: str, on_fault: OnFault
) -> tuple[list[int], list[_Value]]:
    """Returns the indexes of records, and their values.

    Args:
        read_one: Reads a value from its bytes; raises ``BadWritable``.
        expected: What a value is, for messages.
        on_fault: Called for each record that is left out.
    """
    indexes, values = [], []
    data = bytes_of(block.values)
    ends = block.value_starts + block.value_lengths
    for row, (at, end) in enumerate(zip(block.value_starts.tolist(), ends.tolist(), strict=True)):
        try:
            values.append(read_one(data[at:end]))
            indexes.append(row)
        except BadWritable as error:
            detail = f"{expected}: {error}"
            on_fault(HadoopFault("bad_value", int(block.positions[row]), detail))
    return indexes, values
