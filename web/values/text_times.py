"""Reads dates, times and durations that people or machines wrote, as UTC ms and seconds.

Dates of ISO 8601 and RFC 5322 take 1 to 6 µs, those in words about 10 µs. dateparser 1.5 takes 800 to 1,600 µs a
date and reads "today", which means another day each time; dateutil 2.9 takes 20 to 60 µs, reads English
only, and fills what is missing from the day on which it runs.
"""

import datetime
import functools
import re
import unicodedata
from pathlib import Path

from ..nutch_text.java_dates import ZONE_HOURS
from ..pages.directives import parse_moment
from .typed_value import (
    INCOMPLETE_DATE,
    NO_DATE,
    NO_DURATION,
    NO_WORD,
    OUT_OF_RANGE,
    TOO_LONG,
    UNCLEAR_DATE,
    TypedValue,
    plain_digits,
)

MAX_TIME_CHARS = 100
_FIRST_MOMENT, _LAST_MOMENT = -62_135_596_800_000, 253_402_300_799_999  # of the years 1 and 9999
_YEARS_IN_WORDS = range(1000, 2300)  # others are of another calendar
_DATE_MARKS = str.maketrans({"年": "-", "년": "-", "月": "-", "월": "-", "日": " ", "일": " "})
# ISO 8601 4.3.2, the expanded form, and years before the year 0.
_FAR_YEAR = re.compile(r"(?:[+-]?\d{5,9}|-\d{4})-\d\d(?!\d)")
_ZONE_NAME = re.compile(r"(?<=[\dmM.] ) ?([A-Z]{3,5})\b")  # "10:00 CET"
_ZONE_BEFORE_OFFSET = re.compile(
    r"\b(?:GMT|UTC)(?=[+-]\d)"
)  # "10:00 GMT+0100", as JavaScript writes it
_HALF_DAY = re.compile(r"\d\s?[ap]\.?m\b", re.IGNORECASE)
_NO_DAY = re.compile(r"\d{4}(?:-\d\d)?")
_EPOCH = re.compile(r"\d{10}|\d{13}")
_YEAR_FIRST = re.compile(r"(?<!\d)(\d{4})\s?[-./]\s?(\d{1,2})\s?[-./]\s?(\d{1,2})(?!\d)")
_YEAR_LAST = re.compile(r"(?<!\d)(\d{1,2})\s?([-./])\s?(\d{1,2})\s?\2\s?(\d{4})(?!\d)")
_WORD = re.compile(r"[^\s\d.,;:/|()'-]+|\d+")
_MARK_IN_NAME = re.compile(r"(?<=\w)\.(?=[^\W\d])")
_CLOCK = re.compile(
    r"(?<!\d)(?P<hour>\d{1,2}):(?P<minute>\d\d)(?::(?P<second>\d\d)(?:[.,]\d{1,9})?)?"
    r"(?:\s?(?P<half>[ap])\.?m\b)?"
    r"(?:\s?(?:(?:utc|gmt)?(?P<sign>[+-])(?P<zone>\d\d):?(?P<minutes>\d\d)?))?",
    re.IGNORECASE,
)
_DURATION = re.compile(
    r"(-)?P(?:(\d{1,9}(?:[.,]\d{1,9})?)W)?(?:(\d{1,9}(?:[.,]\d{1,9})?)D)?"
    r"(?:T(?:(\d{1,9}(?:[.,]\d{1,9})?)H)?(?:(\d{1,9}(?:[.,]\d{1,9})?)M)?"
    r"(?:(\d{1,9}(?:[.,]\d{1,9})?)S)?)?",
    re.IGNORECASE,
)
_UNIT_SECONDS = (604_800, 86_400, 3_600, 60, 1)
_EMPTY_PARTS = re.compile(r"P(?:0+[YM]){1,2}", re.IGNORECASE)


def read_time(text: str, order: str = "") -> TypedValue[int]:
    """Reads a date, or a date and a time, as UTC ms.

    Forms: ISO 8601, RFC 5322, seconds or ms since 1970, numbers such as ``5.3.2024``, and names of
    months in 60 languages. Without a time it is the start of the day; without a zone, UTC. Short names
    of zones count if they mean one, such as ``CET``.

    Args:
        text: At most 100 characters.
        order: ``dmy`` or ``mdy``: what ``3/5/2024`` means, which is unclear otherwise.

    >>> read_time("5. März 2024") == read_time("Mar 5th, 2024") == read_time("2024年3月5日")
    True
    >>> read_time("2024-03-05T12:00:00+02:00"), read_time("03/05/2024", "dmy")
    (TypedValue(value=1709632800000, reason=''), TypedValue(value=1714694400000, reason=''))
    >>> [read_time(text).reason for text in ("3/5/2024", "40000-01-01", "2024-03", "31.2.2024")]
    ['unclear_date', 'out_of_range', 'incomplete_date', 'no_date']
    """
    if not (text := plain_digits(text.strip())):
        return TypedValue(None, NO_WORD)
    if len(text) > MAX_TIME_CHARS:
        return TypedValue(None, TOO_LONG)
    if _EPOCH.fullmatch(text):
        return TypedValue(int(text) * (1000 if len(text) == 10 else 1))
    if _FAR_YEAR.match(text):
        return TypedValue(None, OUT_OF_RANGE)
    if _NO_DAY.fullmatch(text):
        return TypedValue(None, INCOMPLETE_DATE)
    text = _ZONE_NAME.sub(_offset_of_zone, _ZONE_BEFORE_OFFSET.sub("", text))
    # RFC 5322 has neither 5/3/2024 nor am and pm; its reader takes them for something else.
    is_formal = not _YEAR_LAST.match(text) and not _HALF_DAY.search(text)
    if is_formal and (moment := parse_moment(text)) is not None:
        return _within_years(moment)
    return _in_numbers(text, order) or _in_words(text)


def _offset_of_zone(name: re.Match[str]) -> str:
    """Returns the offset of a zone, such as ``+0100``; the name, if it is not known or means several."""
    hours = ZONE_HOURS.get(name[1])
    if hours is None:
        return name[0]
    minutes = abs(round(60 * hours))
    return f"{'-' if hours < 0 else '+'}{minutes // 60:02}{minutes % 60:02}"


def read_duration(text: str) -> TypedValue[float]:
    """Reads a duration of ISO 8601 as seconds, without years and months, whose lengths differ.

    >>> read_duration("PT1H30M"), read_duration("P1DT0.5S").value, read_duration("P1M").reason
    (TypedValue(value=5400.0, reason=''), 86400.5, 'no_duration')
    """
    if not (text := text.strip()):
        return TypedValue(None, NO_WORD)
    # Many sites write all units: P0Y0M0DT0H30M.
    text = _EMPTY_PARTS.sub("P", text[:MAX_TIME_CHARS], count=1)
    duration = _DURATION.fullmatch(text)
    parts = duration.groups()[1:] if duration else ()
    if not duration or not any(parts):
        return TypedValue(None, NO_DURATION)
    numbers = [float((part or "0").replace(",", ".")) for part in parts]
    seconds = sum(n * unit for n, unit in zip(numbers, _UNIT_SECONDS, strict=True))
    return TypedValue(-seconds if duration[1] else seconds)


def _in_numbers(text: str, order: str) -> TypedValue[int] | None:
    """Reads a date in numbers; returns None if the text has none."""
    text = text.translate(_DATE_MARKS)
    if match := _YEAR_FIRST.search(text):
        return _moment(int(match[1]), int(match[2]), int(match[3]), text[match.end() :])
    if not (match := _YEAR_LAST.search(text)):
        return None
    first, mark, second, year = int(match[1]), match[2], int(match[3]), int(match[4])
    rest = text[match.end() :]
    if order == "mdy" or (not order and first <= 12 < second):
        return _moment(year, first, second, rest)
    if order or mark == "." or first > 12 or first == second:
        return _moment(year, second, first, rest)
    return TypedValue(None, UNCLEAR_DATE)


def _in_words(text: str) -> TypedValue[int]:
    """Reads a date with the name of its month."""
    clock = _CLOCK.search(text)
    date = text if clock is None else f"{text[: clock.start()]} {text[clock.end() :]}"
    names = unicodedata.normalize("NFC", date).casefold().replace("\u0307", "")
    words = _WORD.findall(_MARK_IN_NAME.sub("", names))
    months = {_months()[word] for word in words if word in _months()}
    numbers = [word for word in words if word.isdigit()]
    years = [int(number) for number in numbers if len(number) == 4]
    days = [int(number) for number in numbers if len(number) <= 2]
    if not months or len(numbers) > 2:
        return TypedValue(None, NO_DATE)
    if len(months) > 1 or 0 in months:
        return TypedValue(None, UNCLEAR_DATE)
    if len(years) != 1 or len(days) != 1:
        return TypedValue(None, INCOMPLETE_DATE)
    if years[0] not in _YEARS_IN_WORDS:
        return TypedValue(None, OUT_OF_RANGE)
    return _moment(years[0], months.pop(), days[0], text)


def _moment(year: int, month: int, day: int, text: str) -> TypedValue[int]:
    """Returns a date with the time in a text, if it has one."""
    clock = _CLOCK.search(text)
    hour = minute = second = zone_minutes = 0
    if clock:
        hour, minute, second = (int(clock[name] or 0) for name in ("hour", "minute", "second"))
        if clock["half"] and hour <= 12:
            hour = hour % 12 + (12 if clock["half"] in "pP" else 0)
        if clock["sign"]:
            zone_minutes = 60 * int(clock["zone"]) + int(clock["minutes"] or 0)
            zone_minutes = -zone_minutes if clock["sign"] == "-" else zone_minutes
    try:
        zone = datetime.timezone(datetime.timedelta(minutes=zone_minutes))
        moment = datetime.datetime(year, month, day, hour, minute, second, tzinfo=zone)
        return _within_years(round(moment.timestamp() * 1000))
    except (ValueError, OverflowError):
        return TypedValue(None, NO_DATE)


@functools.cache
def _months() -> dict[str, int]:
    """Returns the number of months by name; 0 if a name means several."""
    lines = Path(__file__).with_name("month_names.txt").read_text("utf-8").splitlines()
    rows = (line.split() for line in lines if not line.startswith("#"))
    return {name.replace(".", ""): int(number) for number, *names in rows for name in names}


def _within_years(moment: int) -> TypedValue[int]:
    """Returns a time, unless its zone moves it out of the years 1 to 9999."""
    is_within = _FIRST_MOMENT <= moment <= _LAST_MOMENT
    return TypedValue(moment) if is_within else TypedValue(None, OUT_OF_RANGE)
