"""Counts the rows that are due and that generate does not choose, by reason."""

import dataclasses
from collections import Counter
from collections.abc import Mapping

import polars as pl

from ...web.base.columns import reason_if

LEFT_OUT = "left_out/"
DUE = "due"
CHOSEN = "chosen"
# The reason of a row that nothing excludes: others have better scores, and the batch is full.
NOT_BEST = "not_best"
# Rows that LocateHosts drops of those that were chosen.
_LATE = "dropped/address_unknown"


@dataclasses.dataclass
class Remaining:
    """Rows that may be chosen, and why others are not.

    Attributes:
        rows: Rows of the state that remain.
        counts: ``due``, the number of rows at first; ``left_out/REASON`` of the others.
    """

    rows: pl.DataFrame
    counts: Counter[str]

    def __post_init__(self) -> None:
        self.counts[DUE] += len(self.rows)

    @property
    def keys(self) -> pl.Series:
        """The row keys of the rows that remain."""
        return self.rows.get_column("key")

    def drop(self, dropped: pl.Series, reason: str = "") -> None:
        """Drops rows and counts them.

        Args:
            dropped: Which rows; without ``reason``, the reason of each row to drop, or null.
            reason: The reason.

        >>> left = Remaining(pl.DataFrame({"key": ["a", "b", "c"]}), Counter())
        >>> left.drop(pl.Series([True, False, None]), "status")
        >>> left.drop(pl.Series([None, "expr"]))
        >>> left.keys.to_list(), dict(left.counts)
        (['b'], {'due': 3, 'left_out/status': 1, 'left_out/expr': 1})
        """
        if reason:
            dropped = pl.select(reason_if(dropped, reason).alias("reason")).to_series()
        if dropped.null_count() == len(dropped):
            return
        for name, number in dropped.drop_nulls().value_counts().iter_rows():
            self.counts[f"{LEFT_OUT}{name}"] += number
        self.rows = self.rows.filter(dropped.is_null())


def refused_today(
    keys: pl.Series, judged: pl.DataFrame, *, filter: bool, normalize: bool
) -> pl.Series:
    """Returns the reason why today's rules leave out each row, or null.

    Args:
        keys: Row keys.
        judged: What the rules say of them: ``key`` of the normalized URL, or ``reason``.
        filter: Whether URLs that the rules refuse are left out.
        normalize: Whether URLs that the rules rewrite are left out.

    >>> judged = pl.DataFrame({"key": ["a", "b", None], "reason": [None, None, "filtered"]})
    >>> keys = pl.Series(["a", "c", "d"])
    >>> refused_today(keys, judged, filter=True, normalize=True).to_list()
    [None, 'normalized', 'filtered']
    """
    moves = (judged.get_column("key") != keys).fill_null(False)
    reasons = [judged.get_column("reason")] if filter else []
    if normalize:
        reasons.append(pl.select(reason_if(moves, "normalized")).to_series())
    return pl.select(pl.coalesce(reasons).alias("reason")).to_series()


def tally_choices(counts: Mapping[str, int]) -> dict[str, int]:
    """Returns the counts of a generate: URLs that are due, chosen, and left out, by reason.

    Rows with a reason of their own are counted. The remaining rows had too low a score for this
    batch: nobody counts them, because a tablet that is read later has only the better ones.

    >>> tally_choices({"due": 9, "chosen": 5, "left_out/in_batch": 1, "left_out/max_count": 0})
    {'due': 9, 'chosen': 5, 'left_out/in_batch': 1, 'left_out/not_best': 3}
    >>> tally_choices({"due": 0})
    {}
    """
    nonzero = {name: number for name, number in counts.items() if number}
    gone = sum(number for name, number in nonzero.items() if name.startswith(LEFT_OUT))
    rest = nonzero.get(DUE, 0) - nonzero.get(CHOSEN, 0) - nonzero.get(_LATE, 0) - gone
    return nonzero | ({f"{LEFT_OUT}{NOT_BEST}": rest} if rest > 0 else {})
