"""Keys of records: texts, and the classes that a file should have."""

from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import polars as pl

from .byte_spans import Integers, read_rows, read_texts, read_vints
from .hadoop_faults import HadoopFault, HadoopFileError, OnFault
from .sequence_files import RecordBlock, SequenceFileHeader

Mask: TypeAlias = npt.NDArray[np.bool_]
_SHORT = np.dtype([("length", ">u2")])


def check_value_class(header: SequenceFileHeader, *classes: str) -> None:
    """Refuses a file whose values are of another class, or whose keys are no texts.

    Args:
        classes: Names without the package; old versions of Nutch and Hadoop have other packages.

    Raises:
        HadoopFileError: It names the class.
    """
    if _short_name(header.key_class) not in ("Text", "UTF8"):
        raise HadoopFileError(f"keys must be Text, got {header.key_class[:200]!r}")
    if _short_name(header.value_class) not in classes:
        raise HadoopFileError(
            f"values must be {' or '.join(classes)}, got {header.value_class[:200]!r}"
        )


def _short_name(class_name: str) -> str:
    return class_name.rpartition(".")[2]


def read_record_keys(
    block: RecordBlock, header: SequenceFileHeader, on_fault: OnFault
) -> tuple[pl.Series, RecordBlock]:
    """Returns the keys as texts, and the records that have one.

    Args:
        on_fault: Called for each record whose key is no text.
    """
    if _short_name(header.key_class) == "UTF8":
        starts, lengths = _utf8_spans(block)
    else:
        lengths, widths = read_vints(block.keys, block.key_starts)
        starts = block.key_starts + widths
    intact = (starts + lengths == block.key_starts + block.key_lengths) & (lengths >= 0)
    report_rows(block, ~intact, "bad_key", "the length of a key does not fit", on_fault)
    if not intact.all():
        starts, lengths, block = starts[intact], lengths[intact], choose_records(block, intact)
    return read_texts(block.keys, starts, lengths), block


def _utf8_spans(block: RecordBlock) -> tuple[Integers, Integers]:
    lengths = np.full(block.rows, -1)
    long_enough = block.key_lengths >= _SHORT.itemsize
    rows = read_rows(block.keys, block.key_starts[long_enough], _SHORT)
    lengths[long_enough] = rows["length"]
    return block.key_starts + _SHORT.itemsize, lengths


def choose_records(block: RecordBlock, mask: Mask) -> RecordBlock:
    """Returns the records at which the mask is true."""
    return RecordBlock(
        block.keys, block.key_starts[mask], block.key_lengths[mask],
        block.values, block.value_starts[mask], block.value_lengths[mask],
        block.positions[mask],
    )  # fmt: skip


def report_rows(
    block: RecordBlock, mask: Mask, reason: str, detail: str, on_fault: OnFault
) -> None:
    """Calls ``on_fault`` for each record at which the mask is true."""
    for position in block.positions[mask].tolist():
        on_fault(HadoopFault(reason, position, detail))
