"""The work on a part of an archive: its captures, its records, its files."""

import dataclasses
import re
from collections import Counter
from collections.abc import Iterator, Mapping

import polars as pl
import pyarrow as pa

from ...io.archives.archive_files import (
    CAPTURES,
    ArchiveWriter,
    RecordGroup,
    write_cdxj,
    write_index,
)
from ...io.archives.archive_plans import (
    ArchiveFolder,
    ArchivePlan,
    archive_name,
    remove_other_files,
)
from ...io.archives.archive_sources import pages_files, parsed_pages, robots_of_batch
from ...io.snapshots.manifest import Pinned
from ...io.storage.parquet_files import row_groups
from ...io.storage.place_addresses import place_of
from ...io.tablets.checksums import verify_file
from ...io.tablets.file_lists import DataFile
from ...policy.archives.captured_pages import captures_of, choose_pages
from ...policy.archives.revisits import CAPTURED, WRITTEN
from ...policy.components.schema import PAGES, conform, to_frame
from ...web.archives.captures import Capture
from ...web.archives.page_records import (
    NOT_MODIFIED,
    EarlierCapture,
    answer_of,
    capture_records,
    comparable_digest,
    dns_record,
    robots_record,
    warcinfo_record,
)
from ...web.archives.warc_info import info_fields
from ...web.archives.warc_options import WarcOptions
from ...web.archives.warc_records import REVISIT, WarcRecord
from ...web.urls.row_keys import host
from ..wiring.in_process import elements_at_once

_USER_AGENT = re.compile(r"\r\nUser-Agent: *([^\r\n]+)", re.IGNORECASE)
# Of a list of captures: what decides about revisits.
_WRITTEN_COLUMNS = ("url", "time", "batch", "kind", "digest", "whole")
Revisits = Mapping[tuple[str, int], EarlierCapture]


@dataclasses.dataclass(frozen=True)
class ArchivePart:
    """A part of a batch, which one worker writes.

    Attributes:
        pinned: The snapshot.
        folder: Address of the archive.
        plan: The plan of the batch, without its parts.
        part: Number of the part in the plan.
        files: Paths of its files of pages.
        number: Number of the part in this run.
        options: What records are written.
    """

    pinned: Pinned
    folder: str
    plan: ArchivePlan
    part: int
    files: tuple[str, ...]
    number: int
    options: WarcOptions

    @property
    def archive(self) -> ArchiveFolder:
        """The folder of the archive."""
        return ArchiveFolder(place_of(self.folder))


def captured_chunks(part: ArchivePart) -> Iterator[pa.Table]:
    """Yields what decides about revisits: columns of ``CAPTURED``."""
    batch = part.plan.batch
    with part.pinned.reading():
        for file in _files(part):
            for pages, _ in _chosen_pages(part, file):
                rows = [
                    (comparable_digest(capture, answer_of(capture)), capture.url, capture.time,
                     batch, part.number, capture.status == NOT_MODIFIED)
                    for capture in captures_of(pages, batch)
                ]  # fmt: skip
                frame = pl.DataFrame(rows, schema=pl.Schema(CAPTURED), orient="row")
                yield conform(frame, CAPTURED)


def written_chunks(folder: str) -> Iterator[pa.Table]:
    """Yields columns of ``CAPTURED`` for the answers that an archive has already."""
    for index in ArchiveFolder(place_of(folder)).indexes():
        for rows in row_groups(index, CAPTURES, _WRITTEN_COLUMNS):
            answers = to_frame(rows).filter(pl.col("whole") & (pl.col("kind") != REVISIT))
            written = answers.with_columns(part=pl.lit(WRITTEN, pl.Int32), unchanged=False)
            yield conform(written, CAPTURED)


def write_archive_part(part: ArchivePart, revisits: Revisits) -> dict[str, int]:
    """Writes the files of a part; returns its counts. A part that is complete is left alone.

    Args:
        part: The part.
        revisits: The captures that are revisits, by URL and time.
    """
    archive, batch, options = part.archive, part.plan.batch, part.options
    if archive.receipt(batch, part.part) is not None:
        return {}
    counts: Counter[str] = Counter()
    with part.pinned.reading():
        agent = _user_agent(part)
        writer = ArchiveWriter(
            archive.place,
            lambda serial: archive_name(
                options.warc_prefix, part.plan, part.part, serial, options.warc_compression
            ),
            lambda name: _warcinfo(part, name, agent),
            options.warc_version,
            options.warc_compression,
            options.warc_size,
            elements_at_once(),
        )
        write_index(
            archive.index_of(batch, part.part), writer.write(_groups(part, revisits, counts))
        )
    if options.warc_index:
        write_cdxj(archive.cdxj_of(part.plan, part.part), archive.index_of(batch, part.part))
    remove_other_files(archive.place, part.plan, part.part, {file.name for file in writer.files})
    counts["files"] = len(writer.files)
    counts["bytes"] = sum(file.bytes for file in writer.files)
    counts["warcinfo"] = len(writer.files)
    files = [dataclasses.asdict(file) for file in writer.files]
    archive.keep_receipt(batch, part.part, {"files": files, "counts": +counts})
    return dict(+counts)


def _files(part: ArchivePart) -> Iterator[DataFile]:
    yield from pages_files(part.pinned, part.files)


def _chosen_pages(part: ArchivePart, file: DataFile) -> Iterator[tuple[pa.Table, Counter[str]]]:
    """Yields the rows of a file that the archive gets, and the numbers of others by reason."""
    expr, successful = str(part.plan.options["expr"]), part.options.only_successful_responses
    for pages in row_groups(part.pinned.table / file.path, PAGES):
        yield choose_pages(pages, expr, part.plan.now, successful=successful)


def _groups(part: ArchivePart, revisits: Revisits, counts: Counter[str]) -> Iterator[RecordGroup]:
    """Yields the records of a part, and counts them by kind."""
    if part.part == 0 and part.options.warc_robots:
        for robots in robots_of_batch(part.pinned, part.plan.batch):
            counts["robots"] += 1
            record = robots_record(*robots, part.plan.batch)
            capture = Capture(
                robots.url,
                part.plan.batch,
                robots.time,
                body=robots.text.encode("utf-8", "replace"),
                content_type="text/plain",
            )
            yield RecordGroup([record], capture, answer_of(capture).digest)
    located: set[tuple[str, str]] = set()
    for file in _files(part):
        verify_file(part.pinned.table, file)  # damaged rows are not exported
        needs = part.options.needs_documents
        parsed = parsed_pages(part.pinned, part.plan.batch, file) if needs else {}
        for pages, left_out in _chosen_pages(part, file):
            counts.update(left_out)
            for capture in captures_of(pages, part.plan.batch):
                if part.options.warc_dns:
                    yield from _dns_group(part, capture, located, counts)
                answer = answer_of(capture)
                records = list(
                    capture_records(
                        capture,
                        answer,
                        part.options.warc_version,
                        earlier=revisits.get((capture.url, capture.time)),
                        request=part.options.warc_requests,
                        page=parsed.get(capture.url),
                        text=part.options.include_parse_text,
                        data=part.options.include_parse_data,
                    )
                )
                counts.update(record.kind for record in records)
                whole = comparable_digest(capture, answer) is not None
                yield RecordGroup(records, capture, answer.digest, whole)


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
        yield RecordGroup([dns_record(*pair, capture.time, f"{capture.batch}/{part.part}")])


def _user_agent(part: ArchivePart) -> str:
    """Returns the User-Agent of the first request of a part; empty if there is none."""
    for file in _files(part):
        for rows in row_groups(part.pinned.table / file.path, PAGES, ["request"]):
            for request in rows.column("request").drop_null():
                if match := _USER_AGENT.search(request.as_py()):
                    return str(match[1])
    return ""


def _warcinfo(part: ArchivePart, name: str, agent: str) -> WarcRecord:
    plan = part.plan
    fields = info_fields(part.options, plan.software, plan.batch, str(plan.options["expr"]), agent)
    return warcinfo_record(name, plan.now, fields)
