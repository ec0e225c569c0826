"""Reads the rows of a set of rules as Arrow: one function for files, frames and other consumers."""

import os
from collections import Counter
from collections.abc import Iterator
from typing import Any

import polars as pl
import pyarrow as pa

from ...policy.components.views import views
from ...policy.components.vocabulary import shown_frame
from ...policy.extracting.extracted_rows import EXTRACTED_FROM, extracted_schema
from ...policy.page_rows import PageChoice
from ...transforms.extract_pages import extract_pages
from ...transforms.parse_pages import PoolOptions, parse_pool
from ...web.base.errors import UsageError
from ...web.extracting.extraction_rules import RuleSet
from ...web.extracting.rule_reader import read_extraction_file
from ...web.pages.parse_options import ParseOptions
from ..base.call_values import check_kind, table_address
from .reader import living_pages, snapshot_to_read

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
    pool = parse_pool(options.parse_processes, options.parser_memory)
    shown = shown_frame(pages, views()["pages"].pick(EXTRACTED_FROM))
    for part in shown.iter_slices(_PAGES_AT_ONCE):
        for table, own_counts in extract_pages(part, rules, pool, options.parser_timeout):
            counts.update(own_counts)
            yield table


def read_extracted(
    table: "str | os.PathLike[str]", rules: "str | os.PathLike[str]", *, snapshot: int | None = None
) -> pa.RecordBatchReader:
    """Reads the rows that rules make of the newest body of each living URL, piece by piece.

    They are those that ``nutbeam extract`` writes. Child processes work on the pages; no figures are kept.

    Args:
        table: Address of the table.
        rules: File of rules.
        snapshot: Number of the snapshot; None means the newest.

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
    schema = extracted_schema(rule_set)

    def batches() -> Iterator[pa.RecordBatch]:
        with pinned.reading():
            for pages in living_pages(pinned, PageChoice(views()["pages"].pick(EXTRACTED_FROM))):
                for rows in extracted_tables(pages, rule_set, _Defaults(), Counter()):
                    yield from rows.to_batches()

    return pa.RecordBatchReader.from_batches(schema, batches())


class _Defaults(PoolOptions):
    parser_timeout = ParseOptions.parser_timeout
