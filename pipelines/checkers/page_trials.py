"""Runs a parser or a parse filter of a plug-in on one page."""

import time
from typing import Any

from ...policy.parsing.parse_filters import FilteredPage, apply_filters
from ...web.base.errors import UsageError
from ...web.base.wording import format_count
from ...web.pages.metadata import metadata_of
from ...web.pages.page import NoParser, Page, ParseFailed, Source
from ...web.pages.parse_options import PARSERS, ParseOptions
from ...web.parsers.dispatch import parse_document
from ...web.parsers.parser_plugins import parse_by_plugin
from ...web.plugins.plugin_files import fault_text
from ...web.plugins.plugins import PARSE_FILTERS, load_plugin
from .time_limit import Trial, limited

_SHOWN_TEXT = 300
_SHOWN_LINKS = 10


def try_parser(name: str, source: Source, options: ParseOptions) -> Trial:
    """Returns what a parser makes of a document."""
    fault, page, function = "", Page(), load_plugin(PARSERS, name)
    start = time.perf_counter()
    try:
        with limited(options.parser_timeout):
            page = parse_by_plugin(name, source, options)
    except NoParser:
        fault = "it cannot read the document: its result is None"
    except ParseFailed as error:
        fault = fault_text(error.__cause__ or error, function)
    seconds = time.perf_counter() - start
    links = [
        {"url": link, "anchor": anchor}
        for link, anchor in zip(page.hrefs, page.anchors, strict=True)
    ]
    record = {
        "url": source.url, "content_type": source.content_type, "title": page.title,
        "text": page.text, "language": page.language, "metadata": page.metas, "links": links,
    }  # fmt: skip
    return Trial(record, [] if fault else _document_lines(record), fault, seconds)


def _document_lines(record: dict[str, Any]) -> list[str]:
    lines = [f"{name}: {record[name]}" for name in ("title", "language") if record[name]]
    lines += [f"meta {name}: {text}" for name, text in record["metadata"].items()]
    links = record["links"]
    lines.append(f"links: {len(links)}")
    lines += [f"  {link['url']} {link['anchor']}".rstrip() for link in links[:_SHOWN_LINKS]]
    if len(links) > _SHOWN_LINKS:
        lines.append(f"  and {format_count(len(links) - _SHOWN_LINKS, 'more links')}")
    text = record["text"]
    return [*lines, f"text: {len(text):,} characters", *text[:_SHOWN_TEXT].split("\n")]


def try_parse_filter(name: str, source: Source, options: ParseOptions) -> Trial:
    """Returns what a parse filter makes of a page.

    Raises:
        UsageError: nutbeam cannot parse the page.
    """
    function, fault = load_plugin(PARSE_FILTERS, name), ""
    try:
        parsed = parse_document(source, options)
    except ParseFailed as error:
        raise UsageError(f"nutbeam cannot parse {source.url!r}: {error.reason}") from error
    page = FilteredPage(source.url, source.content_type, parsed, metadata_of(parsed))
    start = time.perf_counter()
    try:
        with limited(options.parser_timeout):
            apply_filters(page, [(name, function)])
    except ParseFailed as error:
        fault = fault_text(error.__cause__ or error, function)
    seconds = time.perf_counter() - start
    links = [{"url": link.url, "anchor": link.anchor} for link in ([] if fault else page.links)]
    record = {
        "url": source.url, "content_type": source.content_type, "dropped": page.dropped,
        "title": page.title, "text": page.text, "language": page.language,
        "metadata": page.metadata, "links": links, "parts": [url for url, _ in parsed.parts],
    }  # fmt: skip
    lines = [f"dropped: {page.dropped}"] if page.dropped else _document_lines(record)
    return Trial(record, [] if fault else lines, fault, seconds)
