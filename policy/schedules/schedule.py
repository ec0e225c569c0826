"""What all schedules share: the options of intervals, when a row is due, gone pages and retries."""

import dataclasses
from collections.abc import Collection

import polars as pl

from ...web.base.clock import TOLERANCE_MS, Clock
from ...web.base.options import option

DAY_S = 86_400
DAY_MS = DAY_S * 1000
USUAL_INTERVAL_S = 30 * DAY_S
# The longest wait after a failure or because of a server's Retry-After.
LONGEST_RETRY_S = 30 * DAY_S
LONGEST_REST_MS = LONGEST_RETRY_S * 1000
_GROWTH = 1.5  # factor by which the interval of a gone page grows


@dataclasses.dataclass(frozen=True)
class ScheduleOptions:
    """Options of the intervals between two fetches of a page."""

    GROUP = "schedule"

    fetch_interval: int = option(
        USUAL_INTERVAL_S,
        "Time between two fetches of a page.",
        unit="s",
        nutch="db.fetch.interval.default",
        minimum=1,
    )
    max_fetch_interval: int = option(
        7_776_000,
        "Longest time between two fetches of a page.",
        unit="s",
        nutch="db.fetch.interval.max",
        minimum=1,
    )
    retry_max: int = option(
        3, "After how many failures in a row a URL is gone.", nutch="db.fetch.retry.max", minimum=1
    )

    def __post_init__(self) -> None:
        self.check_given(("fetch_interval",) if self.fetch_interval != USUAL_INTERVAL_S else ())

    def check_given(self, set_options: Collection[str]) -> None:
        """Refuses an interval that was given and is too long.

        If only the limit was given, the usual interval is shortened. If both were given, they
        contradict each other.
        """
        if "fetch_interval" in set_options and self.fetch_interval > self.max_fetch_interval:
            raise ValueError(
                f"--fetch_interval must be at most --max_fetch_interval {self.max_fetch_interval}, "
                f"got {self.fetch_interval}"
            )

    @property
    def shortened_interval(self) -> int:
        """The interval in place of one that is too long, s: nine tenths of the longest."""
        return max(1, int(0.9 * self.max_fetch_interval))


def horizon(now: int, options: ScheduleOptions) -> pl.Expr:
    """Returns the latest possible due time of a row that was tried at ``now`` (ms) or before.

    That is the longest interval of the options, or a longer interval that the row's seed list
    sets for good. After a failure the wait may be longer, if the server requests it.
    """
    failed = pl.col("retries").fill_null(0) > 0
    retry = pl.when(failed).then(LONGEST_RETRY_S).otherwise(0)
    longest = pl.max_horizontal(pl.lit(options.max_fetch_interval), "fixed_interval", retry)
    return now + longest.cast(pl.Int64) * 1000


def latest_due(now: int, options: ScheduleOptions) -> pl.Expr:
    """Returns the latest due time that options and its own interval allow a row of the state, ms.

    A due time beyond the ``horizon`` that its own interval explains is no error: an update had a larger
    ``max_fetch_interval``. A row that was never tried is due from when it was added.
    """
    own = now + (_GROWTH * 1000 * pl.col("fetch_interval").cast(pl.Int64)).cast(pl.Int64)
    new = pl.col("last_fetch_time").is_null()
    tried = pl.max_horizontal(horizon(now, options), own)
    return pl.when(new).then(now + TOLERANCE_MS).otherwise(tried)


def latest_rest(now: int, options: ScheduleOptions) -> pl.Expr:
    """Returns until when a host may be left alone at most, for ``Retry-After`` and failures, ms."""
    return pl.lit(now + LONGEST_REST_MS)


def due(clock: Clock, options: ScheduleOptions) -> pl.Expr:
    """Returns a condition: a row of the state is due, so it may be fetched.

    Only the time matters; all statuses are eligible. A row whose time is beyond the
    ``horizon`` is due, as in Nutch. A row that
    was added while the clock was ahead, and never tried, is due, too. If a row was
    fetched while the clock was ahead, and the clock was right before, its fetch was
    before ``clock.back``: it is due when its interval after ``clock.back`` is over.
    """
    when, last = pl.col("fetch_time"), pl.col("last_fetch_time")
    beyond = when > horizon(clock.now, options)
    if clock.back is not None:
        still = clock.back + (when - last) > clock.now
        beyond &= ~((last > clock.now + TOLERANCE_MS) & still).fill_null(False)
    taken = (when <= clock.now) | beyond
    if clock.latest > clock.now:  # otherwise it needs no other column
        taken |= last.is_null() & (when <= clock.latest)
    return taken


def gone_interval(interval: pl.Expr, options: ScheduleOptions) -> pl.Expr:
    """Returns the new interval of a page that is gone: 1.5 times the old one, up to a limit.

    >>> pl.select(gone_interval(pl.lit(86_400 * 30), ScheduleOptions())).item() // 86_400
    45
    """
    longer = (interval * _GROWTH + 0.5).floor().cast(pl.Int64)  # rounded as Nutch rounds
    limit = options.max_fetch_interval
    return pl.when(longer < limit).then(longer).otherwise(options.shortened_interval).cast(pl.Int32)
