"""The interface of writers whose index can be read back, which ``solrdedup`` needs."""

from collections.abc import Iterator
from typing import Protocol, runtime_checkable

import polars as pl

from .index_writer import WriteResult


@runtime_checkable
class StoredIndex(Protocol):
    """An index whose stored documents can be read back.

    Attributes:
        component: As in ``IndexWriter``: if it is not empty, the files of a result of ``remove``
            must be committed.
    """

    component: str

    def stored_documents(self) -> Iterator[pl.DataFrame]:
        """Yields the documents that searches find: STORED rows."""

    def remove(self, documents: pl.DataFrame) -> WriteResult:
        """Deletes documents that ``stored_documents`` has yielded."""
