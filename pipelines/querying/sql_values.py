"""Values in results of queries, for JSON, CSV and people."""

import base64
import datetime
import json
import math
from collections.abc import Sequence
from decimal import Decimal
from typing import Any


def plain_value(value: Any) -> Any:
    """Returns a value for JSON: bytes in base64, times in ISO form; those of the table are UTC."""
    if isinstance(value, bytes | bytearray | memoryview):
        return base64.b64encode(value).decode()
    if isinstance(value, datetime.datetime):
        return _iso(value)
    if isinstance(value, datetime.date | datetime.time):
        return value.isoformat()
    if isinstance(value, dict):
        return {str(name): plain_value(v) for name, v in value.items()}
    if isinstance(value, list | tuple):
        return [plain_value(v) for v in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None  # JSON has neither infinity nor NaN
    is_plain = value is None or isinstance(value, str | int | float | Decimal)
    return value if is_plain else str(value)


def readable_value(value: Any) -> Any:
    """Returns a value for people: bytes as text, as far as they are text."""
    if isinstance(value, bytes | bytearray | memoryview):
        return bytes(value).decode("utf-8", "backslashreplace")
    return plain_value(value)


def _iso(time: datetime.datetime) -> str:
    utc = time.astimezone(datetime.UTC).replace(tzinfo=None) if time.tzinfo else time
    return (
        utc.isoformat(timespec="microseconds" if utc.microsecond % 1000 else "milliseconds") + "Z"
    )


def json_text(value: Any, *, ascii_only: bool = True) -> str:
    """Returns a value as JSON; a decimal is a number with all of its digits.

    Args:
        value: As ``plain_value`` returns it.
        ascii_only: Whether characters beyond ASCII are escaped.

    >>> json_text({"a": [Decimal("0.10"), Decimal("12345678901234567890.5")], "b": "c"})
    '{"a": [0.10, 12345678901234567890.5], "b": "c"}'
    """
    try:
        return json.dumps(value, ensure_ascii=ascii_only)
    except TypeError:  # json writes no decimals
        pass
    if isinstance(value, dict):
        pairs = ((json_text(n), json_text(v, ascii_only=ascii_only)) for n, v in value.items())
        return f"{{{', '.join(f'{name}: {text}' for name, text in pairs)}}}"
    if isinstance(value, list):
        return f"[{', '.join(json_text(each, ascii_only=ascii_only) for each in value)}]"
    return f"{value:f}"


def unique_names(names: Sequence[str]) -> list[str]:
    """Returns the names of columns; of equal names the later ones get a number.

    >>> unique_names(["url", "url", "n", "url", "url_1"])
    ['url', 'url_2', 'n', 'url_3', 'url_1']
    """
    taken = set(names)
    unique: dict[str, None] = {}
    for name in names:
        candidate, number = name, 1
        while candidate in unique or (number > 1 and candidate in taken):
            candidate, number = f"{name}_{number}", number + 1
        unique[candidate] = None
    return list(unique)
