"""Writes the documents of a batch: what its pages say."""

from collections.abc import Callable, Iterable

import pyarrow as pa

from ...policy.documents import DocumentOptions
from ..parsing.parse_pool import Parsed, ParsePool
from ..parsing.parse_worker import Job
from ..storage.parquet_files import row_group_count
from ..storage.places import Place
from ..tablets.file_lists import DataFile
from ..tablets.written import Written
from .batches import place, write_file

# So many row groups, of 4 MB each, are parsed as one job.
_JOB_GROUPS = 4


def parse_file(
    root: Place,
    batch: str,
    pages: DataFile,
    hosts: tuple[str, ...],
    options: DocumentOptions,
    pool: ParsePool,
    on_done: Callable[[Parsed], None],
) -> Written:
    """Writes the documents of one file of pages.

    Args:
        root: The table's folder.
        batch: Id of the batch.
        pages: The file.
        hosts: Files of the host table, which knows the seeds.
        options: What is taken.
        pool: Parses.
        on_done: Is told of each job that is done.
    """
    groups = range(row_group_count(root / pages.path))
    # The links of a job are judged together, which costs the more the fewer they are; but all
    # children should have something to do, up to the end.
    size = max(1, min(_JOB_GROUPS, len(groups) // (2 * pool.size)))
    jobs = (
        Job(str(root), pages.path, tuple(groups[at : at + size]), hosts, options)
        for at in range(0, len(groups), size)
    )
    return write_documents(root, batch, pages, pool.parse(jobs), on_done)


def write_documents(
    root: Place,
    batch: str,
    pages: DataFile,
    parsed: Iterable[Parsed],
    on_done: Callable[[Parsed], None],
) -> Written:
    """Writes what was parsed of one file of pages; both have the same place in the batch."""
    counts: dict[str, int] = {}

    def tables() -> Iterable[pa.Table]:
        for done in parsed:
            on_done(done)
            for name, number in done.counts.items():
                counts[name] = counts.get(name, 0) + number
            yield done.documents

    file = write_file(
        root, batch, "documents", tables(), partition=pages.partition, order=pages.order
    )
    return Written(place(batch, "documents"), (file,), (), counts)
