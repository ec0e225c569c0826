"""Writes a package of an archive (WACZ): its files, an index of them all, a list of its pages."""

import hashlib
import heapq
import itertools
import os
import tempfile
import time
import zipfile
from collections.abc import Iterable, Iterator
from typing import IO

from ...policy.components.archive_rows import CAPTURES
from ...web.archives import wacz
from ...web.archives.warc_records import RESOURCE, RESPONSE
from ...web.content.content_type import HTML, XHTML
from ..storage.file_errors import errors_as
from ..storage.files import creating, remove_file
from ..storage.parquet_files import row_groups
from ..storage.places import Place
from ..storage.processes import scratch
from .archive_indexes import cdxj_lines
from .archive_plans import ArchiveFolder

_PIECE = 1 << 20
_LINES_PIECE = 1 << 14  # of the index of a part, while the indexes of all parts are merged
_PAGE_COLUMNS = ("url", "time", "kind", "status", "mime", "title")


def write_package(
    archive: ArchiveFolder, path: Place, software: str, created: int, description: str
) -> None:
    """Writes a package of all complete parts of an archive.

    The file of an earlier package is removed first: not all stores replace a file.

    Args:
        archive: The archive.
        path: Place of the package.
        software: The program and its version.
        created: What counts as now, ms.
        description: What the archive is; it may be empty.
    """
    remove_file(path)
    with (
        creating(path, durable=True) as file,
        errors_as(f"cannot write {path}"),
        zipfile.ZipFile(file, "w") as package,
    ):
        writer = _PackageWriter(package, created)
        for name in archive.file_names():
            # Stored as they are: readers find records by their position.
            writer.add(f"archive/{name}", _pieces(archive.place / name))
        lines = [wacz.index_header()]
        writer.add(wacz.INDEX, _index(archive, lines))
        writer.add(wacz.INDEX_LINES, (line.encode() for line in lines))
        writer.add(wacz.PAGE_LIST, _pages(archive), compress=True)
        described = wacz.package_description(
            writer.files, software, created, path.stem, description
        )
        writer.add(wacz.PACKAGE, [described], compress=True)
        writer.add(wacz.PACKAGE_DIGEST, [wacz.package_digest(described)], compress=True)


class _PackageWriter:
    """Adds files to a package, and keeps their sizes and digests."""

    def __init__(self, package: zipfile.ZipFile, created: int) -> None:
        year, month, day, hour, minute, second, *_ = time.gmtime(created / 1000)
        self._package, self._date = package, (year, month, day, hour, minute, second)
        self.files: list[wacz.PackagedFile] = []

    def add(self, path: str, pieces: Iterable[bytes], *, compress: bool = False) -> None:
        """Adds a file with some content."""
        entry = zipfile.ZipInfo(path, self._date)
        entry.compress_type = zipfile.ZIP_DEFLATED if compress else zipfile.ZIP_STORED
        entry.external_attr = 0o644 << 16
        digest, size = hashlib.sha256(), 0
        with self._package.open(entry, "w", force_zip64=True) as file:
            for piece in pieces:
                file.write(piece)
                digest.update(piece)
                size += len(piece)
        self.files.append(wacz.PackagedFile(path, size, digest.digest()))


def _pieces(path: Place) -> Iterator[bytes]:
    with errors_as(f"cannot read {path}"), path.open_for_reading() as file:
        while piece := file.read(_PIECE):
            yield piece


def _index(archive: ArchiveFolder, lines: list[str]) -> Iterator[bytes]:
    """Yields the compressed index of all parts; adds lines that say where its blocks are."""
    with tempfile.TemporaryFile(dir=scratch()) as spool:
        bounds = [0]
        for captures in archive.capture_lists():
            spool.write("".join(cdxj_lines(captures)).encode())
            bounds.append(spool.tell())
        spool.flush()
        parts = [_lines_between(spool, *each) for each in itertools.pairwise(bounds)]
        for data, line in wacz.index_blocks(heapq.merge(*parts, key=str.encode)):
            lines.append(line)
            yield data


def _lines_between(spool: IO[bytes], start: int, end: int) -> Iterator[str]:
    rest = b""
    while start < end:
        piece = os.pread(spool.fileno(), min(_LINES_PIECE, end - start), start)
        start += len(piece)
        *whole, rest = (rest + piece).split(b"\n")
        for line in whole:
            yield f"{line.decode()}\n"


def _pages(archive: ArchiveFolder) -> Iterator[bytes]:
    yield wacz.pages_header().encode()
    for captures in archive.capture_lists():
        for rows in row_groups(captures, CAPTURES, _PAGE_COLUMNS):
            for row in rows.to_pylist():
                is_answer = row["kind"] in (RESPONSE, RESOURCE) and row["status"] in (None, 200)
                if is_answer and (row["mime"] or "").lower() in (HTML, XHTML):
                    yield wacz.page_line(row["url"], row["time"], row["title"]).encode()
