"""The scoring ``opic``, as Nutch 1.x has it: scores only grow.

A page divides its score among its links and keeps it. So each fetch of a page adds to the scores of
the pages that it links to (nutch.md 2.6).
"""

import polars as pl

from .scoring import Scoring
from .scoring_options import BoostOptions


class Opic(Scoring):
    """OPIC without cash."""

    name = "opic"
    sorts = "score"

    def sort_value(self, rows: pl.DataFrame) -> pl.DataFrame:
        """Multiplies by the score."""
        return by_score(rows)

    def share(self, pages: pl.DataFrame) -> pl.DataFrame:
        """Gives each link an equal part of the page's score."""
        return pages.with_columns(share=pl.col("score") / pl.col("links"))

    def arrived(self, rows: pl.DataFrame, now: int) -> pl.DataFrame:
        """Adds the shares of new links to the score."""
        return rows.with_columns(score=pl.col("score") + pl.col("inlink_score").fill_null(0.0))

    def index_boost(self, rows: pl.DataFrame, options: BoostOptions) -> pl.DataFrame:
        """Multiplies by a power of the score; a negative score counts as 0.

        >>> from .scoring_options import ScoringOptions
        >>> rows = pl.DataFrame({"score": [4.0], "boost": [1.0]})
        >>> Opic(ScoringOptions()).index_boost(rows, BoostOptions())["boost"].item()
        2.0
        """
        score = pl.col("score").cast(pl.Float64).clip(0.0)
        return rows.with_columns(boost=pl.col("boost") * score.pow(options.score_power))


def by_score(rows: pl.DataFrame) -> pl.DataFrame:
    """Multiplies the sort value of rows by their score."""
    return rows.with_columns(sort_value=pl.col("sort_value") * pl.col("score"))
