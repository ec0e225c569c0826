"""pages: writes what was crawled, a page a record, as JSON lines or Parquet.

::

    state ─ rows by documents file ─ read that file, keep what is newest ─▶ parts ─▶ one file
"""

import dataclasses
import json
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

import apache_beam as beam
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq

from ...io.batches.batches import live_file
from ...io.storage.files import creating
from ...io.storage.parquet_files import collect, scan
from ...io.tablets.checksums import check_file, check_tablets
from ...io.tablets.tablets import Tablet, tablets
from ...policy.parse_results import status_text
from ...policy.parts import pages_first
from ...policy.schema import DOCUMENTS, STATUS_NAMES, TEXT, TEXT_MAP, conform, to_frame
from ...transforms.chunks import Chunk, to_chunks
from ...web.base.options import option
from ...web.urls.row_keys import from_key
from ..command_line.command import TABLE, Invocation
from ..launch.launch import LaunchOptions
from .export import Reading, check_output, exported, join_bytes, join_parquet

ARGUMENTS = (TABLE,)
ROW_COLUMNS = ("key", "status", "http_code", "score", "last_fetch_time", "fetch_time",
               "modified_time", "content_type", "document")  # fmt: skip
PAGE = pa.schema(
    [
        ("url", TEXT),
        ("title", TEXT),
        ("text", TEXT),
        ("status", TEXT),
        ("http_code", pa.uint16()),
        ("content_type", TEXT),
        ("language", TEXT),
        ("fetched_at", pa.timestamp("ms", "UTC")),
        ("modified_at", pa.timestamp("ms", "UTC")),
        ("due_at", pa.timestamp("ms", "UTC")),
        ("score", pa.float32()),
        ("distance", pa.int32()),
        ("metadata", TEXT_MAP),
        ("parse", TEXT),
        ("part_of", TEXT),
        ("links", pa.large_list(pa.struct([("url", TEXT), ("anchor", TEXT)]))),
    ]
)


@dataclasses.dataclass(frozen=True)
class Options(LaunchOptions):
    """Options of pages."""

    output: str = option(
        "-", "Where to write; the ending says how: .jsonl or .parquet. - is standard output.",
        short="o", group="pages",
    )  # fmt: skip

    def __post_init__(self) -> None:
        if self.output != "-" and Path(self.output).suffix not in (".jsonl", ".parquet"):
            raise ValueError(f"--output must end in .jsonl or .parquet, got {self.output!r}")


@dataclasses.dataclass(frozen=True)
class Exported:
    """A tablet of the state, read for an export."""

    reading: Reading
    number: int
    tablet: Tablet


def run(invocation: Invocation) -> int:
    output = Path(invocation.options.output)
    suffix = output.suffix or ".jsonl"
    if output.suffix:
        check_output(output, "--output")

    def build(readings: beam.PCollection[Reading], reading: Reading) -> None:
        (
            readings
            | "Tablets" >> beam.FlatMap(tablets_of).with_output_types(Exported)
            # Spreads the tablets over the workers.
            | "Spread" >> beam.Reshuffle()
            | "Rows" >> beam.FlatMap(_rows_by_document).with_output_types(tuple[str, Chunk])
            # Rows are small: they go to where the texts lie.
            | "ByDocuments" >> beam.GroupByKey()
            | "Write" >> beam.Map(_write, reading, suffix)
        )

    table, options = str(invocation.table), invocation.options
    with exported(table, build, invocation.beam_args, options) as parts:
        if not output.suffix:
            join_bytes(parts, sys.stdout.buffer)
        elif suffix == ".parquet":
            number = join_parquet(parts, output, PAGE)
        else:
            with output.open("wb") as file:
                number = join_bytes(parts, file)
    if output.suffix:
        record = {"pages": number, "output": str(output)}
        text = f"{number:,} pages in {output}"
        print(json.dumps(record) if invocation.format == "json" else text)
    return 0


def tablets_of(reading: Reading) -> Iterator[Exported]:
    """Names the tablets of the state."""
    for number, tablet in enumerate(tablets(reading.files("state"))):
        yield Exported(reading, number, tablet)


def _rows_by_document(exported: Exported) -> Iterator[tuple[str, Chunk]]:
    with exported.reading.reading():
        root, tablet = exported.reading.root, exported.tablet
        check_tablets(root, tablet)  # what is damaged is not passed on
        rows = root.read("state", [tablet], ROW_COLUMNS, _with_document)
    for (document,), part in rows.group_by("document", maintain_order=True):
        for chunk in to_chunks(part):
            yield str(document), chunk


def _with_document(rows: pl.LazyFrame) -> pl.LazyFrame:
    return rows.filter(pl.col("document").is_not_null())


def _write(grouped: tuple[str, Iterable[Chunk]], reading: Reading, suffix: str) -> None:
    document, chunks = grouped
    rows = pl.concat(to_frame(chunk) for chunk in chunks)
    file = live_file(reading.root, reading.manifest(), document)
    if file is None:
        return  # it was dropped: there is no text to show
    path = reading.part(file.order, f"-{Path(document).stem}{suffix}")
    with reading.reading():
        check_file(reading.root, file)
        texts = collect(scan([reading.root / file.path], DOCUMENTS))
    pages = page_records(rows, texts)
    with creating(path) as part:
        if suffix == ".parquet":
            pq.write_table(conform(pages, PAGE), part, compression="zstd")
        else:
            pages.write_ndjson(part)


def page_records(rows: pl.DataFrame, documents: pl.DataFrame) -> pl.DataFrame:
    """Returns PAGE records of those documents that the state's rows name.

    Args:
        rows: STATE rows, the columns ``ROW_COLUMNS``.
        documents: DOCUMENTS rows of one file; a key that stands twice counts once.
    """
    both = pages_first(documents).select(
        *("key", "title", "text", "language", "distance", "metadata", "outlinks", "part_of"),
        *("parse_status", "parse_minor", "parse_message"),
    )
    both = both.join(rows, on="key", how="inner", maintain_order="left")
    statuses = both.select("parse_status", "parse_minor", "parse_message").iter_rows()
    wholes = [key and from_key(key) for key in both.get_column("part_of")]
    targets = both.get_column("outlinks").explode().struct.field("key").drop_nulls().unique()
    urls = [from_key(key) for key in targets]
    link = pl.struct(
        pl.element()
        .struct.field("key")
        .replace_strict(targets, urls, return_dtype=pl.String)
        .alias("url"),
        pl.element().struct.field("anchor"),
    )
    names = {code: name.removeprefix("db_") for code, name in STATUS_NAMES.items()}
    return both.select(
        pl.Series("url", [from_key(key) for key in both.get_column("key")], dtype=pl.String),
        "title",
        "text",
        pl.col("status").replace_strict(names, return_dtype=pl.String),
        "http_code",
        "content_type",
        "language",
        pl.from_epoch("last_fetch_time", "ms").dt.replace_time_zone("UTC").alias("fetched_at"),
        pl.from_epoch("modified_time", "ms").dt.replace_time_zone("UTC").alias("modified_at"),
        pl.from_epoch("fetch_time", "ms").dt.replace_time_zone("UTC").alias("due_at"),
        "score",
        "distance",
        "metadata",
        pl.Series("parse", [status_text(*status) for status in statuses], dtype=pl.String),
        pl.Series("part_of", wholes, dtype=pl.String),
        pl.col("outlinks").fill_null([]).list.eval(link).alias("links"),
    )
