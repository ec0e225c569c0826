"""domainstats: counts the fetched pages of each host, domain, suffix or top-level domain."""

import dataclasses
import functools

import polars as pl

from ...policy.figures import (
    FETCHED_PAGES,
    KEY,
    NAMES,
    NUMBER,
    UNFETCHED_PAGES,
    WHICH,
    by_name,
)
from ...web.base.options import option
from ..base.command import TABLE, Invocation
from .counting import CountOptions, counted_rows, print_counts

ARGUMENTS = (TABLE,)
# Nutch's names of the two totals.
_TOTALS = {FETCHED_PAGES: "FETCHED", UNFETCHED_PAGES: "NOT_FETCHED"}


@dataclasses.dataclass(frozen=True)
class Options(CountOptions):
    """Options of domainstats."""

    mode: str = option("domain", "What pages are counted by.", choices=tuple(NAMES))


def run(invocation: Invocation) -> int:
    counting = functools.partial(by_name, mode=invocation.options.mode)
    counts = counted_rows(invocation, ("key", "status"), counting)
    totals = dict(counts.group_by(WHICH).agg(pl.col(NUMBER).sum()).iter_rows())
    named = counts.filter((pl.col(WHICH) == FETCHED_PAGES) & (pl.col(KEY) != ""))
    records = [(name, "", totals.get(which, 0)) for which, name in _TOTALS.items()]
    head = pl.DataFrame(records, schema=counts.schema, orient="row")
    return print_counts(invocation, pl.concat([head, named.with_columns(pl.lit("").alias(WHICH))]))
