"""Merges what comes from Nutch into rows of the state, and finds which segments had been applied.

A segment has been applied to the CrawlDb if the CrawlDb says that its URLs are due after the segment
fetched them: ``updatedb`` sets these times. The rows of these URLs get the bodies in the segment. So a
segment is applied once, here or there.
"""

from collections.abc import Mapping
from typing import TypeAlias

import polars as pl
import pyarrow as pa

from ...web.exchange.status import FETCH_SUCCESS
from ..batch_tools.merged_rows import merge_state_rows
from ..components.schema import (
    OUTCOME,
    PAGES,
    STATE,
    OutcomeRows,
    StateRows,
    conform_frame,
)

# Rows of the state; and pages of segments, which have the number of their segment.
NUTCH_STATE = pa.schema(
    [
        *STATE,
        ("segment", pa.int32()),
        PAGES.field("fetch_status"),
    ]
)
NutchStateRows: TypeAlias = pl.DataFrame  # columns of NUTCH_STATE
# Columns of a row that come from the page of its newest body, or its newest text.
_OF_BODY = ("page", "document", "batch_id", "content_type", "etag", "last_modified", "parse_status",
            "usage")  # fmt: skip


def applied_count(segment: int) -> str:
    """Returns the name of the count of URLs of a segment that were applied before."""
    return f"segments/{segment}/applied"


def waiting_count(segment: int) -> str:
    """Returns the name of the count of URLs of a segment that were not applied before."""
    return f"segments/{segment}/waiting"


def merge_imported(
    state_rows: StateRows, changes: NutchStateRows, *, finds_applied: bool
) -> tuple[StateRows, Mapping[int, OutcomeRows], dict[str, int]]:
    """Merges rows and pages into the rows of a range of keys.

    Args:
        state_rows: STATE rows in key order.
        changes: Rows for keys in the same range; a key may be there several times.
        finds_applied: Whether pages may have been applied to the rows: a CrawlDb comes with them.

    Returns:
        (STATE rows in key order, OUTCOME rows of pages that had been applied by their segments, counts).
    """
    is_page = pl.col("segment").is_not_null()
    records = changes.filter(~is_page).select(STATE.names)
    rows, counts = merge_state_rows(state_rows, records) if len(records) else (state_rows, {})
    pages = changes.filter(is_page)
    if not finds_applied or pages.is_empty():
        return rows, {}, dict(counts)
    due = rows.select("key", "status", "score", "signature", "repr_url", due="fetch_time")
    joined = pages.drop("status", "score", "signature", "repr_url").join(due, on="key")
    applied = joined.filter(pl.col("due") > pl.col("last_fetch_time"))
    counts = dict(counts)
    for name, some_pages in ((applied_count, applied), (waiting_count, pages)):
        for segment, number in some_pages.group_by("segment").len().iter_rows():
            counts[name(segment)] = number
    for segment in applied.get_column("segment").unique():
        counts[waiting_count(segment)] -= counts[applied_count(segment)]
    outcomes = {
        segment: conform_frame(
            applied.filter(pl.col("segment") == segment).unique("key").sort("key"), OUTCOME
        )
        for segment in applied.get_column("segment").unique().sort()
    }
    return _with_bodies(rows, state_rows, applied), outcomes, counts


def _with_bodies(rows: StateRows, state_rows: StateRows, applied: NutchStateRows) -> StateRows:
    """Gives rows the newest bodies of pages, unless the table had newer ones."""
    bodies = applied.filter(
        (pl.col("fetch_status") == FETCH_SUCCESS)
        & (pl.col("page").is_not_null() | pl.col("document").is_not_null())
    )
    if bodies.is_empty():
        return rows
    newest = bodies.sort("last_fetch_time", maintain_order=True).unique(
        "key", keep="last", maintain_order=True
    )
    before = state_rows.filter(pl.col("page").is_not_null() | pl.col("document").is_not_null())
    joined = rows.join(
        newest.select("key", "last_fetch_time", *_OF_BODY), on="key", how="left",
        maintain_order="left", suffix="_of_page",
    ).join(
        before.select("key", before="last_fetch_time"), on="key", how="left", maintain_order="left"
    )  # fmt: skip
    of_page = pl.col("last_fetch_time_of_page")
    is_newer = of_page.is_not_null() & (pl.col("before").is_null() | (of_page > pl.col("before")))
    gets_body = is_newer.fill_null(False)
    return joined.with_columns(
        *(
            pl.when(gets_body).then(f"{name}_of_page").otherwise(name).alias(name)
            for name in _OF_BODY
        ),
    ).select(rows.columns)
