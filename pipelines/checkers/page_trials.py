"""Runs a parser or a parse filter of a plug-in on one page, in a process with limits.

A plug-in that loops, ends its process or needs all memory costs that process, as in a crawl.
"""

import contextlib
import functools
import json
import sys
import time
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import pyarrow as pa

from ...io.parsing.parse_pool import ParsePool
from ...io.parsing.parse_worker import Job, ParseTask
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
from .time_limit import limited

_SHOWN_TEXT = 300
_SHOWN_LINKS = 10
# The process is ended this long after the limit: first it may say at which line it is.
_LATE_S = 2.0


class Trial(NamedTuple):
    """What came out of one call of a plug-in.

    Attributes:
        record: What it was given, and its result.
        lines: The result for people.
        fault: What it raised, and where in its code; empty if it did not fail.
        seconds: How long it took.
    """

    record: dict[str, Any]
    lines: list[str]
    fault: str
    seconds: float


class _PageTrial(NamedTuple):
    kind: str
    name: str
    source: Source
    options: ParseOptions


def try_on_page(kind: str, name: str, source: Source, options: Any) -> Trial:
    """Returns what a plug-in makes of a page.

    Args:
        kind: ``parser`` or ``parse_filter``.
        name: Its name.
        source: The page.
        options: ParseOptions, and ``parser_memory``.

    Raises:
        UserError: The plug-in cannot be imported, or nutbeam cannot parse the page for a filter.
    """
    rules = functools.partial(_rules, _PageTrial(kind, name, source, options))
    task = ParseTask(_trial_table, rules, (), (), options.parser_timeout + _LATE_S)
    pool = ParsePool(1, options.parser_memory, __name__)
    try:
        job = Job("", f"the page {source.url}", (), (), task)
        result = pool.result(pool.submit(job, pa.table({"row": [0]})))
    finally:
        pool.close()
    return Trial(*json.loads(result.documents.column("trial")[0].as_py()))


def _rules(trial: _PageTrial, seeds: object, filters: object) -> _PageTrial:
    return trial


def _trial_table(
    pages: pa.Table, trial: _PageTrial, skip: Mapping[int, str], at_row: Callable[[int], None]
) -> tuple[pa.Table, dict[str, int]]:
    """Returns the trial as JSON; ``ParseTask.parse`` has the arguments."""
    if why := skip.get(0):
        done = Trial({"url": trial.source.url}, [], _end_text(why, trial.options), 0.0)
    else:
        at_row(0)
        with contextlib.redirect_stdout(sys.stderr):  # the output of the process is thrown away
            done = _TRIALS[trial.kind](trial)
    at_row(len(pages))
    return pa.table({"trial": [json.dumps(done)]}), {}


def _end_text(why: str, options: ParseOptions) -> str:
    """Returns why a plug-in's process was ended.

    >>> _end_text("parser_tea crashed: exit code 7", ParseOptions())
    'it ended its process: exit code 7'
    >>> _end_text("parser_tea timeout", ParseOptions())
    'it took longer than 30 s (--parser_timeout)'
    >>> _end_text("filter_tea out_of_memory", ParseOptions())
    'it needed more memory than --parser_memory'
    """
    if why.startswith(("parser_", "filter_")):
        why = why.partition(" ")[2]
    reason, _, detail = why.partition(": ")
    texts = {
        "timeout": f"it took longer than {options.parser_timeout:g} s (--parser_timeout)",
        "out_of_memory": "it needed more memory than --parser_memory",
    }
    return texts.get(reason, f"it ended its process: {detail or reason}")


def _try_parser(trial: _PageTrial) -> Trial:
    _, name, source, options = trial
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
    return [*lines, f"text: {len(text):,} characters", text[:_SHOWN_TEXT]]


def _try_parse_filter(trial: _PageTrial) -> Trial:
    _, name, source, options = trial
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


_TRIALS = {"parser": _try_parser, "parse_filter": _try_parse_filter}
