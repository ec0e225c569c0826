"""Makes pages as users see them: rows of the state with the newest text of each URL."""

import dataclasses
from collections.abc import Collection

import polars as pl

from ..web.urls.row_keys import from_key
from .columns import Columns
from .parts import pages_first
from .schema import PAGE_COLUMNS, STATE_COLUMNS
from .vocabulary import LIVING

# Columns of PAGE_COLUMNS that come from the state; the others come from documents.
_OF_STATE = ("status", "http_code", "content_type", "last_fetch_time", "modified_time",
             "fetch_time", "score")  # fmt: skip


@dataclasses.dataclass(frozen=True)
class PageChoice:
    """Which pages a reader wants.

    Attributes:
        columns: Columns of ``PAGE_COLUMNS``.
        statuses: Statuses of their URLs.
        since: Earliest fetch of their bodies, ms; None is any.
        known: Batches whose pages the reader has already.
    """

    columns: Columns = PAGE_COLUMNS
    statuses: tuple[int, ...] = LIVING
    since: int | None = None
    known: Collection[str] = ()

    @property
    def state_columns(self) -> list[str]:
        """Columns to read from the state."""
        wanted = {column.name for column in self.columns}
        return ["key", "document", *(name for name in _OF_STATE if name in wanted)]

    @property
    def document_columns(self) -> list[str]:
        """Columns to read from documents."""
        names = [column.name for column in self.columns if column.name not in (*_OF_STATE, "url")]
        stored = ["outlinks" if name == "links" else name for name in names]
        return list(dict.fromkeys(["key", "part_of", "fetch_time", *stored]))

    def in_state(self, state: pl.LazyFrame) -> pl.LazyFrame:
        """Keeps the rows of the state that may be of wanted pages."""
        rows = state.filter(
            pl.col("document").is_not_null() & pl.col("status").is_in(list(self.statuses))
        )
        if self.known:
            rows = rows.filter(~pl.col("batch_id").is_in(list(self.known)).fill_null(False))
        # Its body was fetched then, or before.
        return rows if self.since is None else rows.filter(pl.col("last_fetch_time") >= self.since)


def page_rows(choice: PageChoice, rows: pl.DataFrame, documents: pl.DataFrame) -> pl.DataFrame:
    """Returns the pages of one file of documents: ``choice.columns`` and ``key``, as stored.

    Args:
        choice: The wanted pages and columns.
        rows: Rows of the state that name the file, with ``choice.state_columns``.
        documents: Rows of the file, with ``choice.document_columns``. Of several rows of a key
            that of the page itself counts, or else the first.
    """
    found = pages_first(documents)
    if choice.since is not None:
        found = found.filter(pl.col("fetch_time") >= choice.since)
    # The fetch time of a document is when it was fetched, that of the state when it is due.
    found = found.drop("fetch_time").join(rows, on="key", how="inner", maintain_order="left")
    if "outlinks" in found.columns:
        found = found.with_columns(_with_urls(found.get_column("outlinks")).alias("links"))
    stored = [column.name for column in choice.columns if column.name != "url"]
    return found.select("key", *stored)


def _with_urls(links: pl.Series) -> pl.Series:
    """Returns LINKS with the URL of each target instead of its key."""
    targets = links.explode().struct.field("key").drop_nulls().unique()
    urls = [from_key(key) for key in targets]
    target = pl.element().struct.field("key")
    url = target.replace_strict(targets, urls, return_dtype=pl.String).alias("url")
    others = (pl.element().struct.field(name) for name in ("anchor", "rel"))
    link = pl.struct(url, *others)
    return links.to_frame("links").select(pl.col("links").fill_null([]).list.eval(link)).to_series()


def page_columns(names: Collection[str]) -> Columns:
    """Returns columns of pages by name; none means all.

    Raises:
        ValueError: There is no such column; the message quotes it.
    """
    known = [column.name for column in PAGE_COLUMNS]
    for name in names:
        if name not in known:
            raise ValueError(f"pages have the columns {', '.join(known)}, not {name!r}")
    return PAGE_COLUMNS.pick(*dict.fromkeys(names)) if names else PAGE_COLUMNS


assert set(_OF_STATE) <= {column.name for column in STATE_COLUMNS}
