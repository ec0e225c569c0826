"""Returns the built-in schedule that the options name."""

import dataclasses

from ...web.base.option_checks import Launch
from ...web.rule_files.rule_files import RuleFile, read_rule_file
from .adaptive_schedule import SHIPPED_RATES, AdaptiveSchedule, MimeAdaptiveSchedule, mime_rates
from .host_intervals import HostIntervals, host_intervals
from .rate_schedule import rate_schedule
from .schedule_options import RescheduleOptions
from .visits import Schedule, default_schedule

# Those that keep to the longest interval, whatever the interval of a row was.
LIMITING_SCHEDULES = ("adaptive", "mime_adaptive", "rate")
BUILT_IN_SCHEDULES = ("default", *LIMITING_SCHEDULES)


@dataclasses.dataclass(frozen=True)
class CheckedScheduleOptions(RescheduleOptions):
    """Options of a schedule, whose files are read before a command starts."""

    def check_setup(self, _: Launch) -> None:
        """Reads the files of the schedule."""
        built_in_schedule(self)


def built_in_schedule(options: RescheduleOptions) -> Schedule | None:
    """Returns the schedule that the options name; None if it is none of the built-in ones.

    Its files are read here, so a copy on another machine needs none.

    Raises:
        ValueError: A file cannot be read, or has a line that cannot be used.
    """
    if options.schedule == "default":
        return default_schedule
    if options.schedule == "rate":
        return rate_schedule
    if options.schedule == "adaptive":
        return AdaptiveSchedule(intervals_of_hosts(options))
    if options.schedule == "mime_adaptive":
        path = options.mime_rates
        file = read_rule_file(path, flag="--mime_rates") if path else SHIPPED_RATES
        return MimeAdaptiveSchedule(intervals_of_hosts(options), mime_rates(file))
    return None


def intervals_of_hosts(options: RescheduleOptions) -> HostIntervals:
    """Returns the shortest and longest intervals of hosts that the options name a file of.

    Raises:
        ValueError: The file cannot be read, or has a line that cannot be used.
    """
    path = options.host_intervals
    file = read_rule_file(path, flag="--host_intervals") if path else RuleFile("")
    return host_intervals(file, options.shortest, options.longest)
