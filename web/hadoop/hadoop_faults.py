"""Faults of Hadoop's files: what cannot be read at all is an error, damaged parts are faults."""

from collections.abc import Callable
from typing import NamedTuple

from ..base.errors import UserError


class HadoopFileError(UserError):
    """A file cannot be read as what it should be; the message says why and names what is unknown."""


class HadoopFault(NamedTuple):
    """A part of a file that was left out.

    Attributes:
        reason: Why, one word of ``HADOOP_REASONS``.
        position: Byte of the file at which the damaged part begins: a record, or a compressed block.
        detail: What was expected there, for messages.
    """

    reason: str
    position: int
    detail: str = ""


OnFault = Callable[[HadoopFault], None]
HADOOP_REASONS = {
    "truncated_file": "The file ends within a record.",
    "bad_record_length": "A length is negative, more than 256 MB, or leads beyond a sync mark; or a key has no bytes.",
    "bad_sync_mark": "A sync mark is missing, or is that of another file.",
    "broken_compression": "Compressed bytes cannot be decompressed.",
    "bad_key": "A key is no text.",
    "bad_value": "A value is not of the class that the file names.",
    "bad_metadata": "A map of metadata has an unknown class, or its bytes are damaged.",
}


def raise_fault(fault: HadoopFault) -> None:
    """Raises the error that a fault is where nobody counts faults.

    Raises:
        HadoopFileError: Always.
    """
    raise HadoopFileError(f"{fault.reason} at byte {fault.position}: {fault.detail}")
