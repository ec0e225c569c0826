"""The rows of a tablet that generate may choose, with ranks, and counts of those that it may not."""

import functools
from collections import Counter
from collections.abc import Iterator, Mapping

import polars as pl

from ...io.batches.batches import claimed_keys
from ...io.rows.small_components import read_blocklist, read_host_settings
from ...io.snapshots.manifest import Manifest
from ...io.snapshots.operations import Operation
from ...io.snapshots.rounds import count_due, may_have_due, rows_to_look_at
from ...io.snapshots.table_clock import clock_of
from ...io.table.web_table import TableRows
from ...io.tablets.tablets import Due, Tablet, tablets
from ...policy.base.key_columns import host_keys
from ...policy.components.blocklist import REASON as PURGED
from ...policy.components.rule_counts import by_rule
from ...policy.components.schema import FETCHLIST, STATE
from ...policy.generating.selection import (
    GenerateOptions,
    Remaining,
    add_delays,
    add_ranks,
    advance_clock,
    chosen_at,
    needed_columns,
    reasons_of,
    refused_today,
)
from ...policy.generating.threshold import Leaders, score_of
from ...policy.hosting.host_settings import (
    blocked_hosts,
    with_limits,
)
from ...transforms.wiring.plugin_groups import scorings_of
from ...web.base.clock import Clock
from ...web.base.dataclass import dataclass
from ...web.base.progress import PROGRESS
from ...web.urls.schemes import allowed_keys
from .generate_rules import judge_today, limits_of_hosts

_OF_STATE = tuple(name for name in FETCHLIST.names if name in STATE.names)
CHOSEN_COLUMNS = (*_OF_STATE, "delay")
# Of these the columns that are null in most tables; then no later step has them.
RARE = ("document", "fixed_interval", "metadata", "repr_url")
# To find that all values of this one are null takes a fifth of the time of reading it; of others it takes more.
_NESTED = "metadata"
STATE_TYPES = pl.Schema(STATE)


@dataclass(frozen=True)
class TabletToSurvey:
    """A tablet of the state, and the nearest keys of the adjacent tablets."""

    operation: Operation
    tablet: Tablet
    last_before: str | None
    first_after: str | None


def tablets_of_state(operation: Operation) -> Iterator[TabletToSurvey]:
    state_tablets = tablets(operation.files("state"))
    PROGRESS.start("generate", total=len(state_tablets), unit="tablets")
    for at, tablet in enumerate(state_tablets):
        last_before = state_tablets[at - 1].last if at else None
        first_after = state_tablets[at + 1].first if at + 1 < len(state_tablets) else None
        yield TabletToSurvey(operation, tablet, last_before, first_after)


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
    if scorings.sorts_by_score and not boosted and (least := leaders_of(operation, options).least):
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
    # In one order, so that the rows of all workers have the same.
    wanted = dict.fromkeys((*scorings_of(options).sort_columns, *needed))
    absent = {_NESTED} - operation.table.columns_with_values(tablet, (_NESTED,)) - wanted.keys()
    columns = [n for n in dict.fromkeys((*_OF_STATE, *wanted)) if n not in absent]
    rows = operation.table.read(
        "state", [tablet], columns, lambda state: state.filter(chosen_at(clock, options)),
        due_at(clock, options),
    )  # fmt: skip
    rare = [name for name in RARE if name in columns and name not in wanted]
    return rows.drop(name for name in rare if rows.get_column(name).null_count() == len(rows))


@functools.lru_cache(maxsize=2)
def leaders_of(operation: Operation, options: GenerateOptions) -> Leaders:
    """Returns the best ranks of the tablets that this process has read for an operation."""
    return Leaders(options.top_n)


def clock_of_survey(operation: Operation) -> Clock:
    """Returns the time for which an operation chooses."""
    return clock_of(operation.manifest(), operation.now)._replace(began=operation.began)


def rows_may_be_due(
    table: TableRows, manifest: Manifest, options: GenerateOptions, *, by_rows: bool = False
) -> bool:
    """Returns whether a row of a snapshot may be due; see ``may_have_due``."""
    return may_have_due(table, manifest, lambda clock: due_at(clock, options), by_rows=by_rows)


def rows_to_survey(table: TableRows, manifest: Manifest, options: GenerateOptions) -> int:
    """Returns how many rows of a snapshot generate reads: those of tablets that may have due rows."""
    return rows_to_look_at(table, manifest, lambda clock: due_at(clock, options))


def count_due_rows(table: TableRows, manifest: Manifest, options: GenerateOptions) -> int:
    """Returns how many rows of a snapshot are due, by their times; see ``count_due``."""
    return count_due(table, manifest, lambda clock: due_at(clock, options))


def due_at(clock: Clock, options: GenerateOptions) -> Due:
    """Returns the times at which a row may be due."""
    far = clock.now + options.max_fetch_interval * 1000
    until = max(advance_clock(clock, options).now, min(clock.latest, far))
    return Due(until, max(until, far))
