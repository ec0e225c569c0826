"""When a page is fetched again: the reference, one URL at a time, in plain Python.

It is written from the specification of Nutch's schedules and ours,
and not from policy/. Times are ms, intervals are s. A row is a dict with columns of STATE.

Where the specification leaves a choice:

- Intervals are whole seconds: 0.9 of an interval is rounded down, a half second of 1.5 times an
  interval is rounded up; adaptive ones are computed exactly, rounded to the nearest second in the
  row, and to the nearest ms in the due time.
- An interval that is missing, 0 or negative counts as the default, for failures too.
- Only a page with a body gets a ``modified_time``: a redirect, a 304 and a failure keep the old one,
  because the column is the time when the content was first seen.
- The adaptive schedules take the time of a new content from the server, if its Last-Modified can be
  right, as Nutch 2 does; the default schedule takes that of the fetch, as Nutch 1 does.
- The type of a page is that of this answer, or else that of its body before, as in Nutch's metadata.
- The default schedule ignores ``fixed_interval`` (only adaptive ones honour it); with an adaptive
  one it wins over all limits.
- The sync offset of the adaptive schedule is a share of at most one interval within its bounds, and
  the next fetch is never sooner than the smallest interval of the page, which is its host's if the
  host has one. (In Nutch it grows with the age of the page until all of the interval is taken off;
  then it becomes 0.)
- A line of the host file that is outside of the global bounds is refused, quoting both (Nutch only
  logs it); so is one whose smallest interval is larger than its largest.
- Retry-After counts from 1 s to 30 days.
"""

import dataclasses
import math
from collections.abc import Callable, Iterable, Mapping
from typing import Any

Row = dict[str, Any]
DAY_S = 86_400
LONGEST_WAIT_S = 30 * DAY_S
MODIFIED, NOTMODIFIED, UNKNOWN = "modified", "notmodified", "unknown"

# From a row, the time of its fetch (ms), and the kind of change, to (interval in s, due time in ms).
Schedule = Callable[[Row, int, str], tuple[float, int]]


@dataclasses.dataclass(frozen=True)
class Limits:
    """Limits of all schedules: db.fetch.interval.default, .max and db.fetch.retry.max."""

    fetch_interval: int = 2_592_000
    max_fetch_interval: int = 7_776_000
    retry_max: int = 3

    @property
    def shortened_interval(self) -> int:
        """The interval in place of one that is too long: 0.9 of the longest."""
        return self.max_fetch_interval * 9 // 10


def interval_of(row: Row, limits: Limits) -> int:
    """Returns the interval of a row, or the default."""
    interval = row["fetch_interval"]
    return interval if interval and interval > 0 else limits.fetch_interval


def modified_time_of(given: int | None, since: int, change: str) -> int:
    """Returns since when the content of a page with a body is as it is now.

    Args:
        given: The time of the row before, ms.
        since: Since when the content is there if it is new: the time of the fetch, or an earlier one
            that the server says (``reference_dates``).
        change: The kind of change.

    >>> modified_time_of(None, 9, UNKNOWN), modified_time_of(5, 9, UNKNOWN)
    (9, 5)
    >>> modified_time_of(5, 9, MODIFIED), modified_time_of(5, 9, NOTMODIFIED)
    (9, 5)
    """
    if change == MODIFIED or given is None or given <= 0:
        return since
    return given


def default_schedule(limits: Limits) -> Schedule:
    """Returns Nutch's DefaultFetchSchedule: the interval of a page stays as it is."""

    def schedule(row: Row, fetched: int, change: str) -> tuple[float, int]:
        interval = interval_of(row, limits)
        return interval, fetched + interval * 1000

    return schedule


def gone_schedule(row: Row, fetched: int, limits: Limits) -> tuple[int, int]:
    """Returns the interval and the due time of a page that is gone.

    >>> days, row = [], {"fetch_interval": 30 * DAY_S}
    >>> for _ in range(4):
    ...     row["fetch_interval"], due = gone_schedule(row, 0, Limits())
    ...     days.append(due / DAY_S / 1000)
    >>> days
    [45.0, 67.5, 81.0, 81.0]
    """
    longer = (interval_of(row, limits) * 3 + 1) // 2
    if longer >= limits.max_fetch_interval:
        longer = limits.shortened_interval
    return longer, fetched + longer * 1000


def retry_due(fetched: int, retry_after: int | None) -> int:
    """Returns when a page that failed is tried again: a day later, or as its server demands.

    >>> retry_due(0, None), retry_due(0, 7), retry_due(0, 0)
    (86400000, 7000, 1000)
    """
    wait = DAY_S if retry_after is None else min(max(retry_after, 1), LONGEST_WAIT_S)
    return fetched + wait * 1000


@dataclasses.dataclass(frozen=True)
class Adaptive:
    """Settings of the adaptive schedules (db.fetch.schedule.adaptive.*).

    Attributes:
        hosts: (smallest, longest) interval in s by host; 0 is the global one.
        mimes: (inc, dec) rates by MIME type; empty: the schedule is not mime_adaptive.
        files: Options of the product that name the files of hosts and types, and the files.
    """

    inc_rate: float = 0.4
    dec_rate: float = 0.2
    min_interval: int = 60
    max_interval: int = 31_536_000
    sync_delta: bool = True
    sync_delta_rate: float = 0.3
    hosts: Mapping[str, tuple[int, int]] = dataclasses.field(default_factory=dict)
    mimes: Mapping[str, tuple[float, float]] = dataclasses.field(default_factory=dict)
    files: Mapping[str, str] = dataclasses.field(default_factory=dict)

    def longest(self, limits: Limits) -> int:
        """The longest interval: the smaller of its own and that of all schedules."""
        return min(self.max_interval, limits.max_fetch_interval)

    def bounds(self, host: str, limits: Limits) -> tuple[int, int]:
        """The smallest and the longest interval of pages of a host."""
        least, most = self.hosts.get(host, (0, 0))
        return least or self.min_interval, most or self.longest(limits)

    def rates(self, content_type: str | None) -> tuple[float, float]:
        """The rates for pages of a Content-Type."""
        return self.mimes.get(mime_type(content_type), (self.inc_rate, self.dec_rate))


def adaptive_schedule(settings: Adaptive, limits: Limits) -> Schedule:
    """Returns AdaptiveFetchSchedule, and MimeAdaptiveFetchSchedule if it has types.

    Its row has the body of this fetch, but the ``modified_time`` of the fetches before; and
    ``last_modified_of_server``, if the server says since when a body is as it is.
    """

    def schedule(row: Row, fetched: int, change: str) -> tuple[float, int]:
        if row.get("fixed_interval"):
            return row["fixed_interval"], fetched + row["fixed_interval"] * 1000
        inc, dec = settings.rates(row.get("content_type"))
        factor = {MODIFIED: 1 - dec, NOTMODIFIED: 1 + inc, UNKNOWN: 1.0}[change]
        interval = interval_of(row, limits) * factor
        least, most = settings.bounds(host_of(row["key"]), limits)
        delta = 0
        if settings.sync_delta:
            since = row.get("last_modified_of_server") or fetched
            delta = max(0, fetched - modified_time_of(row["modified_time"], since, change))
            interval = max(interval, delta / 1000)
        interval = min(max(interval, least), most)
        wait = rounded(interval * 1000)
        earlier = wait - rounded(settings.sync_delta_rate * min(delta, wait))
        return interval, fetched + max(earlier, least * 1000)

    return schedule


def rounded(number: float) -> int:
    """Returns the nearest whole number; a half is rounded up, as in Java.

    >>> rounded(2.5), rounded(3.5)
    (3, 4)
    """
    return math.floor(number + 0.5)


def host_of(key: str) -> str:
    """Returns the host of a row key.

    >>> host_of("com.example.www:http:8080/a")
    'www.example.com'
    """
    return ".".join(reversed(key.partition(":")[0].split(".")))


def mime_type(content_type: str | None) -> str:
    """Returns the type without parameters.

    >>> mime_type("Text/HTML; charset=utf-8")
    'text/html'
    """
    return (content_type or "").partition(";")[0].strip().lower()


def read_hosts(lines: Iterable[str], settings: Adaptive, limits: Limits) -> dict:
    """Reads a file of intervals per host: lines ``host min max``, in seconds.

    >>> read_hosts(["# fast", "a.com 60 3600", "b.com default 0"], Adaptive(), Limits())
    {'a.com': (60, 3600), 'b.com': (0, 0)}
    """
    hosts = {}
    lowest, highest = settings.min_interval, settings.longest(limits)
    for line in lines:
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        host, *words = line.split()
        least, most = (0 if word == "default" else int(word) for word in words)
        bounds = least or lowest, most or highest
        if not lowest <= bounds[0] <= bounds[1] <= highest:
            raise ValueError(f"{line!r} must be within {lowest} and {highest}")
        hosts[host.lower()] = (least, most)
    return hosts


def read_mimes(lines: Iterable[str]) -> dict[str, tuple[float, float]]:
    r"""Reads a file of rates per type: ``type<TAB>inc<TAB>dec``; other lines are skipped.

    >>> read_mimes(["# type", "Text/HTML\t0.2\t0.2", "a/b 0.1 0.1", "a/b\t1"])
    {'text/html': (0.2, 0.2)}
    """
    mimes = {}
    for line in lines:
        fields = line.strip().split("\t")
        if len(fields) == 3 and not line.startswith("#"):
            mimes[fields[0].lower()] = (float(fields[1]), float(fields[2]))
    return mimes
