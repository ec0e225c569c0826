"""The rows of a batch that belong together."""

from typing import NamedTuple

import polars as pl


class BatchRows(NamedTuple):
    """Rows of a batch that belong together; a URL of a batch is in one of them only.

    Attributes:
        listed: FETCHLIST rows: of the pages, or of URLs that were not requested.
        pages: PAGES rows, one per key.
        documents: DOCUMENTS rows, one per key: those of the pages, and parts of them.
    """

    listed: pl.DataFrame
    pages: pl.DataFrame
    documents: pl.DataFrame
