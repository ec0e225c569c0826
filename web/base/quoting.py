"""Cuts long text short for a message."""

_SHOWN = 100


def short(text: str) -> str:
    """Returns how messages quote a text: cut where it is long.

    >>> short("a" * 200)[-9:]
    "aaaaa...'"
    """
    return repr(text if len(text) <= _SHOWN else f"{text[:_SHOWN]}...")
