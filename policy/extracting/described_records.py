"""Describes what rules take from a page, for people who write rules."""

import json
from collections.abc import Callable, Mapping
from typing import Any

import pyarrow as pa

from ...web.extracting.extraction_rules import ExtractedRecord, PageRule, RuleSet
from ...web.pages.page import Source
from ..components.schema import TEXT
from .extracted_rows import shown_value
from .page_records import RuleResult, apply_rules, rows_of_pages, source_of_row

DESCRIBED = pa.schema([("record", TEXT)])


def describe_rows(
    pages: pa.Table,
    rules: RuleSet,
    skip: Mapping[int, str] | None = None,
    at_row: Callable[[int], None] = lambda row: None,
) -> tuple[pa.Table, dict[str, int]]:
    """Describes each page as JSON; a ``ParseTask`` calls it in a child process.

    Args:
        pages: Rows with ``EXTRACTED_FROM``.
        rules: The rules.
        skip: Reasons of rows that have ended a process before, by row number.
        at_row: Called with the number of each row before its page is worked on.
    """
    texts = []
    for page, ended in rows_of_pages(pages, skip, at_row):
        described = (
            {"rules": [], "ended": ended} if ended else describe_page(source_of_row(page), rules)
        )
        texts.append(json.dumps(described))
    return pa.table({"record": texts}, schema=DESCRIBED), {}


def describe_page(source: Source, rules: RuleSet) -> dict[str, Any]:
    """Returns what each rule for a page takes from it: records, with the source of each field."""
    result = apply_rules(source, rules)
    described: dict[str, Any] = {"rules": [_describe_rule(one) for one in result.rules]}
    return described | ({"ended": result.left_out} if result.left_out else {})


def _describe_rule(result: RuleResult) -> dict[str, Any]:
    rule = result.rule
    records = [_describe_record(rule, record) for record in result.records]
    described = {"rule": rule.name, "line": rule.line, "records": records}
    stopped = {"ended": result.error, "cut": result.cut}
    return described | {name: reason for name, reason in stopped.items() if reason}


def _describe_record(rule: PageRule, record: ExtractedRecord) -> dict[str, Any]:
    fields = [
        {
            "field": field.name,
            "type": field.type,
            "value": shown_value(record.values.get(field.name), field.type),
            "source": record.sources.get(field.name),
            "failed": [
                {"source": one.source, "reason": one.reason, "text": one.text}
                for one in record.failures
                if one.field == field.name
            ],
        }
        for field in rule.fields
    ]
    return {"position": record.position, "missing": list(record.missing), "fields": fields}
