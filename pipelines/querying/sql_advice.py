"""Corrects DuckDB's error messages: removes advice that does not apply to ``sql``."""

import re
from collections.abc import Iterable

_NO_TABLE = re.compile(r'Table with name "?([^"\s]+)"? does not exist.*', re.DOTALL)
_SUGGESTION = re.compile(r'(?<=does not exist)! Did you mean ".*"\?')
_EXTENSION = re.compile(r", but it exists in the (\S+) extension.*", re.DOTALL)
_CODE = re.compile(r"^Conversion Error: Could not convert string '(.*)' to \w+ when casting from "
                   r"source column (\w+)$")  # fmt: skip
_TIME = re.compile(r"(TIMESTAMP.*(?:INTEGER|BIGINT)|(?:INTEGER|BIGINT).*TIMESTAMP).*"
                   r"an explicit cast is required")  # fmt: skip


def with_advice(message: str, views: Iterable[str]) -> str:
    """Replaces DuckDB's advice in an error message with advice that fits our views.

    Args:
        message: The message as one line.
        views: Names of the views.

    >>> with_advice('Catalog Error: Table with name x does not exist! Did you mean "y"?', ["state"])
    "there is no view 'x': the views are state"
    """
    match = _NO_TABLE.search(message)
    if match:
        return f"there is no view {match[1]!r}: the views are {', '.join(views)}"
    if match := _CODE.match(message):
        return f"values of {match[2]} are names, such as {match[1]!r}, not numbers"
    if _TIME.search(message):
        return "times are timestamps: compare them with TIMESTAMP '2026-01-31 12:00:00'"
    if "file system operations are disabled" in message:
        return f"{message.partition(' - ')[0]}: sql reads only the files of the table"
    message = _EXTENSION.sub(": it is in the extension \\1, and sql loads no extension", message)
    return _SUGGESTION.sub("", message)
