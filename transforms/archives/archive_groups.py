"""The records of a part of an archive, in groups that stay together."""

from collections import Counter
from collections.abc import Iterator

import pyarrow as pa

from ...io.archives.archive_files import RecordGroup
from ...io.archives.archive_sources import pages_files, parsed_pages, robots_of_batch
from ...io.storage.parquet_files import row_groups
from ...io.tablets.checksums import verify_file
from ...io.tablets.file_lists import DataFile
from ...policy.archives.captured_pages import capture_row, captures_of, choose_pages
from ...policy.components.schema import PAGES
from ...web.archives.captures import Capture
from ...web.archives.page_records import (
    CapturedContent,
    answer_of,
    capture_records,
    comparable_digest,
    dns_record,
    robots_record,
)
from ...web.archives.warc_options import COLUMNAR
from ...web.archives.warc_records import WarcRecord
from ...web.urls.row_keys import host
from .archive_part import ArchivePart, Revisits


def chosen_pages(part: ArchivePart, file: DataFile) -> Iterator[tuple[pa.Table, Counter[str]]]:
    """Yields the rows of a file that the archive gets, and the numbers of others by reason."""
    expr, successful = str(part.plan.options["expr"]), part.options.only_successful_responses
    for pages in row_groups(part.pinned.table / file.path, PAGES):
        yield choose_pages(pages, expr, part.plan.now, successful=successful)


def record_groups(
    part: ArchivePart, revisits: Revisits, counts: Counter[str]
) -> Iterator[RecordGroup]:
    """Yields the records of a part, and counts them by kind."""
    if part.part == 0 and part.options.warc_robots:
        yield from _robots_groups(part, counts)
    located: set[tuple[str, str]] = set()
    for file in pages_files(part.pinned, part.files):
        verify_file(part.pinned.table, file)  # damaged rows are not exported
        needs = part.options.needs_documents
        parsed = parsed_pages(part.pinned, part.plan.batch, file) if needs else {}
        for pages, left_out in chosen_pages(part, file):
            counts.update(left_out)
            for capture in captures_of(pages, part.plan.batch):
                if part.options.warc_dns:
                    yield from _dns_group(part, capture, located, counts)
                content = CapturedContent(capture, parsed.get(capture.url))
                group = _capture_group(part, content, revisits)
                counts.update(record.kind for record in group.records)
                yield group


def _robots_groups(part: ArchivePart, counts: Counter[str]) -> Iterator[RecordGroup]:
    for robots in robots_of_batch(part.pinned, part.plan.batch):
        counts["robots"] += 1
        record = robots_record(*robots, part.plan.batch)
        (body,) = record.block
        capture = Capture(
            robots.url, part.plan.batch, robots.time, body=body, content_type="text/plain"
        )
        yield _group(part, [record], CapturedContent(capture, None), answer_of(capture).digest)


def _capture_group(part: ArchivePart, content: CapturedContent, revisits: Revisits) -> RecordGroup:
    capture, options = content.capture, part.options
    answer = answer_of(capture)
    records = list(
        capture_records(
            capture,
            answer,
            options.warc_version,
            earlier=revisits.get((capture.url, capture.time)),
            request=options.warc_requests,
            page=content.page,
            text=options.include_parse_text,
            data=options.include_parse_data,
        )
    )
    whole = comparable_digest(capture, answer) is not None
    return _group(part, records, content, answer.digest, whole=whole)


def _group(
    part: ArchivePart,
    records: list[WarcRecord],
    content: CapturedContent,
    digest: bytes | None,
    *,
    whole: bool = False,
) -> RecordGroup:
    sniffed = COLUMNAR in part.options.warc_indexes
    return RecordGroup(records, capture_row(content, digest, whole=whole, sniffed=sniffed), content)


def _dns_group(
    part: ArchivePart, capture: Capture, located: set[tuple[str, str]], counts: Counter[str]
) -> Iterator[RecordGroup]:
    """Yields the DNS record of a host and its address, once in each part."""
    if not capture.ip:
        return
    pair = (host(capture.url), capture.ip)
    if pair not in located and pair[0].strip("[]") != capture.ip:
        located.add(pair)
        counts["dns"] += 1
        record = dns_record(*pair, capture.time, f"{capture.batch}/{part.part}")
        body, url = b"".join(record.block), record.field("WARC-Target-URI") or ""
        answer = Capture(url, capture.batch, capture.time, body=body, content_type="text/dns")
        yield _group(part, [record], CapturedContent(answer, None), answer_of(answer).digest)
