"""webgraph: makes the graph of pages, hosts or domains from the link table or from documents.

::

    links, or documents of living pages ─ WriteBlocks ─▶ nodes', edges'
"""

import logging
from collections.abc import Iterator, Mapping
from typing import Any

import apache_beam as beam
import polars as pl

from ...io.batches.batches import live_file
from ...io.batches.link_sources import WITHOUT_LINKS
from ...io.snapshots.manifest import Manifest
from ...io.snapshots.operations import Operation
from ...io.storage.parquet_files import collect, scan
from ...policy.components.document_schema import DOCUMENTS
from ...policy.components.graph_schema import MOST_BLOCK_NODES
from ...policy.components.kinds import KINDS
from ...policy.components.link_rows import says_nofollow
from ...policy.components.page_facts import unique_documents
from ...policy.components.schema import Status
from ...policy.graph.graph_blocks import BLOCK_NODES
from ...policy.graph.graph_options import LevelOptions
from ...policy.graph.link_limits import LinkLimits
from ...policy.inlinks.edges import LINKS_COMPONENT
from ...policy.page_rows import PageChoice
from ...transforms.elements.chunks import Chunk, to_chunks
from ...transforms.for_each import ForEach, ForEachDocument, TabletItem, tablet_items
from ...transforms.graph.graph_layout import BLOCKS, LIMIT
from ...transforms.graph.write_blocks import LINKS_IN, WriteBlocks, tidy_graph
from ...transforms.operations import Begin, Commit
from ...transforms.tickets import Ticket
from ...web.base.dataclass import dataclass
from ...web.base.options import option
from ...web.base.progress import PROGRESS
from ..base.command import TABLE, Invocation
from ..launch.job import run_job
from ..launch.job_options import JobOptions

ARGUMENTS = (TABLE,)
_LOG = logging.getLogger(__name__)
_ROWS, _REPORTS = "rows", "reports"
# Statuses of pages whose links count: as in the link table, and in Nutch, also duplicates.
_LINKING = tuple(int(status) for status in Status if status not in WITHOUT_LINKS)


@dataclass(frozen=True)
class Options(LevelOptions, LinkLimits, JobOptions):
    """Options of webgraph."""

    links_from: str = option(
        "auto",
        "Where links are read: the link table, or the newest documents of the pages. auto takes "
        "the link table if there is one.",
        choices=("auto", "links", "documents"),
    )
    block_nodes: int = option(
        BLOCK_NODES,
        "Approximate number of nodes per block; the memory of ranking depends on it.",
        minimum=1,
        maximum=MOST_BLOCK_NODES,
    )


def run(invocation: Invocation) -> int:
    return run_job(invocation, build, "webgraph", after=_advise)


def _advise(address: str, manifest: Manifest, options: Options) -> None:
    waiting = manifest.waiting_for(LINKS_COMPONENT)
    if waiting and _component_of(options.links_from, manifest) == LINKS_COMPONENT:
        _LOG.warning(
            "the links of %d of %d batches are not in the link table, and so not in the graph: "
            "nutbeam invertlinks %s adds them",
            *(len(waiting), len(manifest.batches), address),
        )
    if line := advice(manifest.counts):
        _LOG.warning("%s", line)


def advice(counts: Mapping[str, int]) -> str:
    """Returns a line that says which options keep more links; empty if most links are kept.

    >>> advice({"dropped/internal": 30, "links": 2})
    '30 links are internal and left out, 2 are in the graph: --ignore_internal_host false and --ignore_internal_domain false keep them'
    >>> advice({"dropped/internal": 30, "links": 40})
    ''
    """
    internal, links = counts.get("dropped/internal", 0), counts.get("links", 0)
    left_out = sum(number for name, number in counts.items() if name.startswith("dropped/"))
    if 2 * internal <= left_out + links:
        return ""
    return (
        f"{internal:,} links are internal and left out, {links:,} are in the graph: "
        "--ignore_internal_host false and --ignore_internal_domain false keep them"
    )


def build(tickets: beam.PCollection[Ticket], options: Options) -> beam.PCollection[Ticket]:
    """Makes the graph; returns the ticket for a next job."""
    operations = tickets | "Begin" >> Begin("webgraph", allows=("compact",))
    divide = _Divide(options.links_from)
    tablet_links = operations | "Tablets" >> ForEach(
        divide, _links, outputs=(_ROWS, _REPORTS), step="Tablets", reports=_REPORTS
    )
    rows = tablet_links[_ROWS]
    rows.element_type = beam.typehints.Tuple[str, Chunk]
    operation = beam.pvalue.AsSingleton(operations)
    of_documents = rows | "Outlinks" >> ForEachDocument(_outlinks, (operation,), Chunk)
    links = (tablet_links["main"], of_documents) | "Links" >> beam.Flatten()
    level = options.level
    written = (operations, links) | WriteBlocks(LinkLimits.of(options), level, options.block_nodes)
    committed = (operations, written, tablet_links[_REPORTS]) | Commit(
        reads=(f"{level}_nodes", f"{level}_edges", f"{level}_ranks"),
        whole=("Tablets", LIMIT, BLOCKS),
    )
    tidy = beam.Map(tidy_graph, operation, level).with_output_types(Ticket)
    return committed | "Tidy" >> tidy


@dataclass(frozen=True)
class _Divide:
    """Returns the tablets whose links are read; a class, so that it can be pickled."""

    links_from: str

    def __call__(self, operation: Operation) -> list[TabletItem]:
        component = _component_of(self.links_from, operation.manifest())
        return tablet_items(operation, component, phase="webgraph")


def _component_of(links_from: str, manifest: Manifest) -> str:
    """Returns the component whose rows have the links, or lead to their documents."""
    if links_from == "documents":
        return "state"
    links = manifest.components.get(LINKS_COMPONENT)
    has_links = links is not None and links.rows
    return LINKS_COMPONENT if has_links or links_from == "links" else "state"


def _links(item: TabletItem) -> Iterator[Any]:
    PROGRESS.add()
    table = item.operation.table
    if item.component == "links":
        counting = KINDS["links"].counting & ~says_nofollow(pl.col("rel"))
        columns = ("target", "source", "rel")
        rows = table.read("links", [item.tablet], columns, lambda links: links.filter(counting))
        yield from to_chunks(rows.drop("rel"), LINKS_IN)
        return
    rows = table.read(
        "state", [item.tablet], ("key", "document"), PageChoice(statuses=_LINKING).in_state
    )
    for (document,), group in rows.group_by("document", maintain_order=True):
        for chunk in to_chunks(group.select("key")):
            yield beam.pvalue.TaggedOutput(_ROWS, (str(document), chunk))


def _outlinks(document: str, rows: pl.DataFrame, operation: Operation) -> Iterator[Chunk]:
    file = live_file(operation.table, operation.manifest(), document)
    if file is None:  # compact has dropped it
        return
    keys = rows.get_column("key")
    with operation.reading():
        documents = scan([operation.table / file.path], DOCUMENTS)
        rows_of_keys = documents.filter(pl.col("key").is_in(keys.implode()))
        pages = collect(rows_of_keys.select("key", "part_of", "outlinks"))
    for part in unique_documents(pages).iter_slices(1024):
        yield from to_chunks(outlinks_of(part), LINKS_IN)


def outlinks_of(pages: pl.DataFrame) -> pl.DataFrame:
    """Returns the links of pages: ``source``, ``target`` and ``position``.

    Args:
        pages: Columns ``key`` and ``outlinks``.
    """
    links = pages.with_columns(position=pl.int_ranges(pl.col("outlinks").list.len()))
    links = links.explode("outlinks", "position").drop_nulls("outlinks")
    target = pl.col("outlinks").struct.field("key")
    return links.select(source="key", target=target, position="position")
