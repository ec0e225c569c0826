"""Decides which workers of a cluster a job needs: none, one, or all of them.

A step of a pipeline takes a cluster a tenth of a second at best, and a new worker several. So
a job that has nothing to do runs in the command's own process, and a job on a small table is one step on
one worker. The manifest has the numbers; no rows are read.
"""

import enum
from typing import Any

import apache_beam as beam
from apache_beam.pipeline import PipelineVisitor

from ...io.batches.batches import batch_component
from ...io.indexing.index_run import waits_for_index
from ...io.snapshots.entries import DEDUP
from ...io.snapshots.manifest import Manifest, load_manifest
from ...io.table.opening import open_table
from ...transforms.operations import Begin
from ...transforms.tickets import Ticket

# Jobs that read sources of unknown size, or request pages: their work is for all workers.
_SPREAD = ("copy", "fetch", "freegen", "import_nutch", "import_warc", "mergedb", "sitemap")
# A page of a batch counts as this number of rows, because of its links.
_ROWS_OF_PAGE = 10


class Workers(enum.Enum):
    """The workers that a job needs."""

    NONE = "none"
    ONE = "one"
    ALL = "all"


def workers_for(ticket: Ticket, begin: Begin | None, options: Any, rows: int = 0) -> Workers:
    """Returns the workers that a job needs.

    Args:
        ticket: Its ticket.
        begin: How its pipeline begins; None for a round of a crawl.
        options: Its options.
        rows: Rows that it reads besides those of the table.
    """
    table = open_table(ticket.address)
    manifest = load_manifest(table, table.latest_snapshot())
    if begin is not None and _has_nothing_to_do(ticket, begin, manifest, options):
        return Workers.NONE
    if begin is not None and begin.job in _SPREAD:
        return Workers.ALL
    rows += _rows_of_work(ticket, begin, manifest)
    return Workers.ONE if rows <= options.one_worker_urls > 0 else Workers.ALL


def fits_one_worker(address: str, options: Any) -> bool:
    """Returns whether a round of a crawl is for one worker, as far as it can be."""
    return workers_for(Ticket(address, ""), None, options) is Workers.ONE


def _rows_of_work(ticket: Ticket, begin: Begin | None, manifest: Manifest) -> int:
    state = manifest.components.get("state")
    rows = state.rows if state else 0
    if begin is None or not (begin.needs or begin.takes_in):
        return rows
    waiting = [ticket.batch] if ticket.batch else _waiting(begin, manifest)
    urls = [manifest.batches[batch].urls for batch in waiting if batch in manifest.batches]
    return min(rows, _ROWS_OF_PAGE * max(urls, default=0))


def _waiting(begin: Begin, manifest: Manifest) -> list[str]:
    """Returns the batches of which a job takes one."""
    if begin.takes_in:
        return manifest.waiting_for(begin.takes_in)
    return [name for name, batch in manifest.batches.items() if batch.phase == begin.needs]


def first_begin(pipeline: beam.Pipeline) -> Begin | None:
    """Returns how the first job of a pipeline begins; None if no job begins in it."""
    visitor = _BeginFinder()
    pipeline.visit(visitor)
    return visitor.begins[0] if visitor.begins else None


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
