"""The interface of index filters: functions on frames that make fields, or leave documents out."""

import abc

import polars as pl

from ..components.index_schema import DROPPED
from .index_options import IndexFilterOptions

# Columns of INDEX_PAGES that are neither in documents nor in the state, so that reading them costs.
ELSEWHERE = ("headers", "ip", "anchors", "inlinks")


class IndexFilter(abc.ABC):
    """An index filter. Subclasses define ``apply``.

    Args:
        options: Options of all filters.

    Attributes:
        name: Its name in ``--index_filters``.
        fields: Fields that it may add, with their meaning.
        reads: Those of ``ELSEWHERE`` that it reads; the others may be null.
    """

    name = ""
    reads: tuple[str, ...] = ELSEWHERE
    fields: dict[str, str] = {}  # noqa: RUF012 - a declaration

    def __init__(self, options: IndexFilterOptions) -> None:
        self.options = options

    @abc.abstractmethod
    def apply(self, documents: pl.DataFrame, pages: pl.DataFrame) -> pl.DataFrame:
        """Returns the documents with more fields, or with ``dropped_by`` set.

        Args:
            documents: One row per page, in its order: ``id``, fields of earlier filters, and
                ``dropped_by``. A field is text, a number, a time in ms, or a list of texts; a
                document does not have fields that are null.
            pages: INDEX_PAGES rows.
        """

    def dropping(self, documents: pl.DataFrame, unwanted: pl.Series) -> pl.DataFrame:
        """Returns the documents; unwanted ones are left out by this filter."""
        hit = documents.get_column(DROPPED).is_null() & unwanted.fill_null(False)
        dropped = pl.when(hit).then(pl.lit(self.name)).otherwise(DROPPED)
        return documents.with_columns(dropped.alias(DROPPED))
