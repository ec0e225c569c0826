"""Schedules and scorings of the product, attached to the tests of the reference.

The product computes on frames, the reference on dicts. Each function here takes the dicts of the
reference, calls the product, and returns what the reference returns; so that its tests need not
know how the product does it. What is not built is absent: its test waits.

SCHEDULES, by name (``adaptive``, ``mime_adaptive``):
    (cases, settings: ``Adaptive``, ``Limits``) -> for each case (interval in s, due time in ms).
    A case is a row with ``fetched`` (ms) and ``change`` (``modified``, ``notmodified``,
    ``unknown``). The interval is that of the row after update, a whole number.

RATES, of the schedule ``rate``:
    ``posterior``: (visits, (shape, days) of the prior) -> (shape, days) after the visits, in order.
    ``intervals``: (changes a day of pages, fetches a day) -> interval in days of each page.

Scorings are built: ``update_with_links`` and ``sort_values`` run them. A page is a row of the state
with ``targets``, the row keys of its links.
"""

from collections.abc import Callable
from typing import Any

from frames import frame_of
from reference_adapter import NO_BUDGETS
from reference_schedules import Row

from nutbeam.policy.links import (
    COLUMNS_OF_PAGES,
    DOCUMENT_COLUMNS,
    BatchOrigin,
    Before,
    LinkOptions,
    changes_of,
)
from nutbeam.policy.schema import DOCUMENTS, FETCHLIST, PAGES, STATE
from nutbeam.policy.scope import Seeds
from nutbeam.policy.scoring.scoring_options import ScoringOptions
from nutbeam.policy.scoring.scorings import Scorings, chosen_scorings
from nutbeam.policy.status import UpdateOptions, update_state
from nutbeam.web.urls.row_keys import to_key

SCHEDULES: dict[str, Callable[..., list[tuple[int, int]]]] = {}
RATES: dict[str, Callable[..., Any]] = {}

NOW = 1_790_000_000_000
FETCHED = {"fetch_status": 33, "protocol_status": 1, "fetch_time": NOW}


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
        BatchOrigin(1, "b", "p", "d"),
        Seeds(),
        links,
        scorings,
        rows_of_pages,
        Before(frame_of(FETCHLIST, *(_only(FETCHLIST.names, row) for row in table))),
    )
    before = sorted(table, key=lambda row: row["key"])
    kept, _, _ = update_state(
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
