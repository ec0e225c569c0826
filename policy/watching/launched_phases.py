"""The phases of jobs in which other processes work, in the words of those of this process."""

from collections.abc import Mapping

from ...web.base.progress import Phase
from ..extracting.rule_figures import COUNT_PREFIX

# What a job counts as its work: the name of the count, and the unit.
_WORK = {
    "inject": ("lines", "lines"),
    "generate": ("chosen", "URLs"),
    "fetch": ("pages", "pages"),
}
# Jobs that work on all pages of a batch.
_OF_BATCH = ("fetch", "parse", "update")
_OF_ANSWERS = "protocol/"
# Counts of a fetch that its line has besides the answers.
_OF_FETCH = ("parsed", "bytes")


def phase_elsewhere(
    job: str, elapsed: float, urls: int | None, fetched: tuple[int, int] = (0, 0)
) -> Phase:
    """Returns the phase of a job that is under way.

    Args:
        job: Its name.
        elapsed: Seconds since it began.
        urls: Number of URLs of its batch; None if it has none.
        fetched: Pages and bytes of a fetch so far.
    """
    pages, received = fetched
    counts = {"bytes": received} if received else {}
    total = urls if job == "fetch" else None
    return Phase(job, "pages", total, pages, counts, elapsed, finished=False, elsewhere=True)


def ended_phase(job: str, elapsed: float, urls: int | None, job_counts: Mapping[str, int]) -> Phase:
    """Returns the phase of a job that has committed.

    Args:
        job: Its name.
        elapsed: Seconds from its begin to its commit.
        urls: Number of URLs of its batch; None if it has none.
        job_counts: What it has counted, and ``bytes`` of a fetch.

    >>> ended_phase("fetch", 2.0, 5, {"pages": 4, "protocol/success": 4, "requests": 5}).counts
    {'success': 4}
    """
    work, unit = _WORK.get(job, ("", "pages" if job in _OF_BATCH else "rows"))
    done = job_counts.get(work, (urls or 0) if job in _OF_BATCH else 0)
    counts = dict[str, int]()
    for name, number in job_counts.items():
        is_shown = job != "fetch" or name in _OF_FETCH or name.startswith(_OF_ANSWERS)
        if name != work and is_shown and not name.startswith(COUNT_PREFIX):
            counts[name.removeprefix(_OF_ANSWERS)] = number
    return Phase(job, unit, None, done, counts, elapsed, finished=True, elsewhere=True)


def start_of_workers(elapsed: float) -> Phase:
    """Returns what is shown while no job has begun yet.

    Args:
        elapsed: Seconds since the launch.
    """
    return Phase("start of workers", "", None, 0, {}, elapsed, finished=False)
