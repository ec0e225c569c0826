"""The work on a part of an archive: its captures, its files, its indexes."""

import dataclasses
import functools
import re
from collections import Counter
from collections.abc import Iterator

import polars as pl
import pyarrow as pa

from ...io.archives.archive_files import ArchiveWriter, FilesBeside
from ...io.archives.archive_indexes import write_capture_list, write_cdxj, write_url_index
from ...io.archives.archive_plans import (
    WAT_FOLDER,
    WET_FOLDER,
    ArchiveFolder,
    archive_name,
    remove_other_files,
)
from ...io.archives.archive_sources import pages_files
from ...io.storage.parquet_files import row_groups
from ...io.storage.place_addresses import place_of
from ...policy.archives.captured_pages import captures_of
from ...policy.archives.revisits import CAPTURED, WRITTEN
from ...policy.archives.url_index import SUBSETS, url_index_rows
from ...policy.components.archive_rows import CAPTURES
from ...policy.components.schema import PAGES, conform, empty, to_frame
from ...web.archives.http_messages import NOT_MODIFIED
from ...web.archives.page_records import answer_of, comparable_digest, warcinfo_record
from ...web.archives.warc_info import derived_info_fields, info_fields
from ...web.archives.warc_options import CDXJ, COLUMNAR
from ...web.archives.warc_records import REVISIT, WarcRecord
from ...web.archives.wat import WAT_ENDING, WET_ENDING, wat_records, wet_records
from ..wiring.in_process import elements_at_once
from .archive_groups import chosen_pages, record_groups
from .archive_part import ArchivePart, Revisits

_USER_AGENT = re.compile(r"\r\nUser-Agent: *([^\r\n]+)", re.IGNORECASE)
# Of a list of captures: what decides about revisits.
_WRITTEN_COLUMNS = ("url", "time", "batch", "kind", "digest", "whole")


def captured_chunks(part: ArchivePart) -> Iterator[pa.Table]:
    """Yields what decides about revisits: columns of ``CAPTURED``."""
    batch = part.plan.batch
    with part.pinned.reading():
        for file in pages_files(part.pinned, part.files):
            for pages, _ in chosen_pages(part, file):
                rows = [
                    (comparable_digest(capture, answer_of(capture)), capture.url, capture.time,
                     batch, part.number, capture.status == NOT_MODIFIED, True)
                    for capture in captures_of(pages, batch)
                ]  # fmt: skip
                frame = pl.DataFrame(rows, schema=pl.Schema(CAPTURED), orient="row")
                yield conform(frame, CAPTURED)


def written_chunks(folder: str) -> Iterator[pa.Table]:
    """Yields columns of ``CAPTURED`` for the answers that an archive has already."""
    for captures in ArchiveFolder(place_of(folder)).capture_lists():
        for rows in row_groups(captures, CAPTURES, _WRITTEN_COLUMNS):
            written = (
                to_frame(rows)
                .filter("whole")
                .with_columns(
                    part=pl.lit(WRITTEN, pl.Int32),
                    unchanged=False,
                    has_body=pl.col("kind") != REVISIT,
                )
            )
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
        warcinfo = functools.partial(_warcinfo, part, _user_agent(part))
        writer = ArchiveWriter(
            archive.place,
            lambda serial: archive_name(part.plan, part.part, serial, options.warc_compression),
            warcinfo,
            options.warc_version,
            options.warc_compression,
            options.warc_size,
            elements_at_once(),
            _files_beside(part),
        )
        captures = archive.capture_list_of(batch, part.part)
        write_capture_list(captures, writer.write(record_groups(part, revisits, counts)))
    _write_indexes(part)
    files = (*writer.files, *writer.files_beside)
    remove_other_files(archive, part.plan, part.part, {file.name for file in files})
    counts["files"] = len(writer.files)
    counts["bytes"] = sum(file.bytes for file in writer.files)
    counts["warcinfo"] = len(writer.files)
    for name, ending in (("wet", WET_ENDING), ("wat", WAT_ENDING)):
        counts[name] = sum(f.records - 1 for f in writer.files_beside if f.name.endswith(ending))
    records = [dataclasses.asdict(file) for file in writer.files]
    archive.keep_receipt(batch, part.part, {"files": records, "counts": +counts})
    return dict(+counts)


def _write_indexes(part: ArchivePart) -> None:
    archive, captures = part.archive, part.archive.capture_list_of(part.plan.batch, part.part)
    if CDXJ in part.options.warc_indexes:
        write_cdxj(archive.cdxj_of(part.plan, part.part), captures)
    if COLUMNAR in part.options.warc_indexes:
        frames = map(to_frame, row_groups(captures, CAPTURES))
        rows = url_index_rows(pl.concat([empty(CAPTURES), *frames]))
        for subset in SUBSETS:
            path = archive.url_index_of(part.plan, part.part, subset)
            write_url_index(path, rows.filter(pl.col("subset") == subset))


def _files_beside(part: ArchivePart) -> Iterator[FilesBeside]:
    """Yields what options want beside the files of the archive."""
    options, place, plan = part.options, part.archive.place, part.plan

    def warcinfo(name: str) -> WarcRecord:
        fields = derived_info_fields(options, plan.software, plan.batch, plan.now)
        return warcinfo_record(name, plan.now, fields)

    if options.warc_wet:
        yield FilesBeside(place / WET_FOLDER, WET_ENDING, warcinfo, wet_records)
    if options.warc_wat:
        records = functools.partial(wat_records, plan.now, options.warc_version)
        yield FilesBeside(place / WAT_FOLDER, WAT_ENDING, warcinfo, records)


def _user_agent(part: ArchivePart) -> str:
    """Returns the User-Agent of the first request of a part; empty if there is none."""
    for file in pages_files(part.pinned, part.files):
        for rows in row_groups(part.pinned.table / file.path, PAGES, ["request"]):
            for request in rows.column("request").drop_null():
                if match := _USER_AGENT.search(request.as_py()):
                    return str(match[1])
    return ""


def _warcinfo(part: ArchivePart, agent: str, name: str) -> WarcRecord:
    plan = part.plan
    fields = info_fields(part.options, plan.software, plan.batch, str(plan.options["expr"]), agent)
    return warcinfo_record(name, plan.now, fields)
