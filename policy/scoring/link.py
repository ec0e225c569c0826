"""The scoring ``link``: chooses and boosts pages by a score that another job computes.

Links bring no score. It is for scores of a link graph, or scores that inject sets.
"""

import polars as pl

from .scoring import Scoring
from .scoring_options import BoostOptions


class LinkScoring(Scoring):
    """Sorts by the score, and leaves it as it is."""

    name = "link"
    sorts = "score"

    def sort_value(self, rows: pl.DataFrame) -> pl.DataFrame:
        """Returns the score; values of earlier scorings do not count (Nutch's rule)."""
        return rows.with_columns(sort_value=pl.col("score").cast(pl.Float64))

    def index_boost(self, rows: pl.DataFrame, options: BoostOptions) -> pl.DataFrame:
        """Returns score times ``--normalize_score``; ignores earlier scorings (Nutch's rule)."""
        score = pl.col("score").cast(pl.Float64)
        return rows.with_columns(boost=score * options.normalize_score)
