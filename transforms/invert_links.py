"""Inverts links, from pages with links to pages with inlinks, and ends those of pages that leave."""

import dataclasses
from collections.abc import Iterator
from typing import Any, NamedTuple

import apache_beam as beam
import polars as pl

from ..io.batches.link_sources import documents_in
from ..io.snapshots.operations import Operation
from ..policy.components.schema import to_frame
from ..policy.inlinks.edges import (
    ALL_LINKS,
    BEST_LAST,
    INLINK,
    LINKS_COMPONENT,
    InvertOptions,
    page_edges,
    tombstones_of,
)
from .elements.arguments import DEFAULT_PARTITIONS, check_integer, check_partitions
from .elements.chunks import Chunk, named_chunks, to_chunks
from .elements.rows import check_chunk, through_chunks
from .for_each import ForEachDocument
from .top_n_per_key import TopNPerKey
from .top_rows import top_n_per_key
from .wiring.display import Displayed, errors_in_keywords

_NEEDED = {"the input": ["url", "links"]}


class Inlink(NamedTuple):
    """A link to a page, as a row."""

    url: str
    source: str
    anchor: str | None
    rel: str | None
    score: float
    external: bool


@dataclasses.dataclass
class InvertLinks(Displayed):
    """Turns pages with links into a row per page and source of a link to it.

    Input:  chunks or rows of pages, each page once: ``url``, ``links`` (a list of ``url``,
        ``anchor`` and ``rel``), and perhaps ``score``. The documents of ParsePages are such rows.
    Output: chunks or rows ``url`` (the target), ``source``, ``anchor``, ``rel``, ``score`` (of the
        source) and ``external``.

    The job ``invertlinks`` keeps the same links, in a table, where ApplyChanges merges them with
    those of before.

    Cost: one shuffle of the links. A page with more than ``max_inlinks`` links sends only the best
    of each chunk. A partition holds ``max_inlinks`` rows for each of its pages in memory.

    Attributes:
        max_inlinks: How many links to a page to keep: those of sources with the best scores;
            among equal scores, links from other hosts come first, then the last ones in order.
        max_anchor_length: How much of the text of a link to keep, characters.
        ignore_internal_links: Whether to leave out links within a host.
        ignore_external_links: Whether to leave out links to other hosts.
        partitions: How many workers can share the work: at least as many as there are, and one for
            32 MB of links that are kept.

    Raises:
        ValueError: An argument or the input's type is not right.
    """

    max_inlinks: int = 10_000
    max_anchor_length: int = 100
    ignore_internal_links: bool = False
    ignore_external_links: bool = False
    partitions: int = DEFAULT_PARTITIONS

    def __post_init__(self) -> None:
        with errors_in_keywords(InvertOptions):
            self._options()  # checks what must not stand together
        check_integer("max_inlinks", self.max_inlinks)
        check_integer("max_anchor_length", self.max_anchor_length, 0)
        check_partitions(self.partitions)

    def expand(self, elements: beam.PCollection[Any]) -> Any:
        return through_chunks(elements, self._invert, "InvertLinks", _NEEDED, Inlink)

    def _invert(self, chunks: beam.PCollection[Chunk]) -> beam.PCollection[Chunk]:
        best = TopNPerKey(self.max_inlinks, "url", BEST_LAST, partitions=self.partitions)
        links = beam.FlatMap(_edges, self._options()).with_output_types(Chunk)
        return chunks | "Links" >> links | best

    def _options(self) -> InvertOptions:
        return InvertOptions(
            self.ignore_internal_links, self.ignore_external_links, self.max_anchor_length
        )


def invert_links(
    pages: pl.DataFrame, max_inlinks: int = 10_000, options: InvertOptions = ALL_LINKS
) -> pl.DataFrame:
    """Returns the links to pages, in no particular order; see ``page_edges`` and ``InvertLinks``.

    >>> pages = pl.DataFrame({"url": ["http://a.com/"],
    ...     "links": [[{"url": "http://a.com/b", "anchor": "B", "rel": None}]]})
    >>> invert_links(pages).rows()
    [('http://a.com/b', 'http://a.com/', 'B', None, 0.0, False)]
    """
    return top_n_per_key(page_edges(pages, options), max_inlinks, "url", BEST_LAST)


def _edges(chunk: Chunk, options: InvertOptions) -> Iterator[Chunk]:
    check_chunk(chunk, _NEEDED, "InvertLinks")
    yield from to_chunks(page_edges(to_frame(chunk), options), INLINK)


class EndLinks(beam.PTransform):
    """Makes changes of the link table that end the links of pages.

    Input:  (operations, pages): one operation; pairs of the name of a file of documents and a chunk
        with the keys (``key``) of pages whose newest documents are in that file.
    Output: pairs of ``links`` and a chunk of changes, for ``ApplyChanges``.

    Cost: a shuffle of the keys. The files are read, and no row of the link table.
    """

    def expand(self, inputs: Any) -> beam.PCollection[tuple[str, Chunk]]:
        operations, pages = inputs
        operation = beam.pvalue.AsSingleton(operations)
        return pages | "Ended" >> ForEachDocument(
            _tombstone_chunks, (operation,), tuple[str, Chunk]
        )


def _tombstone_chunks(
    file: str, pages: pl.DataFrame, operation: Operation
) -> Iterator[tuple[str, Chunk]]:
    times = pages.select("key", time=pl.lit(operation.now, pl.Int64))
    for documents in documents_in(operation, file, pages.get_column("key")):
        yield from named_chunks(LINKS_COMPONENT, tombstones_of(documents, times))
