"""Finds the duplicate documents of an index of several shards: Nutch 1.0's DeleteDuplicates.

Of documents with one URL the newest stays. Of those that are left and have equal signatures, one
stays: that with the highest score or the shortest URL. In each case the first one
seen stays if there is no difference: shards in their order, then documents in theirs.
"""

from collections.abc import Sequence
from enum import Enum
from typing import TypeAlias

import polars as pl

IndexedUrlRows: TypeAlias = pl.DataFrame  # see ``delete_duplicates``
COLUMNS = ("url", "time", "segment", "signature", "score")


class Keep(Enum):
    """Which of the documents with equal signatures stays."""

    HIGHEST_SCORE = "highest score (dedup.keep.highest.score, Nutch's default)"
    SHORTEST_URL = "shortest URL"
    HIGHEST_SCORE_NEWEST = "highest score, then the newest (2.x solrdedup)"


def delete_duplicates(
    shards: Sequence[IndexedUrlRows], now: int, keep: Keep = Keep.HIGHEST_SCORE
) -> list[pl.Series]:
    """Returns the numbers of the documents to delete, in order, for each shard.

    Args:
        shards: For each shard its documents: ``url``, ``time`` (ms, or null), ``segment`` (name of
            the segment or batch, or null), ``signature`` (bytes; a document without one has no
            equals), ``score``. The number of a document is its position.
        now: Time of a document that has neither a time nor a segment with one, ms.
        keep: Which of the documents with equal signatures stays.

    >>> shard = pl.DataFrame({"url": ["a", "b", "a"], "time": [1, 1, 2], "segment": [""] * 3,
    ...     "signature": [b"x", b"x", b"x"], "score": [1.0, 2.0, 1.0]})
    >>> [numbers.to_list() for numbers in delete_duplicates([shard, shard.head(1)], now=9)]
    [[0, 2], [0]]
    """
    numbered = [
        shard.select(COLUMNS)
        .with_row_index("number")
        .with_columns(shard=pl.lit(at, pl.UInt32), time=document_time(now))
        for at, shard in enumerate(shards)
    ]
    if not numbered:
        return []
    documents = pl.concat(numbered).with_row_index("seen")
    # NaN is larger than every number in polars, but such a document must not be the best.
    documents = documents.with_columns(pl.col("score").fill_nan(None))
    newest = _first_of_each(documents, "url", ["time"], [True])
    staying = _first_of_each(newest, "signature", *_order(keep))
    lost = documents.join(staying.select("seen"), on="seen", how="anti", maintain_order="left")
    return [
        lost.filter(pl.col("shard") == at).get_column("number").sort() for at in range(len(shards))
    ]


def document_time(now: int) -> pl.Expr:
    """Returns the time of documents with a ``number``, ms: their own, or that of their segment.

    Segments are named by Nutch (``yyyyMMddHHmmss``) or are batches (``SECONDS-RANDOM``). The number
    of the document is added to the time of the segment, so that later documents are newer.
    """
    segment = pl.col("segment").cast(pl.String)
    nutch = segment.str.extract(r"^(\d{14})$").str.to_datetime("%Y%m%d%H%M%S", strict=False)
    batch = segment.str.extract(r"^(\d{1,11})-").cast(pl.Int64, strict=False) * 1000
    begun = pl.coalesce(nutch.dt.epoch("ms"), batch)
    number = pl.col("number").cast(pl.Int64)
    return pl.coalesce(pl.col("time").cast(pl.Int64), begun + number, pl.lit(now, pl.Int64))


def _order(keep: Keep) -> tuple[list[str | pl.Expr], list[bool]]:
    if keep is Keep.SHORTEST_URL:
        return [pl.col("url").str.len_chars()], [False]
    return (["score"], [True]) if keep is Keep.HIGHEST_SCORE else (["score", "time"], [True, True])


def _first_of_each(
    documents: IndexedUrlRows, group: str, order: list[str | pl.Expr], descending: list[bool]
) -> IndexedUrlRows:
    """Returns the first document of each group; those with null are groups of their own."""
    ranked = documents.sort([*order, "seen"], descending=[*descending, False], nulls_last=True)
    values = ranked.get_column(group)
    return ranked.filter(values.is_first_distinct() | values.is_null())
