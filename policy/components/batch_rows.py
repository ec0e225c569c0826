"""Which rows of a batch count where a key has several."""

import polars as pl


def unique_pages(page_rows: pl.DataFrame) -> pl.DataFrame:
    """Returns one PAGES row per key, in their order: a file of a resumed attempt may have it twice.

    >>> unique_pages(pl.DataFrame({"key": ["b", "a", "b"], "http_code": [200, 404, 500]})).rows()
    [('b', 200), ('a', 404)]
    """
    return page_rows.unique("key", keep="first", maintain_order=True)


def unique_documents(document_rows: pl.DataFrame) -> pl.DataFrame:
    """Returns one DOCUMENTS row per key: that of the page itself, or else of the first part.

    Args:
        document_rows: Rows with the columns ``key`` and ``part_of``.
    """
    if document_rows.get_column("part_of").null_count() < len(document_rows):
        document_rows = document_rows.sort(pl.col("part_of").is_not_null(), maintain_order=True)
    return document_rows.unique("key", keep="first", maintain_order=True)
