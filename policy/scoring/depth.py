"""The scoring ``depth``: follows links down to a depth, and prefers pages near the seeds.

A seed has depth 1, a page that it links to depth 2. So the depth is the column ``distance`` plus 1.
The limit of a seed is its metadata ``_maxdepth_``, else ``--depth_max``; it goes on to all that is
found from there, and of several limits the largest counts. ``--depth_override_pattern`` gives the links
of some pages another limit; pages that it does not match keep theirs (in Nutch they then lose that of
their seed). A page of unknown depth keeps its links (Nutch drops them).
"""

import polars as pl
import pyarrow as pa

from ...web.base.columns import put
from ...web.patterns.patterns import TimeLimit, pattern_of
from ..base.key_columns import from_keys
from ..components.schema import StateRows
from .scoring import CarriedColumn, Scoring, ScoringOptions, SharingRows

_MAX_DEPTH = "_maxdepth_"
_PASSED = "passed_max_depth"
_LARGEST = 2**31 - 2  # fits into the column


class Depth(Scoring):
    """Limits the depth, and multiplies the sort value by the steps that are left.

    Raises:
        ValueError: ``--depth_override_pattern`` is no regular expression.
    """

    name = "depth"
    row_columns = ("max_depth",)
    sort_columns = ("max_depth",)
    passed = (CarriedColumn(pa.field(_PASSED, pa.int32()), pl.col(_PASSED).max()),)

    def __init__(self, options: ScoringOptions) -> None:
        super().__init__(options)
        expected = "--depth_override_pattern must be a regular expression"
        pattern = options.depth_override_pattern
        self._pattern = pattern_of(expected, pattern) if pattern else None

    def injected(self, rows: StateRows) -> StateRows:
        """Reads the limit of each seed; ignores values other than whole numbers from 1 on."""
        limit_texts = rows.get_column("metadata").map.get(_MAX_DEPTH)
        limit = limit_texts.str.strip_chars().cast(pl.Int64, strict=False).alias("limit")
        limit = limit.set((~limit.is_between(1, _LARGEST)).fill_null(False), None)
        limit = limit.cast(pl.Int32)
        return rows.with_columns(max_depth=pl.coalesce(pl.lit(limit), "max_depth"))

    def renewed(self, rows: StateRows) -> StateRows:
        """Reads a limit that inject has updated."""
        return self.injected(rows)

    def sort_value(self, rows: StateRows) -> StateRows:
        """Multiplies by 1 + limit - depth; a page of unknown depth keeps its value.

        >>> from .scoring import ScoringOptions
        >>> rows = pl.DataFrame({"distance": [0, 2, None], "max_depth": [None, 3, 3]})
        >>> depth = Depth(ScoringOptions())
        >>> depth.sort_value(rows.with_columns(sort_value=1.0))["sort_value"].to_list()
        [1000.0, 1.0, 1.0]
        """
        levels = (self._limit() - pl.col("distance")).cast(pl.Float64)
        return rows.with_columns(sort_value=pl.col("sort_value") * levels.fill_null(1.0))

    def share(self, pages: SharingRows) -> SharingRows:
        """Drops the links of pages at the limit; other links get the limit."""
        pages = pages.with_columns(self.limits(pages).alias(_PASSED))
        if pages.get_column("part_of").null_count() < len(pages):  # parts have their page's limit
            limits = pages.select(part_of="key", limit=_PASSED).unique("part_of")
            of_page = pages.join(limits, on="part_of", how="left", maintain_order="left")
            pages = pages.with_columns(pl.coalesce(of_page["limit"], _PASSED).alias(_PASSED))
        deep = (pl.col("distance") + 1 >= pl.col(_PASSED)).fill_null(False)
        return pages.with_columns(links=pl.when(deep).then(0).otherwise("links"))

    def arrived(self, rows: StateRows, now: int) -> StateRows:
        """Sets the limit of new rows; null stands for the usual one, so that it may change."""
        usual = self.options.depth_max
        limit = pl.when(pl.col(_PASSED) != usual).then(_PASSED)
        is_new = pl.col("status").is_null()
        return rows.with_columns(max_depth=pl.when(is_new).then(limit).otherwise("max_depth"))

    def limits(self, pages: SharingRows) -> pl.Series:
        """Returns the depth from which on a page passes no links on.

        A pattern that takes too long for a URL is not found in it.

        Args:
            pages: ``key`` and ``max_depth``.

        >>> from .scoring import ScoringOptions
        >>> pages = pl.DataFrame({"key": ["com.a:http/", "com.a:http/x"], "max_depth": [None, 3]})
        >>> options = ScoringOptions(depth_override_pattern="/x$", depth_max_override=20)
        >>> Depth(options).limits(pages).to_list()
        [1000, 20]
        """
        own = pages.select(limit=self._limit().cast(pl.Int32)).to_series()
        if self._pattern is None:
            return own
        hits, slow = TimeLimit().search_column(self._pattern, from_keys(pages.get_column("key")))
        return put(own, (hits & ~slow).arg_true(), self.options.depth_max_override)

    def _limit(self) -> pl.Expr:
        return pl.col("max_depth").fill_null(self.options.depth_max)
