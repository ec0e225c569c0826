"""The schedule ``rate``: estimates how often each page changes, and keeps most pages fresh.

The estimate of a page's rate of changes is in its row, in ``change_shape`` and ``change_days``
(``change_rate``). The intervals follow from a threshold (``allocation``), which follows from the
budget: the fetches a day divided by the pages of the table. An update sees only a part of the
table, so the threshold does not follow from the pages that it sees: it is that of pages with all
kinds of rates (``best_threshold``). If a table has more pages of which each fetch gains much, its
rows are due somewhat earlier than the budget allows; then generate's limit delays them all.

The threshold is also the time in which a page that is worth following hardly changes. So if a page
has changed, or was new at its first visit, and little is known of it, it is fetched again after that
time: then it is clear whether it is worth more fetches.
"""

import numpy as np
import polars as pl

from ...web.exchange.status import NOTMODIFIED, SUCCESS
from .allocation import best_intervals, best_threshold
from .change_rate import (
    PRIOR_DAYS,
    PRIOR_SHAPE,
    Array,
    ChangeRate,
    learn_change,
    learn_dated_change,
    learn_no_change,
)
from .schedule import DAY_MS, DAY_S
from .visits import (
    EARLIEST_CHANGE_MS,
    FETCH_TIME,
    ScheduleContext,
    content_time,
    next_fetch,
    server_time,
)

# A Last-Modified that is less old was probably made for the answer.
_MADE_FOR_ANSWER_MS = 60_000
# From this shape on, a page's rate is known well enough.
_WELL_KNOWN = 2.0
_FIRST_DATED = (pl.col("elapsed").is_null() & pl.col("age").is_not_null()).alias("first")
_FACTS = ("modified", "notmodified", "change_shape", "change_days")


def rate_schedule(visits: pl.DataFrame, context: ScheduleContext) -> pl.DataFrame:
    """Learns from the visits, and sets the best intervals; see ``visits``."""
    options = context.options
    facts = visits.select(
        *_FACTS,
        elapsed=(FETCH_TIME - pl.col("last_fetch_time")) / DAY_MS,
        age=_age(),
        content_seen=pl.col("protocol_status").is_in([SUCCESS, NOTMODIFIED]).fill_null(False),
    )
    rates = _estimates(facts)
    bounds = options.shortest / DAY_S, options.longest / DAY_S
    threshold = best_threshold(options.mean_interval(context.pages), *bounds)
    intervals = best_intervals(threshold, rates, *bounds)
    # Does the page change too fast to be followed? It does if it has changed again this soon. Or it
    # was new at its first visit, and need not change at all.
    new = _FIRST_DATED & (pl.col("age") < threshold)
    changed_once = (pl.col("modified") & pl.col("age").is_null()) | new
    once = facts.select(changed_once.fill_null(False).alias("once")).to_series()
    unclear = once.to_numpy() & (rates.shape < _WELL_KNOWN)
    intervals = np.where(unclear, np.clip(threshold, bounds[0], intervals), intervals) * DAY_S
    return visits.with_columns(
        change_shape=pl.Series(rates.shape, dtype=pl.Float32),
        change_days=pl.Series(rates.days, dtype=pl.Float32),
        modified_time=content_time(pl.coalesce(server_time(), FETCH_TIME)),
        **next_fetch(pl.lit(pl.Series(intervals))),
    )


def _age() -> pl.Expr:
    """Returns how old the content is by the server's word, in days; null if that is not usable.

    Before the first visit a sitemap may have told the time of the last change.
    """
    first = pl.col("last_fetch_time").is_null()
    usable = pl.col("modified_time").is_between(EARLIEST_CHANGE_MS, FETCH_TIME)
    age = FETCH_TIME - pl.coalesce(server_time(), pl.when(first & usable).then("modified_time"))
    return pl.when(age >= _MADE_FOR_ANSWER_MS).then(age / DAY_MS)


def _estimates(facts: pl.DataFrame) -> ChangeRate:
    """Returns the estimates of the rates after the visits."""
    shape, days = (_array(facts.get_column(name)) for name in ("change_shape", "change_days"))
    # Another schedule may have left something else in these columns.
    nothing = ~(np.isfinite(shape) & np.isfinite(days) & (shape > 0) & (days > 0))
    shape[nothing], days[nothing] = PRIOR_SHAPE, PRIOR_DAYS
    rates = ChangeRate(shape, days)
    elapsed = _array(facts.get_column("elapsed").fill_null(0.0))
    age = _array(facts.get_column("age").fill_null(0.0))
    modified = facts.get_column("modified")
    has_age = facts.get_column("age").is_not_null()
    # After a failure it is unknown how long the page was not seen.
    cases = (
        (facts.get_column("notmodified"), learn_no_change, elapsed),
        (
            (modified & has_age) | facts.select(_FIRST_DATED).to_series(),
            learn_dated_change,
            age,
        ),
        (modified & ~has_age & facts.get_column("content_seen"), learn_change, elapsed),
    )
    for rows, after_visit, days_of in cases:
        at = rows.fill_null(False).to_numpy()
        if at.any():
            after = after_visit(rates.take(at), days_of[at])
            rates.shape[at], rates.days[at] = after
    return rates


def _array(column: pl.Series) -> Array:
    return np.array(column.cast(pl.Float64).to_numpy())
