"""The interface of schedules: the frame of the rows that were visited, and expressions on it.

A schedule is a function ``schedule(visits, context)``. ``visits`` has the rows whose page was
fetched, was not modified, or redirects: neither gone nor failed. It has the columns of STATE with
their values from before, the columns ``event.*`` of CHANGES with the result, and two conditions:
``modified`` and ``notmodified``; if neither is true, nothing is known about a change. The schedule
returns the frame with ``fetch_interval`` (s), ``fetch_time`` (ms) and ``modified_time`` (ms) set.
It may also set the other columns of ``SCHEDULED``, to remember something about a page. Changes of
other columns have no effect. ``fetch_interval`` is above 0 in all rows.
"""

from typing import NamedTuple, Protocol, TypeAlias

import polars as pl

from ...web.base.clock import TOLERANCE_MS
from ...web.exchange.status import FETCH_SUCCESS
from .schedule import RescheduleOptions

# 1 January 1990: there was no web before, so an earlier time of a server is wrong.
EARLIEST_CHANGE_MS = 631_152_000_000
# The three dates of RFC 9110 5.6.7, without the day of the week, which servers get wrong, and GMT.
_AROUND = r"^\s*[A-Za-z]+,?\s+|\s+(GMT|UTC)\s*$"
_HTTP_DATES = ("%d %b %Y %H:%M:%S", "%d-%b-%y %H:%M:%S", "%b %e %H:%M:%S %Y")


class ScheduleContext(NamedTuple):
    """The context of a schedule besides the rows.

    Attributes:
        options: The options of schedules.
        pages: Number of rows of the table; None: unknown.
    """

    options: RescheduleOptions
    pages: int | None = None


VisitRows: TypeAlias = pl.DataFrame  # rows that were visited, with the columns above


class Schedule(Protocol):
    """What a schedule is: a function of visited rows; it runs in the workers of updatedb.

    A fault of it fails the job: without it no row has a next fetch.
    """

    def __call__(self, visits: VisitRows, context: ScheduleContext, /) -> VisitRows:
        """Returns the rows, all and in their order, with new values of ``SCHEDULED`` columns.

        Args:
            visits: Rows whose page was visited: see docs/guides/plugins.md for the columns.
            context: The options of schedules, and the size of the table.
        """


FETCH_TIME = pl.col("event.fetch_time")
# The columns of STATE that a schedule may set.
SCHEDULED = ("fetch_interval", "fetch_time", "modified_time", "change_shape", "change_days",
             "metadata")  # fmt: skip


def new_modified_time(since: pl.Expr = FETCH_TIME) -> pl.Expr:
    """Returns the new ``modified_time``: ``since`` if the content is new, else the old one.

    Args:
        since: Since when new content is there, ms.
    """
    old = pl.col("modified_time")
    has_body = (pl.col("event.fetch_status") == FETCH_SUCCESS).fill_null(False)
    new = has_body & (pl.col("modified") | (old.fill_null(0) <= 0))
    return pl.when(new).then(since).otherwise(old)


def last_modified_of_server() -> pl.Expr:
    """Returns the time of the last change as the server says it, ms; null if it is not usable.

    Servers err: a time in the future, before 1990, or before the previous visit is ignored. The
    last holds for content that is new since then, and for a first visit.
    """
    date = pl.col("event.last_modified").str.replace_all(_AROUND, "").str.strip_chars()
    read = (date.str.to_datetime(form, time_unit="ms", strict=False) for form in _HTTP_DATES)
    when, last = pl.coalesce(read).dt.epoch("ms"), pl.col("last_fetch_time")
    right = when.is_between(EARLIEST_CHANGE_MS, FETCH_TIME + TOLERANCE_MS)
    later = last.is_null() | (when > last)
    return pl.when(right & later).then(pl.min_horizontal(when, FETCH_TIME))


def next_fetch(interval: pl.Expr, since: pl.Expr = FETCH_TIME) -> dict[str, pl.Expr]:
    """Returns the columns ``fetch_interval`` and ``fetch_time`` for intervals in s.

    An interval that the seed list sets for good has priority, and counts from the fetch.
    """
    fixed = pl.col("fixed_interval")
    is_fixed = (fixed > 0).fill_null(False)
    seconds = pl.when(is_fixed).then(fixed).otherwise(java_round(interval))
    return {
        "fetch_interval": seconds.cast(pl.Int32),
        "fetch_time": pl.when(is_fixed)
        .then(FETCH_TIME + fixed.cast(pl.Int64) * 1000)
        .otherwise(since + java_round(interval * 1000)),
    }


def java_round(number: pl.Expr) -> pl.Expr:
    """Returns numbers rounded as Java does: a half is rounded up."""
    return (number + 0.5).floor().cast(pl.Int64)


def default_schedule(visits: VisitRows, context: ScheduleContext) -> VisitRows:
    """Nutch's default schedule: makes pages due when their interval is over, and it stays."""
    interval = pl.col("fetch_interval").cast(pl.Int64)
    return visits.with_columns(
        fetch_time=FETCH_TIME + interval * 1000, modified_time=new_modified_time()
    )
