"""Surveys the tablets of the state: which rows may be chosen, and why the others are left out.

Each tablet is read once. The rows that are due are read, and a row that is left out is counted
under the first reason that holds. The best rows are put aside, in a temporary file of the batch.
Of many tablets several are one item of work, with one summary, so that summaries of any table fit
into one place.
"""

import itertools
from collections.abc import Generator, Iterator
from typing import Any

import apache_beam as beam
import numpy as np
import polars as pl

from ...io.batches.batches import put_aside
from ...io.snapshots.operations import Operation
from ...io.tablets.written import Written
from ...policy.base.key_columns import host_keys
from ...policy.generating.selection import (
    LEFT_OUT,
    GenerateOptions,
    spans_tablets,
)
from ...policy.generating.threshold import best_ranks, summarize
from ...policy.hosting.host_settings import (
    best_of_hosts,
    with_own_limits,
)
from ...transforms.elements.chunks import to_chunks
from ...transforms.top_rows import top_n_per_key
from ...web.base.dataclass import dataclass
from ...web.base.progress import PROGRESS
from .generate_candidates import (
    CHOSEN_COLUMNS,
    RARE,
    STATE_TYPES,
    TabletToSurvey,
    candidates_of,
    clock_of_survey,
    due_at,
    leaders_of,
    tablets_of_state,
)

_NO_GROUP = pl.lit(None, pl.String)
SPANNING = "spanning"
# Most items of work; each sends a summary of up to 32 kB to one place.
MOST_SUMMARIES = 1_024
CANDIDATES = "candidates"
COUNTED = "done"


@dataclass(frozen=True)
class TabletGroup:
    """Tablets that follow one another, as an item of work."""

    operation: Operation
    tablets: tuple[TabletToSurvey, ...]


@dataclass(frozen=True)
class Candidates:
    """A file with the rows of a tablet that may be chosen."""

    operation: Operation
    path: str


@dataclass(frozen=True)
class Weight:
    """Size of a tablet's candidates: rows, bytes, and the number of rows of the largest host."""

    rows: int
    bytes: int
    host: str
    host_rows: int


def tablet_groups(operation: Operation) -> Iterator[TabletGroup]:
    """Yields all tablets in at most ``MOST_SUMMARIES`` groups, of equal numbers of tablets."""
    all_tablets = list(tablets_of_state(operation))
    number = min(len(all_tablets), MOST_SUMMARIES)
    edges = [len(all_tablets) * at // number for at in range(number + 1)] if number else []
    for start, end in itertools.pairwise(edges):
        yield TabletGroup(operation, tuple(all_tablets[start:end]))


def survey(group: TabletGroup, options: GenerateOptions) -> Iterator[Any]:
    """Reads tablets once: summarizes their ranks, and writes their best rows to temporary files."""
    best, rows = pl.Series("rank", [], pl.UInt64), 0
    for surveyed in group.tablets:
        PROGRESS.add()
        # If the zone map suffices, the tablet is not read.
        if surveyed.tablet.may_have(due_at(clock_of_survey(group.operation), options)):
            ranks = yield from _survey_tablet(surveyed, options)
            best, rows = best_ranks([best, ranks], options.top_n), rows + len(ranks)
    if rows:
        yield summarize(best, options.top_n, rows)


def _survey_tablet(
    surveyed: TabletToSurvey, options: GenerateOptions
) -> Generator[Any, None, pl.Series]:
    """Yields what a tablet has but the summary; returns the ranks of rows of groups that it has alone."""
    operation = surveyed.operation
    remaining, max_counts = candidates_of(surveyed, options)
    rows, free, limited = with_own_limits(remaining.rows, max_counts)
    inside, apart = _divide(rows, surveyed, options)
    alone, several = _divide_limited(limited, surveyed)
    inside = pl.concat([part.select(inside.columns) for part in (inside, free, alone)])
    # Of groups in several tablets, some of these stay: generate corrects the count.
    remaining.counts[f"{LEFT_OUT}max_count"] += len(remaining.rows) - len(inside)
    yield beam.pvalue.TaggedOutput(COUNTED, Written(counts=+remaining.counts))
    leaders = leaders_of(operation, options)
    leaders.add(surveyed.tablet.base.path, inside.get_column("rank"))
    inside = inside.filter(pl.col("rank") >= leaders.least)
    across = _name_groups(apart, several, options)
    spanning = to_chunks(across.select("key", "rank", "group", "most"))
    shuffled = limits_groups(options)
    yield from (beam.pvalue.TaggedOutput(SPANNING, c) if shuffled else c for c in spanning)
    nulls = [name for name in RARE if name not in remaining.rows.columns]
    best = (
        _best(part, options.top_n)
        .with_columns(pl.lit(None, STATE_TYPES[name]).alias(name) for name in nulls)
        .select(*CHOSEN_COLUMNS, "rank", "group")
        for part in (inside.with_columns(group=_NO_GROUP), across)
    )
    rows = pl.concat(best, rechunk=False)
    if len(rows):
        yield _weight(rows)
        path = put_aside(operation.table, str(operation.batch), rows)
        yield beam.pvalue.TaggedOutput(CANDIDATES, Candidates(operation, path))
    return inside.get_column("rank")


def limits_groups(options: GenerateOptions) -> bool:
    """Returns whether options limit many groups; the operator's settings limit only some hosts."""
    return options.max_count > 0 or bool(options.max_count_expr)


def _name_groups(
    apart: pl.DataFrame, several: pl.DataFrame, options: GenerateOptions
) -> pl.DataFrame:
    """Returns the rows of groups in several tablets, with ``group`` and ``most``.

    Args:
        apart: Rows of groups with the usual limit.
        several: Rows of hosts with limits of their own; a domain may have the same name.
        options: The usual limit.
    """
    if several.is_empty():
        if "group" not in apart.columns:
            apart = apart.with_columns(group=_NO_GROUP)
        return apart.with_columns(most=pl.lit(options.max_count, pl.Int64))
    own = several.with_columns(group="=" + pl.col("group"))
    usual = _name_groups(apart, several.clear(), options)
    return pl.concat([usual, own.select(usual.columns)])


def _divide(
    rows: pl.DataFrame, tablet: TabletToSurvey, options: GenerateOptions
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Applies the limit per group; returns (groups only in this tablet, groups in several)."""
    if options.max_count <= 0:
        return rows, rows.clear()
    names = rows.get_column("group").unique()
    wide = names.filter(
        spans_tablets(names, options.count_mode, tablet.last_before, tablet.first_after)
    )
    apart = rows.get_column("group").is_in(wide.implode())
    inside, outside = (
        top_n_per_key(rows.filter(part), options.max_count, "group", ("rank", "key"))
        for part in (~apart, apart)
    )
    return inside, outside


def _divide_limited(
    limited: pl.DataFrame, tablet: TabletToSurvey
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Applies the own limits of hosts; returns (hosts only in this tablet, hosts in several)."""
    if limited.is_empty():
        return limited, limited
    best = best_of_hosts(limited)
    names = best.get_column("group").unique()
    wide = names.filter(spans_tablets(names, "host", tablet.last_before, tablet.first_after))
    apart = best.get_column("group").is_in(wide.implode())
    return best.filter(~apart), best.filter(apart)


def _weight(rows: pl.DataFrame) -> Weight:
    texts = rows.select(pl.col(pl.String).str.len_bytes().sum()).row(0)
    hosts = host_keys(rows.get_column("key")).alias("host").value_counts()
    host, number = hosts.row(hosts.get_column("count").arg_max() or 0)
    return Weight(len(rows), sum(texts) + 100 * len(rows), host, number)


def _best(rows: pl.DataFrame, n: int) -> pl.DataFrame:
    """Returns the ``n`` rows with the highest ranks, and all rows that equal the last, in order."""
    if len(rows) <= n:
        return rows
    ranks = rows.get_column("rank")
    least = np.partition(ranks.to_numpy(), len(rows) - n)[len(rows) - n]
    return rows.filter(ranks >= least)
