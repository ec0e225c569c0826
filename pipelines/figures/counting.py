"""domainstats, protocolstats and crawlcomplete: count rows of the state by a key.

::

    state, tablet by tablet ─ counts by key ─▶ parts ─▶ their sums
"""

import functools
import json
from collections.abc import Callable, Sequence

import polars as pl

from ...io.storage.files import LARGEST_BYTES, creating, read_bytes
from ...policy.conditions import ExprOptions, wanted_rows
from ...policy.figures import (
    FETCHED_PAGES,
    KEY,
    NAMES,
    NUMBER,
    UNFETCHED_PAGES,
    WHICH,
    by_name,
    by_protocol,
    sum_key_counts,
)
from ...web.base.clock import now_ms
from ...web.base.dataclass import dataclass
from ...web.base.options import option
from ...web.base.visible import visible_lines
from ..base.command import DONE, CommandParts, Invocation, configuration
from ..launch.clock_warnings import warn_of_clocks
from ..launch.launch import LaunchOptions
from ..views.item_reading import item_parts
from ..views.reading_job import ReadItem

# Counts rows: returns ``key``, ``which`` and ``number``; see ``policy/figures.py``.
Counting = Callable[[pl.DataFrame], pl.DataFrame]
_OF_PROTOCOLS = ("http_code", "protocol_status", "last_fetch_time")
# Nutch's names of the two totals of domainstats.
_TOTALS = {FETCHED_PAGES: "FETCHED", UNFETCHED_PAGES: "NOT_FETCHED"}


@dataclass(frozen=True)
class CountOptions(ExprOptions, LaunchOptions):
    """Options of counting rows of the state; those of protocolstats."""


@dataclass(frozen=True)
class NameCountOptions(CountOptions):
    """Options of domainstats."""

    GROUP = "domainstats"

    mode: str = option("domain", "What pages are counted by.", choices=tuple(NAMES))


@dataclass(frozen=True)
class CompletenessOptions(CountOptions):
    """Options of crawlcomplete."""

    GROUP = "crawlcomplete"

    mode: str = option(
        "host", "What pages are counted by.", choices=("host", "domain"),
        nutch="crawlcomplete -mode",
    )  # fmt: skip


def counted_rows(
    invocation: Invocation, columns: Sequence[str], counting: Counting
) -> pl.DataFrame:
    """Returns the sums of what a function counts in the rows of the state, the largest first.

    Args:
        invocation: The command; its options are ``CountOptions``.
        columns: Columns of the state that the function needs.
        counting: The function.
    """
    options, address, now = invocation.options, str(invocation.table), now_ms()
    with configuration():
        wanted_rows(options.expr)
    warn_of_clocks(address)
    count = functools.partial(
        _count, columns=tuple(columns), counting=counting, expr=options.expr, now=now
    )
    none = pl.DataFrame(schema={KEY: pl.String, WHICH: pl.String, NUMBER: pl.Int64})
    with item_parts(address, count, invocation.beam_args, options) as (_, parts):
        return sum_key_counts(
            [none, *(pl.read_parquet(read_bytes(part, LARGEST_BYTES)) for part in parts)]
        )


def _count(
    item: ReadItem, columns: tuple[str, ...], counting: Counting, expr: str, now: int
) -> None:
    assert item.tablet is not None
    reading, wanted = item.reading, wanted_rows(expr, now=now)
    needed = tuple(dict.fromkeys((*columns, *(wanted.needs if wanted else ()))))
    sums: list[pl.DataFrame] = []
    with reading.reading():
        for rows in reading.table.read_in_frames("state", item.tablet, needed):
            chosen = rows.filter(wanted.expr) if wanted else rows
            sums = [sum_key_counts([*sums, counting(chosen)])]
    with creating(reading.part_file(item.number, ".parquet")) as file:
        for frame in sums:
            frame.write_parquet(file)


def print_counts(invocation: Invocation, counts: pl.DataFrame) -> int:
    """Prints a line per count: number, tab, key; or an object per line as JSON."""
    for key, which, number in counts.select(KEY, WHICH, NUMBER).iter_rows():
        name = f"{key} {which}".strip()
        record = {"key": key, **({"which": which} if which else {}), "number": number}
        as_json = invocation.format == "json"
        print(json.dumps(record) if as_json else visible_lines([f"{number}\t{name}"]))
    return DONE


def _count_by_name(invocation: Invocation) -> pl.DataFrame:
    counting = functools.partial(by_name, mode=invocation.options.mode)
    return counted_rows(invocation, ("key", "status"), counting)


def count_fetched_pages(invocation: Invocation) -> int:
    """Runs domainstats: counts the fetched pages of each host, domain, suffix or top-level domain."""
    counts = _count_by_name(invocation)
    totals = dict(counts.group_by(WHICH).agg(pl.col(NUMBER).sum()).iter_rows())
    named = counts.filter((pl.col(WHICH) == FETCHED_PAGES) & (pl.col(KEY) != ""))
    records = [(name, "", totals.get(which, 0)) for which, name in _TOTALS.items()]
    head = pl.DataFrame(records, schema=counts.schema, orient="row")
    return print_counts(invocation, pl.concat([head, named.with_columns(pl.lit("").alias(WHICH))]))


DOMAINSTATS = CommandParts(NameCountOptions, count_fetched_pages)
# Counts the URLs of each HTTP code.
PROTOCOLSTATS = CommandParts(
    CountOptions, lambda inv: print_counts(inv, counted_rows(inv, _OF_PROTOCOLS, by_protocol))
)
# Counts how many pages of each host or domain are fetched, and how many are not.
CRAWLCOMPLETE = CommandParts(
    CompletenessOptions, lambda inv: print_counts(inv, _count_by_name(inv))
)
