"""Parses untrusted JSON; every error is a ``ValueError``."""

import json
from typing import Any


def read_json(data: bytes | str) -> Any:
    """Returns the value of a JSON text.

    Raises:
        ValueError: The text is not JSON, or is nested too deeply.

    >>> read_json(b"[" * 100_000)
    Traceback (most recent call last):
    ...
    ValueError: it is no JSON that can be read
    """
    try:
        return json.loads(data)
    except (
        ValueError,
        RecursionError,
        MemoryError,
    ):  # Python's messages are about bytes, digits, depth
        raise ValueError("it is no JSON that can be read") from None


def json_object(data: bytes | str) -> dict[str, Any]:
    """Returns a JSON object.

    Raises:
        ValueError: The text is not a JSON object; the message is for users.

    >>> json_object(b"[1]")
    Traceback (most recent call last):
    ...
    ValueError: it is no JSON object
    """
    record = read_json(data)
    if type(record) is not dict:
        raise ValueError("it is no JSON object")
    return record


def object_or_empty(data: bytes | str) -> dict[str, Any]:
    """Returns a JSON object, or an empty object if the text is anything else.

    >>> object_or_empty(b'{"a": 1}'), object_or_empty(b""), object_or_empty("[1]")
    ({'a': 1}, {}, {})
    """
    try:
        return json_object(data)
    except ValueError:
        return {}


def storable_text(text: str) -> str:
    """Returns text without lone surrogates and NULs, which JSON's escapes can make."""
    return text.replace("\0", "").encode("utf-8", "replace").decode()
