"""Writes values of options as toml."""

import json
import re
from typing import Any

_CONTROL = re.compile(r"[\x00-\x1f\x7f]")


def toml_value(value: Any) -> str:
    r"""Returns a value of an option as toml; None is the empty text.

    Raises:
        TypeError: No option has a value of this type.

    >>> print(toml_value("a\"b"), toml_value(r"\.gif$"), toml_value(2.5), toml_value(("a", "b")))
    "a\"b" '\.gif$' 2.5 ["a", "b"]
    """
    if value is None:
        return '""'
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int | float):
        return repr(value)
    if isinstance(value, tuple | list):
        return f"[{', '.join(map(toml_value, value))}]"
    if not isinstance(value, str):
        raise TypeError(f"no toml for {value!r}")
    if "\\" in value and "'" not in value and not _CONTROL.search(value):
        return f"'{value}'"
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
