"""What all schedules share: their options, when a row is due, gone pages and retries."""

from collections.abc import Collection

import polars as pl

from ...web.base.clock import TOLERANCE_MS, Clock
from ...web.base.dataclass import dataclass
from ...web.base.options import option
from ...web.plugins.plugin_files import PLUGIN_FORM, PLUGIN_NAME
from ...web.plugins.plugin_options import PluginOptions

DAY_S = 86_400
DAY_MS = DAY_S * 1000
USUAL_INTERVAL_S = 30 * DAY_S
# The longest wait after a failure or because of a server's Retry-After.
LONGEST_RETRY_S = 30 * DAY_S
LONGEST_REST_MS = LONGEST_RETRY_S * 1000
_GONE_GROWTH = 1.5  # factor by which the interval of a gone page grows
_SHORTEST_S = 60
_LONGEST_S = 31_536_000
_OF_HOSTS = ("adaptive", "mime_adaptive")


@dataclass(frozen=True)
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
    own = now + (_GONE_GROWTH * 1000 * pl.col("fetch_interval").cast(pl.Int64)).cast(pl.Int64)
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
    """Returns the new interval of a page that is gone: 1.5 times the old one, as in Nutch.

    Where that reaches the longest interval, it is nine tenths of the longest.

    >>> pl.select(gone_interval(pl.lit(86_400 * 30), ScheduleOptions())).item() // 86_400
    45
    """
    longer = (interval * _GONE_GROWTH + 0.5).floor().cast(pl.Int64)  # rounded as Nutch rounds
    limit = options.max_fetch_interval
    return pl.when(longer < limit).then(longer).otherwise(options.shortened_interval).cast(pl.Int32)


@dataclass(frozen=True)
class RescheduleOptions(ScheduleOptions, PluginOptions):
    """Options of choosing a schedule, and of the schedules that learn how often pages change."""

    GROUP = "schedule"

    schedule: str = option(
        "default",
        "How the interval of a page follows its changes: default (it stays), adaptive (shorter "
        "after a change, else longer), mime_adaptive (with factors per content type), rate (from "
        "an estimate of how often the page changes), or the name of a plug-in's schedule.",
        nutch="db.fetch.schedule.class",
        pattern=PLUGIN_NAME,
        form=PLUGIN_FORM,
        plugins=True,
    )
    inc_rate: float = option(
        0.4,
        "Adaptive schedules: by which share an interval grows if the page has not changed.",
        nutch="db.fetch.schedule.adaptive.inc_rate",
        minimum=0.0,
    )
    dec_rate: float = option(
        0.2,
        "Adaptive schedules: by which share an interval shrinks if the page has changed.",
        nutch="db.fetch.schedule.adaptive.dec_rate",
        minimum=0.0,
        maximum=1.0,
    )
    min_interval: int | None = option(
        None,
        "Shortest interval of all schedules but default. Not given: 60 s, or the longest interval "
        "if that is shorter.",
        unit="s",
        nutch="db.fetch.schedule.adaptive.min_interval",
        minimum=1,
    )
    max_interval: int | None = option(
        None,
        "Longest interval of all schedules but default. Not given: a year, or max_fetch_interval "
        "if that is shorter.",
        unit="s",
        nutch="db.fetch.schedule.adaptive.max_interval",
        minimum=1,
    )
    sync_delta: bool = option(
        True,
        "Adaptive schedules: move the next fetch towards the time of the last change.",
        nutch="db.fetch.schedule.adaptive.sync_delta",
    )
    sync_delta_rate: float = option(
        0.3,
        "With sync_delta: how far the next fetch moves, as a share of the time since the last "
        "change, or of the interval if that is shorter.",
        nutch="db.fetch.schedule.adaptive.sync_delta_rate",
        minimum=0.0,
        maximum=1.0,
    )
    host_intervals: str = option(
        "",
        "Adaptive schedules: file with lines of a host, its shortest and its longest interval in "
        "s (0: the usual one), as Nutch's adaptive-host-specific-intervals.txt.",
        unit="file",
        takes="path",
    )
    mime_rates: str = option(
        "",
        "Schedule mime_adaptive: file with a content type, its inc_rate and its dec_rate per line, "
        "separated by tabs. Not given: Nutch's adaptive-mimetypes.txt, which is built in.",
        unit="file",
        nutch="db.fetch.schedule.mime.file",
        takes="path",
    )
    fetches_per_day: float = option(
        0.0,
        "Schedule rate: fetches a day for the whole table. 0: enough to fetch each page once per "
        "fetch_interval.",
        minimum=0.0,
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        self._check_files()
        if self.schedule == "default":
            return
        most = self.max_fetch_interval
        if self.max_interval is not None and self.max_interval > most:
            raise ValueError(
                f"--max_interval must be at most --max_fetch_interval {most}, got "
                f"{self.max_interval}"
            )
        if self.min_interval is not None and self.min_interval > self.longest:
            limit = "max_fetch_interval" if self.longest == most else "max_interval"
            raise ValueError(
                f"--min_interval must be at most --{limit} {self.longest}, got {self.min_interval}"
            )

    def _check_files(self) -> None:
        """Refuses files that the schedule does not read; one of a plug-in may read them."""
        readers = {"host_intervals": _OF_HOSTS, "mime_rates": ("mime_adaptive",)}
        for name, schedules in readers.items():
            path, others = getattr(self, name), {"default", "rate", *_OF_HOSTS} - {*schedules}
            if path and self.schedule in others:
                raise ValueError(
                    f"--{name} is for schedule {' or '.join(schedules)}, not for "
                    f"{self.schedule!r}, got {path!r}"
                )

    @property
    def shortest(self) -> int:
        """The shortest interval of all schedules but default, s."""
        return min(_SHORTEST_S, self.longest) if self.min_interval is None else self.min_interval

    @property
    def longest(self) -> int:
        """The longest interval of all schedules but default, s."""
        most = _LONGEST_S if self.max_interval is None else self.max_interval
        return min(most, self.max_fetch_interval)

    def mean_interval(self, pages: int | None) -> float:
        """Returns the mean time between two fetches of a page that the budget allows, in days.

        Args:
            pages: Number of rows of the table; None: unknown.
        """
        if self.fetches_per_day and pages:
            return pages / self.fetches_per_day
        return self.fetch_interval / DAY_S
