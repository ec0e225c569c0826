"""When a page that failed is tried again, and which failures count.

A server that asks for a wait of seconds (Retry-After) gets the next request soon. If the page fails
again then, this failure says nothing new about a page that lasts for days: it does not count, and
the next wait is at least twice as long, up to the usual delay. So a pause of some minutes does not
make a page gone, and a server that asks for a second each time is not requested each second.
"""

import polars as pl

from ..base.row_status import Status
from .schedule import DAY_MS, LONGEST_RETRY_S
from .visits import FETCH_TIME

_SINCE_LAST = FETCH_TIME - pl.col("last_fetch_time")
_LAST_WAIT = pl.col("fetch_time") - pl.col("last_fetch_time")


def is_early(retry_max: int) -> pl.Expr:
    """Returns a condition on rows before their event: their last try failed, less than a day ago.

    It is only true if that try has also set a wait of less than a day, as only servers demand. So
    rows that are fetched before they are due, as with ``--add_days``, are not early.

    Args:
        retry_max: After how many failures a page is gone.
    """
    has_failed = (pl.col("status") == int(Status.DB_UNFETCHED)) & (pl.col("retries") > 0)
    has_failed &= pl.col("retries") < retry_max  # else an orphan came back that was gone
    return (has_failed & (_SINCE_LAST < DAY_MS) & (_LAST_WAIT < DAY_MS)).fill_null(False)


def retry_time() -> pl.Expr:
    """Returns the time of the next try (ms): after the server's Retry-After, or else after a day.

    After an early try (column ``early``) it is at least twice the wait before, up to a day.
    """
    asked = pl.col("event.retry_after").clip(1, LONGEST_RETRY_S).cast(pl.Int64) * 1000
    doubled = (pl.max_horizontal(_SINCE_LAST, _LAST_WAIT) * 2).clip(upper_bound=DAY_MS)
    wait = pl.when("early").then(pl.max_horizontal(asked, doubled)).otherwise(asked)
    asks = pl.col("event.retry_after").is_not_null()
    return FETCH_TIME + pl.when(asks).then(wait).otherwise(DAY_MS)
