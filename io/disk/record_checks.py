"""Checks records of a table: their format, as a newer nutbeam may have written them, and their values.

A table may come from a stranger. Numbers are so small that sums of them fit into 64 bits, as
frames and files hold them.
"""

import functools
import math
import re
from collections.abc import Callable, Mapping
from importlib.metadata import version
from typing import Any

from ...policy.components.vocabulary import PHASES_WITH_OPTIONS
from ...web.base.errors import UserError
from .table_names import LONGEST_NAME, checked_name, checked_part

# Name of the field with the version of nutbeam that wrote a record.
WRITER = "written_by"
Check = Callable[[Any], object]
_MOST = 1 << 53


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
    nutbeam.io.disk.record_checks.NewerFormat: the table has format 9, this version reads up to 2: upgrade nutbeam to 3.1 or newer
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


def check_number(value: Any, least: int = -_MOST) -> None:
    """Checks that a value is a whole number.

    Raises:
        ValueError: It is none, or too large.

    >>> check_number(10 ** 200)
    Traceback (most recent call last):
    ...
    ValueError: is no number that can be: a number of 201 digits
    """
    if type(value) is not int or not least <= value <= _MOST:
        large = type(value) is int and abs(value) > _MOST
        shown = f"a number of {len(str(abs(value)))} digits" if large else repr(value)[:50]
        raise ValueError(f"is no number that can be: {shown}")


def check_count(value: Any) -> None:
    """Checks that a value is a whole number of at least zero."""
    check_number(value, 0)


def check_text(value: Any) -> None:
    """Checks that a value is a text that can be written as UTF-8."""
    if not isinstance(value, str) or (not value.isascii() and _has_surrogates(value)):
        raise ValueError(f"is no text: {value!r}"[:100])


def check_printable(value: Any) -> None:
    """Checks that a value is the name of a job or of an operation: short, and as it is shown."""
    check_text(value)
    if not value.isprintable() or len(value) > LONGEST_NAME:
        raise ValueError(f"is no name: {value!r}"[:100])


def check_option(value: Any) -> None:
    """Checks that a value is one of an option in JSON: a plain value, or a list of plain values.

    >>> check_option(["/a", "b c"])
    >>> check_option([["/a"]])
    Traceback (most recent call last):
    ...
    ValueError: is no value of an option: ['/a']
    """
    for one in value if isinstance(value, list) else [value]:
        if type(one) is int:
            check_number(one)
        elif type(one) is float and not math.isfinite(one):
            raise ValueError(f"is no number that can be: {one}")
        elif one is not None and type(one) not in (bool, float, str):
            raise ValueError(f"is no value of an option: {one!r}"[:100])


def check_options(values: Any) -> None:
    """Checks options of an operation; those by which a batch got to a phase are a level deeper.

    >>> check_options({"top_n": 5, "parsed": {"scope": "host"}})
    >>> check_options({"parsed": [1]})
    Traceback (most recent call last):
    ...
    TypeError: is no object: [1]
    """
    if not isinstance(values, Mapping):
        raise TypeError(f"is no object: {values!r}"[:100])
    flat = each_item(check_text, check_option)
    flat({name: value for name, value in values.items() if name not in PHASES_WITH_OPTIONS})
    for name in PHASES_WITH_OPTIONS:
        flat(values.get(name, {}))


def unless_none(check: Check) -> Check:
    """Returns a check that also passes None."""
    return lambda value: None if value is None else check(value)


def each(check: Check) -> Check:
    """Returns a check of each value of a list, a tuple or a set."""

    def check_each(values: Any) -> None:
        if not isinstance(values, list | tuple | set | frozenset):
            raise TypeError(f"is no list: {values!r}"[:100])
        for value in values:
            check(value)

    return check_each


def each_item(check_key: Check, check: Check) -> Check:
    """Returns a check of each key and value of a mapping."""

    def check_items(values: Any) -> None:
        if not isinstance(values, Mapping):
            raise TypeError(f"is no object: {values!r}"[:100])
        for key, value in values.items():
            check_key(key)
            check(value)

    return check_items


def check_fields(record: object, checks: Mapping[str, Check]) -> None:
    """Checks attributes of a record.

    Raises:
        ValueError: One of them has another type, is too large, or names a file outside of the table.
    """
    for name, check in checks.items():
        try:
            check(getattr(record, name))
        except (ValueError, TypeError) as error:
            raise ValueError(f"{name} {error}"[:200]) from None


def _has_surrogates(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return True
    return False


# The fields of a manifest's entry for a component.
COMPONENT_CHECKS: Mapping[str, Check] = {
    "list": checked_name,
    "content": unless_none(checked_name),
    "crc32": unless_none(check_count),
    **dict.fromkeys(("files", "rows", "bytes"), check_count),
}
# Those of the record of a batch, besides its phase.
BATCH_CHECKS: Mapping[str, Check] = {
    **dict.fromkeys(("created", "blocks_until"), check_number),
    **dict.fromkeys(("partitions", "urls", "updated"), check_count),
    "taken_in": each(check_text),
    "segment": check_text,
}
# Those of a manifest.
MANIFEST_CHECKS: Mapping[str, Check] = {
    **dict.fromkeys(("snapshot", "latest", "earliest", "committed"), check_count),
    **dict.fromkeys(("operation", "job"), check_text),
    "batch": unless_none(checked_part),
    "time": check_number,
    "counts": each_item(check_text, check_number),
    "components": each_item(checked_name, lambda one: check_fields(one, COMPONENT_CHECKS)),
    "batches": each_item(checked_part, lambda one: check_fields(one, BATCH_CHECKS)),
    "restores": unless_none(check_count),
    "lost": each(check_count),
    "right_since": unless_none(check_number),
    "options": check_options,
    "rules": each_item(check_text, check_option),
}
# Those of what a table keeps of a manifest when its snapshot expires.
PAST_CHECKS: Mapping[str, Check] = {
    **{name: MANIFEST_CHECKS[name] for name in ("snapshot", "batch", "time", "counts", "restores")},
    **dict.fromkeys(("operation", "job"), check_printable),
}
