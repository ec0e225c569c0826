"""Formats of what a table says of itself: numbers that rise when older versions could not read it."""

import functools
import json
import re
from collections.abc import Mapping
from importlib.metadata import version
from typing import Any

from ...web.base.errors import UserError

# In what is written: which nutbeam did that.
WRITER = "written_by"


class NewerFormat(UserError):
    """A later version of nutbeam has written what is to be read."""


def json_object(data: bytes) -> dict[str, Any]:
    """Returns the JSON object that a file holds.

    Raises:
        ValueError: It holds something else; in words that a user understands.

    >>> json_object(b"[1]")
    Traceback (most recent call last):
    ...
    ValueError: it is no JSON object
    """
    try:
        record = json.loads(data)
    except (ValueError, RecursionError):  # of Python's: about bytes, digits, depth
        raise ValueError("it is no JSON that can be read") from None
    if type(record) is not dict:
        raise ValueError("it is no JSON object")
    return record


@functools.cache
def this_version() -> str:
    """Returns the version of nutbeam that runs."""
    return version("nutbeam")


def check_format(record: Mapping[str, Any], known: int, called: str) -> None:
    r"""Checks that this version can read a record.

    Args:
        record: With ``format``, and with ``WRITER`` where its writer noted that.
        known: The newest format that this version reads.
        called: What an error calls the record.

    Raises:
        NewerFormat: It has a newer format.
        ValueError: Its format is no whole number.

    >>> check_format({"format": 9, WRITER: "3.1"}, 2, "the table")
    Traceback (most recent call last):
    ...
    nutbeam.io.storage.formats.NewerFormat: the table has format 9, this version reads up to 2: upgrade nutbeam to 3.1 or newer
    """
    if type(record["format"]) is not int:
        raise ValueError(f"format is {record['format']!r}"[:100])
    if record["format"] > known:
        writer = record.get(WRITER)
        told = isinstance(writer, str) and re.fullmatch(r"[\w.+-]{1,30}", writer)
        raise NewerFormat(
            f"{called} has format {record['format']!r}, this version reads up to {known}: upgrade "
            f"nutbeam{f' to {writer} or newer' if told else ''}"
        )
