"""Runs the product and the reference on the same rows, and lists where they differ."""

import dataclasses
import math
from collections import defaultdict
from collections.abc import Iterable
from typing import Any, NamedTuple

import polars as pl
from file_changes import changes_of, update_state
from frames import frame_of
from reference_schedules import DAY_S, Adaptive, Limits, Row
from reference_scoring import Factors
from reference_update import KNOWN, NOT_CHANGED, SUCCESS, UNFETCHED, Rules, update_url

from nutbeam.policy.components.document_schema import DOCUMENTS
from nutbeam.policy.components.host_rows import Seeds, settings_of
from nutbeam.policy.components.page_facts import COLUMNS_OF_PAGES, DOCUMENT_COLUMNS, BatchOrigin
from nutbeam.policy.components.schema import CHANGES, PAGES, STATE
from nutbeam.policy.hosting.host_settings import Bounds, interval_bounds
from nutbeam.policy.links import LinkOptions
from nutbeam.policy.schedules.reschedule import built_in_schedule
from nutbeam.policy.schedules.schedule import due
from nutbeam.policy.schedules.visits import Schedule
from nutbeam.policy.scoring.scoring import ScoringOptions
from nutbeam.policy.scoring.scorings import OPIC, Scorings, chosen_scorings
from nutbeam.policy.updating.update_rules import UpdateOptions
from nutbeam.transforms.wiring.plugin_groups import SCHEDULES
from nutbeam.web.base.clock import Clock
from nutbeam.web.plugins.plugins import load_plugins

NO_BUDGETS = dict.fromkeys(
    ("max_per_host", "max_new_per_host", "max_new_queries", "max_new_hosts_per_domain",
     "max_same_pages"), -1)  # fmt: skip


class Updated(NamedTuple):
    """Rows and outcomes after an update, by key.

    Of the product also the keys that are due, and the differences in numbers of URLs by host.
    """

    rows: dict[str, Row]
    outcomes: dict[str, Row]
    due: frozenset[str] = frozenset()
    host_counts: tuple[Row, ...] = ()


class Difference(NamedTuple):
    """A column in which the product and the reference disagree."""

    key: str
    column: str
    product: Any
    reference: Any


def options_of(rules: Rules) -> UpdateOptions:
    """Returns the product's options; they add all URLs that are found."""
    limits, own = rules.limits, {}
    if rules.adaptive:
        own = _options_of_adaptive(rules.adaptive, limits)
    elif rules.rate:
        own = {"schedule": "rate"} | dataclasses.asdict(rules.rate)
        own["max_interval"] = min(own["max_interval"], limits.max_fetch_interval)
    elif rules.plugin:
        own = {"schedule": "lively"}
    return UpdateOptions(
        **NO_BUDGETS,
        **own,
        fetch_interval=limits.fetch_interval,
        max_fetch_interval=limits.max_fetch_interval,
        retry_max=limits.retry_max,
        additions_allowed=rules.additions_allowed,
        delete_failed_parse=rules.delete_failed_parse,
    )


def _options_of_adaptive(adaptive: Adaptive, limits: Limits) -> Row:
    named = dataclasses.asdict(adaptive)
    own = {name: named[name] for name in named if name not in ("hosts", "mimes", "files")}
    own |= {"schedule": "mime_adaptive" if adaptive.mimes else "adaptive"}
    return own | {"max_interval": adaptive.longest(limits), **adaptive.files}


def schedule_of(options: UpdateOptions) -> Schedule:
    """Returns the schedule as the job of update gets it: built in, or from an installed package."""
    if options.schedule not in SCHEDULES.built_in:
        ((_, schedule),) = load_plugins(SCHEDULES, (options.schedule,))
        return schedule
    return built_in_schedule(options)


def bounds_of(rules: Rules) -> Bounds:
    """Returns the bounds that settings of hosts put on intervals, as hostinject would have them."""
    names = ("min_interval", "max_interval")
    settings = {
        ".".join(reversed(host.split("."))): settings_of({
            name: str(seconds)
            for name, seconds in zip(names, bounds, strict=True)
            if seconds is not None
        })
        for host, bounds in rules.hosts.items()
    }  # fmt: skip
    return interval_bounds(settings)


def scorings_of(rules: Rules) -> Scorings:
    """Returns the product's scorings: opic, and orphan if the rules have it."""
    if rules.orphan_days is None:
        return OPIC
    gone, orphan = (days * DAY_S for days in rules.orphan_days)
    return chosen_scorings(
        ScoringOptions(scoring=("opic", "orphan"), mark_gone_after=gone, mark_orphan_after=orphan)
    )


def run_product(rows: Iterable[Row], changes: Iterable[Row], now: int, rules: Rules) -> Updated:
    """Applies the changes with ``update_state``."""
    ordered = sorted(rows, key=lambda row: row["key"])
    frame = frame_of(STATE, *map(_to_state, ordered))
    frames = frame, frame_of(CHANGES, *changes)
    options = options_of(rules)
    found = update_state(
        *frames, now, options, scorings_of(rules), schedule_of(options),
        table_rows=rules.pages, bounds=bounds_of(rules),
    )  # fmt: skip
    late = frozenset(found.rows.filter(due(Clock(now), options)).get_column("key"))
    counts = tuple(found.host_counts.to_dicts())
    return Updated(_by_key(found.rows), _by_key(found.outcome), late, counts)


def run_reference(rows: Iterable[Row], changes: Iterable[Row], now: int, rules: Rules) -> Updated:
    """Applies the changes URL by URL."""
    old = {row["key"]: row for row in rows}
    by_key = defaultdict(list)
    for change in changes:
        by_key[change["key"]].append(change)
    updated = Updated({}, {})
    for key in old | by_key:
        row, outcome = update_url(old.get(key), by_key[key], now, rules)
        if row is not None:
            updated.rows[key] = row
        if outcome is not None:
            updated.outcomes[key] = outcome
    return updated


def differences(product: Updated, reference: Updated, tolerance: float = 0.0) -> list[Difference]:
    """Returns every column that both know, and in which their rows differ.

    Args:
        product: Of the product.
        reference: Of the reference.
        tolerance: By which share intervals and waits may differ, besides a rounding. Then rates may
            differ, too, by a few of the digits of 32 bits.
    """
    assert product.rows.keys() == reference.rows.keys()
    found = []
    for key, expected in reference.rows.items():
        row = product.rows[key]
        forced = reference.outcomes.get(key, {}).get("fetch_status") == NOT_CHANGED
        if forced and expected["status"] == UNFETCHED and key in product.due:
            row = row | {"fetch_time": expected["fetch_time"]}  # only that it is due is specified
        found += [
            Difference(key, name, row[name], expected.get(name))
            for name in KNOWN
            if row[name] != expected.get(name)
            and not (tolerance and _near(name, row, expected, tolerance))
        ]
    return found


def _near(name: str, row: Row, expected: Row, tolerance: float) -> bool:
    """Returns whether a number of a row is as expected, but for the tolerance."""
    one, other = row[name], expected.get(name)
    if one is None or other is None:
        return False
    if name == "fetch_interval":
        return abs(one - other) <= 1 + tolerance * other
    if name == "fetch_time":
        return abs(one - other) <= 1000 + tolerance * (other - (expected["last_fetch_time"] or 0))
    return name in ("change_shape", "change_days") and math.isclose(one, other, rel_tol=1e-6)


def outcome_differences(product: Updated, reference: Updated) -> list[Difference]:
    """Returns every column of an outcome in which both differ.

    The document of a page that failed or was redirected may be the one that it had, or none.
    """
    assert product.outcomes.keys() == reference.outcomes.keys()
    found = []
    for key, expected in reference.outcomes.items():
        row = product.outcomes[key]
        if expected["document"] is None and row["document"] == expected["old_document"]:
            row = row | {"document": None}
        found += [
            Difference(key, name, row[name], value)
            for name, value in expected.items()
            if row[name] != value
        ]
    return found


def _to_state(row: Row) -> Row:
    metadata = row.get("metadata")
    return row if metadata is None else row | {"metadata": list(metadata.items())}


def _by_key(frame: pl.DataFrame) -> dict[str, Row]:
    return {row["key"]: row for row in frame.iter_rows(named=True)}


def product_shares(documents: list[Row], factors: Factors) -> dict[str, tuple[float, int | None]]:
    """Returns (score, distance) that the product gives to each target of links of parsed pages."""
    parsed = [
        page | {"outlinks": [{"key": key} for key in page["outlinks"]] or None, "parse_status": 1}
        for page in documents
    ]
    pages = [{"key": page["key"], "fetch_status": SUCCESS} for page in documents]
    changes, _ = changes_of(
        frame_of(PAGES, *pages).select(COLUMNS_OF_PAGES),
        frame_of(DOCUMENTS, *parsed).select(DOCUMENT_COLUMNS),
        BatchOrigin(1, "b", "d"),
        Seeds(),
        LinkOptions(internal_link_factor=factors.internal, external_link_factor=factors.external),
    )
    return {
        row["key"]: (row["inlink_score"], row["inlink_distance"])
        for row in changes.iter_rows(named=True)
        if row["fetch_status"] is None
    }
