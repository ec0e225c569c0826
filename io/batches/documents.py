"""Parses the pages of a batch and writes their documents, also while more pages are fetched.

The fetch never waits for a slow page.
"""

import dataclasses
import itertools
import time
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator

import pyarrow as pa

from ...web.base.dataclass import dataclass
from ..parsing.parse_pool import Parsed, ParsePool
from ..parsing.parse_worker import Job, ParseTask
from ..storage.parquet_files import row_group_count
from ..storage.places import Place
from ..tablets.file_lists import DataFile
from ..tablets.written import Written
from .batches import batch_component, write_file

# The largest number of row groups, of 4 MB each, in one job.
_JOB_GROUPS = 4
PUMP_SECONDS = 0.02
# Up to this size, child processes receive pages from memory; they read further pages from files.
AHEAD_BYTES = 64 << 20


@dataclass(frozen=True)
class Parser:
    """The processes that parse pages, and what they do.

    Attributes:
        pool: The child processes.
        task: What they do.
        hosts: File with the hosts of seeds; see ``seed_hosts_file``.
        on_done: Callback: counts each group of pages that is parsed.
    """

    pool: ParsePool
    task: ParseTask
    hosts: str
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
        Job(str(root), pages.path, tuple(groups[at : at + size]), parser.hosts, parser.task)
        for at in range(0, len(groups), size)
    )
    return _write_documents(root, batch, pages, parser.pool.parse(jobs), parser.on_done)


def _write_documents(
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


@dataclasses.dataclass
class _Group:
    """Some pages of a file: a row group.

    Attributes:
        is_ahead: Whether it is parsed from memory, before its file is written.
        bytes: Its size.
        jobs: Numbers of its jobs, in the order of its pages; none until it is submitted.
    """

    is_ahead: bool
    bytes: int = 0
    jobs: list[int] = dataclasses.field(default_factory=list)


class DocumentQueue:
    """Writes the documents of each file of pages, in the order of the files.

    Args:
        root: The table's folder.
        batch: Id of the batch.
        parser: Parses the pages.
    """

    def __init__(self, root: Place, batch: str, parser: Parser) -> None:
        self._root, self._batch, self._parser = root, batch, parser
        self._open: _Group | None = None  # that is not complete
        self._groups: list[_Group] = []  # of the file that is not written yet
        self._files: deque[tuple[DataFile, list[_Group]]] = deque()
        self._pumped = time.monotonic()

    def __bool__(self) -> bool:
        return bool(self._files)

    def wants_pages(self) -> bool:
        """Returns whether a process that parses has nothing to do."""
        return self._parser.pool.has_idle()

    def share_rest(self) -> None:
        """Divides the pages that are not parsed yet among all processes, because few more come."""
        self._parser.pool.share_rest()

    def add(self, pages: pa.Table) -> None:
        """Adds pages to the next row group of the file that is being written."""
        if self._open is None:
            self._open = _Group(is_ahead=self._ahead() < AHEAD_BYTES)
        self._open.bytes += pages.nbytes
        if self._open.is_ahead:
            job = self._job("pages", len(self._groups))
            columns = pages.select(self._parser.task.columns)
            self._open.jobs.append(self._parser.pool.submit(job, columns))

    def end_group(self) -> None:
        """Ends the row group: it has the pages that were added since the last one."""
        if self._open is not None:
            self._groups, self._open = [*self._groups, self._open], None

    def end_file(self, file: DataFile) -> None:
        """Adds a complete file: it has the row groups that were added since the last file."""
        self._files.append((file, self._groups))
        self._groups = []

    def write_ready(self) -> Iterator[Written]:
        """Writes the documents of files whose pages are all parsed; never waits."""
        if time.monotonic() - self._pumped < PUMP_SECONDS:
            return
        self._parser.pool.pump()  # a child that is done gets its next job
        self._pumped = time.monotonic()
        self._catch_up()
        while self._files and all(map(self._is_done, self._files[0][1])):
            yield self._write()
            self._catch_up()

    def flush(self) -> Iterator[Written]:
        """Waits for all files, and writes their documents."""
        while self._files:
            self._catch_up()
            yield self._write()

    def abandon(self) -> None:
        """Forgets all documents that are not written yet."""
        self.end_group()
        groups = [*self._groups, *(group for _, groups in self._files for group in groups)]
        self._parser.pool.abandon(job for group in groups for job in group.jobs)
        self._groups, self._files = [], deque()

    def _write(self) -> Written:
        file, groups = self._files.popleft()
        jobs = (job for group in groups for job in group.jobs)
        parsed = map(self._parser.pool.result, jobs)
        with self._parser.pool.feeding():
            return _write_documents(self._root, self._batch, file, parsed, self._parser.on_done)

    def _catch_up(self) -> None:
        """Submits groups of complete files: all of the oldest file, and more if there is room."""
        for place, (file, groups) in enumerate(self._files):
            for number, group in enumerate(groups):
                if group.jobs:
                    continue
                if place and self._ahead() >= AHEAD_BYTES:
                    return
                group.jobs.append(self._parser.pool.submit(self._job(file.path, number)))

    def _ahead(self) -> int:
        files = (groups for _, groups in self._files)
        groups = itertools.chain(*files, self._groups)
        return sum(group.bytes for group in groups if group.jobs)

    def _is_done(self, group: _Group) -> bool:
        return bool(group.jobs) and all(map(self._parser.pool.is_done, group.jobs))

    def _job(self, name: str, number: int) -> Job:
        parser = self._parser
        root = str(self._root)
        return Job(root, name, (number,), parser.hosts, parser.task)
