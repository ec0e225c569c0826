"""Describes what rules take from a page, for people who write rules."""

import json
from collections.abc import Callable, Mapping
from typing import Any

import pyarrow as pa

from ...web.extracting.extracted_page import ExtractedPage, PageTooSlow
from ...web.extracting.extraction import extract_records
from ...web.extracting.extraction_rules import ExtractedRecord, PageRule, RuleSet
from ...web.pages.page import Source
from ..components.schema import TEXT
from .extracted_rows import EXTRACTED_FROM, shown_value, source_of_markup, source_of_row

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
    for number, page in enumerate(pages.select(list(EXTRACTED_FROM)).to_pylist()):
        at_row(number)
        if skip and number in skip:
            described: dict[str, Any] = {"rules": [], "ended": skip[number]}
        else:
            described = describe_page(source_of_row(page), rules)
        texts.append(json.dumps(described))
    return pa.table({"record": texts}, schema=DESCRIBED), {}


def describe_page(source: Source, rules: RuleSet) -> dict[str, Any]:
    """Returns what each rule for a page takes from it: records, with the source of each field."""
    markup = source_of_markup(source)
    if markup is None:
        return {"rules": [], "ended": "not_html"}
    page = ExtractedPage(markup)
    if "noindex" in page.directives:
        return {"rules": [], "ended": "noindex"}
    return {"rules": [_describe_rule(page, rule) for rule in rules.rules_for(source.url)]}


def _describe_rule(page: ExtractedPage, rule: PageRule) -> dict[str, Any]:
    try:
        records = list(extract_records(page, rule))
    except PageTooSlow:
        return {"rule": rule.name, "line": rule.line, "records": [], "ended": "timeout"}
    return {
        "rule": rule.name,
        "line": rule.line,
        "records": [_describe_record(rule, record) for record in records],
    }


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
