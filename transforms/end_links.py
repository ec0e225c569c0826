"""Ends the links of pages that leave the table."""

from collections.abc import Iterator
from typing import Any

import apache_beam as beam
import polars as pl

from ..io.batches.link_sources import documents_in
from ..io.snapshots.operations import Operation
from ..policy.inlinks.edges import tombstones_of
from .elements.chunks import Chunk, named_chunks
from .for_each import ForEachDocument

LINKS_COMPONENT = "links"


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
