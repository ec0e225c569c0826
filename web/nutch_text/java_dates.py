"""Reads dates as Java's ``Date`` prints them: ``Sat Feb 03 04:05:06 CET 2018``.

The name of the zone is short, and some names mean several zones. These need the zone's full name.
"""

import datetime
import re
import zoneinfo
from collections.abc import Iterable

import polars as pl

# Hours from UTC by the short name of a zone, only of names that mean one zone. Those of daylight saving time
# say so themselves.
ZONE_HOURS = {
    **dict.fromkeys(("UTC", "GMT", "Z", "WET", "UCT"), 0.0),
    **dict.fromkeys(("CET", "MET", "WEST"), 1.0),
    **dict.fromkeys(("CEST", "MEST", "EET"), 2.0),
    **dict.fromkeys(("EEST", "MSK"), 3.0),
    **dict.fromkeys(("JST", "KST"), 9.0),
    "HST": -10.0, "AKST": -9.0, "AKDT": -8.0, "PST": -8.0, "PDT": -7.0, "MST": -7.0, "MDT": -6.0,
    "CDT": -5.0, "EST": -5.0, "EDT": -4.0, "NDT": -2.5, "NST": -3.5, "BRT": -3.0, "ART": -3.0,
    "HKT": 8.0, "AWST": 8.0, "ACST": 9.5, "ACDT": 10.5, "AEST": 10.0, "AEDT": 11.0,
    "NZST": 12.0, "NZDT": 13.0, "SAST": 2.0,
}  # fmt: skip
_DATE = r"^\w{3} \w{3} +\d{1,2} \d{2}:\d{2}:\d{2} (\S+) \d{4}$"
_OFFSET = re.compile(r"(?:GMT|UTC)?([+-])(\d{1,2}):?(\d{2})")
# Both times of a year, in years with different rules.
_MOMENTS = [
    datetime.datetime(year, month, 15, 12, tzinfo=datetime.UTC)
    for year in (2026, 2015, 2005)
    for month in (1, 7)
]


class UnknownZone(ValueError):
    """The short name of a zone means none, or several."""

    def __init__(self, name: str) -> None:
        self.name = name
        super().__init__(
            f"the time zone {name!r} is not known or ambiguous: give --time_zone, such as "
            "Asia/Kolkata"
        )


def parse_java_dates(texts: pl.Series, zone: str = "") -> pl.Series:
    """Returns times in ms since the epoch; null where a text is no date.

    Args:
        texts: Dates as Java prints them, or numbers of ms.
        zone: Full name of the zone of the machine that printed them; empty: the short names in the
            dates must be clear.

    Raises:
        UnknownZone: A short name means no zone, or several.

    >>> parse_java_dates(pl.Series(["Thu Jan 01 01:00:01 CET 1970", "1500", "soon"])).to_list()
    [1000, 1500, None]
    >>> parse_java_dates(pl.Series(["Thu Jan 01 05:30:00 IST 1970"]), "Asia/Kolkata").to_list()
    [0]
    """
    dates = texts.alias("text").to_frame().with_columns(zone=pl.col("text").str.extract(_DATE))
    names = dates.get_column("zone").unique().drop_nulls().to_list()
    offsets = _offsets_of(names, zone)
    local = pl.col("text").str.replace(r" \S+ (\d{4})$", " $1")
    local_ms = local.str.to_datetime("%a %b %e %H:%M:%S %Y", time_unit="ms", strict=False)
    offset = pl.col("zone").replace_strict(offsets, default=None, return_dtype=pl.Int64)
    number = pl.col("text").str.extract(r"^(-?\d+)$").cast(pl.Int64, strict=False)
    times = dates.select(pl.coalesce(local_ms.cast(pl.Int64) - offset, number).alias("time"))
    return times.get_column("time")


def check_zone(name: str) -> None:
    """Checks the full name of a zone.

    Raises:
        ValueError: There is no zone of this name.
    """
    if name:
        _zone(name)


def _zone(name: str) -> zoneinfo.ZoneInfo:
    try:
        return zoneinfo.ZoneInfo(name)
    except (zoneinfo.ZoneInfoNotFoundError, ValueError, OSError) as error:
        raise ValueError(
            f"--time_zone must be the name of a time zone, such as Europe/Berlin, got {name!r}"
        ) from error


def _offsets_of(names: Iterable[str], zone: str) -> dict[str, int]:
    """Returns the offset from UTC of each short name, ms."""
    own = dict[str, float]()
    if zone:
        for moment in _MOMENTS:
            local = moment.astimezone(_zone(zone))
            own[local.tzname() or ""] = (
                local.utcoffset() or datetime.timedelta()
            ) / datetime.timedelta(hours=1)
    offsets = {}
    for name in names:
        hours = own.get(name, ZONE_HOURS.get(name))
        if hours is None and (match := _OFFSET.fullmatch(name)):
            hours = (int(match[2]) + int(match[3]) / 60) * (-1 if match[1] == "-" else 1)
        if hours is None:
            raise UnknownZone(name)
        offsets[name] = round(hours * 3_600_000)
    return offsets
