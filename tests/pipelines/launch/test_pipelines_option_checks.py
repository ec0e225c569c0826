"""Before a job starts, each part of its options is set up once as workers set it up."""

import pytest

from nutbeam.pipelines.command_line.cli import load
from nutbeam.pipelines.command_line.commands import COMMANDS
from nutbeam.pipelines.launch.job_options import (
    CheckedIndexOptions,
    CheckedScoringOptions,
    JobOptions,
)
from nutbeam.policy.generating.selection import GenerateOptions
from nutbeam.policy.hosting.locate_options import LocateOptions
from nutbeam.policy.indexing.index_options import IndexWriterOptions
from nutbeam.policy.schedules.reschedule import CheckedScheduleOptions
from nutbeam.policy.schedules.schedule import RescheduleOptions
from nutbeam.policy.scoring.scoring import ScoringOptions
from nutbeam.web.rules.url_options import UrlOptions
from nutbeam.web.rules.url_rules import CheckedUrlOptions

CHECKED = {
    RescheduleOptions: CheckedScheduleOptions,
    GenerateOptions: LocateOptions,
    UrlOptions: CheckedUrlOptions,
    ScoringOptions: CheckedScoringOptions,
    IndexWriterOptions: CheckedIndexOptions,
}
JOBS = [name for name in COMMANDS if issubclass(load(name).Options, JobOptions)]


@pytest.mark.parametrize("job", JOBS)
def test_a_job_checks_each_part_of_its_options(job):
    options = load(job).Options
    parts = [part for part in CHECKED if issubclass(options, part)]
    assert [part for part in parts if not issubclass(options, CHECKED[part])] == []
