"""Runs a tokenizer or an embedding of a plug-in on the text of one page."""

import time

import polars as pl

from ...policy.chunking.chunk_rows import CHUNK_COLUMNS, ChunkRules, chunk_rows
from ...policy.chunking.embeddings import EMBEDDINGS, check_vectors
from ...policy.chunking.tokenizers import WORD_COUNTS, count_words, tokenizer_of
from ...policy.span_lists import SpanLists
from ...web.base.errors import UsageError, UserError
from ...web.base.wording import format_count
from ...web.pages.page import Page, ParseFailed, Source
from ...web.pages.parse_options import ParseOptions
from ...web.parsers.dispatch import parse_document
from ...web.plugins.plugin_files import fault_text
from ...web.plugins.plugins import callable_plugin, load_plugin
from ...web.urls.row_keys import to_key
from .time_limit import Trial, limited

_WORDS = 512  # of a chunk
_SHOWN = 8  # numbers of a vector


def try_tokenizer(name: str, source: Source, options: ParseOptions) -> Trial:
    """Returns how many tokens a tokenizer counts in the text of a page, beside its words.

    Raises:
        UsageError: nutbeam cannot parse the page.
    """
    text, fault, lines = _page_of(source, options).text, "", []
    record = {
        "url": source.url,
        "characters": len(text),
        "words": count_words(text),
        "tokens": None,
    }
    tokenizer = tokenizer_of(name)
    start = time.perf_counter()
    try:
        with limited(options.parser_timeout):
            (record["tokens"],) = tokenizer.count([text])
    except UserError as error:  # it has the line of the plug-in
        fault = str(error)
    else:
        lines = [f"{what}: {record[what]:,}" for what in ("characters", "words", "tokens")]
    return Trial(record, lines, fault, time.perf_counter() - start)


def try_embedding(name: str, source: Source, options: ParseOptions) -> Trial:
    """Returns what an embedding makes of the chunks of a page, of 512 words each.

    Raises:
        UsageError: nutbeam cannot parse the page.
    """
    function, fault, lines = load_plugin(EMBEDDINGS, name), "", []
    chunks = _chunks_of(_page_of(source, options), source.url)
    record = {"url": source.url, "chunks": len(chunks), "dimension": None, "first": None}
    start = time.perf_counter()
    try:
        with limited(options.parser_timeout):
            embed = callable_plugin(function, f"embedding {name!r}")
            vectors = check_vectors(embed(chunks), len(chunks))
    except (Exception, SystemExit) as error:  # noqa: BLE001 - it may raise anything
        fault = fault_text(error, function)
    else:
        first = vectors[0].tolist() if len(vectors) else []
        record |= {"dimension": vectors.shape[1], "first": first}
        shown = ", ".join(f"{number:g}" for number in first[:_SHOWN])
        shown += ", ..." * (len(first) > _SHOWN)
        length = format_count(vectors.shape[1], "numbers")
        lines = [
            format_count(len(chunks), "chunks"),
            f"vectors of {length}, the first one: {shown}",
        ]
    return Trial(record, lines, fault, time.perf_counter() - start)


def _page_of(source: Source, options: ParseOptions) -> Page:
    try:
        return parse_document(source, options)
    except ParseFailed as error:
        raise UsageError(f"nutbeam cannot parse {source.url!r}: {error.reason}") from error


def _chunks_of(page: Page, url: str) -> pl.DataFrame:
    spans = SpanLists()
    spans.add(0, page.spans)
    row = {"key": to_key(url), "title": page.title, "text": page.text, "language": page.language}
    rows = pl.DataFrame([row]).with_columns(
        pl.Series("blocks", spans.column(1)),
        last_fetch_time=pl.lit(None, pl.Int64),
    )
    return chunk_rows(rows, ChunkRules(_WORDS, WORD_COUNTS, CHUNK_COLUMNS))
