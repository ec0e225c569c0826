"""Builds shards from documents, with bounded memory."""

import contextlib
import gc
import shutil
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import polars as pl

from ...web.base.errors import UserError
from ..storage.places import Folder
from ..storage.processes import ScratchFull, full, scratch
from ..tablets.file_lists import DataFile
from .search_documents import index_terms
from .shard_files import pack_shard
from .tantivy_schema import (
    TEXT_FIELDS,
    register_analyzers,
    shard_schema,
    tantivy,
    tantivy_errors,
)

HEAP_BYTES = 50_000_000  # of tantivy, per thread
# Text that may wait to be indexed. tantivy itself bounds only the number of documents that wait.
WAITING_BYTES = 64_000_000
MOST_DOCUMENTS = 250_000  # of a shard


class ShardBuilder(contextlib.AbstractContextManager["ShardBuilder"]):
    """Builds one shard in a scratch folder.

    Attributes:
        documents: Number of documents so far.
    """

    def __init__(self, threads: int = 1) -> None:
        self.documents = 0
        self._threads = threads
        self._held: dict[str, None] = {}
        self._deleted: dict[str, None] = {}
        self._folder: Path | None = None
        self._writer: Any = None
        self._waiting = 0

    def __len__(self) -> int:
        return len(self._held) + len(self._deleted)

    def delete(self, keys: Iterable[str]) -> None:
        """Notes row keys of URLs that the shard deletes."""
        self._deleted.update(dict.fromkeys(keys))

    def add(self, rows: pl.DataFrame) -> None:
        """Adds documents.

        Args:
            rows: SEARCHED rows with ``key``, the row keys. Of rows with one id the last one stays.
        """
        with tantivy_errors(_unbuilt):
            writer, document = self._open(), tantivy().Document
            rows = index_terms(rows.unique("id", keep="last", maintain_order=True))
            for url, key in rows.select("id", "key").iter_rows():
                if key in self._held:
                    writer.delete_documents_by_term("id", url)
                self._held[key] = None
            for row in rows.iter_rows(named=True):
                size = len(row["content"] or "") + len(row["document"])
                if self._waiting + size > WAITING_BYTES:
                    writer.commit()
                    self._waiting = 0
                self._waiting += size
                writer.add_document(_document(document(), row))
            self.documents += len(rows)

    def pack(self, root: Folder, component: str, order: int) -> DataFile:
        """Writes the shard into a table; the builder can be used no more."""
        if self._writer is not None:
            with tantivy_errors(_unbuilt):
                self._writer.commit()
                self._writer.wait_merging_threads()
                self._writer = None
        named = {**dict.fromkeys(self._deleted, True), **dict.fromkeys(self._held, False)}
        keys = pl.DataFrame(
            list(named.items()), {"key": pl.String, "deletes": pl.Boolean}, orient="row"
        )
        return pack_shard(root, component, keys, self._folder, order)

    def close(self) -> None:
        """Removes the scratch folder."""
        if self._writer is not None:
            with contextlib.suppress(Exception):
                self._writer.rollback()
            self._writer = None
            gc.collect()  # threads of the writer end with it
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)
            self._folder = None

    def __exit__(self, *_: object) -> None:
        self.close()

    def _open(self) -> Any:
        if self._writer is None:
            self._folder = Path(tempfile.mkdtemp(prefix="shard-", dir=scratch()))
            index = tantivy().Index(shard_schema(), path=str(self._folder))
            register_analyzers(index)
            self._writer = index.writer(HEAP_BYTES * self._threads, self._threads)
        return self._writer


def _document(document: Any, row: dict[str, Any]) -> Any:
    title, content, anchor = _FIELDS[row["analyzer"]]
    for field, name in (("id", "id"), ("url", "url_words"), ("analyzer", "analyzer"), ("lang", "lang"),
                        ("folded", "folded"), (title, "title"), (content, "content")):  # fmt: skip
        if row[name]:
            document.add_text(field, row[name])
    for field, name in (("site", "site"), ("type", "type"), (anchor, "anchor")):
        for text in row[name] or ():
            document.add_text(field, text)
    if row["date"] is not None:
        document.add_integer("date", row["date"])
    document.add_float("weight", row["weight"])
    document.add_bytes("document", row["document"].encode())
    return document


class _FieldNames(dict[str, tuple[str, ...]]):
    def __missing__(self, analyzer: str) -> tuple[str, ...]:
        self[analyzer] = tuple(f"{name}_{analyzer}" for name in TEXT_FIELDS)
        return self[analyzer]


_FIELDS = _FieldNames()


def _unbuilt(reason: str) -> UserError:
    if "No space left" in reason or "os error 28" in reason:
        return ScratchFull(full(scratch()))
    return UserError(f"cannot build a shard of the index: {reason}")
