"""The scorings ``opic`` and ``opic_cash``.

``opic`` is that of Nutch 1.x: scores only grow. A page divides its score among its links and keeps
it. So each fetch of a page adds to the scores of the pages that it links to.

``opic_cash`` is that of Nutch 2.x: a page gives away the cash that it has got. Cash is neither made
nor lost by links: a page that gives some has so much less. A seed starts with its score as cash,
and so does a row that another scoring has made. What a page gets is added to its score and to its
cash; when it is fetched, its links get its cash in equal parts. A page without links keeps its cash
(Nutch loses it), and so does one that has not changed. What a page pays follows from what its links
get in the end. So the order of scorings does not matter: links get cash, even if a later scoring
shares something else, and a page whose links a later scoring drops pays nothing.

Cash is lost with links that update does not add to the table (``--max_new_per_host`` and similar
limits), and with factors of links below 1; factors above 1 make cash.
"""

import polars as pl
import pyarrow as pa

from ..components.schema import StateRows
from .scoring import BoostOptions, CarriedColumn, Scoring, SharingRows


class Opic(Scoring):
    """OPIC without cash."""

    name = "opic"
    sorts = "score"

    def sort_value(self, rows: StateRows) -> StateRows:
        """Multiplies by the score."""
        return rows.with_columns(sort_value=pl.col("sort_value") * pl.col("score"))

    def share(self, pages: SharingRows) -> SharingRows:
        """Gives each link an equal part of the page's score."""
        return pages.with_columns(share=pl.col("score") / pl.col("links"))

    def arrived(self, rows: StateRows, now: int) -> StateRows:
        """Adds the shares of new links to the score."""
        return rows.with_columns(score=pl.col("score") + pl.col("inlink_score").fill_null(0.0))

    def index_boost(self, rows: StateRows, options: BoostOptions) -> StateRows:
        """Multiplies by a power of the score; a negative score counts as 0.

        >>> from .scoring import ScoringOptions
        >>> rows = pl.DataFrame({"score": [4.0], "boost": [1.0]})
        >>> Opic(ScoringOptions()).index_boost(rows, BoostOptions())["boost"].item()
        2.0
        """
        score = pl.col("score").cast(pl.Float64).clip(0.0)
        return rows.with_columns(boost=pl.col("boost") * score.pow(options.score_power))


_SPENT = "own_spent"


class OpicCash(Opic):
    """OPIC with cash."""

    name = "opic_cash"
    row_columns = ("cash", "status")
    # A page in two files of one update gives twice, and pays twice.
    own = (CarriedColumn(pa.field(_SPENT, pa.float64()), pl.col(_SPENT).sum(), if_stale=True),)

    def injected(self, rows: StateRows) -> StateRows:
        """A seed has its score as cash."""
        return rows.with_columns(cash=pl.col("score"))

    def share(self, pages: SharingRows) -> SharingRows:
        """Looks up the cash of pages; a later scoring may change their score."""
        return _divide_cash(pages.with_columns(cash=_cash().fill_nan(0.0)))

    def settled(self, pages: SharingRows) -> SharingRows:
        """Gives each link an equal part of its page's cash; ignores shares of other scorings."""
        pages = _divide_cash(pages)
        spent = pl.col("share") * pl.col("links")
        return pages.with_columns(pl.when(spent != 0).then(spent).alias(_SPENT))

    def arrived(self, rows: StateRows, now: int) -> StateRows:
        """Adds the shares of links to score and cash; subtracts the cash that a page has given."""
        from_links, spent = pl.col("inlink_score"), pl.col(_SPENT)
        changed = _cash() - spent.fill_null(0.0) + from_links.fill_null(0.0)
        is_new = pl.col("status").is_null()  # its score is not cash, whichever scoring sets it
        changes = is_new | from_links.is_not_null() | (spent.fill_null(0.0) != 0)
        return rows.with_columns(
            score=pl.col("score") + from_links.fill_null(0.0),
            cash=pl.when(changes).then(changed).otherwise(pl.col("cash").cast(pl.Float64)),
        )


def _divide_cash(pages: SharingRows) -> SharingRows:
    """Divides the cash of pages among their links."""
    cash = pl.col("cash")
    gives = (cash > 0) & cash.is_finite() & (pl.col("links") > 0) & ~pl.col("unchanged")
    return pages.with_columns(share=pl.when(gives).then(cash / pl.col("links")).otherwise(0.0))


def _cash() -> pl.Expr:
    """Returns the cash of rows of the table; other pages have none."""
    cash = pl.coalesce(pl.col("cash").cast(pl.Float64), "score")
    return pl.when(pl.col("status").is_not_null()).then(cash).otherwise(0.0)
