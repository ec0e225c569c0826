"""Makes the vectors of the pages that an index with an embedding gets."""

import functools
from collections import Counter
from collections.abc import Iterable

import polars as pl

from ...io.indexing.index_run import IndexRun
from ...io.indexing.page_vectors import (
    VECTORS_FIELD,
    VectorMaker,
    differing_vectors,
    pack_vectors,
)
from ...io.indexing.shards import shard_vector_maker, with_orders
from ...io.storage.places import Folder
from ...io.tablets.file_lists import DataFile
from ...io.tablets.written import Written
from ...policy.chosen_text import with_chosen_text
from ...policy.chunking.chunk_rows import (
    EMBEDDED_COLUMNS,
    ChunkRules,
    chunk_rows,
)
from ...policy.chunking.embeddings import EMBEDDING_COLUMN, Embedder, embedding_reason
from ...policy.chunking.tokenizers import tokenizer_of
from ...policy.components.index_routes import IndexRoutes
from ...policy.indexing.index_documents import DocumentRules
from ...web.base.errors import UsageError, UserError
from ...web.base.wording import format_count

EMBEDDED_KIND = "tantivy"  # the kind of writers that store vectors
_CHUNK_WORDS = 256
_PAGES_AT_ONCE = 64
_EMBEDDED = ("title", "text", "blocks", "language")


class PageEmbedder:
    """Makes the vectors of the pages of one part of an index.

    Args:
        index_run: The run.
        embedding: Name of the plug-in.

    Raises:
        UsageError: There is no such plug-in, or it cannot be imported.
    """

    def __init__(self, index_run: IndexRun, embedding: str) -> None:
        self._index_run, self._name = index_run, embedding
        self._embedder = Embedder(embedding)
        self._rules = ChunkRules(_CHUNK_WORDS, tokenizer_of("words", ""), EMBEDDED_COLUMNS)
        self._maker = None if index_run.full else stored_maker(index_run)

    def embed_pages(self, pages: pl.DataFrame, rules: DocumentRules) -> pl.Series:
        """Returns the vectors of pages, packed; null for pages without any.

        They are those of the text that the documents of the index have, before its filters.

        Args:
            pages: INDEX_PAGES rows with ``blocks``.
            rules: How pages become documents.

        Raises:
            UserError: The vectors have another length than those that the index has.
        """
        parts = [pl.Series(VECTORS_FIELD, [], pl.Binary)]
        for some in pages.select("key", "main", *_EMBEDDED).iter_slices(_PAGES_AT_ONCE):
            parts.append(self._embed(with_chosen_text(some, rules.options.text_of)))
        return pl.concat(parts)

    def _embed(self, pages: pl.DataFrame) -> pl.Series:
        dated = pages.with_columns(last_fetch_time=pl.lit(None, pl.Int64))
        chunks = [chunk_rows(page, self._rules) for page in dated.iter_slices(1)]
        rows = self._embedder.embed(pl.concat(chunks))
        rows = rows.with_columns(page=pl.Series(_page_numbers(chunks), dtype=pl.UInt32))
        rows = rows.filter(pl.col(EMBEDDING_COLUMN.name).is_not_null())
        dimension = self._embedder.report.dimension
        values: list[bytes | None] = [None] * len(pages)
        for (number,), of_page in rows.group_by("page"):
            matrix = of_page.get_column(EMBEDDING_COLUMN.name).list.to_array(dimension).to_numpy()
            values[int(str(number))] = pack_vectors(self._name, matrix)
        if self._maker and dimension and dimension != self._maker.dimension:
            raise UserError(differing_vectors(self._maker, VectorMaker(self._name, dimension)))
        return pl.Series(VECTORS_FIELD, values, pl.Binary)

    def count_failures(self, counts: Counter[str]) -> None:
        """Counts the chunks that have no vector.

        Raises:
            UserError: The plug-in failed for all of several chunks.
        """
        report = self._embedder.report
        if report.failed and report.failed == report.chunks:
            number = format_count(report.chunks, "chunks")
            raise UserError(f"embedding {self._name!r} failed for all of {number}: {report.fault}")
        if report.failed:
            counts[embedding_reason(self._name)] += report.failed


def _page_numbers(chunks_of_pages: list[pl.DataFrame]) -> list[int]:
    return [number for number, chunks in enumerate(chunks_of_pages) for _ in range(len(chunks))]


def stored_maker(index_run: IndexRun) -> VectorMaker | None:
    """Returns what made the vectors that an index has; None if it has none."""
    return _stored_maker(index_run.operation.table.files, tuple(index_run.files("shards")))


@functools.lru_cache(maxsize=4)
def _stored_maker(root: Folder, files: tuple[DataFile, ...]) -> VectorMaker | None:
    newest_first = reversed(with_orders(root, files))
    makers = (shard_vector_maker(root / file.path) for file in newest_first)
    return next((maker for maker in makers if maker is not None), None)


def check_new_vectors(index_run: IndexRun, written: Iterable[Written]) -> None:
    """Checks that all vectors that a run adds can be compared with one another.

    Raises:
        UserError: They have different lengths.
    """
    root, component = index_run.operation.table.files, index_run.component("shards")
    files = [file for one in written if one.component == component for file in one.files]
    makers = {maker for file in files if (maker := shard_vector_maker(root / file.path))}
    if len(makers) > 1:
        raise UserError(differing_vectors(*sorted(makers)[:2]))


def check_embedding_writers(embedding: str, routes: IndexRoutes) -> None:
    """Checks that a writer of an index stores vectors, if there is an embedding.

    Raises:
        UsageError: None does.
    """
    kinds = {rule.kind for rule in routes.writers}
    if embedding and EMBEDDED_KIND not in kinds:
        raise UsageError(
            f"--embedding needs --writer {EMBEDDED_KIND}, got {', '.join(sorted(kinds))}: others store "
            "no vectors"
        )


def check_stored_vectors(index_run: IndexRun, embedding: str) -> None:
    """Checks that the vectors that an index has are of the same embedding as those to be added.

    Raises:
        UserError: They are of another, or there are some and shall be none, or the other way round.
    """
    kinds = {rule.kind for rule in index_run.routes.writers}
    if index_run.full or index_run.cleans or EMBEDDED_KIND not in kinds:
        return
    files, maker = index_run.files("shards"), stored_maker(index_run)
    name = maker.embedding if maker is not None else ""
    if name == embedding or not files:
        return
    index = f"index {index_run.index!r}"
    if not embedding:
        raise UserError(
            f"{index} has vectors: give --embedding {name}, or --full to build it again without them"
        )
    before = f"vectors of embedding {name!r}" if name else "no vectors"
    raise UserError(
        f"{index} has {before}: run nutbeam index with --full and --embedding {embedding}"
    )
