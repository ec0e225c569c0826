"""Options of the schedules, which decide when a page is fetched again."""

import dataclasses

from ...web.base.options import option
from .schedule import DAY_S, ScheduleOptions

_SHORTEST_S = 60
_LONGEST_S = 31_536_000
_OF_HOSTS = ("adaptive", "mime_adaptive")


@dataclasses.dataclass(frozen=True)
class RescheduleOptions(ScheduleOptions):
    """Options of choosing a schedule, and of the schedules that learn how often pages change."""

    GROUP = "schedule"

    schedule: str = option(
        "default",
        "How the interval of a page follows its changes: default (it stays), adaptive (shorter "
        "after a change, else longer), mime_adaptive (with factors per content type), rate (from "
        "an estimate of how often the page changes), or the name of a plug-in's schedule.",
        nutch="db.fetch.schedule.class",
        pattern=r"[A-Za-z0-9_.-]+",
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
    )
    mime_rates: str = option(
        "",
        "Schedule mime_adaptive: file with a content type, its inc_rate and its dec_rate per line, "
        "separated by tabs. Not given: Nutch's adaptive-mimetypes.txt, which is built in.",
        unit="file",
        nutch="db.fetch.schedule.mime.file",
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
