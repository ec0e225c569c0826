"""Reads pages as users see them: rows of the state with the newest text, and body, of each URL."""

from collections.abc import Iterator

import polars as pl

from ...policy.components.schema import DOCUMENTS, PAGES, empty
from ...policy.page_rows import PageChoice, page_rows
from ..batches.batches import live_file
from ..snapshots.manifest import Pinned
from ..storage.parquet_files import collect, scan
from ..tablets.file_lists import DataFile
from ..tablets.tablets import tablets


def living_pages(pinned: Pinned, choice: PageChoice) -> Iterator[pl.DataFrame]:
    """Yields pages as stored, a frame for each file of documents; memory holds one file's texts."""
    table, manifest = pinned.table, pinned.manifest()
    known = tablets(pinned.files("state"))
    rows = table.read("state", known, choice.state_columns, choice.in_state).sort("key")
    for (document,), group in rows.group_by("document", maintain_order=True):
        file = live_file(table, manifest, str(document))
        if file is not None:  # else compact has dropped it: there is no text
            yield pages_of_file(pinned, file, choice, group)


def pages_of_file(
    pinned: Pinned, file: DataFile, choice: PageChoice, rows: pl.DataFrame
) -> pl.DataFrame:
    """Returns the pages of one file of documents, as stored.

    Args:
        pinned: The snapshot.
        file: The file.
        choice: The wanted pages and columns.
        rows: Rows of the state that name the file, with ``choice.state_columns``.
    """
    documents = scan([pinned.table / file.path], DOCUMENTS).select(choice.document_columns)
    pages = page_rows(choice, rows, collect(documents))
    if not choice.body_columns:
        return pages
    bodies = pl.concat(_bodies(pinned, choice, pages))
    return pages.join(bodies, on=["key", "page"], how="left", maintain_order="left")


def _bodies(pinned: Pinned, choice: PageChoice, pages: pl.DataFrame) -> Iterator[pl.DataFrame]:
    """Yields the newest bodies of pages, with ``key`` and ``page``."""
    columns = ["key", *choice.body_columns]
    yield empty(PAGES).select(columns).with_columns(page=pl.lit(None, pl.String))
    for (page,), group in pages.group_by("page", maintain_order=True):
        file = live_file(pinned.table, pinned.manifest(), str(page)) if page else None
        if file is not None:
            wanted = pl.col("key").is_in(group.get_column("key").implode())
            rows = scan([pinned.table / file.path], PAGES).select(columns).filter(wanted)
            found = collect(rows).unique("key", keep="first", maintain_order=True)
            yield found.with_columns(page=pl.lit(page, pl.String))
