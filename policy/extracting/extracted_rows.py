"""Makes rows of the records that rules take from pages: typed columns, and JSON for documents.

It runs in the child processes that parse, without Beam and without the table.
"""

import datetime
import json
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from typing import Any, NamedTuple

import pyarrow as pa

from ...web.extracting.extraction_rules import ExtractedRecord, RuleSet
from ...web.pages.page import Source
from ...web.plugins.plugin_calls import report_call
from ..components.schema import TEXT
from .page_records import RULE_CRASHED, RULE_TIMEOUT, apply_rules, rows_of_pages, source_of_row
from .rule_figures import COUNT_PREFIX, FAULT_PREFIX

_TIME = pa.timestamp("ms", "UTC")
_ARROW_TYPES = {
    "number": pa.float64(), "decimal": pa.decimal128(28, 8), "date": _TIME, "bool": pa.bool_(),
}  # fmt: skip


class PageRecords(NamedTuple):
    """What a set of rules has taken from a page.

    Attributes:
        records: The records that have all required fields.
        counts: By name, see ``RuleFigures``.
    """

    records: list[ExtractedRecord]
    counts: Counter[str]


def extracted_schema(rules: RuleSet) -> pa.Schema:
    """Returns the columns of the rows of a set of rules."""
    first = [("url", TEXT), ("rule", TEXT), ("position", pa.int32())]
    fields = [(name, _arrow_type(kind)) for name, kind in rules.types.items()]
    return pa.schema([*first, *fields, ("last_fetch_time", _TIME), ("rules_version", TEXT)])


def _arrow_type(kind: str) -> pa.DataType:
    outer, _, inner = kind.partition(" of ")
    single = _ARROW_TYPES.get(inner or outer, TEXT)
    return pa.large_list(single) if outer == "list" else single


def records_of_page(source: Source, rules: RuleSet) -> PageRecords:
    """Returns the records of a page.

    Args:
        source: The page. One that is not HTML has no records.
        rules: The rules.
    """
    counts, records = Counter[str](), list[ExtractedRecord]()
    result = apply_rules(source, rules)
    if result.left_out:
        counts[f"{COUNT_PREFIX}{rules.name}/{result.left_out}"] += 1
    for one in result.rules:
        head = f"{COUNT_PREFIX}{rules.name}/{one.rule.name}"
        counts[f"{head}/pages"] += 1
        if one.ended:
            counts[f"{head}/{one.ended}"] += 1
            continue
        if one.cut:
            counts[f"{head}/{one.cut}"] += 1
        good = [record for record in one.records if not record.missing]
        counts[f"{head}/records"] += len(good)
        counts[f"{head}/incomplete"] += len(one.records) - len(good)
        _count_fields(one.records, head, counts)
        records += good
    return PageRecords(records, +counts)


def _count_fields(records: Sequence[ExtractedRecord], head: str, counts: Counter[str]) -> None:
    with_value = set[str]()
    for record in records:
        for name, value in record.values.items():
            counts[f"{head}.{name}/values"] += len(value) if isinstance(value, list) else 1
            with_value.add(name)
        for failure in record.failures:
            # What another source of the field has made good is no failure of the field.
            if failure.field not in record.values or isinstance(record.values[failure.field], list):
                counts[f"{head}.{failure.field}/failed"] += 1
    counts.update(f"{head}.{name}/pages" for name in with_value)


def extract_rows(
    pages: pa.Table,
    rules: RuleSet,
    skip: Mapping[int, str] | None = None,
    at_row: Callable[[int], None] = lambda row: None,
) -> tuple[pa.Table, dict[str, int]]:
    """Extracts the rows of pages; a ``ParseTask`` calls it in a child process.

    Args:
        pages: Rows with ``EXTRACTED_FROM``.
        rules: The rules.
        skip: Reasons of rows that have ended a process before, by row number.
        at_row: Called with the number of each row before its page is worked on.

    Returns:
        (rows with ``extracted_schema``, counts).
    """
    counts, rows = Counter[str](), list[dict[str, Any]]()
    for page, ended in rows_of_pages(pages, skip, at_row):
        if ended:
            counts.update(ended_counts(page["url"], rules, ended))
            continue
        done = records_of_page(source_of_row(page), rules)
        counts.update(done.counts)
        own = {
            "url": page["url"],
            "last_fetch_time": page["last_fetch_time"],
            "rules_version": rules.version,
        }
        rows += [
            {"rule": record.rule, "position": record.position, **record.values, **own}
            for record in done.records
        ]
    return pa.Table.from_pylist(rows, schema=extracted_schema(rules)), dict(counts)


def ended_counts(url: str, rules: RuleSet, reason: str) -> Counter[str]:
    """Returns the counts of a page that has ended the process in which rules worked on it."""
    word = reason.rpartition(RULE_TIMEOUT)[1] or RULE_CRASHED
    return Counter(
        name
        for rule in rules.rules_for(url)
        for head in (f"{COUNT_PREFIX}{rules.name}/{rule.name}",)
        for name in (f"{head}/pages", f"{head}/{word}")
    )


def stored_records(
    source: Source, rule_sets: Sequence[RuleSet]
) -> tuple[list[dict[str, Any]], Counter[str]]:
    """Returns what sets of rules take from a page, as the column ``extracted`` of documents, and counts."""
    stored, counts = list[dict[str, Any]](), Counter[str]()
    for rules in rule_sets:
        report_call(f"{FAULT_PREFIX}{rules.name}")
        done = records_of_page(source, rules)
        report_call("")
        counts.update(done.counts)
        stored += [
            {
                "rules": rules.name,
                "rules_version": rules.version,
                "rule": record.rule,
                "position": record.position,
                "fields": record_as_json(record),
            }
            for record in done.records
        ]
    return stored, counts


def record_as_json(record: ExtractedRecord) -> str:
    """Returns the values of a record as a JSON object; decimals and dates are texts.

    >>> record_as_json(ExtractedRecord("r", 0, {"price": Decimal("9.90"), "tags": ["a"]}, {}))
    '{"price": "9.9", "tags": ["a"]}'
    """
    return json.dumps(dict(record.values), default=_plain_text, ensure_ascii=False)


def _plain_text(value: object) -> str:
    return plain_decimal(value) if isinstance(value, Decimal) else repr(value)


def plain_decimal(value: Decimal) -> str:
    """Returns a decimal without zeros at its end and without an exponent.

    >>> plain_decimal(Decimal("1234.50000000")), plain_decimal(Decimal("1E+3"))
    ('1234.5', '1000')
    """
    return format(value.normalize(), "f")


def shown_value(value: Any, kind: str) -> Any:
    """Returns a value of a field as people and JSON see it: decimals and dates are texts.

    >>> shown_value(0, "date"), shown_value([Decimal("1.50")], "list of decimal")
    ('1970-01-01T00:00:00Z', ['1.5'])
    """
    if value is None:
        return None
    if isinstance(value, list):
        return [shown_value(each, kind.removeprefix("list of ")) for each in value]
    if kind == "date":
        moment = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC) + datetime.timedelta(
            milliseconds=value
        )
        return moment.isoformat().replace("+00:00", "Z")
    return plain_decimal(value) if isinstance(value, Decimal) else value
