"""Times that are written in expressions."""

from ...web.base import wording
from .expression_error import Refused


def iso_time(text: str) -> int:
    """Returns a time in ISO form as ms since 1970; without a zone it is UTC.

    Raises:
        Refused: It is no time.

    >>> iso_time("1970-01-02"), iso_time("1970-01-01T00:00:01Z"), iso_time("1970-01-01 01:00+01:00")
    (86400000, 1000, 0)
    """
    try:
        return wording.time_of(text)
    except ValueError:
        raise Refused(
            f"a time is written as '2026-01-31' or '2026-01-31T12:00:00Z', not as {text[:40]!r},"
        ) from None
