"""Makes pages as users see them: rows of the state with the newest text of each URL."""

from collections.abc import Collection, Iterable

import polars as pl

from ..web.base.dataclass import dataclass
from ..web.base.options import option
from ..web.pages.markdown import markdown_of
from ..web.urls.row_keys import from_key
from .base.key_columns import from_keys
from .chosen_text import ALL, with_chosen_text
from .components.columns import Columns
from .components.document_schema import DocumentRows
from .components.page_facts import unique_documents
from .components.schema import StateRows
from .components.vocabulary import CHANGE_COLUMNS, LIVING, MARKDOWN_COLUMN, PAGE_COLUMNS, URL_COLUMN
from .span_lists import spans_of_blocks

# Columns of pages that come from the state, and from the files of bodies; the others come from
# documents.
_OF_STATE = ("status", "http_code", "content_type", "last_fetch_time", "modified_time",
             "fetch_time", "score", "repr_url", "batch_id", "key")  # fmt: skip
_OF_BODIES = ("headers", "body")
# Columns of documents that others are made of.
_MADE_OF = {"links": ("outlinks",), MARKDOWN_COLUMN.name: ("text", "blocks")}


@dataclass(frozen=True)
class MarkdownOptions:
    """Options of Markdown."""

    GROUP = "markdown"

    markdown_links: bool = option(
        True,
        "Whether Markdown has the targets of links, and images; else only the texts of both.",
    )


@dataclass(frozen=True)
class PageChoice:
    """Which pages a reader wants.

    Attributes:
        columns: Columns of the view ``pages``.
        statuses: Statuses of their URLs.
        held_batches: Batches whose pages the reader has already.
        text_of: Which text of them: ``main`` or ``all``.
        markdown_links: Whether their Markdown has the targets of links, and images.
    """

    columns: Columns = PAGE_COLUMNS
    statuses: tuple[int, ...] = LIVING
    held_batches: Collection[str] = ()
    text_of: str = ALL
    markdown_links: bool = True

    @property
    def state_columns(self) -> list[str]:
        """Columns to read from the state."""
        wanted = self.wanted_among(*_OF_STATE)
        places = ["document", "page"] if self.body_columns else ["document"]
        return list(dict.fromkeys(["key", *places, *wanted]))

    @property
    def compared_columns(self) -> list[str]:
        """Columns of the state by which two snapshots are compared."""
        return list(
            dict.fromkeys([*self.state_columns, "status", "document", "signature", "batch_id"])
        )

    @property
    def body_columns(self) -> list[str]:
        """Columns to read from the files of bodies."""
        return self.wanted_among(*_OF_BODIES)

    @property
    def document_columns(self) -> list[str]:
        """Columns to read from documents."""
        others = (*_OF_STATE, *_OF_BODIES, *CHANGE_COLUMNS.schema.names, URL_COLUMN.name)
        names = [column.name for column in self.columns if column.name not in others]
        stored = stored_names(names)
        if self.cuts_text:
            stored += ["text", "main"]
        return list(dict.fromkeys(["key", "part_of", *stored]))

    @property
    def cuts_text(self) -> bool:
        """Whether the reader gets something that is made of a part of the text."""
        made_of_text = ("text", "blocks", MARKDOWN_COLUMN.name)
        return self.text_of != ALL and bool(self.wanted_among(*made_of_text))

    def wanted_among(self, *names: str) -> list[str]:
        """Returns which of some columns are wanted."""
        return [column.name for column in self.columns if column.name in names]

    def in_state(self, state: pl.LazyFrame) -> pl.LazyFrame:
        """Keeps the rows of the state that may be of wanted pages."""
        rows = state.filter(
            pl.col("document").is_not_null() & pl.col("status").is_in(list(self.statuses))
        )
        if self.held_batches:
            rows = rows.filter(~pl.col("batch_id").is_in(list(self.held_batches)).fill_null(False))
        return rows


def page_rows(choice: PageChoice, rows: StateRows, documents: DocumentRows) -> pl.DataFrame:
    """Returns the pages of one file of documents, as stored; ``choice.body_columns`` are missing.

    Args:
        choice: The wanted pages and columns.
        rows: Rows of the state that name the file, with ``choice.state_columns``.
        documents: Rows of the file, with ``choice.document_columns``. Of several rows of a key
            that of the page itself counts, or else the first.
    """
    pages = unique_documents(documents)
    pages = pages.join(rows, on="key", how="inner", maintain_order="left")
    if choice.wanted_among("links"):
        pages = pages.with_columns(with_urls(pages.get_column("outlinks")).alias("links"))
    if choice.cuts_text:
        pages = with_chosen_text(pages, choice.text_of)
    pages = with_markdown(pages, choice.columns, choice.markdown_links)
    columns = [*choice.state_columns, *(column.name for column in choice.columns)]
    return pages.select([name for name in dict.fromkeys(columns) if name in pages.columns])


def stored_names(names: Iterable[str]) -> list[str]:
    """Returns the names of the stored columns that some columns are made of.

    >>> stored_names(["title", "markdown"])
    ['title', 'text', 'blocks']
    """
    return [name for shown in names for name in _MADE_OF.get(shown, (shown,))]


def with_markdown(pages: pl.DataFrame, columns: Columns, with_links: bool) -> pl.DataFrame:
    """Returns pages with their Markdown, if it is among the wanted columns.

    Args:
        pages: Rows, with what ``markdown_of_pages`` needs if it is.
        columns: The wanted columns.
        with_links: Whether it has the targets of links, and images.
    """
    if MARKDOWN_COLUMN not in columns:
        return pages
    return pages.with_columns(markdown_of_pages(pages, with_links))


def markdown_of_pages(pages: pl.DataFrame, with_links: bool = True) -> pl.Series:
    """Returns the Markdown of pages, named ``markdown``; null is that of no text.

    Args:
        pages: Rows with ``key``, ``text`` and ``blocks``.
        with_links: Whether it has the targets of links, and images.
    """
    texts = [
        None if text is None else markdown_of(text, spans, from_key(key), with_links=with_links)
        for key, text, spans in zip(
            pages.get_column("key"),
            pages.get_column("text"),
            spans_of_blocks(pages.get_column("blocks")),
            strict=True,
        )
    ]
    return pl.Series(MARKDOWN_COLUMN.name, texts, dtype=pl.String)


def with_urls(links: pl.Series) -> pl.Series:
    """Returns LINKS with the URL of each target instead of its key; null is no link."""
    targets = links.explode().struct.field("key").drop_nulls().unique()
    field = pl.element().struct.field
    url = field("key").replace_strict(targets, from_keys(targets), return_dtype=pl.String)
    link = pl.struct(url.alias("url"), field("anchor"), field("rel"))
    return links.to_frame("links").select(pl.col("links").fill_null([]).list.eval(link)).to_series()
