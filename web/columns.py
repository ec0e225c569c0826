"""Columns with some of their places changed."""

from typing import Any

import polars as pl


def put(column: pl.Series, at: pl.Series, values: Any) -> pl.Series:
    """Returns a column with other values at some places.

    ``scatter`` itself changes the column that it is called on.

    >>> column = pl.Series([1, 2, 3])
    >>> put(column, pl.Series([1]), 7).to_list(), column.to_list()
    ([1, 7, 3], [1, 2, 3])
    """
    return column.clone().scatter(at, values)


def nulls(number: int) -> pl.Series:
    """Returns a column of so many nulls, for texts."""
    return pl.repeat(None, number, dtype=pl.String, eager=True)


def falses(number: int) -> pl.Series:
    """Returns a column of so many times False."""
    return pl.repeat(False, number, dtype=pl.Boolean, eager=True)
