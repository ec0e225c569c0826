"""Takes records from a page by rules."""

import re
from collections.abc import Iterator
from typing import Any

from ..values.typed_value import NO_WORD
from .css_paths import TooManyElements
from .extracted_page import ExtractedPage
from .extraction_rules import ExtractedRecord, FieldFailure, FieldRule, PageRule
from .field_values import field_value

MAX_RECORDS = 10_000  # of a rule on one page
NO_MATCH, TOO_MANY, TOO_MANY_RECORDS = "no_match", "too_many_elements", "too_many_records"
_SHOWN_CHARS = 100
_TAGS = re.compile("<[^>]*>")


def find_items(page: ExtractedPage, rule: PageRule) -> tuple[list[Any], str]:
    """Returns the elements of which a rule makes records, and why some are left out; empty: none is.

    A rule without ``each`` has one item: None, the whole page.

    Raises:
        PageTooSlow: The rules for the page take too long.
    """
    if rule.each is None:
        return [None], ""
    try:
        items = rule.each.find_items(page)
    except TooManyElements:
        return [], TOO_MANY
    return items[:MAX_RECORDS], TOO_MANY_RECORDS if len(items) > MAX_RECORDS else ""


def extract_records(
    page: ExtractedPage, rule: PageRule, items: list[Any]
) -> Iterator[ExtractedRecord]:
    """Yields the records that a rule makes of the items of a page, those without a required field, too.

    Raises:
        PageTooSlow: The rules for the page take too long.
    """
    of_page: dict[str, tuple[Any, str, list[FieldFailure]]] = {}
    for position, item in enumerate(items):
        values, sources, failures = dict[str, Any](), dict[str, str](), list[FieldFailure]()
        for field in rule.fields:
            if rule.each is None or field.of_page:  # the same for all items
                if field.name not in of_page:
                    of_page[field.name] = _take_field(page, None, field)
                value, source, own_failures = of_page[field.name]
            else:
                value, source, own_failures = _take_field(page, item, field)
            failures += own_failures
            if value is not None:
                values[field.name], sources[field.name] = value, source
        missing = tuple(f.name for f in rule.fields if f.required and f.name not in values)
        yield ExtractedRecord(rule.name, position, values, sources, tuple(failures), missing)


def _take_field(
    page: ExtractedPage, item: Any, field: FieldRule
) -> tuple[Any, str, list[FieldFailure]]:
    """Returns (value or None, where it came from, what did not convert)."""
    failures: list[FieldFailure] = []
    as_markup = field.item_type == "markdown"
    for source in field.sources:
        where = item if source.in_items else None
        try:
            texts = source.texts(page, where, as_markup=as_markup)
        except TooManyElements:
            failures.append(FieldFailure(field.name, TOO_MANY, "", source.label))
            continue
        values = list(_convert(page, field, texts, source.label, failures))
        if values:
            return (values if field.is_list else values[0]), source.label, failures
    if field.default:
        value = field_value(field.default, field, page).value
        return ([value] if field.is_list else value), "default", failures
    return None, "", failures


def _convert(
    page: ExtractedPage,
    field: FieldRule,
    texts: list[str],
    source: str,
    failures: list[FieldFailure],
) -> Iterator[Any]:
    """Yields the values of texts; only one if the field is no list."""
    unmatched = ""
    for text in texts:
        if not text.strip():
            continue
        taken = field.matched_text(text)
        if taken is None:
            unmatched = unmatched or text
            continue
        value, reason = field_value(taken, field, page)
        if reason and reason != NO_WORD:
            failures.append(FieldFailure(field.name, reason, _shown(taken), source))
        elif value is not None:
            yield value
        if not field.is_list and reason != NO_WORD:
            return
    if unmatched and not field.is_list:
        failures.append(FieldFailure(field.name, NO_MATCH, _shown(unmatched), source))


def _shown(text: str) -> str:
    text = _TAGS.sub("", text) if len(text) < 10_000 else text
    return text if len(text) <= _SHOWN_CHARS else f"{text[:_SHOWN_CHARS]}…"
