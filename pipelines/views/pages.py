"""pages: writes the crawled pages, one record each, as JSON lines or Parquet.

::

    state ─ rows by documents file ─ read that file, keep the newest documents ─▶ parts ─▶ one file
"""

import dataclasses
import json
from collections.abc import Iterable, Iterator
from pathlib import Path

import apache_beam as beam
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq

from ...io.batches.batches import live_file
from ...io.storage.files import creating
from ...io.storage.parquet_files import collect, scan
from ...io.tablets.checksums import verify_file, verify_tablets
from ...policy.parse_results import status_text
from ...policy.parts import pages_first
from ...policy.schema import DOCUMENTS, STATUS_NAMES, TEXT, TEXT_MAP, conform, to_frame
from ...transforms.chunks import Chunk, to_chunks
from ...web.base.options import option
from ...web.urls.row_keys import from_key
from ..command_line.command import TABLE, Invocation
from ..launch.launch import LaunchOptions
from .export import Part, Reading, exported, output_of

ARGUMENTS = (TABLE,)
ROW_COLUMNS = ("key", "status", "http_code", "score", "last_fetch_time", "fetch_time",
               "modified_time", "content_type", "document")  # fmt: skip
_TIMES = {"last_fetch_time": "fetched_at", "modified_time": "modified_at", "fetch_time": "due_at"}
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
        "-", "File to write, .jsonl or .parquet; - is standard output, as JSON lines.",
        short="o", group="pages",
    )  # fmt: skip

    def __post_init__(self) -> None:
        if self.output != "-" and Path(self.output).suffix not in (".jsonl", ".parquet"):
            raise ValueError(f"--output must end in .jsonl or .parquet, got {self.output!r}")


def run(invocation: Invocation) -> int:
    table, options = str(invocation.table), invocation.options
    output = output_of(options.output, "--output")

    def build(parts: beam.PCollection[Part], reading: Reading) -> None:
        (
            parts
            | "Rows" >> beam.FlatMap(_rows_by_document).with_output_types(tuple[str, Chunk])
            # Rows are small, so they are sent to the workers that read the texts.
            | "ByDocuments" >> beam.GroupByKey()
            | "Write" >> beam.Map(_write, reading, output.suffix)
        )

    with exported(table, build, invocation.beam_args, options) as parts:
        number = output.join(parts, PAGE.names, PAGE)
    if output.path:
        record = {"pages": number, "output": str(output.path)}
        text = f"{number:,} pages in {output.path}"
        print(json.dumps(record) if invocation.format == "json" else text)
    return 0


def _rows_by_document(part: Part) -> Iterator[tuple[str, Chunk]]:
    assert part.tablet is not None
    with part.reading.reading():
        root = part.reading.root
        verify_tablets(root, part.tablet)  # damaged rows are not exported
        parsed = pl.col("document").is_not_null()
        rows = root.read("state", [part.tablet], ROW_COLUMNS, lambda state: state.filter(parsed))
    for (document,), group in rows.group_by("document", maintain_order=True):
        for chunk in to_chunks(group):
            yield str(document), chunk


def _write(grouped: tuple[str, Iterable[Chunk]], reading: Reading, suffix: str) -> None:
    document, chunks = grouped
    rows = pl.concat(to_frame(chunk) for chunk in chunks)
    file = live_file(reading.root, reading.manifest(), document)
    if file is None:
        return  # compact has dropped the file: there is no text to show
    path = reading.part(file.order, f"-{Path(document).stem}{suffix}")
    with reading.reading():
        verify_file(reading.root, file)
        texts = collect(scan([reading.root / file.path], DOCUMENTS))
    pages = page_records(rows, texts)
    with creating(path) as part:
        if suffix == ".parquet":
            pq.write_table(conform(pages, PAGE), part, compression="zstd")
        else:
            pages.write_ndjson(part)


def page_records(rows: pl.DataFrame, documents: pl.DataFrame) -> pl.DataFrame:
    """Returns PAGE records of the documents that rows of the state refer to.

    Args:
        rows: STATE rows with the columns ``ROW_COLUMNS``.
        documents: DOCUMENTS rows of one file; the first of a key counts.
    """
    taken = ("key", "title", "text", "language", "distance", "metadata", "outlinks", "part_of")
    status = ("parse_status", "parse_minor", "parse_message")
    both = pages_first(documents).select(*taken, *status)
    both = both.join(rows, on="key", how="inner", maintain_order="left")
    targets = both.get_column("outlinks").explode().struct.field("key").drop_nulls().unique()
    urls = [from_key(key) for key in targets]
    target, anchor = pl.element().struct.field("key"), pl.element().struct.field("anchor")
    link = pl.struct(
        target.replace_strict(targets, urls, return_dtype=pl.String).alias("url"), anchor
    )
    names = {code: name.removeprefix("db_") for code, name in STATUS_NAMES.items()}
    texts: dict[str, list[str | None]] = {
        "url": [from_key(key) for key in both.get_column("key")],
        "parse": [status_text(*codes) for codes in both.select(status).iter_rows()],
        "part_of": [key and from_key(key) for key in both.get_column("part_of")],
    }
    utc = pl.Datetime("ms", "UTC")
    return both.with_columns(
        *(pl.Series(name, values, dtype=pl.String) for name, values in texts.items()),
        *(pl.col(name).cast(utc).alias(shown) for name, shown in _TIMES.items()),
        pl.col("status").replace_strict(names, return_dtype=pl.String),
        links=pl.col("outlinks").fill_null([]).list.eval(link),
    ).select(PAGE.names)
