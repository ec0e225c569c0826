"""The interface of writers whose index can be read back, which ``solrdedup`` needs."""

from collections.abc import Iterator
from typing import Protocol, runtime_checkable

import polars as pl

from .index_writer import WriteResult


@runtime_checkable
class StoredIndex(Protocol):
    """An index that shows what it has stored."""

    def stored(self) -> Iterator[pl.DataFrame]:
        """Yields the documents that searches find: STORED rows."""

    def remove(self, documents: pl.DataFrame) -> WriteResult:
        """Deletes documents that ``stored`` has given."""
