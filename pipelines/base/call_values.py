"""Checks of what a program passes to functions and methods, where no declared option does it."""

import os
from typing import Any

from ...web.base.errors import UsageError
from ...web.base.wording import quote_value

_KINDS = {str: "a text", int: "a whole number"}


def check_kind(name: str, value: Any, *kinds: type) -> None:
    """Raises UsageError if an argument has none of some types: ``str``, ``int``.

    Args:
        name: Name of the argument.
        value: Its value.
        kinds: The types that it may have; a bool is no ``int``.

    >>> check_kind("limit", "x", int)
    Traceback (most recent call last):
    nutbeam.web.base.errors.UsageError: limit must be a whole number, got 'x'
    """
    if not isinstance(value, kinds) or isinstance(value, bool):
        expected = " or ".join(_KINDS[kind] for kind in kinds)
        raise UsageError(f"{name} must be {expected}, got {quote_value(value)}")


def table_address(table: Any) -> str:
    """Returns the address of a table.

    Raises:
        UsageError: It is no text and no path, or has a character that no path can have.
    """
    address = os.fspath(table) if isinstance(table, str | os.PathLike) else None
    if not isinstance(address, str) or "\0" in address:
        raise UsageError(f"a table is named by a text or a path, got {quote_value(table)}")
    return address
