"""Quotes values in messages."""

_LONGEST = 100


def quoted(value: object) -> str:
    """Returns the ``repr`` of a value, cut where it is long.

    >>> quoted("a" * 200)[-9:]
    "aaaaa...'"
    """
    text = repr(value)
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 4]}...{text[-1]}"
