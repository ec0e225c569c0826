"""Reads from a table what an archive is made of: files of pages, their documents, robots.txt."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import polars as pl

from ...policy.components.document_schema import DOCUMENTS
from ...policy.components.schema import HOSTS, ParseStatus
from ...web.archives.page_records import PageContent
from ...web.urls.row_keys import from_key
from ..batches.batches import batch_component, live_file
from ..snapshots.manifest import Manifest
from ..snapshots.pinned import Pinned
from ..storage.parquet_files import collect, row_groups, scan
from ..tablets.file_lists import DataFile
from ..tablets.tablets import tablets

_ROBOTS_COLUMNS = ("key", "robots_origin", "robots_text", "robots_time")
_PARSED_COLUMNS = ("key", "parse_status", "part_of", "title", "text", "language", "charset",
                   "outlinks")  # fmt: skip
_NAMED = ("title", "language", "charset")


class Robots(NamedTuple):
    """A robots.txt: its URL, its content, and when it was requested, ms."""

    url: str
    text: str
    time: int


def batches_with_pages(manifest: Manifest) -> list[str]:
    """Returns the batches whose pages the table has, the oldest first."""
    components = [name.split("/") for name in manifest.components if name.startswith("batches/")]
    batches = {parts[1] for parts in components if parts[2:] == ["pages"]}
    return sorted(batches, key=lambda batch: (created_of(manifest, batch), batch))


def created_of(manifest: Manifest, batch: str) -> int:
    """Returns when a batch was created, ms; of an unknown one what its id says."""
    record = manifest.batches.get(batch)
    if record is not None:
        return record.created
    seconds = batch.partition("-")[0]
    return 1000 * int(seconds) if seconds.isdigit() else 0


def pages_files(pinned: Pinned, paths: Sequence[str]) -> Iterator[DataFile]:
    """Yields the files of pages of some paths; those that compact has dropped are left out."""
    manifest = pinned.manifest()
    for path in paths:
        file = live_file(pinned.table, manifest, path)
        if file is not None:
            yield file


def parsed_pages(pinned: Pinned, batch: str, pages: DataFile) -> Mapping[str, PageContent]:
    """Returns what parsing has made of the pages of a file, by URL; of failures nothing.

    Args:
        pinned: The snapshot.
        batch: Id of the batch.
        pages: The file of pages. That of their documents has the same order in the batch.
    """
    pages_by_url: dict[str, PageContent] = {}
    for file in pinned.files(batch_component(batch, "documents")):
        if (file.partition, file.order) != (pages.partition, pages.order):
            continue
        for rows in row_groups(pinned.table / file.path, DOCUMENTS, _PARSED_COLUMNS):
            for row in rows.to_pylist():
                if row["part_of"] is None and row["parse_status"] == ParseStatus.SUCCESS:
                    pages_by_url[from_key(row["key"])] = _parsed_page(row)
    return pages_by_url


def _parsed_page(row: Mapping[str, Any]) -> PageContent:
    fields = [(name, row[name]) for name in _NAMED if row[name]]
    links = [from_key(link["key"]) for link in row["outlinks"] or ()]
    return PageContent(row["text"] or "", fields, links)


def robots_of_batch(pinned: Pinned, batch: str) -> list[Robots]:
    """Returns the robots.txt that were requested between the beginning of a batch and of the next.

    Those that the fetch has found are in the batch until compact drops them. Then the host table has
    the newest one of each host.
    """
    manifest = pinned.manifest()
    begin = created_of(manifest, batch)
    later = [created_of(manifest, other) for other in manifest.batches]
    end = min((time for time in later if time > begin), default=None)
    wanted = pl.col("robots_text").is_not_null() & (pl.col("robots_time") >= begin)
    wanted &= pl.col("robots_origin").is_not_null()
    findings = pinned.files(batch_component(batch, "host_findings"))
    if findings:
        paths = [pinned.table / file.path for file in findings]
        rows = collect(scan(paths, HOSTS).filter(wanted).select(_ROBOTS_COLUMNS))
    else:
        if end is not None:
            wanted &= pl.col("robots_time") < end
        rows = read_host_rows(pinned, wanted, _ROBOTS_COLUMNS)
    unique = rows.unique(["robots_origin", "robots_time"], keep="first").sort("robots_origin")
    return [
        Robots(f"{origin}/robots.txt", text, time)
        for _, origin, text, time in unique.select(_ROBOTS_COLUMNS).iter_rows()
    ]


def read_host_rows(pinned: Pinned, wanted: pl.Expr, columns: Sequence[str]) -> pl.DataFrame:
    """Returns columns of the rows of the host table for which a condition is true."""
    host_tablets = tablets(pinned.files("hosts"))
    frames = [
        pinned.table.read("hosts", [tablet], list(columns), lambda rows: rows.filter(wanted))
        for tablet in host_tablets
    ]
    return pl.concat([pl.DataFrame(schema=pl.Schema(HOSTS)).select(columns), *frames])
