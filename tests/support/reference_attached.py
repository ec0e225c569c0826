"""Schedules and scorings of the product, attached to the tests of the reference.

The product computes on frames, the reference on dicts. Each function here takes the dicts of the
reference, calls the product, and returns what the reference returns; so that its tests need not
know how the product does it.
"""

from collections.abc import Iterable, Sequence

import numpy as np
import polars as pl
from frames import frame_of
from reference_rates import Visits
from reference_schedules import MODIFIED, NOTMODIFIED, Adaptive, Limits, Row
from reference_scoring import Factors

from nutbeam.policy.links import (
    COLUMNS_OF_PAGES,
    DOCUMENT_COLUMNS,
    LISTED,
    BatchOrigin,
    Before,
    LinkOptions,
    changes_of,
)
from nutbeam.policy.schedules.adaptive_schedule import AdaptiveSchedule
from nutbeam.policy.schedules.allocation import best_intervals, best_threshold
from nutbeam.policy.schedules.change_rate import ChangeRate, changed, unchanged
from nutbeam.policy.schedules.host_intervals import host_intervals
from nutbeam.policy.schedules.mime_schedule import MimeAdaptiveSchedule, mime_rates
from nutbeam.policy.schema import CHANGES, DOCUMENTS, FETCHLIST, PAGES, STATE, Status
from nutbeam.policy.scope import Seeds
from nutbeam.policy.scoring.scoring_options import ScoringOptions
from nutbeam.policy.scoring.scorings import Scorings, chosen_scorings
from nutbeam.policy.scoring.urlboost import factors, read_boosts
from nutbeam.policy.status import Surroundings, UpdateOptions, update_state
from nutbeam.web.exchange.status import FETCH_SUCCESS, SUCCESS
from nutbeam.web.rule_files.rule_files import RuleFile
from nutbeam.web.urls.row_keys import to_key

_A, _B = b"a" * 16, b"b" * 16
_SIGNATURES = {MODIFIED: (_A, _B), NOTMODIFIED: (_A, _A)}  # others have none before


def product_dates(
    name: str, cases: Sequence[Row], settings: Adaptive, limits: Limits
) -> list[tuple[int, int]]:
    """Returns (interval in s, due time in ms) of each case after an update.

    Args:
        name: ``adaptive`` or ``mime_adaptive``.
        cases: Rows with ``fetched`` (ms) and ``change``.
        settings: Settings of the schedule.
        limits: Limits of all schedules.
    """
    options = UpdateOptions(
        schedule=name,
        inc_rate=settings.inc_rate,
        dec_rate=settings.dec_rate,
        min_interval=settings.min_interval,
        max_interval=settings.max_interval,
        sync_delta=settings.sync_delta,
        sync_delta_rate=settings.sync_delta_rate,
        fetch_interval=limits.fetch_interval,
        max_fetch_interval=limits.max_fetch_interval,
    )
    lines = (f"{host} {least} {most}" for host, (least, most) in settings.hosts.items())
    hosts = host_intervals(
        RuleFile("hosts", "\n".join(lines)), options.min_interval, options.longest
    )
    lines = (f"{mime}\t{inc}\t{dec}" for mime, (inc, dec) in settings.mimes.items())
    rates = mime_rates(RuleFile("rates", "\n".join(lines)))
    own = AdaptiveSchedule(hosts) if name == "adaptive" else MimeAdaptiveSchedule(hosts, rates)
    rows, _, _ = update_state(
        frame_of(STATE, *map(_before, cases)).sort("key"),
        frame_of(CHANGES, *map(_visit, cases)),
        max(case["fetched"] for case in cases),
        options,
        Surroundings(schedule=own),
    )
    dates = {
        key: dates for key, *dates in rows.select("key", "fetch_interval", "fetch_time").rows()
    }
    return [(interval, due) for interval, due in (dates[case["key"]] for case in cases)]


def _before(case: Row) -> Row:
    names = ("key", "fetch_interval", "fixed_interval", "modified_time")
    before, _ = _SIGNATURES.get(case["change"], (None, _B))
    return {
        **{name: case[name] for name in names},
        "status": Status.DB_FETCHED,
        "signature": before,
        "fetch_time": case["fetched"] - 1,
        "last_fetch_time": case["fetched"] - 1000,
        "retries": 0,
    }


def _visit(case: Row) -> Row:
    _, after = _SIGNATURES.get(case["change"], (None, _B))
    return {
        "key": case["key"],
        "order": 1,
        "fetch_status": FETCH_SUCCESS,
        "protocol_status": SUCCESS,
        "fetch_time": case["fetched"],
        "content_type": case["content_type"],
        "signature": after,
        "parse_status": 1,
    }


def product_cash(pages: Iterable[Row], weights: Factors) -> list[tuple[float, dict[str, float]]]:
    """Returns for each page (its cash after an update, share by target); zeros of unchanged ones
    are left out.
    """
    scorings = chosen_scorings(ScoringOptions(scoring=("opic_cash",)))
    found = []
    for page in pages:
        row = frame_of(STATE, _known(page))
        changes = _changes(page, row, scorings, weights)
        kept, _, _ = update_state(row, changes, 2_000, UpdateOptions(), scorings=scorings)
        shares = {key: share for key, share, _ in _links(changes) if page["changed"] or share}
        found.append((kept.filter(key=page["key"])["cash"].item(), shares))
    return found


def product_depth(pages: Iterable[Row], usual: int) -> list[tuple[Row | None, float]]:
    """Returns for each page (what its links get, or None; its sort value).

    What links get has the limit that counts, which may be the usual one.
    """
    scorings = chosen_scorings(ScoringOptions(scoring=("depth",), depth_max=usual))
    found = []
    for page in pages:
        row = frame_of(STATE, _known(page))
        changes = _changes(page | {"targets": ["x:http/"]}, row, scorings, Factors())
        links = _links(changes)
        limits = changes.filter(pl.col("fetch_status").is_null())["passed_max_depth"].to_list()
        given = [
            {"distance": distance, "max_depth": limit}
            for (_, _, distance), limit in zip(links, limits, strict=True)
        ]
        value = scorings.sort_value(row)["sort_value"].item()
        found.append((given[0] if given else None, value))
    return found


def _known(page: Row) -> Row:
    names = ("key", "score", "cash", "distance", "max_depth")
    return {
        **{name: page[name] for name in names},
        "status": Status.DB_FETCHED,
        "fetch_time": 1,
        "signature": _A,
    }


def _changes(page: Row, row: pl.DataFrame, scorings: Scorings, weights: Factors) -> pl.DataFrame:
    """Returns the changes that a page brings with its links."""
    known = {name: page[name] for name in ("key", "score", "distance")}
    fetched = known | {"fetch_status": FETCH_SUCCESS, "fetch_time": 1_000}
    document = known | {
        "outlinks": [{"key": target} for target in page["targets"]] or None,
        "signature": _B if page["changed"] else _A,
        "parse_status": 1,
    }
    options = LinkOptions(
        depth=-1, internal_link_factor=weights.internal, external_link_factor=weights.external
    )
    changes, _ = changes_of(
        frame_of(PAGES, fetched).select(COLUMNS_OF_PAGES),
        frame_of(DOCUMENTS, document).select(DOCUMENT_COLUMNS),
        BatchOrigin(1, "b", "p", "d"),
        Seeds(),
        options,
        scorings,
        row,
        Before(frame_of(FETCHLIST, {"key": page["key"], "signature": _A}).select(LISTED)),
    )
    return changes


def _links(changes: pl.DataFrame) -> list[tuple[str, float, int]]:
    links = changes.filter(pl.col("fetch_status").is_null())
    return links.select("key", "inlink_score", "inlink_distance").rows()


def product_boosts(urls: Iterable[str], patterns: Iterable[tuple[str, float]]) -> list[float]:
    """Returns the factor of each URL."""
    lines = (f"{factor} {pattern}" for pattern, factor in patterns)
    boosts = read_boosts(RuleFile("boosts", "\n".join(lines)))
    return factors(pl.Series(list(map(to_key, urls))), boosts).to_list()


def product_rate(visits: Visits, prior: tuple[float, float]) -> tuple[float, float]:
    """Returns (shape, days) of what the schedule ``rate`` knows after the visits."""
    known = ChangeRate(*(np.array([number]) for number in prior))
    for days, change in visits:
        known = (changed if change else unchanged)(known, np.array([days]))
    return known.shape.item(), known.days.item()


def product_intervals(rates: Sequence[float], fetches_a_day: float) -> list[float]:
    """Returns the interval in days of each page, if its changes a day are known exactly."""
    bounds = (1e-4, 1e5)
    threshold = best_threshold(len(rates) / fetches_a_day, *bounds)
    known = ChangeRate(np.full(len(rates), 1e6), 1e6 / np.array(rates))
    return best_intervals(threshold, known, *bounds).tolist()
