"""invertlinks: brings the links of a batch into the link table.

::

    batch.documents ─ links ────────────────┐
    documents before ─ tombstones of links ─┼ by tablet ─ resolve ─▶ links'
    links of pages not seen for long ───────┘

A link of a document before that the new document has, too, lives on. So no documents are compared.
"""

import functools
import random
from collections.abc import Iterator
from typing import Any

import apache_beam as beam
import polars as pl

from ..io.batches.link_sources import (
    NewDocuments,
    OldDocuments,
    is_there,
    list_document_files,
    new_documents,
    read_source_rows,
    read_unseen_links,
    replaced_pages,
    superseded_documents,
    unchanged_documents,
)
from ..io.rows.small_components import read_blocklist
from ..io.snapshots.manifest import newest_manifest
from ..io.snapshots.operations import Operation
from ..io.tablets.resolve import Resolver, resolving
from ..io.tablets.tablets import tablets
from ..io.tablets.written import Written
from ..policy.inlinks.edges import (
    LINK_CHANGES,
    LINKS_COMPONENT,
    InvertTableOptions,
    edges_of,
    tombstones_of,
)
from ..policy.inlinks.link_decisions import apply_links, drop_blocked_links, end_unseen_links
from ..transforms.apply_changes import Target, change_rows
from ..transforms.elements.chunks import Chunk, named_chunks
from ..transforms.for_each import REPORTS, TabletItem
from ..transforms.operations import Begin
from ..transforms.tickets import Ticket
from ..web.base.dataclass import dataclass
from ..web.base.options import option
from ..web.base.progress import PROGRESS
from .base.command import TABLE, Invocation
from .launch.job import run_each_batch, run_job
from .launch.job_options import BatchOptions
from .running.runner import only_submits

ARGUMENTS = (TABLE,)
# If there are more tablets than this, an operation checks only one in 16 for old links.
_TURNS = 16


@dataclass(frozen=True)
class Options(InvertTableOptions, BatchOptions):
    """Options of invertlinks."""

    batch: str = option(
        "",
        "Id of the batch. Without it, all batches that wait, one after the other; a job that is only "
        "submitted to a cluster takes the oldest of them.",
        group="links",
    )


def run(invocation: Invocation) -> int:
    """Inverts a batch, or one after the other all that wait.

    A job that is only submitted inverts one, because several would run at once.
    """
    if invocation.options.batch or only_submits(invocation.beam_args):
        return run_job(invocation, build, "invertlinks")
    waiting = newest_manifest(str(invocation.table)).waiting_for(LINKS_COMPONENT)
    if len(waiting) < 2:
        return run_job(invocation, build, "invertlinks")
    return run_each_batch(invocation, waiting, build, "invertlinks")


def build(
    tickets: beam.PCollection[Ticket], options: InvertTableOptions
) -> beam.PCollection[Ticket]:
    """Inverts the links of a batch; the returned ticket is for the next job."""
    operations = tickets | "Begin" >> Begin(
        "invertlinks", needs="updated", takes_in=LINKS_COMPONENT
    )
    of_batch = ("batches/{batch}/documents", "batches/{batch}/outcome")
    return change_rows(
        operations, "Files", (functools.partial(_items, options=options), _changes, (options,)),
        {LINKS_COMPONENT: Target(LINK_CHANGES, link_resolver)},
        reads=(LINKS_COMPONENT, "blocklist", *of_batch), takes_in=LINKS_COMPONENT,
    )  # fmt: skip


def _items(
    operation: Operation, options: InvertTableOptions
) -> Iterator[NewDocuments | OldDocuments | TabletItem]:
    items: list[Any] = [*list_document_files(operation), *_aging(operation, options)]
    PROGRESS.start("invertlinks", total=len(items), unit="files")
    yield from items


def _aging(operation: Operation, options: InvertTableOptions) -> Iterator[TabletItem]:
    """Yields the tablets to look at for old links; in Bigtable no zone map says which have some."""
    known = tablets(operation.files(LINKS_COMPONENT))
    limit = operation.now - options.oldest_ms  # links that were last seen before it are looked at
    # At random, because all counts (snapshots, batches) may grow by the same number per round.
    turn = random.Random(operation.seed).randrange(_TURNS)
    for number, tablet in enumerate(known):
        first = tablet.min_time
        is_next = len(known) <= _TURNS or (number + turn) % _TURNS == 0
        if is_next and (first is None or first < limit):
            yield TabletItem(operation, LINKS_COMPONENT, tablet)


def _changes(
    item: NewDocuments | OldDocuments | TabletItem, options: InvertTableOptions
) -> Iterator[Any]:
    PROGRESS.add()
    if isinstance(item, TabletItem):
        limit = item.operation.now - options.oldest_ms
        old_rows = read_unseen_links(item.operation, item.tablet, limit)
        source_rows = read_source_rows(item.operation, old_rows.get_column("source"))
        yield from _chunks(end_unseen_links(old_rows, source_rows))
        return
    if isinstance(item, OldDocuments):
        lost = 0 if is_there(item) else len(replaced_pages(item))
        if lost:
            yield _counted({"documents_missing": lost})
        for documents, times in superseded_documents(item):
            yield from _chunks(tombstones_of(documents, times))
    frames = new_documents(item) if isinstance(item, NewDocuments) else unchanged_documents(item)
    blocklist = read_blocklist(item.operation)
    for document_rows in frames:
        edges, counts = edges_of(document_rows, options)
        edges, blocked = drop_blocked_links(edges, blocklist)
        yield _counted({**counts, **blocked})
        yield from _chunks(edges)


def _counted(counts: dict[str, int]) -> beam.pvalue.TaggedOutput:
    return beam.pvalue.TaggedOutput(REPORTS, Written(counts={k: n for k, n in counts.items() if n}))


def _chunks(changes: pl.DataFrame) -> Iterator[tuple[str, Chunk]]:
    """Yields changes without the columns that are null in all of them."""
    there = [name for name in changes.columns if changes[name].null_count() < len(changes)]
    yield from named_chunks(LINKS_COMPONENT, changes.select(there))


def link_resolver(operation: Operation) -> Resolver:
    """Returns the resolver that applies changes to links; it runs on a worker."""
    return resolving(functools.partial(apply_links, now=operation.now))
