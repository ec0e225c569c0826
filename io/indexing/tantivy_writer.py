"""The index writer ``tantivy``: an embedded index in files of the table, one shard per part."""

import json
from collections.abc import Iterator, Mapping

import polars as pl

from ...policy.components.index_schema import index_component
from ...web.indexing.stored_documents import stored_document_rows
from ...web.urls.row_keys import BadUrl, to_key
from ..snapshots.manifest import load_manifest
from ..tablets.file_lists import DataFile, load_files
from .index_writer import NO_DOCUMENTS, REFUSED_DOCUMENTS, IndexTarget, IndexWriter, WriteResult
from .page_vectors import VECTORS_FIELD
from .shard_documents import searched_rows
from .shard_merging import visible_documents
from .shards import MOST_DOCUMENTS, ShardBuilder


class TantivyWriter(IndexWriter):
    """Writes shards. ``write`` and ``close`` return the files of shards that are complete.

    Memory is bounded by tantivy's heap (50 MB per thread), by the text that waits for it, and by
    the row keys of a shard, whatever the sizes of documents. Disk space in TMPDIR is about that
    of one shard.
    """

    kind = "tantivy"
    parameters: Mapping[str, str] = {
        "threads": "threads that index, per part of the work; 1 unless it is given, at most 16",
    }
    component = "shards"

    def __init__(self, target: IndexTarget) -> None:
        super().__init__(target)
        self._threads = self.int_parameter("threads", 1, 1, 16)
        self._builder = ShardBuilder(self._threads)

    def write(self, documents: pl.DataFrame, deletes: pl.Series) -> WriteResult:
        """Adds documents to the shard, and notes deletes; a full shard is written."""
        keys = pl.Series("key", [_key(url) for url in documents.get_column("id")], dtype=pl.String)
        self._builder.delete(key for key in map(_key, deletes) if key is not None)
        good = keys.is_not_null()
        rows = searched_rows(documents.filter(good)).with_columns(keys.filter(good))
        # Rows from one hand to the next in small parts, since texts are copied on the way.
        for part in rows.iter_slices(1_000):
            self._builder.add(part)
        counts = {"added": len(rows), "deleted": len(deletes)}
        refused = _refused_rows(documents.filter(~good))
        if len(refused):
            counts["refused"] = len(refused)
        counts = {name: number for name, number in counts.items() if number}
        return WriteResult(counts, refused, self._pack() if self._is_full() else ())

    def close(self) -> WriteResult:
        """Writes the last shard."""
        try:
            return WriteResult(files=self._pack() if len(self._builder) else ())
        finally:
            self._builder.close()

    def stored_documents(self) -> Iterator[pl.DataFrame]:
        """Yields the documents that searches find: STORED rows, of the newest snapshot."""
        table = self.target.table
        component = index_component(self.target.index, self.component)
        newest = load_manifest(table, table.settled_snapshot())
        for rows in visible_documents(table, load_files(table, newest.components.get(component))):
            yield stored_document_rows(
                (id_, json.loads(text), None, None) for id_, text in rows.iter_rows()
            )

    def remove(self, documents: pl.DataFrame) -> WriteResult:
        """Returns a shard that deletes stored documents; they vanish when it is committed."""
        done = self.write(NO_DOCUMENTS, documents.get_column("id"))
        return WriteResult(done.counts, files=self.close().files)

    def _is_full(self) -> bool:
        return self._builder.documents >= MOST_DOCUMENTS

    def _pack(self) -> tuple[DataFile, ...]:
        target = self.target
        with self._builder as builder:
            file = builder.pack(
                target.table, index_component(target.index, self.component), target.version
            )
        self._builder = ShardBuilder(self._threads)
        return (file,)


def _key(url: str) -> str | None:
    try:
        return to_key(url)
    except BadUrl:
        return None


def _refused_rows(documents: pl.DataFrame) -> pl.DataFrame:
    rows = [
        {"id": row["id"], "reason": "id_is_no_url", "document": json.dumps(row, default=str)}
        for row in documents.drop(VECTORS_FIELD, strict=False).iter_rows(named=True)
    ]
    return pl.DataFrame(rows, REFUSED_DOCUMENTS)
