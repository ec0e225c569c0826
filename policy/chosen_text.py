"""Chooses which text of pages a reader gets: all of it, or their main content."""

from collections.abc import Sequence

import polars as pl

from ..web.base.dataclass import dataclass
from ..web.base.options import option
from ..web.pages.main_part import TextParts, cut_spans, cut_text
from .span_lists import SpanLists, spans_of_blocks

MAIN, ALL = "main", "all"


@dataclass(frozen=True)
class TextOptions:
    """Options of which text counts."""

    text_of: str = option(
        ALL,
        "Which text of a page counts: main, its main content, without navigation, comments and the like; or "
        "all. A page of which the main content is not known has all.",
        choices=(MAIN, ALL),
        nutch="tika.extractor, tika.boilerpipe",
        group="index",
    )


def with_chosen_text(pages: pl.DataFrame, text_of: str) -> pl.DataFrame:
    """Returns pages with the wanted text; the spans in ``blocks`` are then those of that text.

    Args:
        pages: Rows with ``text`` and ``main``, and perhaps ``blocks``, as stored.
        text_of: ``main`` or ``all``.
    """
    if text_of == ALL or pages.get_column("main").null_count() == len(pages):
        return pages
    parts_of_pages = [
        [(part["start"], part["end"]) for part in parts or ()]
        for parts in pages.get_column("main").to_list()
    ]
    texts = [
        text if text is None else cut_text(text, parts)
        for text, parts in zip(pages.get_column("text"), parts_of_pages, strict=True)
    ]
    columns = [pl.Series("text", texts, dtype=pl.String)]
    if "blocks" in pages.columns:
        columns.append(_cut_blocks(pages.get_column("blocks"), parts_of_pages))
    return pages.with_columns(columns)


def _cut_blocks(blocks: pl.Series, parts_of_pages: Sequence[TextParts]) -> pl.Series:
    lists = SpanLists()
    for row, (spans, parts) in enumerate(zip(spans_of_blocks(blocks), parts_of_pages, strict=True)):
        lists.add(row, cut_spans(spans, parts))
    return pl.Series(blocks.name, lists.column(len(blocks)), dtype=blocks.dtype)
