"""Parses one file of pages into documents.

It runs in the child processes that parse, without Beam and without the table.
Parts of pages, such as the items of a feed, become documents, too.
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import polars as pl
import pyarrow as pa

from ...web.base.columns import reason_if
from ...web.base.joined_options import joined_options
from ...web.base.options import option
from ...web.content.bot_walls import find_bot_wall
from ...web.content.content_type import sniff
from ...web.content.signature import SignatureOptions, signature_of
from ...web.content.usage import usage_of_page
from ...web.content.whole_bodies import WHOLE
from ...web.exchange.status import FETCH_SUCCESS, HTTP_OK, UNCHECKED
from ...web.extracting.extract_options import ExtractOptions, rule_sets_of
from ...web.html.main_content import LateParts
from ...web.pages.main_part import TextParts
from ...web.pages.metadata import metadata_of
from ...web.pages.page import NoParser, Page, ParseFailed, Source
from ...web.pages.parse_options import PARSERS, ParseOptions
from ...web.parsers.dispatch import parse_document
from ...web.plugins.plugin_files import PLUGIN_FORM, PLUGIN_NAME
from ...web.plugins.plugin_options import names_in
from ...web.plugins.plugins import load_plugins
from ...web.urls.row_keys import from_key
from ..base.key_columns import host_keys
from ..components.document_schema import DOCUMENTS
from ..components.host_rows import Seeds
from ..components.rule_counts import cap_rule_counts
from ..components.schema import conform
from ..extracting.rule_figures import FAULT_PREFIX
from ..scope import TargetOptions, judge
from ..span_lists import SpanLists
from .page_links import PageLinks
from .parse_filters import Filter, FilteredPage, apply_filters
from .parse_results import cut_off, failure_status, not_parsed, success_status
from .repeated_blocks import RepeatedBlocks

if TYPE_CHECKING:
    from ...web.extracting.extraction_rules import RuleSet


class Parts:
    """The parts of many pages; their URLs are filtered together."""

    def __init__(self) -> None:
        self._parts: list[tuple[dict[str, Any], str, Page]] = []

    def add(self, row: dict[str, Any], page: Page) -> None:
        """Adds the parts of a page.

        Args:
            row: Its PAGES row.
            page: The parsed page. A page with noindex or nofollow has no parts.
        """
        directive = next((d for d in ("noindex", "nofollow") if d in page.directives), None)
        if directive is not None:
            page.drop(f"part_{directive}", len(page.parts))
            return
        self._parts += [(row, url, part) for url, part in page.parts]

    def records(
        self, options: TargetOptions, seeds: Seeds, counts: Counter[str]
    ) -> list[tuple[dict[str, Any], str, Page]]:
        """Returns (columns that a DOCUMENTS row has from its page, URL, part) of accepted parts.

        A part is accepted if a link to it would be accepted and it is on the host of its page.
        If several parts have the same URL, only the first is accepted. Other parts are counted
        by reason.
        """
        if not self._parts:
            return []
        urls = pl.Series([url for _, url, _ in self._parts], dtype=pl.String)
        keys = [row["key"] for row, _, _ in self._parts]
        sources = pl.Series("source", keys, dtype=pl.String)
        links = sources.to_frame().with_columns(urls.alias("url"))
        targets = judge(links, "outlink", options, seeds)
        foreign = host_keys(targets.get_column("key")) != host_keys(sources)
        repeated = pl.col("key").is_not_null() & ~pl.col("key").is_first_distinct()
        reason = pl.coalesce(
            reason_if((pl.col("reason") == "out_of_scope").fill_null(foreign), "foreign_part"),
            "part_" + pl.col("reason"),
            reason_if(repeated, "part_repeated"),
        )
        judged = targets.select("key", reason=reason)
        records = []
        for (row, url, part), (key, reason) in zip(self._parts, judged.iter_rows(), strict=True):
            if reason is None:
                records.append((_record(row, key), url, part))
            else:
                counts[f"dropped/{reason}"] += 1
        counts["parts"] += len(records)
        return records


def _record(row: dict[str, Any], key: str) -> dict[str, Any]:
    return {
        "key": key,
        "part_of": row["key"],
        "score": 0.0,
        "distance": (row["distance"] or 0) + 1,  # as if the page linked to it
        "fetch_time": row["fetch_time"],
        "usage": row["usage"],
    }


NEEDED = ("key", "score", "distance", "fetch_status", "fetch_time", "content_type", "headers",
          "truncated", "protocol_message", "body", "usage")  # fmt: skip
_TAKEN = ("key", "score", "distance", "fetch_time", "content_type")
# Whose main content is found together: more would take more memory, and no less time.
_PAGES_AT_ONCE = 64


@joined_options
class DocumentOptions(ParseOptions, SignatureOptions, TargetOptions, ExtractOptions):
    """Options of parsing: the content to store, and the links to follow."""

    parse_filters: tuple[str, ...] = option(
        (),
        "Parse filters of plug-ins that each page goes through, in this order.",
        nutch="htmlparsefilter.order",
        pattern=PLUGIN_NAME,
        form=PLUGIN_FORM,
        plugins=True,
        group="parse",
    )


def load_parse_rules(
    options: DocumentOptions, seeds: Seeds, filters: Sequence[tuple[str, Filter]] = ()
) -> "ParseRules":
    """Returns how pages are parsed; imports the parsers of plug-ins.

    Raises:
        UsageError: One is unknown, or cannot be imported.
    """
    names = dict.fromkeys(name for text in options.parsers for name in names_in(text))
    load_plugins(PARSERS, tuple(names))
    return ParseRules(options, seeds, filters, rule_sets_of(options.extract))


class ParseRules(NamedTuple):
    """How pages are parsed.

    Attributes:
        options: Options of parsing.
        seeds: The hosts of seeds, for the scope.
        filters: (name, parse filter) pairs to apply to each page.
        rule_sets: Rules by which fields are taken from each page.
    """

    options: DocumentOptions
    seeds: Seeds
    filters: Sequence[tuple[str, Filter]] = ()
    rule_sets: "Sequence[RuleSet]" = ()


def documents_of(
    pages: pa.Table,
    rules: ParseRules,
    skip: Mapping[int, str] | None = None,
    at_row: Callable[[int], None] = lambda row: None,
) -> tuple[pa.Table, dict[str, int]]:
    """Parses pages.

    Args:
        pages: PAGES rows, at least the columns ``NEEDED``.
        rules: How they are parsed.
        skip: Reasons of rows that have ended a process before, by row number; a detail may
            follow after a space.
        at_row: Called with the number of each row before it is parsed, so that another process
            can find the page at which a parser stalls; with the number of all rows before the work
            on all of them together.

    Returns:
        (DOCUMENTS rows, counts). The rows of successfully fetched pages come first, then those
        of their parts.
    """
    documents = _Documents(rules.options, rules.seeds)
    columns = [name for name in NEEDED if name in pages.column_names]
    for row, page in enumerate(pages.select(columns).to_pylist()):
        if page["fetch_status"] != FETCH_SUCCESS:
            continue
        page.setdefault("usage", None)  # a file of an earlier version does not have it
        at_row(row)
        if page["truncated"] not in (None, *WHOLE) and rules.options.skip_truncated:
            documents.cut(page)
            continue
        documents.add(page, *_document(page, rules, (skip or {}).get(row), documents.counts))
    at_row(len(pages))
    return documents.table(), cap_rule_counts(documents.counts)


class _Documents:
    """DOCUMENTS rows, one after another; links and parts wait until all pages are parsed."""

    def __init__(self, options: DocumentOptions, seeds: Seeds) -> None:
        self._options, self._seeds = options, seeds
        self.counts: Counter[str] = Counter()
        self._records: list[dict[str, Any]] = []
        self._links = PageLinks(options, seeds, options.max_outlinks)
        self._unfollowed = PageLinks(options, seeds, options.max_outlinks)
        self._blocks = SpanLists()
        self._pages: list[tuple[int, Page]] = []  # whose main content is not found yet
        self._repeated = RepeatedBlocks()
        self._parts = Parts()

    def cut(self, page: Mapping[str, Any]) -> None:
        """Adds a page that is not parsed because its body was cut off."""
        usage = usage_of_page(page["usage"], _headers(page), ())
        record = {name: page[name] for name in _TAKEN} | {"usage": usage}
        self._records.append(record | cut_off(page["truncated"]))
        self.counts["skipped/truncated"] += 1

    def add(self, page: dict[str, Any], record: dict[str, Any] | None, parsed: Page | None) -> None:
        """Adds what ``_document`` returns for a page."""
        if record is None:
            return
        if parsed is not None:
            at = len(self._records)
            self._links.add(at, page["key"], parsed)
            self._blocks.add(at, parsed.spans)
            self._pages.append((at, parsed))
            self._unfollowed.add(at, page["key"], parsed.of_unfollowed())
            self._parts.add(page | {"usage": record["usage"]}, parsed)
            parsed.release()
            self.counts.update({"parsed": 1, **parsed.counts})
            self.counts.update({f"dropped/{reason}": n for reason, n in parsed.dropped.items()})
        self._records.append(record)

    def table(self) -> pa.Table:
        """Returns all rows: those that were added, then those of their parts."""
        options, records, counts = self._options, self._records, self.counts
        self._find_main_content()
        for record, url, part in self._parts.records(options, self._seeds, counts):
            self._links.add(len(records), record["key"], part)
            self._blocks.add(len(records), part.spans)
            signature = signature_of(part.text.encode("utf-8", "replace"), part.text, url, options)
            content = _content(part, metadata_of(part)) | {"main": _part_rows(part.main)}
            records.append(record | content | {"signature": signature})
        for row, parts in self._repeated.trimmed_parts([each["key"] for each in records]).items():
            records[row]["main"] = _part_rows(parts)
        lists = {
            "outlinks": self._links.outlinks(len(records), counts),
            # All of these are counted as dropped already.
            "nofollow_links": self._unfollowed.outlinks(len(records), Counter()),
            "blocks": self._blocks.column(len(records)),
        }
        return _table(records, lists)

    def _find_main_content(self) -> None:
        for at in range(0, len(self._pages), _PAGES_AT_ONCE):
            pages = self._pages[at : at + _PAGES_AT_ONCE]
            LateParts.find(page.main for _, page in pages)
            for row, page in pages:
                self._records[row]["main"] = _part_rows(page.main)
                self._repeated.add(row, page)


def _document(
    page: Mapping[str, Any], rules: ParseRules, ended: str | None, counts: Counter[str]
) -> tuple[dict[str, Any] | None, Page | None]:
    """Returns (DOCUMENTS row without links, or None if a filter drops the page; parsed page).

    Args:
        page: A PAGES row.
        rules: How it is parsed.
        ended: Reason why the page ended a process before, or None.
        counts: Counts failures and dropped pages.
    """
    url, body = from_key(page["key"]), page["body"] or b""
    parsed: Page | None = None
    # A fetch stores no walls; batches of older versions, of Nutch and of plug-ins may have some.
    wall = find_bot_wall(HTTP_OK, _headers(page), body)
    try:
        if wall is not None:
            raise ParseFailed(wall.message)
        is_of_rules = ended is not None and ended.startswith(FAULT_PREFIX)
        if ended is not None and not is_of_rules:
            reason, _, detail = ended.partition(" ")
            raise ParseFailed(reason) from (_Ended(detail) if detail else None)
        page_content, metadata, dropped = _parse(url, page, rules)
        if dropped:
            counts[f"skipped/{dropped}"] += 1
            return None, None
        content = _content(page_content, metadata)
        parsed = page_content
        if rules.rule_sets:
            ended_rules = str(ended) if is_of_rules else ""
            content["extracted"] = _extract(
                _source(url, page), rules.rule_sets, ended_rules, counts
            )
    except MemoryError:
        raise  # the whole process is out of memory
    except NoParser as error:
        content, names = not_parsed(error, sniff(body, page["content_type"]))
        counts.update(names)
    except Exception as error:  # noqa: BLE001 - one page must not cost the others
        content, name = failure_status(error, truncated=page["truncated"] is not None)
        counts[name] += 1
    # Nutch's text begins with the title; a title alone says too little about a page.
    text = f"{parsed.title} {parsed.text}" if parsed is not None and parsed.text else ""
    record = {name: page[name] for name in _TAKEN}
    directives = parsed.directives if parsed is not None else ()
    record["usage"] = usage_of_page(page["usage"], _headers(page), directives)
    signature = None if wall is not None else signature_of(body, text, url, rules.options)
    return record | content | {"signature": signature}, parsed


class _Ended(Exception):
    """The cause of a failure: the page ended a process before; the text is the reason."""

    def __repr__(self) -> str:
        return str(self)


def _parse(
    url: str, page: Mapping[str, Any], rules: ParseRules
) -> tuple[Page, dict[str, str], str | None]:
    """Returns (parsed page, its metadata, reason why a filter drops it or None)."""
    parsed = parse_document(_source(url, page), rules.options)
    metadata = metadata_of(parsed)
    if page["protocol_message"] == UNCHECKED:
        metadata["tls"] = "unchecked"
    filtered = FilteredPage(url, page["content_type"], parsed, metadata)
    apply_filters(filtered, rules.filters)
    return parsed, filtered.metadata, filtered.dropped


def _source(url: str, page: Mapping[str, Any]) -> Source:
    body = page["body"] or b""
    return Source(url, body, page["content_type"], _headers(page), page["fetch_time"])


def _extract(
    source: Source, rule_sets: "Sequence[RuleSet]", ended: str, counts: Counter[str]
) -> list[dict[str, Any]] | None:
    """Returns the records of a page; None if it has none, or if rules have ended a process at it before."""
    from ..extracting.extracted_rows import ended_counts, stored_records  # late: few pages need it

    if ended:
        for rules in rule_sets:
            counts.update(ended_counts(source.url, rules, ended))
        return None
    records, own_counts = stored_records(source, rule_sets)
    counts.update(own_counts)
    return records or None


def _headers(page: Mapping[str, Any]) -> list[tuple[str, str]]:
    return [(header["name"].lower(), header["value"]) for header in page["headers"] or ()]


def _content(page: Page, metadata: dict[str, str]) -> dict[str, Any]:
    refresh, seconds = page.refresh or (None, None)
    return success_status(refresh) | {
        "title": page.title,
        "text": page.text,
        "refresh": refresh,
        "refresh_seconds": seconds,
        "directives": sorted(page.directives),
        "language": page.language or None,
        "charset": page.charset,
        "metadata": list(metadata.items()),
        "structured_data": [item._asdict() for item in page.items] or None,
    }


def _part_rows(parts: TextParts) -> list[dict[str, int]] | None:
    return [{"start": start, "end": end} for start, end in parts] or None


def _table(records: list[dict[str, Any]], lists: Mapping[str, pa.Array]) -> pa.Table:
    fields = [field for field in DOCUMENTS if field.name not in lists]
    table = pa.Table.from_pylist(records, schema=pa.schema(fields))
    for name, column in lists.items():
        table = table.append_column(name, column)
    return conform(table, DOCUMENTS)
