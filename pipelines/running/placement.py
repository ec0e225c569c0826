"""Decides which workers of a cluster a job needs: none, one, or all of them.

A step of a pipeline takes a cluster a tenth of a second at best, and a new worker several. So
a job that has nothing to do runs in the command's own process, and a job with little work is one step on
one worker. The manifest has the numbers; no rows are read.
"""

import enum
from typing import Any

import apache_beam as beam
from apache_beam.pipeline import PipelineVisitor

from ...io.batches.batches import batch_component
from ...io.snapshots.entries import DEDUP
from ...io.snapshots.manifest import Manifest, load_manifest
from ...io.table.opening import open_table
from ...transforms.operations import Begin
from ...transforms.tickets import Ticket

# Jobs that read sources of unknown size, or request pages: their work is for all workers.
_SPREAD = ("copy", "fetch", "freegen", "import_nutch", "import_warc", "mergedb", "sitemap")
# A page of a batch counts as this number of rows, because of its links, or because it is parsed.
_ROWS_OF_PAGE, _ROWS_OF_PARSING = 5, 10
# As many rows count as one, if a job only reads some of their columns, or compares them.
_ROWS_READ, _ROWS_COMPARED = 50, 10


class Workers(enum.Enum):
    """The workers that a job needs."""

    NONE = "none"
    ONE = "one"
    ALL = "all"


def workers_for(ticket: Ticket, begin: Begin, options: Any, rows: int = 0) -> Workers:
    """Returns the workers that a job needs.

    Args:
        ticket: Its ticket.
        begin: How its pipeline begins.
        options: Its options.
        rows: Rows that it reads besides those of the table.
    """
    table = open_table(ticket.address)
    manifest = load_manifest(table, table.latest_snapshot())
    if _has_nothing_to_do(ticket, begin, manifest, options):
        return Workers.NONE
    if begin.job in _SPREAD:
        return Workers.ALL
    return workers_of_rows(rows + _rows_of_work(ticket, begin, manifest), options)


def workers_of_rows(rows: float, options: Any) -> Workers:
    """Returns the workers for work that weighs a number of rows, see ``rows_of_work``."""
    return Workers.ONE if rows <= options.one_worker_urls > 0 else Workers.ALL


def rows_of_work(job: str, rows: int, urls: int | None) -> int:
    """Returns how many rows of a table the work of a job weighs.

    Args:
        job: Name of the job.
        rows: Rows of the state.
        urls: URLs of its batch; None if it works on no batch.

    >>> rows_of_work("generate", 1_000_000, None), rows_of_work("dedup", 1_000_000, 100)
    (20000, 20100)
    >>> rows_of_work("update", 1_000_000, 100), rows_of_work("filterdb", 1_000_000, None)
    (500, 1000000)
    """
    if job == "generate":
        return rows // _ROWS_READ
    if job == "dedup" and urls is None:
        return rows // _ROWS_COMPARED
    if urls is None:
        return rows
    if job == "dedup":
        return urls + rows // _ROWS_READ
    return min(rows, urls * (_ROWS_OF_PARSING if job == "parse" else _ROWS_OF_PAGE))


def _rows_of_work(ticket: Ticket, begin: Begin, manifest: Manifest) -> int:
    rows = rows_of_state(manifest)
    of_batch = begin.needs or begin.takes_in or (begin.job == "dedup" and ticket.batch)
    if not of_batch:
        return rows_of_work(begin.job, rows, None)
    waiting = [ticket.batch] if ticket.batch else _waiting(begin, manifest)
    urls = [manifest.batches[batch].urls for batch in waiting if batch in manifest.batches]
    return rows_of_work(begin.job, rows, max(urls, default=0))


def rows_of_state(manifest: Manifest) -> int:
    """Returns the number of rows of a table."""
    state = manifest.components.get("state")
    return state.rows if state else 0


def _waiting(begin: Begin, manifest: Manifest) -> list[str]:
    """Returns the batches of which a job takes one."""
    if begin.takes_in:
        return manifest.waiting_for(begin.takes_in)
    return [name for name, batch in manifest.batches.items() if batch.phase == begin.needs]


def first_begin(pipeline: beam.Pipeline) -> Begin:
    """Returns how the first job of a pipeline begins; one without a name if no job begins in it."""
    visitor = _BeginFinder()
    pipeline.visit(visitor)
    return visitor.begins[0] if visitor.begins else Begin("")


class _BeginFinder(PipelineVisitor):
    def __init__(self) -> None:
        self.begins: list[Begin] = []

    def enter_composite_transform(self, transform_node: Any) -> None:
        if isinstance(transform_node.transform, Begin):
            self.begins.append(transform_node.transform)


def _has_nothing_to_do(ticket: Ticket, begin: Begin, manifest: Manifest, options: Any) -> bool:
    if begin.needs:
        return not _waits(ticket.batch, begin, manifest)
    if begin.job == "index" and not (options.full or options.retry_refused or ticket.batch):
        from ...io.indexing.index_run import waits_for_index  # late: few crawls have an index

        return not waits_for_index(open_table(ticket.address), manifest, options.index)
    if begin.job == "dedup":
        return not _has_pages_to_compare(ticket.batch, manifest)
    return False


def _waits(batch: str | None, begin: Begin, manifest: Manifest) -> bool:
    """Returns whether a batch waits for a job: the named one, or any."""
    if batch is None:
        return bool(_waiting(begin, manifest))
    phase = manifest.batches[batch].phase if batch in manifest.batches else None
    return phase in (begin.needs, begin.takes)


def _has_pages_to_compare(batch: str | None, manifest: Manifest) -> bool:
    if batch is None:
        return "state" in manifest.components
    waiting = {batch, *manifest.waiting_for(DEDUP)}
    return any(batch_component(one, "outcome") in manifest.components for one in waiting)
