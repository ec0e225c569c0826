"""Surveys the tablets of the state: which rows may be chosen, and why the others are left out.

Each tablet is read once. The rows that are due are read, and a row that is left out is counted
under the first reason that holds. The best rows are put aside, in a temporary file of the batch.
"""

import dataclasses
from collections.abc import Iterator
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
from ...policy.generating.threshold import summarize
from ...policy.hosting.host_settings import (
    best_of_hosts,
    with_own_limits,
)
from ...transforms.elements.chunk_flow import tagged_chunks
from ...transforms.elements.chunks import to_chunks
from ...transforms.top_rows import top_n_per_key
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
)

SPANNING = "spanning"
CANDIDATES = "candidates"
COUNTED = "done"


@dataclasses.dataclass(frozen=True)
class Candidates:
    """A file with the rows of a tablet that may be chosen."""

    operation: Operation
    path: str


@dataclasses.dataclass(frozen=True)
class Weight:
    """Size of a tablet's candidates: rows, bytes, and the number of rows of the largest host."""

    rows: int
    bytes: int
    host: str
    host_rows: int


def survey(surveyed: TabletToSurvey, options: GenerateOptions) -> Iterator[Any]:
    """Reads a tablet once: summarizes its ranks, and writes its best rows to a temporary file."""
    operation = surveyed.operation
    PROGRESS.add()
    if not surveyed.tablet.may_have(due_at(clock_of_survey(operation), options)):
        # The zone map suffices: the tablet is not read.
        return
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
    yield summarize(inside.get_column("rank"), options.top_n)
    spanning = apart.select("key", "rank", *(("group",) if len(apart) else ()))
    yield from tagged_chunks(SPANNING, spanning)
    # Of a host with a limit of its own, the best rows of each of its tablets meet at the criteria.
    yield from to_chunks(
        several.select("key", "rank", "group", "most") if len(several) else several
    )
    apart = pl.concat([apart, several.select(apart.columns)])
    nulls = [name for name in RARE if name not in remaining.rows.columns]
    best = (
        _best(part, options.top_n)
        .with_columns(pl.lit(None, STATE_TYPES[name]).alias(name) for name in nulls)
        .select(*CHOSEN_COLUMNS, "rank", spans=pl.lit(part is apart))
        for part in (inside, apart)
    )
    rows = pl.concat(best, rechunk=False)
    if rows.is_empty():
        return
    yield _weight(rows)
    path = put_aside(operation.table, str(operation.batch), rows)
    yield beam.pvalue.TaggedOutput(CANDIDATES, Candidates(operation, path))


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
