"""Finds the documents in an index that a full rebuild has not sent."""

from collections.abc import Iterable

import polars as pl

from .document_ids import document_ids


def of_nutbeam(stored: pl.DataFrame) -> pl.Series:
    """Returns the ids of stored documents that nutbeam may have sent: they have its fields.

    Args:
        stored: STORED rows.

    >>> of_nutbeam(pl.DataFrame({"id": ["a", "b"], "segment": ["17-1", None],
    ...     "signature": [None, None]})).to_list()
    ['a']
    """
    marked = pl.col("segment").is_not_null() | pl.col("signature").is_not_null()
    return stored.filter(marked).get_column("id")


def unsent(ids: pl.Series, urls: Iterable[pl.Series]) -> pl.Series:
    """Returns the ids that belong to none of the URLs.

    Args:
        ids: Ids of documents in an index.
        urls: URLs of the documents that the index must keep.

    >>> unsent(pl.Series("id", ["a", "b"]), [pl.Series(["b", "c"])]).to_list()
    ['a']
    """
    unsent_ids = ids.rename("id").to_frame()
    for url_part in urls:
        held = pl.DataFrame({"id": document_ids(url_part)}, schema={"id": pl.String})
        unsent_ids = unsent_ids.join(held, on="id", how="anti", maintain_order="left")
    return unsent_ids.get_column("id")
