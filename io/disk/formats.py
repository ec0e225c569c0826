"""Format versions of records of a table, so that an older nutbeam refuses newer records."""

import functools
import re
from collections.abc import Mapping
from importlib.metadata import version
from typing import Any

from ...web.base.errors import UserError

# Name of the field with the version of nutbeam that wrote a record.
WRITER = "written_by"


class NewerFormat(UserError):
    """A later version of nutbeam wrote the record."""


@functools.cache
def this_version() -> str:
    """Returns the version of the installed nutbeam."""
    return version("nutbeam")


def check_format(record: Mapping[str, Any], newest: int, label: str) -> None:
    r"""Checks that this version can read a record.

    Args:
        record: The record; has ``format``, and perhaps ``WRITER``.
        newest: The newest format that this version reads.
        label: The record's name in errors.

    Raises:
        NewerFormat: The record has a newer format.
        ValueError: The format is not an integer.

    >>> check_format({"format": 9, WRITER: "3.1"}, 2, "the table")
    Traceback (most recent call last):
    ...
    nutbeam.io.disk.formats.NewerFormat: the table has format 9, this version reads up to 2: upgrade nutbeam to 3.1 or newer
    """
    if type(record["format"]) is not int:
        raise ValueError(f"format is {record['format']!r}"[:100])
    if record["format"] > newest:
        writer = record.get(WRITER)
        named = isinstance(writer, str) and re.fullmatch(r"[\w.+-]{1,30}", writer)
        raise NewerFormat(
            f"{label} has format {record['format']!r}, this version reads up to {newest}: upgrade "
            f"nutbeam{f' to {writer} or newer' if named else ''}"
        )
