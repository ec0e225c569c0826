"""Divides the pages of a job: among processes that would have nothing to do, and when one has ended at a page."""

import dataclasses

from .parse_worker import Job


def split_job(job: Job, size: int) -> tuple[Job, Job] | None:
    """Returns two parts of a job whose pages are in memory; None if the second would be small.

    Args:
        job: The job. One that was begun before is not divided.
        size: Size of the first part, bytes.

    >>> from nutbeam.io.parsing.parse_worker import ParseTask
    >>> task = ParseTask(print, print, (), (), 1.0)
    >>> job = Job("", "", (0,), "", task, pages="pages.arrow", size=400, slices=((0, 8),))
    >>> [(part.slices, part.size) for part in split_job(job, 100)], split_job(job, 300)
    ([(((0, 2),), 100), (((2, 8),), 300)], None)
    """
    if job.pages is None or len(job.slices) != 1 or job.skip or job.again or job.size < 2 * size:
        return None
    ((start, stop),) = job.slices
    rows = (stop - start) * size // job.size
    if not rows:
        return None
    middle = start + rows
    first = dataclasses.replace(job, slices=((start, middle),), size=size)
    return first, dataclasses.replace(job, slices=((middle, stop),), size=job.size - size)


def rest_of_job(job: Job, row: int | None, why: str) -> Job | None:
    """Returns the rest of a job whose process ended; None if a retry is useless.

    Args:
        job: The job; the process was working on the first of its slices.
        row: The row at which the process ended; None if it ended before the first row. The row
            after the slice stands for the work on all its rows together.
        why: The reason.

    >>> from nutbeam.io.parsing.parse_worker import ParseTask
    >>> job = Job("", "", (0,), "", ParseTask(print, print, (), (), 1.0), slices=((0, 9),))
    >>> rest_of_job(job, 5, "timeout").slices, rest_of_job(job, 9, "timeout").slices[:3]
    (((0, 5), (5, 9)), ((0, 1), (1, 2), (2, 3)))
    """
    if row is None or not job.slices:
        return None if job.again else dataclasses.replace(job, again=True)
    (start, stop), *rest = job.slices
    if row == stop:
        if stop - start > 1:
            # Parse each row separately, to find the row that causes the failure.
            alone = [(number, number + 1) for number in range(start, stop)]
            return dataclasses.replace(job, slices=(*alone, *rest))
        if not job.again:
            return dataclasses.replace(job, again=True)
        row = start
    if row in job.skip:
        return None
    # The rows before it are good: they become a slice of their own and are parsed again.
    good_slices = [(start, row)] if row > start else []
    slices = (*good_slices, (row, stop), *rest)
    return dataclasses.replace(job, slices=slices, skip={**job.skip, row: why})
