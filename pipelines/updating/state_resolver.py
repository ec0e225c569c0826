"""The resolver of updatedb: applies the changes of a batch to a range of rows of the state."""

import functools

import polars as pl

from ...io.batches.batches import read_removed_keys
from ...io.rows.small_components import read_host_settings
from ...io.snapshots.operations import Operation
from ...io.snapshots.table_clock import oldest_open
from ...io.tablets.resolve import Resolved, Resolver
from ...io.tablets.tablets import rows_of_large_hosts
from ...io.updating.page_facts import read_table_facts
from ...policy.components.schema import StateRows
from ...policy.hosting.host_settings import interval_bounds
from ...policy.hosting.merit import merits_of_table
from ...policy.schedules.visits import Schedule
from ...policy.updating.range_facts import RangeFacts
from ...policy.updating.status import update_state
from ...policy.updating.update_rules import UpdateRules, UpdateTableOptions
from ...transforms.apply_changes import read_domain_room, with_host_counts
from ...transforms.wiring.plugin_groups import SCHEDULES, scorings_of
from ...web.plugins.plugins import load_plugins


def state_resolver(
    operation: Operation, options: UpdateTableOptions, schedule: Schedule | None
) -> Resolver:
    """Returns the resolver; without a schedule, that of a plug-in is loaded."""
    if schedule is None:
        ((_, schedule),) = load_plugins(SCHEDULES, (options.schedule,))
    rules = UpdateRules(options, scorings_of(options), schedule)
    shared_facts = _read_shared_facts(operation, rules)
    merits = merits_of_table(read_table_facts(operation, rules.needs), options)

    def resolve(rows: StateRows, changes: pl.DataFrame) -> Resolved:
        facts = shared_facts._replace(
            room=read_domain_room(operation, rows, changes, merits),
            removed_keys=read_removed_keys(operation, changes.get_column("key")),
        )
        updated = update_state(rows, changes, facts, rules)
        outcome = {"outcome": updated.outcome} if len(updated.outcome) else {}
        resolved = Resolved(updated.rows, outcome, updated.counts)
        return with_host_counts(resolved, updated.host_counts)

    return resolve


def _read_shared_facts(operation: Operation, rules: UpdateRules) -> RangeFacts:
    """Reads the facts that are the same for all ranges."""
    table_rows, host_urls = _read_sizes(operation)
    return RangeFacts(
        operation.now,
        host_urls if rules.options.max_per_host >= 0 else None,
        oldest_open(operation.manifest(), operation.now),
        table_rows,
        interval_bounds(read_host_settings(operation)),
    )


@functools.lru_cache(maxsize=2)
def _read_sizes(operation: Operation) -> tuple[int, dict[str, int]]:
    """Reads the numbers of rows of the table and of its large hosts."""
    files = operation.files("state")
    return sum(file.live_rows for file in files), rows_of_large_hosts(files)
