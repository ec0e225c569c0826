"""commoncrawldump: writes pages as CBOR documents, as Nutch's ``commoncrawldump``.

::

    batch.pages, batch.documents, file by file ─ document ─ JSON in CBOR ─▶ a file per page, or an archive
"""

import contextlib
import functools
import io
import json
import tarfile
from collections.abc import Iterator
from typing import Any, Protocol

import polars as pl

from ...io.batches.batch_records import RowColumns
from ...io.batches.dump_folder import DumpFolder
from ...io.reading.inlinks import inlinks_of_pages
from ...io.snapshots.manifest import newest_manifest
from ...io.snapshots.pinned import Snapshot
from ...io.storage.files import creating
from ...io.table.opening import open_table
from ...policy.batch_tools.common_crawl_documents import DocumentShape, PageContext, crawl_document
from ...policy.batch_tools.dumped_names import md5_name, reversed_name
from ...policy.inlinks.edges import BestOptions
from ...web.base.dataclass import dataclass
from ...web.base.errors import UsageError
from ...web.base.imports import check_library, import_library
from ...web.base.options import option
from ...web.base.progress import PROGRESS
from ...web.urls.row_keys import from_key
from ..base.command import DONE, Invocation, configuration
from ..base.live import live_view
from .batch_addresses import BATCHES, NamedBatch, check_distinct
from .page_dumps import (
    DumpedPage,
    DumpTally,
    FindInlinks,
    PageDumpOptions,
    batches_to_dump,
    dumped_pages,
)

ARGUMENTS = (BATCHES,)
_COLUMNS = RowColumns(
    (),
    ("fetch_time", "http_code", "ip", "request", "headers"),
    ("charset",),
)
# RFC 8949, 3.4.6: the tag by which a file is known as CBOR.
_SELF_DESCRIBED = 55_799
_ENDING = r"[A-Za-z0-9]{1,16}"


class DocumentTarget(Protocol):
    """What gets documents."""

    def write(self, name: str, data: bytes) -> bool: ...

    def has_same(self, name: str, data: bytes) -> bool: ...


@dataclass(frozen=True)
class Options(DocumentShape, PageDumpOptions):
    """Options of commoncrawldump."""

    GROUP = "commoncrawldump"

    gzip: bool = option(
        False, "Write one archive per batch, BATCH.tar.gz, in place of a file per page.",
        nutch="commoncrawldump -gzip",
    )  # fmt: skip
    epoch_filename: bool = option(
        False, "Name files by the time of the fetch, in folders of their reversed hosts.",
        nutch="commoncrawldump -epochFilename",
    )  # fmt: skip
    extension: str = option(
        "cbor", "Ending of the files.", nutch="commoncrawldump -extension", pattern=_ENDING
    )
    inlinks_from: str = option(
        "", "Table whose link table gives the pages that link to a page.",
        nutch="commoncrawldump -linkdb",
    )  # fmt: skip


def run(invocation: Invocation) -> int:
    options = invocation.options
    with configuration():
        check_library("cbor2", "commoncrawldump", "cbor")
    batches, folder = batches_to_dump(invocation.arguments["batches"], options)
    find_inlinks, tally = _inlinks_finder(options.inlinks_from), DumpTally()
    if options.gzip:
        check_distinct(batches)
    for named in batches if options.gzip else []:
        if folder.has(_archive_name(named)):
            raise UsageError(
                f"{_archive_name(named)} is in {options.output_dir!r} already: give another folder"
            )
    PROGRESS.start("commoncrawldump", total=sum(named.record.urls for named in batches))
    with live_view(invocation.progress):
        for named in batches:
            with _target(named, folder, options) as target:
                for page in dumped_pages(named, _COLUMNS, options, tally, find_inlinks):
                    tally.count(_write_page(page, named, options, target))
        PROGRESS.finish()
    record = {**tally.record(), "output": options.output_dir}
    print(json.dumps(record) if invocation.format == "json" else tally.line(options.output_dir))
    return DONE


def _inlinks_finder(address: str) -> FindInlinks | None:
    """Returns what looks up the inlinks of pages in the link table of a table, or None.

    Raises:
        UsageError: There is no table, or it has no links.
    """
    if not address:
        return None
    open_table(address).check_place()
    manifest = newest_manifest(address)
    if "links" not in manifest.components:
        raise UsageError(f"table {address!r} has no links yet: nutbeam invertlinks adds them")
    return functools.partial(_find_inlinks, Snapshot(address, manifest.snapshot))


def _find_inlinks(links: Snapshot, keys: pl.Series) -> dict[str, list[str]]:
    with links.reading():
        return {
            str(target): rows.get_column("source").to_list()
            for frame in inlinks_of_pages(links, keys, BestOptions().max_inlinks)
            for (target,), rows in frame.group_by("target", maintain_order=True)
        }


def _archive_name(named: NamedBatch) -> str:
    return f"{named.batch}.tar.gz"


class _Archive:
    """An archive that gets files, each name once."""

    def __init__(self, archive: tarfile.TarFile) -> None:
        self._archive, self._names = archive, set[str]()

    def write(self, name: str, data: bytes) -> bool:
        """Adds a file; returns False if there is one of this name."""
        if name in self._names:
            return False
        self._names.add(name)
        entry = tarfile.TarInfo(name)
        entry.size = len(data)
        self._archive.addfile(entry, io.BytesIO(data))
        return True

    def has_same(self, name: str, data: bytes) -> bool:
        """Returns False: each page of a batch is added once."""
        return False


@contextlib.contextmanager
def _target(named: NamedBatch, folder: DumpFolder, options: Options) -> Iterator[DocumentTarget]:
    """Yields what gets the documents of a batch: the folder, or an archive in it."""
    if not options.gzip:
        yield folder
        return
    with (
        creating(folder.place(_archive_name(named))) as file,
        tarfile.open(fileobj=file, mode="w|gz") as archive,
    ):
        yield _Archive(archive)


def _write_page(
    page: DumpedPage, named: NamedBatch, options: Options, target: DocumentTarget
) -> bool:
    inlinks = None if page.inlinks is None else [from_key(source) for source in page.inlinks]
    context = PageContext(page.charset, named.record.created, inlinks)
    data = to_cbor(crawl_document(page.row, options, context))
    if not options.epoch_filename:
        return target.write(md5_name(page.key, ending=options.extension), data)
    # Two pages of a host may have been fetched in the same millisecond.
    time, digest = page.row["fetch_time"], md5_name(page.key, flat=True)[:8]
    for stem in (f"{time}", f"{time}-{digest}"):
        name = reversed_name(page.key, f"{stem}.{options.extension}")
        if target.write(name, data):
            return True
        if target.has_same(name, data):
            break
    return False


def to_cbor(document: dict[str, Any]) -> bytes:
    """Returns a document as Nutch writes it: JSON, as one text of self-described CBOR."""
    cbor2: Any = import_library("cbor2", "commoncrawldump")
    text = json.dumps(document, ensure_ascii=False, separators=(",", ":"))
    return bytes(cbor2.dumps(cbor2.CBORTag(_SELF_DESCRIBED, text)))
