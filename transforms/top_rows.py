"""The best rows of each key."""

from collections.abc import Sequence

import polars as pl

from ..web.base.columns import number_in


def top_n_per_key(
    frame: pl.DataFrame,
    n: int,
    key: str,
    order_by: Sequence[str],
    descending: bool | Sequence[bool] = True,
) -> pl.DataFrame:
    """Returns the ``n`` best rows of each key, in no particular order; see ``TopNPerKey``.

    >>> frame = pl.DataFrame({"host": ["a", "a", "b"], "score": [1.0, 2.0, 0.5]})
    >>> sorted(top_n_per_key(frame, 1, "host", ("score",)).rows())
    [('a', 2.0), ('b', 0.5)]
    """
    # Most keys have few rows: only the others need to be sorted.
    crowded = frame.select(pl.len().over(key) > n).to_series()
    if not crowded.any():
        return frame
    ranked = frame.filter(crowded).sort(order_by, descending=descending, nulls_last=True)
    return pl.concat([frame.filter(~crowded), ranked.filter(number_in(key) < n)])
