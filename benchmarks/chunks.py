"""CPU of chunks of pages, beside reading the same pages.

``python benchmarks/chunks.py [--small]``. The pages of the documentation site, parsed as ``parse`` does,
are written as a file of documents. Then each way reads this file in a fresh process: the texts alone; the
texts and blocks, from which Markdown or chunks are made; chunks of 512 words, without and with their Markdown.
"""

import functools
import pathlib
import sys
import tempfile

import measure
from parse import bodies

LIMIT = 512


def write_documents(path: str, limit: int) -> int:
    """Parses pages into a file of documents; returns their number."""
    import polars as pl
    import pyarrow as pa
    import pyarrow.parquet as pq

    from nutbeam.policy.components.host_rows import seeds_of
    from nutbeam.policy.components.schema import PAGES, conform
    from nutbeam.policy.parsing.documents import DocumentOptions, ParseRules, documents_of
    from nutbeam.web.exchange.status import FETCH_SUCCESS
    from nutbeam.web.urls.row_keys import to_key

    rows = [
        {
            "key": to_key(url), "fetch_status": FETCH_SUCCESS, "fetch_time": 0,
            "content_type": "text/html; charset=utf-8", "headers": [], "body": body,
        }
        for url, body in bodies(limit)
    ]  # fmt: skip
    pages = conform(pa.Table.from_pylist(rows), PAGES)
    rules = ParseRules(DocumentOptions(), seeds_of(pl.Series(["com.example.docs"])))
    documents, _ = documents_of(pages, rules)
    pq.write_table(documents, path, compression="zstd")
    return len(documents)


def read_pages(path: str, way: str) -> int:
    """Reads the documents, and makes what a way makes; returns the number of rows."""
    import polars as pl

    from nutbeam.policy.chunking.chunk_rows import CHUNK_COLUMNS, ChunkRules, chunk_rows
    from nutbeam.policy.chunking.tokenizers import WORD_COUNTS
    from nutbeam.policy.page_rows import markdown_of_pages

    names = ["key", "title", "text", "language"]
    with measure.measured():
        pages = pl.read_parquet(path, columns=names if way == "texts" else [*names, "blocks"])
        if way == "Markdown":
            return len(markdown_of_pages(pages))
        if way.startswith("chunks"):
            columns = CHUNK_COLUMNS if "Markdown" in way else CHUNK_COLUMNS.drop("markdown")
            pages = pages.with_columns(last_fetch_time=pl.lit(0, pl.Int64))
            return len(chunk_rows(pages, ChunkRules(LIMIT, WORD_COUNTS, columns)))
        return len(pages)


def main() -> None:
    """Prints the table."""
    small = "--small" in sys.argv[1:]
    repeats, limit = (2, 50) if small else (5, 0)
    ways = ("texts", "texts and blocks", "Markdown", "chunks", "chunks with Markdown")
    with tempfile.TemporaryDirectory() as folder:
        path = str(pathlib.Path(folder) / "documents.parquet")
        pages = measure.fresh("chunks", "write_documents", path, limit).result
        runs = {
            way: functools.partial(measure.fresh, "chunks", "read_pages", path, way) for way in ways
        }
        found = measure.interleaved(runs, repeats)
    rows = [
        (way, cpu, 1000 * cpu / pages, each[0].result, each[0].result / cpu)
        for way, each in found.items()
        for cpu in [measure.median(each, "cpu")]
    ]
    heads = ("CPU", "s", "ms a page", "rows", "rows/s")
    measure.table(f"{pages:,} pages, median of {repeats}; chunks of {LIMIT} words", heads, rows)


if __name__ == "__main__":
    main()
