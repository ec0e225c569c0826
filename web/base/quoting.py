"""Quotes values in messages."""

_LONGEST = 200


def quoted(value: object) -> str:
    """Returns the ``repr`` of a value, cut where it is long.

    >>> quoted("a" * 300)[-9:]
    "aaaaa...'"
    """
    text = repr(value)
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 4]}...{text[-1]}"


def refused(expected: str, value: object, reason: object = None) -> ValueError:
    """Returns the error for a value that is not what was expected; its message quotes the value.

    Args:
        expected: What must have which value: ``rules.txt:3: a line must be HOST SCHEME``.
        value: The value.
        reason: The error in the value, if that says more.

    >>> refused("--include must be a regular expression", "(", "missing )")
    ValueError("--include must be a regular expression, got '(': missing )")
    """
    more = "" if reason is None else f": {reason}"
    return ValueError(f"{expected}, got {quoted(value)}{more}")
