"""The dates in sitemaps: W3C's date and time formats, and those of mail and of XML Schema."""

import re

from ..pages.directives import parse_moment

# W3C dates may be those of a month, or of a year; those of XML Schema may have a zone, too.
_NO_DAY = re.compile(r"(?a)(\d{4})(-\d\d)?(Z|[+-]\d\d:\d\d)?")


def moment_of_lastmod(date: str) -> int | None:
    """Returns a ``lastmod`` as UTC ms, or None if it is no date; of a month or a year the start.

    >>> moment_of_lastmod("2026"), moment_of_lastmod("2026-01"), moment_of_lastmod("soon")
    (1767225600000, 1767225600000, None)
    """
    short = _NO_DAY.fullmatch(date)
    if short is None:
        return parse_moment(date)
    year, month, zone = short.groups("")
    return parse_moment(f"{year}{month or '-01'}-01{zone}")
