"""What index does with each page, against a row-by-row reference of Nutch's order."""

import itertools

import polars as pl
import pytest

from nutbeam.policy.components.index_schema import ADD
from nutbeam.policy.indexing.index_decisions import (
    IndexDecisionOptions,
    decide_by_documents,
    decide_on_pages,
)

UNFETCHED, FETCHED, GONE, TEMP, PERM, NOTMODIFIED, DUPLICATE, ORPHAN, FAILED = range(1, 10)
FETCH_SUCCESS, FETCH_RETRY, FETCH_TEMP, FETCH_PERM, FETCH_GONE, FETCH_SAME = range(0x21, 0x27)
SCHEMA = {
    "status": pl.UInt8, "fetch_status": pl.UInt8, "parse_status": pl.UInt8,
    "directives": pl.List(pl.String), "usage": pl.String,
}  # fmt: skip
ROWS = [
    dict(zip(SCHEMA, values, strict=True))
    for values in itertools.product(
        (None, *range(1, 10)), (None, *range(0x21, 0x27)), (None, 0, 1, 2),
        (None, [], ["nofollow", "noindex"]), (None, "search=n, train-ai=y", "search=y, train-ai=n"),
    )
]  # fmt: skip
OPTIONS = [IndexDecisionOptions(*values) for values in itertools.product((True, False), repeat=5)]


def wanted(row, options, dropped):
    """Nutch's order, row by row (IndexerMapReduce), with the changes that the docs list."""
    status, fetched, parsed = row["status"], row["fetch_status"], row["parse_status"]
    if status is None:
        return "delete"
    if options.delete_robots_noindex and "noindex" in (row["directives"] or ()):
        return "delete"
    if options.obey_usage and "search=n" in (row["usage"] or "").split(", "):
        return "delete"
    if status == FAILED:
        return "delete"
    if options.delete_gone:
        if fetched == FETCH_GONE or status in (GONE, ORPHAN):
            return "delete"
        if fetched in (FETCH_TEMP, FETCH_PERM) or status in (TEMP, PERM):
            return "delete"
    if status == DUPLICATE:
        return "delete" if options.delete_gone else "nothing"
    if fetched == FETCH_SAME:
        fetched = None
    if fetched is None or parsed is None:
        return "nothing"
    if options.skip_notmodified and status == NOTMODIFIED:
        return "nothing"
    if parsed != 1 or fetched != FETCH_SUCCESS:
        return "nothing"
    if dropped:
        return "delete" if options.delete_skipped else "nothing"
    return "add"


@pytest.mark.parametrize("options", OPTIONS[::3])
def test_agrees_with_the_reference(options):
    frame = pl.DataFrame(ROWS, schema=SCHEMA)
    dropped = [number % 3 == 0 for number in range(len(ROWS))]
    decided = decide_on_pages(frame, options)
    names = pl.Series(["expr" if drop else None for drop in dropped], dtype=pl.String)
    # The pages that the index has, with their documents.
    held = decided.with_columns(known=True, writers=pl.lit(["w"])).with_row_index("row")
    read = frame.select("directives", "parse_status", dropped_by=names).filter(
        held["action"] == ADD
    )
    added = decide_by_documents(held.filter(pl.col("action") == ADD), read, options)
    decided = pl.concat([held.filter(pl.col("action") != ADD), added]).sort("row")
    expected = [
        wanted(*pair, drop)
        for pair, drop in zip(((r, options) for r in ROWS), dropped, strict=True)
    ]
    assert decided["action"].to_list() == expected
    prefixes = {"add": "indexed", "delete": "deleted_", "nothing": "skipped_"}
    for action, reason in decided.select("action", "reason").unique().rows():
        assert reason.startswith(prefixes[action])


def test_a_full_index_adds_fetched_and_unmodified_pages():
    rows = [{"status": s, "fetch_status": 33, "parse_status": 1} for s in (FETCHED, NOTMODIFIED)]
    decided = decide_on_pages(pl.DataFrame(rows, schema=SCHEMA), IndexDecisionOptions())
    assert decided["reason"].to_list() == ["indexed", "indexed"]
