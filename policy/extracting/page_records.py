"""Applies a set of rules to a page: what each rule takes from it, or why it takes nothing."""

import dataclasses
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

import pyarrow as pa

from ...web.base.errors import one_line
from ...web.content.charset import to_utf8
from ...web.content.content_type import sniff
from ...web.extracting.extracted_page import ExtractedPage, PageTooSlow
from ...web.extracting.extraction import extract_records, find_items
from ...web.extracting.extraction_rules import ExtractedRecord, PageRule, RuleSet
from ...web.html.html import xhtml_as_html
from ...web.pages.page import Source

# The columns of pages that are needed.
EXTRACTED_FROM = ("url", "body", "content_type", "headers", "last_fetch_time")
RULE_TIMEOUT, RULE_CRASHED = "timeout", "crashed"
_XHTML = "application/xhtml+xml"
_MARKUP_TYPES = ("text/html", _XHTML)
_MOST_CHARS = 200  # of an error


class RuleResult(NamedTuple):
    """What a rule has taken from a page.

    Attributes:
        rule: The rule.
        records: Its records; also those that lack a required field.
        ended: ``RULE_TIMEOUT`` or ``RULE_CRASHED`` if it was ended; else empty.
        error: The error that ended it.
        cut: Why it did not make all records: ``too_many_records`` or ``too_many_elements``; else empty.
    """

    rule: PageRule
    records: list[ExtractedRecord]
    ended: str = ""
    error: str = ""
    cut: str = ""


class PageResult(NamedTuple):
    """What a set of rules has taken from a page.

    Attributes:
        rules: The result of each rule that is for the page.
        left_out: Why no rule was applied: ``not_html`` or ``noindex``; else empty.
    """

    rules: list[RuleResult]
    left_out: str = ""


def rows_of_pages(
    pages: pa.Table, skip: Mapping[int, str] | None, at_row: Callable[[int], None]
) -> Iterator[tuple[Mapping[str, Any], str]]:
    """Yields each page, and why it is skipped; empty: it is not.

    Args:
        pages: Rows with ``EXTRACTED_FROM``.
        skip: Reasons of rows that have ended a process before, by row number.
        at_row: Called with the number of each row before its page is worked on.
    """
    for number, page in enumerate(pages.select(list(EXTRACTED_FROM)).to_pylist()):
        at_row(number)
        yield page, (skip or {}).get(number, "")


def source_of_row(page: Mapping[str, Any]) -> Source:
    """Returns a row with ``EXTRACTED_FROM`` as a page."""
    headers = [(header["name"].lower(), header["value"]) for header in page["headers"] or ()]
    return Source(page["url"], page["body"], page["content_type"], headers)


def apply_rules(source: Source, rules: RuleSet) -> PageResult:
    """Applies the rules that are for a page.

    Args:
        source: The page. One that is not HTML, or says noindex, has no records: it has no text, either.
        rules: The rules.
    """
    own_rules = rules.rules_for(source.url)
    if not own_rules:
        return PageResult([])
    markup = _source_of_markup(source)
    if markup is None:
        return PageResult([], "not_html")
    page = ExtractedPage(markup)
    if "noindex" in page.directives:
        return PageResult([], "noindex")
    return PageResult([_apply_rule(page, rule) for rule in own_rules])


def _apply_rule(page: ExtractedPage, rule: PageRule) -> RuleResult:
    try:
        items, cut = find_items(page, rule)
        return RuleResult(rule, list(extract_records(page, rule, items)), cut=cut)
    except PageTooSlow:
        return RuleResult(rule, [], RULE_TIMEOUT, RULE_TIMEOUT)
    except MemoryError:
        raise  # the whole process is out of memory
    except Exception as error:  # noqa: BLE001 - such as of XPath; it must not cost the page its text
        return RuleResult(
            rule, [], RULE_CRASHED, one_line(f"{type(error).__name__}: {error}", _MOST_CHARS)
        )


def _source_of_markup(source: Source) -> Source | None:
    """Returns a page as HTML; None if it is neither HTML nor XHTML."""
    kind = sniff(source.body, source.content_type)
    if kind != _XHTML:
        return source if kind in _MARKUP_TYPES else None
    body = xhtml_as_html(to_utf8(source.body, source.content_type, source.url)[0])
    return dataclasses.replace(source, body=body, content_type=f"{_XHTML}; charset=utf-8")
