"""The scoring ``depth``: follows links down to a depth, and prefers pages near the seeds.

A seed has depth 1, a page that it links to depth 2. So the depth is the column ``distance`` plus 1.
The limit of a seed is its metadata ``_maxdepth_``, else ``--depth_max``; it goes on to all that is
found from there, and of several limits the largest counts. A page of unknown depth keeps its links
(Nutch drops them).
"""

import polars as pl
import pyarrow as pa

from .scoring import Carried, Scoring

_MAX_DEPTH = "_maxdepth_"
_PASSED = "passed_max_depth"
_LARGEST = 2**31 - 2  # fits into the column


class Depth(Scoring):
    """Limits the depth, and multiplies the sort value by the steps that are left."""

    name = "depth"
    row_columns = ("max_depth",)
    sort_columns = ("max_depth",)
    passed = (Carried(pa.field(_PASSED, pa.int32()), pl.col(_PASSED).max()),)

    def injected(self, rows: pl.DataFrame) -> pl.DataFrame:
        """Reads the limit of each seed; ignores values other than whole numbers from 1 on."""
        given = rows.get_column("metadata").map.get(_MAX_DEPTH)
        limit = given.str.strip_chars().cast(pl.Int64, strict=False).alias("limit")
        limit = limit.set((~limit.is_between(1, _LARGEST)).fill_null(False), None)
        limit = limit.cast(pl.Int32)
        return rows.with_columns(max_depth=pl.coalesce(pl.lit(limit), "max_depth"))

    def renewed(self, rows: pl.DataFrame) -> pl.DataFrame:
        """Reads a limit that inject has updated."""
        return self.injected(rows)

    def sort_value(self, rows: pl.DataFrame) -> pl.DataFrame:
        """Multiplies by 1 + limit - depth; a page of unknown depth keeps its value.

        >>> from .scoring_options import ScoringOptions
        >>> rows = pl.DataFrame({"distance": [0, 2, None], "max_depth": [None, 3, 3]})
        >>> depth = Depth(ScoringOptions())
        >>> depth.sort_value(rows.with_columns(sort_value=1.0))["sort_value"].to_list()
        [1000.0, 1.0, 1.0]
        """
        left = (self._limit() - pl.col("distance")).cast(pl.Float64)
        return rows.with_columns(sort_value=pl.col("sort_value") * left.fill_null(1.0))

    def share(self, pages: pl.DataFrame) -> pl.DataFrame:
        """Drops the links of pages at the limit; other links get the limit."""
        deep = (pl.col("distance") + 1 >= self._limit()).fill_null(False)
        return pages.with_columns(
            links=pl.when(deep).then(0).otherwise("links"), **{_PASSED: self._limit()}
        )

    def arrived(self, rows: pl.DataFrame, now: int) -> pl.DataFrame:
        """Sets the limit of new rows; null stands for the usual one, so that it may change."""
        usual = self.options.depth_max
        limit = pl.when(pl.col(_PASSED) != usual).then(_PASSED)
        is_new = pl.col("status").is_null()
        return rows.with_columns(max_depth=pl.when(is_new).then(limit).otherwise("max_depth"))

    def _limit(self) -> pl.Expr:
        return pl.col("max_depth").fill_null(self.options.depth_max)
