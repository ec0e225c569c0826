"""The scoring ``orphan``: marks pages to which no link was found for long.

After ``--mark_gone_after`` a page becomes db_gone, so that an index drops it; after
``--mark_orphan_after`` it becomes db_orphan. A page to which no link was ever found, and a seed,
stay as they are. A later link revives the page.

Only rows that update writes anyway are judged: those whose page was tried. ``is_orphan`` judges the
others where a job reads them all, as filterdb does.
"""

import polars as pl

from ...web.exchange.status import ANSWERED
from ..base.row_status import Status
from ..components.schema import StateRows
from .scoring import OrphanOptions, Scoring

_DAY_S = 86_400


class Orphan(Scoring):
    """Judges pages by the day on which a link to them was last found."""

    name = "orphan"
    sorts = "no"

    def arrived(self, rows: StateRows, now: int) -> StateRows:
        """Makes orphans to which a link has arrived db_unfetched; their due time stays."""
        status = pl.col("status")
        # Of gone pages only those that ``judged`` has marked: the server still has them.
        marked = (status == int(Status.DB_GONE)) & pl.col("protocol_status").is_in(list(ANSWERED))
        linked = pl.col("inlink_distance").is_not_null()
        revived = linked & ((status == int(Status.DB_ORPHAN)) | marked).fill_null(False)
        unfetched = pl.lit(int(Status.DB_UNFETCHED), pl.UInt8)
        return rows.with_columns(
            status=pl.when(revived).then(unfetched).otherwise(status),
            gone_since=pl.when(~revived).then("gone_since"),
        )

    def judged(self, rows: StateRows, now: int) -> StateRows:
        """Marks pages that were tried, and that no page links to any more."""
        options = self.options
        status = (
            pl.when(orphans(now, options.mark_orphan_after))
            .then(int(Status.DB_ORPHAN))
            .when(orphans(now, options.mark_gone_after))
            .then(int(Status.DB_GONE))
            .otherwise("status")
        )
        return rows.with_columns(status=status.cast(pl.UInt8))


def orphans(now: int, after: int) -> pl.Expr:
    """Returns a condition: no link to the page was found for longer than ``after``.

    The table has only the day of the last link. So a page becomes an orphan up to a day late, but
    never early.

    Args:
        now: The time, ms.
        after: The time, s.

    >>> rows = pl.DataFrame({"last_inlink_day": [0, 1, None, 0], "distance": [1, 1, 1, 0]})
    >>> rows.select(orphans(2 * _DAY_S * 1000, _DAY_S)).to_series().to_list()
    [True, False, False, False]
    """
    return (without_link(now) >= after * 1000).fill_null(False) & ~_is_seed()


def _is_seed() -> pl.Expr:
    return (pl.col("distance") == 0).fill_null(False)


def without_link(now: int) -> pl.Expr:
    """Returns the minimum time since a link to the page was found, ms; null if none ever was."""
    return now - (pl.col("last_inlink_day").cast(pl.Int64) + 1) * _DAY_S * 1000


def is_orphan(now: int, options: OrphanOptions) -> pl.Expr:
    """Returns a condition: the page is an orphan, whether or not its row says so yet.

    A page that has the status db_orphan, but was injected later, is a seed and no orphan.
    """
    marked = (pl.col("status") == int(Status.DB_ORPHAN)).fill_null(False) & ~_is_seed()
    return marked | orphans(now, options.mark_orphan_after)
