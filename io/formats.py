"""Formats of what a table says of itself: numbers that rise when older versions could not read it."""

import functools
import re
from collections.abc import Mapping
from importlib.metadata import version
from typing import Any

from ..web.errors import UserError

# In what is written: which nutbeam did that.
WRITER = "written_by"


class NewerFormat(UserError):
    """A later version of nutbeam has written what is to be read."""


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

    >>> check_format({"format": 9, WRITER: "3.1"}, 2, "the table")
    Traceback (most recent call last):
    ...
    nutbeam.io.formats.NewerFormat: the table has format 9, this version reads up to 2: upgrade nutbeam to 3.1 or newer
    """
    if record["format"] > known:
        writer = record.get(WRITER)
        told = isinstance(writer, str) and re.fullmatch(r"[\w.+-]{1,30}", writer)
        raise NewerFormat(
            f"{called} has format {record['format']!r}, this version reads up to {known}: upgrade "
            f"nutbeam{f' to {writer} or newer' if told else ''}"
        )
