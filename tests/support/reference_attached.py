"""Schedules and scorings of the product, attached to the tests of the reference.

The product computes on frames, the reference on dicts. Each function here takes the dicts of the
reference, calls the product, and returns what the reference returns; so that its tests need not
know how the product does it.
"""

from collections.abc import Sequence

import numpy as np
from file_changes import Earlier, changes_of, update_state
from frames import frame_of
from reference_adapter import NO_BUDGETS
from reference_rates import Visits
from reference_schedules import MODIFIED, NOTMODIFIED, Adaptive, Limits, Row

from nutbeam.policy.components.document_schema import DOCUMENTS
from nutbeam.policy.components.host_rows import Seeds
from nutbeam.policy.components.page_facts import COLUMNS_OF_PAGES, DOCUMENT_COLUMNS, BatchOrigin
from nutbeam.policy.components.schema import CHANGES, FETCHLIST, PAGES, STATE, Status
from nutbeam.policy.links import LinkOptions
from nutbeam.policy.schedules.adaptive_schedule import (
    AdaptiveSchedule,
    host_intervals,
    mime_rates,
)
from nutbeam.policy.schedules.rate_schedule import (
    ChangeRate,
    best_intervals,
    best_threshold,
    learn_change,
    learn_no_change,
)
from nutbeam.policy.scoring.scoring import ScoringOptions
from nutbeam.policy.scoring.scorings import Scorings, chosen_scorings
from nutbeam.policy.updating.update_rules import UpdateOptions
from nutbeam.web.exchange.status import FETCH_SUCCESS, SUCCESS
from nutbeam.web.rule_files.rule_files import RuleFile
from nutbeam.web.urls.row_keys import to_key

_A, _B = b"a" * 16, b"b" * 16
_SIGNATURES = {MODIFIED: (_A, _B), NOTMODIFIED: (_A, _A)}  # others have none before


NOW = 1_790_000_000_000
FETCHED = {"fetch_status": 33, "protocol_status": 1, "fetch_time": NOW}


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
        max_interval=min(settings.max_interval, limits.max_fetch_interval),
        sync_delta=settings.sync_delta,
        sync_delta_rate=settings.sync_delta_rate,
        fetch_interval=limits.fetch_interval,
        max_fetch_interval=limits.max_fetch_interval,
    )
    lines = (f"{host} {least} {most}" for host, (least, most) in settings.hosts.items())
    hosts = host_intervals(RuleFile("hosts", "\n".join(lines)), options.shortest, options.longest)
    lines = (f"{mime}\t{inc}\t{dec}" for mime, (inc, dec) in settings.mimes.items())
    rates = mime_rates(RuleFile("rates", "\n".join(lines)))
    own = AdaptiveSchedule(hosts, () if name == "adaptive" else rates)
    rows, *_ = update_state(
        frame_of(STATE, *map(_before, cases)).sort("key"),
        frame_of(CHANGES, *map(_visit, cases)),
        max(case["fetched"] for case in cases),
        options,
        schedule=own,
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


def product_rate(visits: Visits, prior: tuple[float, float]) -> tuple[float, float]:
    """Returns (shape, days) of what the schedule ``rate`` knows after the visits."""
    known = ChangeRate(*(np.array([number]) for number in prior))
    for days, change in visits:
        known = (learn_change if change else learn_no_change)(known, np.array([days]))
    return known.shape.item(), known.days.item()


def product_intervals(rates: Sequence[float], fetches_a_day: float) -> list[float]:
    """Returns the interval in days of each page, if its changes a day are known exactly."""
    bounds = (1e-4, 1e5)
    threshold = best_threshold(len(rates) / fetches_a_day, *bounds)
    known = ChangeRate(np.full(len(rates), 1e6), 1e6 / np.array(rates))
    return best_intervals(threshold, known, *bounds).tolist()


def update_with_links(
    table: list[Row], fetched: list[Row], options: ScoringOptions, links: LinkOptions
) -> dict[str, Row]:
    """Updates a table after some of its pages were fetched and parsed; returns its rows by key.

    Args:
        table: The rows before; ``fetched`` has the same pages with new signatures, or the same.
    """
    scorings = chosen_scorings(options)
    fetched = sorted(fetched, key=lambda page: page["key"])
    rows = frame_of(STATE, *(_only(STATE.names, page) for page in fetched))
    rows_of_pages = rows.select("key", *scorings.row_columns)
    pages = frame_of(PAGES, *(_only(PAGES.names, page) | FETCHED for page in fetched))
    documents = frame_of(DOCUMENTS, *map(_document, fetched))
    changes, _ = changes_of(
        pages.select(COLUMNS_OF_PAGES),
        documents.select(list({*DOCUMENT_COLUMNS, *scorings.document_columns})),
        BatchOrigin(1, "b", "d"),
        Seeds(),
        links,
        scorings,
        Earlier(
            frame_of(FETCHLIST, *(_only(FETCHLIST.names, row) for row in table)),
            state_rows=rows_of_pages,
        ),
    )
    before = sorted(table, key=lambda row: row["key"])
    kept, *_ = update_state(
        frame_of(STATE, *(_only(STATE.names, row) for row in before)),
        changes,
        NOW,
        UpdateOptions(**NO_BUDGETS),
        scorings=scorings,
    )
    return {row["key"]: row for row in kept.iter_rows(named=True)}


def sort_values(rows: list[Row], scorings: Scorings) -> list[float]:
    """Returns the values by which generate orders rows."""
    frame = frame_of(STATE, *(_only(STATE.names, row) for row in rows))
    return scorings.sort_value(frame).get_column("sort_value").to_list()


def rows_of_urls(urls: list[str]) -> list[Row]:
    """Returns rows with a score of 1."""
    return [{"key": to_key(url), "score": 1.0, "distance": 0} for url in urls]


def _document(page: Row) -> Row:
    outlinks = [{"key": key} for key in page["targets"]] or None
    columns = {name: page[name] for name in ("key", "score", "distance", "signature")}
    return columns | {"outlinks": outlinks, "parse_status": 1, "fetch_time": NOW}


def _only(names: list[str], page: Row) -> Row:
    row = {name: value for name, value in page.items() if name in names}
    return row | {"metadata": list(row["metadata"].items())} if row.get("metadata") else row
