"""Reads what a batch has about each of its URLs: its fetch list, pages and documents, joined by key."""

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import polars as pl
import pyarrow as pa

from ...policy.components.batch_rows import BatchRows
from ...policy.components.document_schema import DOCUMENTS
from ...policy.components.kinds import KINDS
from ...policy.components.page_facts import unique_documents
from ...policy.components.schema import FETCHLIST, PAGES, empty
from ..snapshots.pinned import Pinned
from ..storage.parquet_files import collect, scan
from ..tablets.checksums import verify_file
from ..tablets.file_lists import DataFile
from .batches import batch_component


class RowColumns(NamedTuple):
    """Which columns to read of each component; the key and those that join rows are read, too.

    Of a component without columns nothing is read.
    """

    listed: Sequence[str] = FETCHLIST.names
    pages: Sequence[str] = PAGES.names
    documents: Sequence[str] = DOCUMENTS.names


_ALL_COLUMNS = RowColumns()


class BatchPiece(NamedTuple):
    """Rows of a batch, and the files of their pages and documents by kind, if there are any."""

    rows: BatchRows
    files: Mapping[str, DataFile]


def read_batch(
    pinned: Pinned, batch: str, columns: RowColumns = _ALL_COLUMNS
) -> Iterator[BatchPiece]:
    """Yields the rows of a batch, those of one file of pages at a time.

    A URL may have several pages: of an attempt that was superseded, or because two redirects led to it.
    The first counts, as for updatedb. URLs that were not requested come last.

    Args:
        pinned: The snapshot.
        batch: Id of the batch.
        columns: The columns to read.

    Raises:
        UserError: A file is missing or damaged.
    """
    page_files = pinned.files(batch_component(batch, "pages"))
    lists, document_files = (
        pinned.files(batch_component(batch, kind)) if wanted else []
        for kind, wanted in (("fetchlist", columns.listed), ("documents", columns.documents))
    )
    documents = {(file.partition, file.order): file for file in document_files}
    of_documents = list(dict.fromkeys([*columns.documents, "part_of"]))
    seen = pl.Series("key", [], dtype=pl.UInt64)
    for file in sorted(page_files, key=lambda file: (file.order, file.partition)):
        pages = _read(pinned, "pages", [file], columns.pages)
        pages = pages.unique("key", keep="first", maintain_order=True)
        hashes = pages.get_column("key").hash()
        repeated = hashes.is_in(seen.implode())
        repeated_keys = pages.filter(repeated).get_column("key")
        pages, seen = pages.filter(~repeated), pl.concat([seen, hashes])
        of_pages = documents.get((file.partition, file.order))
        mates = {} if of_pages is None else {"documents": of_pages}
        texts = _read(pinned, "documents", [*mates.values()], of_documents)
        texts = unique_documents(texts).filter(
            ~pl.coalesce("part_of", "key").is_in(repeated_keys.implode())
        )
        listed = _read(pinned, "fetchlist", lists, columns.listed, pages.get_column("key"))
        yield BatchPiece(BatchRows(listed, pages, texts), {"pages": file, **mates})
    for file in lists:
        listed = _read(pinned, "fetchlist", [file], columns.listed)
        listed = listed.filter(~listed.get_column("key").hash().is_in(seen.implode()))
        no_pages = _read(pinned, "pages", [], columns.pages)
        no_texts = _read(pinned, "documents", [], of_documents)
        yield BatchPiece(BatchRows(listed, no_pages, no_texts), {})


def find_in_batch(pinned: Pinned, batch: str, key: str) -> BatchRows:
    """Returns the rows of one URL in a batch; the first page counts."""
    keys = pl.Series("key", [key])
    listed, pages, documents = (
        _read(
            pinned, kind, pinned.files(batch_component(batch, kind)), KINDS[kind].schema.names, keys
        )
        for kind in ("fetchlist", "pages", "documents")
    )
    return BatchRows(listed, pages.head(1), unique_documents(documents))


def _read(
    pinned: Pinned,
    kind: str,
    files: Sequence[DataFile],
    columns: Sequence[str],
    keys: pl.Series | None = None,
) -> pl.DataFrame:
    """Returns rows of files of a kind, in the order of the files; with ``keys`` only theirs."""
    schema: pa.Schema = KINDS[kind].schema
    names = list(dict.fromkeys(["key", *columns]))
    if keys is None:
        for file in files:
            verify_file(pinned.table, file)
    if not files:
        return empty(schema).select(names)
    ordered = sorted(files, key=lambda file: (file.order, file.partition))
    rows = scan([pinned.table / file.path for file in ordered], schema).select(names)
    return collect(rows if keys is None else rows.filter(pl.col("key").is_in(keys.implode())))
