"""Dates of servers, and bounds that settings of hosts put on dates: the reference, for one row.

Where the specification leaves a choice:

- A Last-Modified is ignored if it is before 1990, more than five minutes after the fetch, or not after
  the last fetch. One that is less late counts as the time of the fetch.
- Bounds of a host come after the schedule. A URL with a fixed interval keeps it. An interval that a
  bound changes counts from the fetch; another date is only moved to the shortest interval.
- The longest interval of all pages limits both bounds of a host. The longest one of a host is not for
  pages that are gone.
- A page that must be fetched again at once (forceRefetch) is due at once on such a host, too.
"""

import calendar
import email.utils
from typing import Any

EARLIEST_CHANGE_MS = 631_152_000_000  # 1 January 1990
TOLERANCE_MS = 300_000  # by which clocks may differ, as in Kerberos
Row = dict[str, Any]
Bounds = tuple[int | None, int | None]


def last_modified_of_server(old: Row, event: Row) -> int | None:
    """Returns the time of the last change that the server says, in ms; None if it cannot be right.

    >>> event = {"last_modified": "Tue, 14 Nov 2023 22:13:20 GMT", "fetch_time": 1_700_000_001_000}
    >>> last_modified_of_server({}, event), last_modified_of_server({"last_fetch_time": 1_700_000_000_000}, event)
    (1700000000000, None)
    >>> last_modified_of_server({}, event | {"fetch_time": 1_699_999_990_000})
    1699999990000
    """
    said = email.utils.parsedate(event.get("last_modified"))
    if said is None:
        return None
    when, fetched = calendar.timegm(said) * 1000, event["fetch_time"]
    last = old.get("last_fetch_time")
    if not EARLIEST_CHANGE_MS <= when <= fetched + TOLERANCE_MS:
        return None
    return None if last is not None and when <= last else min(when, fetched)


def keep_within(row: Row, fetched: int, bounds: Bounds, longest: int, gone: bool = False) -> None:
    """Moves the interval and the date of a page into the bounds of its host.

    Args:
        row: A row that was scheduled; it is changed.
        fetched: Time of its fetch, ms.
        bounds: Shortest and longest interval of its host, s; None: not set.
        longest: Longest interval of all pages, s.
        gone: Whether the page is gone.

    >>> row = {"fetch_interval": 50, "fetch_time": 45_000, "fixed_interval": None}
    >>> for bounds in ((None, 70), (48, None), (60, None), (None, 7)):
    ...     keep_within(row, 0, bounds, 1000)
    ...     print(row["fetch_interval"], row["fetch_time"])
    50 45000
    50 48000
    60 60000
    7 7000
    """
    if row["fixed_interval"] is not None:
        return
    low, high = (longest if bound is None else min(bound, longest) for bound in bounds)
    low = 1 if bounds[0] is None else low
    interval = max(row["fetch_interval"], low)
    if not gone:
        interval = min(interval, high)
        row["fetch_time"] = max(row["fetch_time"], fetched + low * 1000)
    if interval != row["fetch_interval"]:
        row |= {"fetch_interval": interval, "fetch_time": fetched + interval * 1000}
