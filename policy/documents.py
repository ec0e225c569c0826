"""From pages to documents: what parse writes for one file of pages.

This is what runs in the parser's child processes, so it knows neither Beam nor
the table.
"""

import dataclasses
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

import pyarrow as pa

from ..web.base.options import option
from ..web.content.content_type import sniff
from ..web.content.signature import SignatureOptions, signature_of
from ..web.exchange.status import FETCH_SUCCESS, UNCHECKED
from ..web.pages.metadata import metadata_of
from ..web.pages.page import NoParser, Page, ParseFailed, Source
from ..web.pages.parse_options import ParseOptions
from ..web.parsers.dispatch import parse
from ..web.urls.row_keys import from_key
from .page_links import PageLinks
from .parse_filters import Filter, FilteredPage, apply_filters
from .parse_results import failed, not_parsed, succeeded
from .parts import Parts
from .rule_counts import capped
from .schema import DOCUMENTS, conform
from .scope import Seeds, TargetOptions

NEEDED = ("key", "score", "distance", "fetch_status", "fetch_time", "content_type", "headers",
          "truncated", "protocol_message", "body")  # fmt: skip
_NONE: Mapping[int, str] = MappingProxyType({})
# Told instead of a row's number when what remains is done for all rows together.
AFTER_ROWS = -1
_TAKEN = ("key", "score", "distance", "fetch_time", "content_type")


@dataclasses.dataclass(frozen=True)
class DocumentOptions(ParseOptions, SignatureOptions, TargetOptions):
    """Which parts of pages are stored, and which links are followed."""

    parse_filters: tuple[str, ...] = option(
        (),
        "Parse filters of plug-ins that each page goes through, in this order.",
        nutch="htmlparsefilter.order",
        pattern="[A-Za-z0-9_.-]+",
        group="parse",
    )


def documents_of(
    pages: pa.Table,
    options: DocumentOptions,
    seeds: Seeds,
    skip: Mapping[int, str] = _NONE,
    at_row: Callable[[int], None] = lambda row: None,
    filters: Sequence[tuple[str, Filter]] = (),
) -> tuple[pa.Table, dict[str, int]]:
    """Parses pages.

    Args:
        pages: PAGES rows, at least the columns ``NEEDED``.
        options: What is taken.
        seeds: Hosts and domains of the seeds, for the scope.
        skip: Why a row ended its process before, by its number: a reason, and a
            word on it after a space.
        at_row: Called with the number of the current row, so that another process
            can see which page a parser stalls at.
        filters: (name, parse filter) that each page goes through.

    Returns:
        (DOCUMENTS rows of the pages that were fetched with success, behind them those of
        their parts; counts).
    """
    counts: Counter[str] = Counter()
    records: list[dict[str, Any]] = []
    links, parts = PageLinks(options, seeds, options.max_outlinks), Parts()
    for row, page in enumerate(pages.select(NEEDED).to_pylist()):
        if page["fetch_status"] != FETCH_SUCCESS:
            continue
        at_row(row)
        if page["truncated"] and options.skip_truncated:
            counts["skipped/truncated"] += 1
            continue
        url, body, text = from_key(page["key"]), page["body"] or b"", ""
        record = {name: page[name] for name in _TAKEN}
        try:
            if row in skip:
                reason, _, detail = skip[row].partition(" ")
                raise ParseFailed(reason) from (_Ended(detail) if detail else None)
            headers = [(h["name"].lower(), h["value"]) for h in page["headers"] or ()]
            source = Source(url, body, page["content_type"], headers, page["fetch_time"])
            parsed = parse(source, options)
            metadata = metadata_of(parsed)
            if page["protocol_message"] == UNCHECKED:
                metadata["tls"] = "unchecked"
            if filters:
                filtered = FilteredPage(url, page["content_type"], parsed, metadata)
                apply_filters(filtered, filters)
                if filtered.dropped:
                    counts[f"skipped/{filtered.dropped}"] += 1
                    continue
                metadata = filtered.metadata
            record |= _content(parsed, metadata)
            text = parsed.text
            links.add(len(records), page["key"], parsed)
            parts.add(page, parsed)
            parsed.release()
            counts["parsed"] += 1
            counts.update(parsed.counts)
            counts.update({f"dropped/{reason}": n for reason, n in parsed.dropped.items()})
        except MemoryError:
            raise  # it is the process that is in trouble, not the page
        except NoParser as error:
            status, names = not_parsed(error, sniff(body, page["content_type"]))
            record |= status
            counts.update(names)
        except Exception as error:  # noqa: BLE001 - one page must not cost the others
            status, name = failed(error, truncated=page["truncated"] is not None)
            record |= status
            counts[name] += 1
        record["signature"] = signature_of(body, text, url, options)
        records.append(record)
    at_row(AFTER_ROWS)
    for record, url, part in parts.records(options, seeds, counts):
        record |= _content(part, metadata_of(part))
        record["signature"] = signature_of(
            part.text.encode("utf-8", "replace"), part.text, url, options
        )
        links.add(len(records), record["key"], part)
        records.append(record)
    outlinks = links.outlinks(len(records), counts)
    return _table(records, outlinks), capped(counts)


class _Ended(Exception):
    """How a process ended at a page."""

    def __repr__(self) -> str:
        return str(self)


def _content(page: Page, metadata: dict[str, str]) -> dict[str, Any]:
    refresh = page.refresh[0] if page.refresh else None
    return succeeded(refresh) | {
        "title": page.title,
        "text": page.text,
        "refresh": refresh,
        "directives": sorted(page.directives),
        "language": page.language or None,
        "charset": page.charset,
        "metadata": list(metadata.items()),
    }


def _table(records: list[dict[str, Any]], outlinks: pa.Array) -> pa.Table:
    fields = [field for field in DOCUMENTS if field.name != "outlinks"]
    table = pa.Table.from_pylist(records, schema=pa.schema(fields))
    return conform(table.append_column("outlinks", outlinks), DOCUMENTS)
