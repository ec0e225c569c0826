"""Turns ranks into scores of URLs."""

import polars as pl


def new_scores(rows: pl.DataFrame, ranks: pl.DataFrame, clear: float) -> pl.DataFrame:
    """Returns the rows whose score changes, with the new one.

    Args:
        rows: Columns ``key`` and ``score``.
        ranks: Columns ``key`` and ``rank``.
        clear: Score of a row without a rank.

    >>> rows = pl.DataFrame({"key": ["a", "b", "c"], "score": [1.0, 2.0, 0.0]})
    >>> new_scores(rows, pl.DataFrame({"key": ["a", "x"], "rank": [0.5, 9.0]}), 0.0).rows()
    [('a', 0.5), ('b', 0.0)]
    """
    ranked = rows.join(ranks, on="key", how="left", maintain_order="left")
    score = pl.col("rank").fill_null(clear).cast(rows.schema["score"])
    ranked = ranked.with_columns(new=score).filter(pl.col("score").ne_missing(pl.col("new")))
    return ranked.select("key", score="new")


def set_scores(rows: pl.DataFrame, changes: pl.DataFrame) -> tuple[pl.DataFrame, dict[str, int]]:
    """Returns the rows with their new scores, and the number of changed ones.

    A key that has no row is not added.

    >>> rows = pl.DataFrame({"key": ["a", "b"], "score": [1.0, 2.0]})
    >>> set_scores(rows, pl.DataFrame({"key": ["b", "x"], "score": [0.5, 9.0]}))[0].rows()
    [('a', 1.0), ('b', 0.5)]
    """
    changes = changes.select("key", new="score")
    scored = rows.join(changes, on="key", how="left", maintain_order="left")
    number = scored.get_column("new").count()
    new_rows = scored.with_columns(score=pl.coalesce("new", "score")).drop("new")
    return new_rows, {"scored": number} if number else {}
