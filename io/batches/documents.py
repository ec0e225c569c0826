"""Parses the pages of a batch and writes their documents."""

import dataclasses
from collections import Counter
from collections.abc import Callable, Iterable

import pyarrow as pa

from ...policy.parsing.documents import DocumentOptions
from ..parsing.parse_pool import Parsed, ParsePool
from ..parsing.parse_worker import Job
from ..storage.parquet_files import row_group_count
from ..storage.places import Place
from ..tablets.file_lists import DataFile
from ..tablets.written import Written
from .batches import batch_component, write_file

# The largest number of row groups, of 4 MB each, in one job.
_JOB_GROUPS = 4


@dataclasses.dataclass(frozen=True)
class Parser:
    """The processes that parse pages, and their options.

    Attributes:
        pool: The child processes.
        options: Options of parsing.
        hosts: Paths of files that name the hosts of seeds.
        on_done: Callback: counts each group of pages that is parsed.
    """

    pool: ParsePool
    options: DocumentOptions
    hosts: tuple[str, ...]
    on_done: Callable[[Parsed], None]


def parse_file(root: Place, batch: str, pages: DataFile, parser: Parser) -> Written:
    """Writes the documents of one file of pages.

    Args:
        root: The table's folder.
        batch: Id of the batch.
        pages: The file.
        parser: Parses the pages.
    """
    groups = range(row_group_count(root / pages.path))
    # All links of a job are filtered together, so large jobs cost less per link. But jobs must be
    # small enough that all child processes have work until the end.
    size = max(1, min(_JOB_GROUPS, len(groups) // (2 * parser.pool.size)))
    jobs = (
        Job(str(root), pages.path, tuple(groups[at : at + size]), parser.hosts, parser.options)
        for at in range(0, len(groups), size)
    )
    return write_documents(root, batch, pages, parser.pool.parse(jobs), parser.on_done)


def write_documents(
    root: Place,
    batch: str,
    pages: DataFile,
    parsed: Iterable[Parsed],
    on_done: Callable[[Parsed], None],
) -> Written:
    """Writes the documents of one file of pages; both files have the same order in the batch."""
    counts: Counter[str] = Counter()

    def tables() -> Iterable[pa.Table]:
        for done in parsed:
            on_done(done)
            counts.update(done.counts)
            yield done.documents

    file = write_file(
        root, batch, "documents", tables(), partition=pages.partition, order=pages.order
    )
    return Written(batch_component(batch, "documents"), (file,), (), counts)
