"""Chooses rows of the state for readdb: by status, retries, URL, expression, or at random."""

import dataclasses
import re

import polars as pl

from ...web.base.options import option
from ...web.urls.key_columns import from_keys
from ..components.vocabulary import STATUS_WORDS, statuses_of
from ..conditions import ExprOptions, wanted_rows

_HASHES = float(1 << 64)


@dataclasses.dataclass(frozen=True)
class RowOptions(ExprOptions):
    """Options that choose rows; a row must meet all that are given."""

    GROUP = "rows"

    regex: str = option(
        "", "Take only URLs that match this regular expression as a whole.", nutch="readdb -regex"
    )
    status: str = option(
        "", "Take only this status; fetched is db_fetched and db_notmodified.",
        choices=("", *STATUS_WORDS), nutch="readdb -status",
    )  # fmt: skip
    retry: int = option(
        0, "Take only records with at least this many retries.", minimum=0, nutch="readdb -retry"
    )
    sample: float = option(
        1.0, "Take about this share of the rows, always the same ones: those with a small hash.",
        minimum=0.0, maximum=1.0, nutch="readdb -sample",
    )  # fmt: skip

    def needs(self) -> tuple[str, ...]:
        """Returns the columns of the state that ``chosen_rows`` needs."""
        wanted = wanted_rows(self.expr)
        names = [
            *(["key"] if self.regex or self.sample < 1 else []),
            *(["status"] if self.status else []),
            *(["retries"] if self.retry else []),
            *(wanted.needs if wanted is not None else ()),
        ]
        return tuple(dict.fromkeys(names))


def chosen_rows(rows: pl.DataFrame, options: RowOptions, now: int) -> pl.DataFrame:
    """Returns the rows that meet the options, in the same order.

    Args:
        rows: Rows of the state, with at least the columns ``options.needs()``.
        options: The options.
        now: What ``now()`` is in an expression, ms.
    """
    conditions = []
    if options.sample < 1:
        conditions.append(pl.col("key").hash(0).cast(pl.Float64) < options.sample * _HASHES)
    if options.retry:
        conditions.append(pl.col("retries") >= options.retry)
    if options.status:
        conditions.append(pl.col("status").is_in(statuses_of(options.status)))
    wanted = wanted_rows(options.expr, now=now)
    if wanted is not None:
        conditions.append(wanted.expr)
    chosen = rows.filter(conditions) if conditions else rows
    if not options.regex:
        return chosen
    matches = re.compile(options.regex).fullmatch
    urls = from_keys(chosen.get_column("key"))
    return chosen.filter(pl.Series([matches(url) is not None for url in urls], dtype=pl.Boolean))
