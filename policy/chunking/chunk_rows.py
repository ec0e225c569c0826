"""Makes rows of chunks: pieces of the texts of pages, with ids that stay while the content does."""

import functools
import hashlib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

import polars as pl
import pyarrow as pa

from ...web.pages import spans
from ...web.pages.markdown import markdown_of
from ...web.pages.span_ranges import spans_of_ranges
from ...web.pages.spans import Span
from ...web.urls.row_keys import from_key
from ..components.columns import Column, Columns, join_columns
from ..components.document_schema import DOCUMENTS_COLUMNS
from ..components.schema import STATE_COLUMNS, TEXT
from ..components.vocabulary import CHANGE_COLUMNS, MARKDOWN_COLUMN, URL_COLUMN
from ..span_lists import spans_of_blocks
from .text_pieces import TextPiece, cut_into_pieces
from .tokenizers import Tokenizer

ChunkRows: TypeAlias = pl.DataFrame  # columns of CHUNK_COLUMNS, or some of them

# A chunk as users see it.
CHUNK_COLUMNS = join_columns(
    [URL_COLUMN],
    DOCUMENTS_COLUMNS.pick("title"),
    [
        Column("chunk_id", TEXT, "Hash of the URL, the heading path and the text; of equal chunks of a page also their number."),
        Column("number", pa.int32(), "Number of the chunk in its page, from 0."),
        Column("heading_path", pa.large_list(TEXT), "The headings that it stands under, the outermost first."),
        Column("text", TEXT, "Its text: a part of the text of the page."),
        Column("markdown", TEXT, "The same as Markdown. The headings of a table are in each of its parts."),
        Column("start", pa.int32(), "Number of its first character in the text of the page, from 0."),
        Column("end", pa.int32(), "Number of the character after it."),
        Column("tokens", pa.int32(), "Number of tokens of its text."),
    ],
    STATE_COLUMNS.pick("last_fetch_time"),
    DOCUMENTS_COLUMNS.pick("language"),
)  # fmt: skip
# Columns of pages that chunks are made of.
CHUNKED_COLUMNS = join_columns(
    DOCUMENTS_COLUMNS.pick("title", "text", "blocks", "language"),
    STATE_COLUMNS.pick("last_fetch_time"),
)
# Columns that an embedding gets in any case.
EMBEDDED_COLUMNS = CHUNK_COLUMNS.pick("url", "title", "heading_path", "text", "language")
_OF_PAGES = ("title", "last_fetch_time", "language", *CHANGE_COLUMNS.schema.names)


class ChunkRules(NamedTuple):
    """How pages become chunks.

    Attributes:
        limit: Most tokens of a chunk.
        tokenizer: What counts them.
        columns: Columns of the chunks.
        markdown_links: Whether their Markdown has the targets of links, and images.
    """

    limit: int
    tokenizer: Tokenizer
    columns: Columns = CHUNK_COLUMNS
    markdown_links: bool = True


def chunk_rows(pages: pl.DataFrame, rules: ChunkRules) -> ChunkRows:
    """Returns the chunks of pages, page by page; a page without text has none.

    Args:
        pages: Rows with ``key`` and ``CHUNKED_COLUMNS``.
        rules: How they are cut.
    """
    spans_by_page = spans_of_blocks(pages.get_column("blocks"))
    others = pages.drop("blocks").iter_rows(named=True)
    rows = [
        row
        for page, text_spans in zip(others, spans_by_page, strict=True)
        for row in _chunks_of_page(page, text_spans, rules)
    ]
    return pl.DataFrame(rows, schema=pl.Schema(rules.columns.schema), orient="row")


def _chunks_of_page(
    page: Mapping[str, Any], text_spans: Sequence[Span], rules: ChunkRules
) -> Iterator[tuple[Any, ...]]:
    text, url = page["text"] or "", from_key(page["key"])
    pieces = cut_into_pieces(text, text_spans, rules.limit, rules.tokenizer)
    texts = [text[piece.start : piece.end] for piece in pieces]
    names = [column.name for column in rules.columns]
    values: dict[str, Iterable[Any]] = {
        "url": [url] * len(pieces),
        "chunk_id": chunk_ids(url, pieces, texts),
        "number": range(len(pieces)),
        "heading_path": [list(piece.heading_path) for piece in pieces],
        "text": texts,
        "start": [piece.start for piece in pieces],
        "end": [piece.end for piece in pieces],
        "tokens": [piece.tokens for piece in pieces],
        **{name: [page[name]] * len(pieces) for name in _OF_PAGES if name in page},
    }
    if MARKDOWN_COLUMN.name in names:
        base = next((of for kind, *_, of in text_spans[:1] if kind == spans.BASE), url)
        render = functools.partial(markdown_of, url=base, with_links=rules.markdown_links)
        ranges = [(piece.start, piece.end) for piece in pieces]
        parts = spans_of_ranges(text_spans, ranges)
        values["markdown"] = [
            render(text, part)
            if any(kind in spans.LEAVES for kind, *_ in part)
            else render(piece_text, ())
            for piece_text, part in zip(texts, parts, strict=True)
        ]
    return zip(*(values[name] for name in names), strict=True)


def chunk_ids(url: str, pieces: Sequence[TextPiece], texts: Sequence[str]) -> list[str]:
    """Returns the ids of the chunks of a page: 32 hexadecimal digits, each once.

    Args:
        url: URL of the page.
        pieces: The pieces of its text.
        texts: Their texts.
    """
    ids, numbers = list[str](), Counter[tuple[str, ...]]()
    for piece, text in zip(pieces, texts, strict=True):
        content = (*piece.heading_path, text)
        parts = (url, *content, str(numbers[content]))
        numbers[content] += 1
        digest = hashlib.sha256()
        for part in parts:
            data = part.encode("utf-8", "surrogatepass")
            digest.update(b"%d:" % len(data) + data)
        ids.append(digest.hexdigest()[:32])
    return ids
