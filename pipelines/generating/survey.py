"""Surveys the tablets of the state: which rows may be chosen, and why the others are left out.

Each tablet is read once. The rows that are due are read, and a row that is left out is counted
under the first reason that holds. The best rows are put aside, in a temporary file of the batch.
Of many tablets several are one item of work, with one summary, so that summaries of any table fit
into one place.
"""

import dataclasses
import functools
import itertools
from collections import Counter
from collections.abc import Generator, Iterator, Mapping
from typing import Any

import apache_beam as beam
import numpy as np
import polars as pl

from ...io.batches.batches import claimed_keys, put_aside
from ...io.rows.small_components import read_blocklist, read_host_settings
from ...io.snapshots.operations import Operation
from ...io.snapshots.table_clock import clock_of
from ...io.tablets.tablets import Due, Tablet, tablets
from ...io.tablets.written import Written
from ...policy.base.key_columns import host_keys
from ...policy.components.blocklist import REASON as PURGED
from ...policy.components.rule_counts import by_rule
from ...policy.components.schema import FETCHLIST, STATE
from ...policy.generating.selection import (
    LEFT_OUT,
    GenerateOptions,
    Remaining,
    add_delays,
    add_ranks,
    advance_clock,
    chosen_at,
    needed_columns,
    reasons_of,
    refused_today,
    spans_tablets,
)
from ...policy.generating.threshold import Leaders, best_ranks, score_of, summarize
from ...policy.hosting.host_settings import (
    best_of_hosts,
    blocked_hosts,
    with_limits,
    with_own_limits,
)
from ...transforms.elements.chunks import to_chunks
from ...transforms.top_n_per_key import top_n_per_key
from ...transforms.wiring.plugin_groups import scorings_of
from ...web.base.clock import Clock
from ...web.base.progress import PROGRESS
from ...web.urls.schemes import allowed_keys
from .generate_rules import judge_today, limits_of_hosts

_OF_STATE = tuple(name for name in FETCHLIST.names if name in STATE.names)
CHOSEN_COLUMNS = (*_OF_STATE, "delay")
# Of these the columns that are null in most tables; then they are not read.
RARE = ("document", "fixed_interval", "metadata", "repr_url")
STATE_TYPES = pl.Schema(STATE)
_NO_GROUP = pl.lit(None, pl.String)
SPANNING = "spanning"
# Most items of work; each sends a summary of up to 32 kB to one place.
MOST_SUMMARIES = 1_024
CANDIDATES = "candidates"
COUNTED = "done"


@dataclasses.dataclass(frozen=True)
class TabletToSurvey:
    """A tablet of the state, and the nearest keys of the adjacent tablets."""

    operation: Operation
    tablet: Tablet
    last_before: str | None
    first_after: str | None


@dataclasses.dataclass(frozen=True)
class TabletGroup:
    """Tablets that follow one another, as an item of work."""

    operation: Operation
    tablets: tuple[TabletToSurvey, ...]


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


def tablets_of_state(operation: Operation) -> Iterator[TabletToSurvey]:
    state_tablets = tablets(operation.files("state"))
    PROGRESS.start("generate", total=len(state_tablets), unit="tablets")
    for at, tablet in enumerate(state_tablets):
        last_before = state_tablets[at - 1].last if at else None
        first_after = state_tablets[at + 1].first if at + 1 < len(state_tablets) else None
        yield TabletToSurvey(operation, tablet, last_before, first_after)


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
    leaders = _leaders(operation, options)
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


def candidates_of(
    surveyed: TabletToSurvey, options: GenerateOptions
) -> tuple[Remaining, Mapping[str, int]]:
    """Returns the rows that may be chosen, with ranks, and own limits of hosts.

    The rows come with counts of the other due rows, by reason.
    """
    operation, tablet = surveyed.operation, surveyed.tablet
    scorings, now = scorings_of(options), operation.now
    settings = read_host_settings(operation)
    remaining = Remaining(_due_rows(surveyed, options), Counter())
    if not scorings.sorts_by_score:
        remaining.rows = scorings.sort_value(remaining.rows)
    remaining.drop(reasons_of(remaining.rows, options, scorings, now))
    remaining.drop(~allowed_keys(remaining.keys, options.schemes), "scheme_not_allowed")
    if blocklist := read_blocklist(operation):
        remaining.drop(blocklist.blocks(remaining.keys), PURGED)
    manifest = operation.manifest()
    claimed = claimed_keys(
        operation.table, manifest, manifest.open_batches(now), tablet.first, tablet.last
    )
    if len(claimed):
        remaining.drop(remaining.keys.is_in(claimed.implode()), "in_batch")
    if blocked := blocked_hosts(settings):
        remaining.drop(host_keys(remaining.keys).is_in(blocked), "host_blocked")
    boosted = any(own.boost is not None for own in settings.values())
    if scorings.sorts_by_score and not boosted and (least := _leaders(operation, options).least):
        # Rows with worse scores cannot be chosen, whatever else they are.
        remaining.rows = remaining.rows.filter(pl.col("score") >= score_of(least))
    remaining.rows, bad = add_delays(remaining.rows)
    remaining.counts.update(bad)
    resting = operation.table.resting_hosts(
        "hosts", tuple(operation.files("hosts")), now, lambda: host_keys(remaining.keys).unique()
    )
    if len(resting):
        remaining.drop(host_keys(remaining.keys).is_in(resting.implode()), "backoff")
    if options.filter or options.normalize:
        judged = judge_today(remaining.rows, operation, options)
        chosen = {"filter": options.filter, "normalize": options.normalize}
        remaining.drop(refused_today(remaining.keys, judged, **chosen))
        remaining.counts.update(by_rule(judged) if options.filter else {})
    limits = limits_of_hosts(operation, options, remaining.keys, now)
    remaining.rows, bad = with_limits(remaining.rows, limits)
    remaining.counts.update(bad)
    remaining.rows = add_ranks(remaining.rows, options)
    return remaining, limits.max_counts


def _due_rows(surveyed: TabletToSurvey, options: GenerateOptions) -> pl.DataFrame:
    operation, tablet = surveyed.operation, surveyed.tablet
    clock = clock_of_survey(operation)
    needed = needed_columns(options)
    absent = set(RARE) - operation.table.columns_with_values(tablet, RARE) - set(needed)
    more = scorings_of(options).sort_columns
    columns = [n for n in dict.fromkeys((*_OF_STATE, *more, *needed)) if n not in absent]
    return operation.table.read(
        "state", [tablet], columns, lambda state: state.filter(chosen_at(clock, options)),
        due_at(clock, options),
    )  # fmt: skip


@functools.lru_cache(maxsize=2)
def _leaders(operation: Operation, options: GenerateOptions) -> Leaders:
    """Returns the best ranks of the tablets that this process has read for an operation."""
    return Leaders(options.top_n)


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


def clock_of_survey(operation: Operation) -> Clock:
    """Returns the time for which an operation chooses."""
    return clock_of(operation.manifest(), operation.now)._replace(began=operation.began)


def due_at(clock: Clock, options: GenerateOptions) -> Due:
    """Returns the times at which a row may be due."""
    far = clock.now + options.max_fetch_interval * 1000
    until = max(advance_clock(clock, options).now, min(clock.latest, far))
    return Due(until, max(until, far))


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
