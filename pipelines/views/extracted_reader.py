"""Reads the rows of a set of rules as Arrow: one function for files, frames and other consumers."""

import os
from collections import Counter
from collections.abc import Iterator
from typing import Any

import polars as pl
import pyarrow as pa

from ...policy.components.columns import Columns, join_columns
from ...policy.components.views import views
from ...policy.components.vocabulary import CHANGE_COLUMNS, shown_frame, shown_schema
from ...policy.extracting.extracted_rows import extracted_schema
from ...policy.extracting.page_records import EXTRACTED_FROM
from ...policy.page_rows import PageChoice
from ...transforms.extract_pages import extract_pages
from ...transforms.parsing import PoolOptions, parse_pool
from ...web.base.errors import UsageError
from ...web.extracting.extraction_rules import RuleSet
from ...web.extracting.rule_reader import read_extraction_file
from ...web.pages.parse_options import ParseOptions
from ..base.call_values import check_kind, table_address
from .changed_records import rows_without_records, with_changes
from .reader import Since, changed_pages_of, living_pages, number_of_since, snapshot_to_read

_PAGES_AT_ONCE = 1_024


def extracted_tables(
    pages: pl.DataFrame, rules: RuleSet, options: Any, counts: Counter[str]
) -> Iterator[pa.Table]:
    """Yields the rows of a set of rules on some pages, in Arrow tables with ``extracted_schema``.

    Args:
        pages: Stored pages with ``key`` and what ``EXTRACTED_FROM`` is made of.
        rules: The rules.
        options: ``PoolOptions`` and ``parser_timeout``.
        counts: Gets the counts of the rules.
    """
    pool = parse_pool(options)
    shown = shown_frame(pages, views()["pages"].pick(EXTRACTED_FROM))
    for part in shown.iter_slices(_PAGES_AT_ONCE):
        for table, own_counts in extract_pages(part, rules, pool, options.parser_timeout):
            counts.update(own_counts)
            yield table


def read_extracted(
    table: "str | os.PathLike[str]",
    rules: "str | os.PathLike[str]",
    *,
    snapshot: int | None = None,
    since: Since = None,
) -> pa.RecordBatchReader:
    """Reads the rows that rules make of the newest body of each living URL, piece by piece.

    They are those that ``nutbeam extract`` writes. Child processes work on the pages; no figures are kept.

    Args:
        table: Address of the table.
        rules: File of rules.
        snapshot: Number of the snapshot; None means the newest.
        since: Only of pages that are new, changed or gone since a snapshot, as for ``read``; a changed page
            without records, and one that is gone, have one row without a ``rule``.

    Raises:
        UsageError: There is no such table or snapshot, or a rule is wrong.
        UserError: A file is missing or damaged.
    """
    path = os.fspath(rules) if isinstance(rules, os.PathLike) else rules
    check_kind("rules", path, str)
    try:
        rule_set = read_extraction_file(path, "rules")
    except ValueError as error:
        raise UsageError(str(error)) from error
    pinned = snapshot_to_read(table_address(table), snapshot)
    number = number_of_since(pinned, since)
    changes = Columns() if number is None else CHANGE_COLUMNS
    choice = PageChoice(join_columns(changes, views()["pages"].pick(EXTRACTED_FROM)))
    schema = pa.schema([*shown_schema(changes), *extracted_schema(rule_set)])

    def batches() -> Iterator[pa.RecordBatch]:
        with pinned.reading():
            frames = (
                living_pages(pinned, choice)
                if number is None
                else changed_pages_of(pinned, number, choice)
            )
            for pages in frames:
                for rows in _tables_of(pages, rule_set, schema, with_change=number is not None):
                    yield from rows.to_batches()

    return pa.RecordBatchReader.from_batches(schema, batches())


def _tables_of(
    pages: pl.DataFrame, rules: RuleSet, schema: pa.Schema, *, with_change: bool
) -> Iterator[pa.Table]:
    if "body" not in pages.columns:  # they are gone
        return iter([rows_without_records(pages, schema)])
    tables = extracted_tables(pages, rules, DefaultLimits(), Counter())
    return with_changes(tables, pages, schema) if with_change else tables


class DefaultLimits(PoolOptions):
    """The options of processes that parse, and the time limit of a page, by default."""

    parser_timeout = ParseOptions.parser_timeout
