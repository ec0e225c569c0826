"""Parses pages with processes, without Beam: does the work of ``ParsePages`` and of the job parse."""

import contextlib
import dataclasses
import functools
from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any

import polars as pl
import pyarrow as pa

from ..io.batches.documents import Parser
from ..io.parsing.parse_pool import Parsed, ParsePool, ParserDied
from ..io.parsing.parse_worker import Job, ParseTask
from ..io.parsing.parser_limits import LEAST_BYTES
from ..io.parsing.shared_pools import shared_pool
from ..io.rows.seed_hosts import seed_hosts_file
from ..io.snapshots.operations import Operation
from ..policy.base.key_columns import from_keys, hosts_of
from ..policy.components.document_schema import ParseMinor
from ..policy.components.schema import PAGES, TEXT, ParseStatus, columns, conform, empty, to_frame
from ..policy.page_rows import with_urls
from ..policy.parsing.documents import NEEDED, DocumentOptions, documents_of, load_parse_rules
from ..policy.parsing.parse_results import status_text
from ..web.base.columns import reason_if
from ..web.base.dataclass import dataclass
from ..web.base.joined_options import joined_options
from ..web.base.options import option
from ..web.content.whole_bodies import WHOLE
from ..web.exchange.status import FETCH_SUCCESS
from ..web.rules.url_rules import UrlRules
from .elements.chunks import Chunk
from .elements.field_kinds import schema_of_class
from .elements.records import ParsedPage
from .fetching import FETCHED, URL_OPTIONS

PARSED = schema_of_class(ParsedPage)
# The size of the part of a chunk that one process parses at a time.
JOB_BYTES = 4 << 20
# The columns that are read from the input.
_TAKEN = pa.schema(
    [
        *columns(FETCHED, "url", "key", "score", "fetch_status", "http_code", "redirect"),
        *columns(FETCHED, "content_type", "headers", "fetch_time", "truncated", "body"),
    ]
)


@dataclass(frozen=True)
class PoolOptions:
    """Options of the processes that parse."""

    GROUP = "parse"

    parse_processes: int = option(
        0,
        "How many processes parse on a worker; 0 is one for each core that it may use: a quota of its "
        "container and other workers on the machine count.",
        minimum=0,
        maximum=256,
    )
    parser_memory: int = option(
        8 << 30,
        "Largest memory of each process that parses; 0: no limit.",
        unit="bytes",
        minimum=0,
    )
    all_parsers_memory: int = option(
        0,
        "Largest memory of all processes that parse on a worker together, at least 64Mi; 0 is half "
        "of what the worker may use.",
        unit="bytes",
        minimum=0,
    )

    def __post_init__(self) -> None:
        if 0 < self.all_parsers_memory < LEAST_BYTES:
            least = f"{LEAST_BYTES >> 20}Mi"
            raise ValueError(
                f"--all_parsers_memory must be 0 or at least {least}, got {self.all_parsers_memory} bytes"
            )


@joined_options
class ParsePagesOptions(DocumentOptions, PoolOptions):
    """Options of the content to extract from pages, and of the parse processes."""


def parse_pages(
    chunk: Chunk, options: DocumentOptions, pool: ParsePool
) -> tuple[pl.DataFrame, pl.DataFrame, Mapping[str, int]]:
    """Parses pages.

    Args:
        chunk: Rows with the columns ``url`` and ``body``; see ``ParsePages``.
        options: Options of parsing.
        pool: The processes that parse.

    Returns:
        (PARSED rows, dead letters, counts of the parse job). Each page is either a row or a dead
        letter. There are also rows for parts of pages. Dead letters have an additional column
        ``parse``: the status in Nutch's notation, or null.
    """
    pages = _admit_pages(chunk, options)
    cut = pl.when(pl.col("reason") == "truncated").then(pl.lit(_CUT)).alias("parse")
    dead = [pages.filter(pl.col("reason").is_not_null()).select(*_LETTER, cut)]
    pages = pages.filter(pl.col("reason").is_null()).with_row_index("row")
    done: list[pl.DataFrame] = []
    counts = Counter[str]()
    job = Job("", "a chunk of pages", (), "", parse_task(options))
    jobs = [(part, pool.submit(job, _job_pages(part))) for part in parts_of_pages(pages)]
    with contextlib.ExitStack() as stack:
        stack.callback(pool.abandon, [number for _, number in jobs])
        for part, number in jobs:
            try:
                result = pool.result(number)
            except ParserDied as error:  # the bad page is unknown: all become dead letters
                failed = part.with_columns(
                    reason=pl.lit("parser_failed"), message=pl.lit(str(error)), parse=_NO_STATUS
                )
                dead.append(failed.select(*_LETTER, "parse"))
                continue
            counts.update(result.counts)
            parsed, failed = _divide(part, result)
            done.append(parsed)
            dead.append(failed)
    nothing = empty(PARSED)
    return pl.concat(done) if done else nothing, pl.concat(dead), counts


_LETTER = (pl.col("given").alias("url"), "key", "reason", "message")
_NO_STATUS = pl.lit(None, pl.String)
_CUT = status_text(ParseStatus.NOTPARSED, ParseMinor.TRUNCATED, None)


def _admit_pages(chunk: Chunk, options: DocumentOptions) -> pl.DataFrame:
    """Returns the needed columns, and the reason of each row that is not a page to parse."""
    pages = to_frame(conform(chunk, _TAKEN))
    taken = dataclasses.replace(URL_OPTIONS, schemes=options.schemes)
    admitted = UrlRules(taken).admit(pages.get_column("url"), filters=False)
    status, truncated = pl.col("fetch_status"), pl.col("truncated")
    cut = truncated.is_not_null() & ~truncated.is_in(WHOLE)
    http_error = status.is_in(["gone", "retry"]) & pl.col("http_code").is_not_null()
    reason = pl.coalesce(
        "reason",
        pl.when(http_error).then("http_" + pl.col("http_code").cast(pl.String)),
        reason_if(status.str.starts_with("redir_"), "redirected"),
        pl.when(status != "success").then(status),
        reason_if(cut & options.skip_truncated, "truncated"),
        reason_if(pl.col("body").is_null(), "no_body"),
    )
    message = pl.when(reason == "truncated").then(truncated).otherwise("redirect")
    return pages.with_columns(
        admitted.get_column("url"),
        admitted.get_column("key").alias("row_key"),
        admitted.get_column("reason"),
        pl.col("score").fill_null(0.0),
        given=pages.get_column("url"),
    ).with_columns(reason=reason, message=message)


def parts_of_pages(pages: pl.DataFrame) -> list[pl.DataFrame]:
    """Cuts pages into parts, each for one process."""
    part = pages.get_column("body").bin.size().cum_sum() // JOB_BYTES
    numbered = pages.with_columns(part.alias("_part"))
    return numbered.partition_by("_part", maintain_order=True, include_key=False)


def parser_of(operation: Operation, options: Any, on_done: Callable[[Parsed], None]) -> Parser:
    """Returns the parser of an operation's pages.

    Args:
        operation: The operation.
        options: DocumentOptions and PoolOptions.
        on_done: Counts each group of pages that is parsed.
    """
    pool = parse_pool(options)
    return Parser(pool, parse_task(options), seed_hosts_file(operation), on_done)


def parse_pool(options: PoolOptions) -> ParsePool:
    """Returns this process's pool of parse processes, see ``shared_pool``."""
    return shared_pool(
        options.parse_processes,
        options.parser_memory,
        documents_of.__module__,
        options.all_parsers_memory,
    )


def parse_task(options: DocumentOptions) -> ParseTask:
    """Returns what a parse process does with pages; of the options it gets those that it needs."""
    names = [field.name for field in dataclasses.fields(DocumentOptions)]
    needed = DocumentOptions(**{name: getattr(options, name) for name in names})
    rules = functools.partial(load_parse_rules, needed)
    return ParseTask(documents_of, rules, NEEDED, needed.parse_filters, needed.parser_timeout)


def _job_pages(part: pl.DataFrame) -> pa.Table:
    pages = part.select(
        pl.col("row_key").alias("key"),
        pl.col("row").alias("distance"),  # the document returns this number
        "score",
        pl.lit(FETCH_SUCCESS).alias("fetch_status"),
        *("fetch_time", "content_type", "headers", "truncated", "body"),
    )
    return conform(pages, PAGES).select(NEEDED)


def _divide(part: pl.DataFrame, result: Parsed) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Returns (PARSED rows, dead letters) of the result of a job."""
    of_part = pl.col("part_of").is_not_null()
    row = pl.col("distance") - of_part  # a part is one link away from its page
    documents = to_frame(result.documents).with_columns(row.cast(part.schema["row"]).alias("row"))
    page_columns = part.drop("reason", "message", "body", "headers")
    pages = documents.filter(~of_part).drop("key", "score", "fetch_time", "content_type")
    rows = page_columns.join(pages, on="row", how="left", maintain_order="left")
    good = pl.col("parse_status") == int(ParseStatus.SUCCESS)
    reason = pl.col("parse_message").str.extract(r"^([^:]*)")
    # A page without a document was dropped by a parse filter.
    page_reasons = set(rows.select(reason).to_series())
    skipped = [name.partition("/")[2] for name in result.counts if name.startswith("skipped/")]
    skipped = [name for name in skipped if name not in page_reasons]
    why = pl.col("parse_message").fill_null(skipped[0] if len(skipped) == 1 else "skipped")
    reason = why.str.extract(r"^([^:]*)")
    failed = rows.filter(good.fill_null(False).not_()).with_columns(
        reason=reason, message=pl.when(why != reason).then(why)
    )
    statuses = failed.select("parse_status", "parse_minor", "parse_message").iter_rows()
    texts = [status_text(*status) for status in statuses]
    failed = failed.with_columns(pl.Series("parse", texts, dtype=pl.String))
    parts = _part_rows(documents.filter(of_part), part)
    parsed = pl.concat([rows.filter(good), *([parts] if len(parts) else [])], how="diagonal")
    return _parsed_rows(parsed), failed.select(*_LETTER, "parse")


def _part_rows(parts: pl.DataFrame, page_part: pl.DataFrame) -> pl.DataFrame:
    """Returns parts as rows, with the URL of their page and without its key."""
    urls = from_keys(parts.get_column("key"))
    parts = parts.with_columns(url=urls, key=pl.lit(None, pl.String), score=pl.lit(0.0))
    pages = page_part.select("row", pl.col("url").alias("_of"))
    parts = parts.join(pages, on="row", how="left", maintain_order="left")
    return parts.with_columns(part_of="_of").drop("_of")


def _parsed_rows(rows: pl.DataFrame) -> pl.DataFrame:
    import pyarrow.compute as pc  # late: it takes as long as pyarrow itself

    metadata = rows.get_column("metadata").to_arrow()
    frame = rows.with_columns(
        hosts_of(rows.get_column("url")).fill_null("").alias("host"),
        links=with_urls(rows.get_column("outlinks")),
        canonical=pl.Series(pc.map_lookup(metadata, pa.scalar("canonical", TEXT), "first")),
        directives=pl.col("directives").fill_null([]),
        blocks=pl.col("blocks").fill_null([]),
        main=pl.col("main").fill_null([]),
        structured_data=pl.col("structured_data").fill_null([]),
        extracted=pl.col("extracted").fill_null([]),
    )
    return to_frame(conform(frame, PARSED))
