"""Dates in workbooks: numbers of days that a cell's format shows as dates (ECMA-376 part 1, 18.8.30)."""

import datetime
import re
from collections.abc import Callable, Iterable

from ..pages.xml_events import END, START, Event

_MAX_FORMATS = 100_000
# Text in quotes, escaped letters, gaps, colours and languages in brackets, but no counts of hours.
_NO_LETTERS = re.compile(r"\"[^\"]*\"?|[\\_*].|\[(?!(?:h+|m+|s+)\])[^\]]*\]?", re.IGNORECASE)
_ELAPSED = re.compile(r"\[(?:h+|m+|s+)\]", re.IGNORECASE)
_DATE, _TIME, _BOTH, _HOURS = "yyyy", "h", "yyyy h", "[h]"
# Formats that every workbook has, by number; from 27 on those of Chinese, Japanese and Korean.
_BUILT_IN = {
    **dict.fromkeys((14, 15, 16, 17, 27, 28, 29, 30, 31, 36, 50, 51, 52, 53, 54, 57, 58), _DATE),
    **dict.fromkeys((18, 19, 20, 21, 32, 33, 34, 35, 45, 47, 55, 56), _TIME),
    22: _BOTH,
    46: _HOURS,
}
_EPOCH, _EPOCH_1904 = datetime.datetime(1899, 12, 30), datetime.datetime(1904, 1, 1)
# Workbooks have a 29 February 1900, so earlier days are counted from a day later.
_FIRST_RIGHT_DAY = 61
_END_OF_DAYS = 2_958_466  # 1 January 10000
_DAY_S = 86_400
_HALF_SECOND = 0.5 / _DAY_S

Shown = Callable[[float], str]


def read_date_styles(events: Iterable[Event], is_1904: bool) -> dict[str, Shown]:
    """Returns how numbers are shown as dates, by the style of a cell that has a date format.

    Args:
        events: The events of the part with styles.
        is_1904: Whether days are counted from 1904, as in workbooks of old Macintoshes.
    """
    formats: dict[str, str] = {str(number): code for number, code in _BUILT_IN.items()}
    styles: dict[str, Shown] = {}
    in_cells, number = False, 0
    for kind, name, attributes in events:
        if name == "cellXfs":
            in_cells = kind == START
        elif name == "numFmt" and kind == START and len(formats) < _MAX_FORMATS:
            formats[attributes.get("numFmtId", "")] = attributes.get("formatCode", "")
        elif name == "xf" and kind == END and in_cells:
            number += 1
        elif name == "xf" and in_cells and len(styles) < _MAX_FORMATS:
            shown = _shown_by(formats.get(attributes.get("numFmtId", ""), ""), is_1904)
            if shown is not None:
                styles[str(number)] = shown
    return styles


def shown_date(value: str, shown: Shown) -> str:
    """Returns the date that the value of a cell is; the value itself if it is none.

    >>> shown_date("46024.4375", _shown_by("d/m/yy h:mm", False))
    '2026-01-02 10:30:00'
    >>> shown_date("1.5", _shown_by("[h]:mm", False)), shown_date("x", _shown_by("d", False))
    ('36:00:00', 'x')
    """
    try:
        days = float(value)
    except ValueError:
        return value
    return shown(days) if 0 <= days < _END_OF_DAYS - _HALF_SECOND else value


def _shown_by(code: str, is_1904: bool) -> Shown | None:
    """Returns how a format shows a number, or None if not as a date."""
    if code.lower() == "general":
        return None
    first = _NO_LETTERS.sub("", code).partition(";")[0].lower()
    if _ELAPSED.search(first):
        return _as_hours
    has_time = "h" in first or "s" in first
    has_date = "y" in first or "d" in first or ("m" in first and not has_time)
    if not has_date:
        return _as_time if has_time else None
    form = "%Y-%m-%d %H:%M:%S" if has_time else "%Y-%m-%d"
    return lambda days: _moment(days, is_1904).strftime(form)


def _moment(days: float, is_1904: bool) -> datetime.datetime:
    if is_1904:
        return _EPOCH_1904 + datetime.timedelta(seconds=round(days * _DAY_S))
    shift = 1 if days < _FIRST_RIGHT_DAY - 1 else 0
    return _EPOCH + datetime.timedelta(days=shift, seconds=round(days * _DAY_S))


def _as_time(days: float) -> str:
    return _clock(round(days % 1 * _DAY_S) % _DAY_S)


def _as_hours(days: float) -> str:
    return _clock(round(days * _DAY_S))


def _clock(seconds: int) -> str:
    return f"{seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}"
