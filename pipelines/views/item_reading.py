"""Reads a snapshot item by item: in this process, or with Beam's arguments on a runner."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager

from ..launch.launch import LaunchOptions
from ..running.job_failures import as_job_failures
from .reading_job import PartFiles, Reading, ReadItem, tablets_of, written_parts


def item_parts(
    address: str,
    work: Callable[[ReadItem], None],
    beam_args: Sequence[str],
    options: LaunchOptions,
    divide: Callable[[Reading], Iterator[ReadItem]] = tablets_of,
) -> AbstractContextManager[PartFiles]:
    """Works on each item of a snapshot; yields the snapshot and the files that this writes, in order.

    The files are removed afterwards.

    Args:
        address: Address of the table.
        work: Writes the part files of an item.
        beam_args: Arguments for Beam; without any, no pipeline runs.
        options: Options of the launch.
        divide: Function that divides the snapshot into items.
    """
    if beam_args:
        from .reading_pipeline import item_pipeline  # late: it loads Beam

        return item_pipeline(address, work, beam_args, options, divide)

    def work_here(reading: Reading) -> None:
        with as_job_failures():
            for item in divide(reading):
                work(item)

    return written_parts(address, work_here, beam_args, options)
