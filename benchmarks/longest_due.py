"""The scoring ``longest_due``, for ``schedules.py``: pages that are due the longest come first.

Without it all pages have the same score, and the same pages would always come last.
"""

import contextlib
import pathlib
import sys
import tempfile
from collections.abc import Iterator

import polars as pl

from nutbeam.policy.generating.threshold import rank
from nutbeam.policy.schedules.schedule import DAY_MS
from nutbeam.policy.scoring.scoring import Scoring
from nutbeam.web.base.clock import EARLIEST_MS

NAME = "longest_due"
_LATEST = EARLIEST_MS + 4_000 * DAY_MS  # --min_score refuses numbers below 0


class LongestDue(Scoring):
    """Sorts by the time since which a page is due, to the half minute."""

    name = NAME
    sort_columns = ("fetch_time",)

    def sort_value(self, rows: pl.DataFrame) -> pl.DataFrame:
        """Returns days."""
        return rows.with_columns(sort_value=_value())


def in_order(rows: pl.DataFrame) -> pl.DataFrame:
    """Returns rows in the order in which generate chooses them."""
    ranks = rank(rows.select(_value()).to_series(), rows.get_column("key"))
    return rows[ranks.arg_sort(descending=True)]


def _value() -> pl.Expr:
    return (_LATEST - pl.col("fetch_time").cast(pl.Int64)) / DAY_MS


@contextlib.contextmanager
def installed() -> Iterator[None]:
    """Declares the scoring to this process, as an installed package would."""
    with tempfile.TemporaryDirectory(prefix="longest-due-") as folder:
        info = pathlib.Path(folder) / "longest_due-1.0.dist-info"
        info.mkdir()
        (info / "METADATA").write_text("Metadata-Version: 2.1\nName: longest-due\nVersion: 1.0\n")
        (info / "entry_points.txt").write_text(
            f"[nutbeam.scorings]\n{NAME} = {__name__}:{LongestDue.__name__}\n"
        )
        sys.path.append(folder)
        try:
            yield
        finally:
            sys.path.remove(folder)
