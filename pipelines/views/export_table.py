"""export: writes a component of the table to one file, as it is stored.

::

    tablets, or files of batches ─ rows, as Parquet, CSV or JSON lines ─▶ parts ─▶ one file
"""

import base64
import dataclasses
import io
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import apache_beam as beam
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq

from ...io.rows.duckdb_views import batches_frame, files_of
from ...io.snapshots.manifest import Manifest
from ...io.storage.files import creating, read_bytes, write_bytes
from ...io.storage.parquet_files import row_groups
from ...io.tablets.checksums import check_file, check_tablets
from ...io.tablets.file_lists import DataFile
from ...io.tablets.tablets import Tablet, tablets
from ...policy.kinds import KINDS, kind_of, kinds_in_tablets, kinds_of_batches
from ...policy.schema import TEXT, conform, to_frame
from ...web.base.errors import UsageError
from ...web.base.options import option
from ...web.urls.row_keys import from_host_key, from_key
from ..command_line.command import TABLE, Invocation
from ..launch.launch import LaunchOptions
from .export import Reading, check_output, csv_line, exported, join_bytes, join_parquet, line_of

ARGUMENTS = (TABLE,)
COUNT = ".rows"
KINDS_OF_FILES = ("parquet", "csv", "jsonl")
FORMATS = ("text", "json", *KINDS_OF_FILES)


@dataclasses.dataclass(frozen=True)
class Options(LaunchOptions):
    """Options of export."""

    what: str = option(
        "state",
        "What to write; files of batches are those of all batches that the table has.",
        choices=(*kinds_in_tablets(), "batches", *kinds_of_batches()),
        group="export",
    )
    output: str = option(
        "-",
        "Where to write; - is standard output. Without --format the ending says how: .parquet, "
        ".csv or .jsonl; standard output is JSON lines.",
        short="o",
        group="export",
    )


@dataclasses.dataclass(frozen=True)
class Part:
    """What is exported at a time: a tablet, or a file of a batch."""

    reading: Reading
    number: int
    tablet: Tablet | None = None
    batch: str = ""
    file: DataFile | None = None


def run(invocation: Invocation) -> int:
    options, table = invocation.options, str(invocation.table)
    output = None if options.output == "-" else Path(options.output)
    suffix = f".{kind_of_file(invocation.format, output)}"
    if output is not None:
        check_output(output, "--output")

    def build(readings: beam.PCollection[Reading], reading: Reading) -> None:
        (
            readings
            | "Parts" >> beam.FlatMap(_parts, options.what).with_output_types(Part)
            # Spreads the files over the workers.
            | "Spread" >> beam.Reshuffle()
            | "Write" >> beam.Map(_write, options.what, suffix)
        )

    schema = schema_of(options.what)
    with exported(table, build, invocation.beam_args, options) as found:
        number = sum(int(read_bytes(part)) for part in found if part.suffix == COUNT)
        parts = [part for part in found if part.suffix == suffix]
        head = csv_line(schema.names).encode() if suffix == ".csv" else b""
        if output is None:
            join_bytes(parts, sys.stdout.buffer, head)
            return 0
        if suffix == ".parquet":
            join_parquet(parts, output, schema)
        else:
            with output.open("wb") as file:
                join_bytes(parts, file, head)
    record = {"what": options.what, "rows": number, "output": str(output)}
    text = f"{number:,} rows of {options.what} in {output}"
    print(json.dumps(record) if invocation.format == "json" else text)
    return 0


def kind_of_file(format: str, output: Path | None) -> str:
    """Returns how rows are to be written, of ``KINDS_OF_FILES``.

    Args:
        format: As it was given; ``text`` and ``json`` say nothing of the rows.
        output: Where to; None is standard output.

    Raises:
        UsageError: Nothing says how, or Parquet is to go to standard output.

    >>> kind_of_file("text", Path("rows.csv")), kind_of_file("jsonl", Path("rows")), kind_of_file(
    ...     "text", None
    ... )
    ('csv', 'jsonl', 'jsonl')
    """
    if format in KINDS_OF_FILES:
        if format == "parquet" and output is None:
            raise UsageError("--format parquet needs a file: give --output")
        return format
    kind = "jsonl" if output is None else output.suffix[1:]
    if kind not in KINDS_OF_FILES:
        endings = ", ".join(f".{kind}" for kind in KINDS_OF_FILES)
        raise UsageError(
            f"--output must end in {endings}, or --format say how, got {str(output)!r}"
        )
    return kind


def schema_of(what: str) -> pa.Schema:
    """Returns the columns that are exported: what is stored, behind URL, host or batch."""
    if what == "batches":
        return batches_frame(Manifest()).to_arrow().schema
    fields = [] if kind_of(what).in_tablets else [pa.field("batch", TEXT)]
    stored = kind_of(what).schema
    return pa.schema([*fields, pa.field(_name(what), TEXT), *stored])


def _name(what: str) -> str:
    return "host" if kind_of(what).of_hosts else "url"


def _parts(reading: Reading, what: str) -> Iterator[Part]:
    manifest = reading.manifest()
    if what == "batches":
        yield Part(reading, 0)
    elif kind_of(what).in_tablets:
        for number, tablet in enumerate(tablets(reading.files(what))):
            yield Part(reading, number, tablet)
    else:
        for number, (batch, file) in enumerate(files_of(reading.root, manifest, what)):
            yield Part(reading, number, batch=batch, file=file)


def _frames(part: Part, what: str) -> Iterator[pl.DataFrame]:
    root = part.reading.root
    if what == "batches":
        yield batches_frame(part.reading.manifest())
        return
    # What is damaged is not passed on.
    if part.tablet is not None:
        check_tablets(root, part.tablet)
        frames = root.scan(what, part.tablet)
    else:
        assert part.file is not None
        check_file(root, part.file)
        groups = row_groups(root / part.file.path, KINDS[what].schema)
        frames = (to_frame(group) for group in groups)
    named = from_host_key if _name(what) == "host" else from_key
    for frame in frames:
        names = [named(key) for key in frame.get_column("key")]
        yield frame.with_columns(
            pl.Series(_name(what), names, dtype=pl.String), batch=pl.lit(part.batch)
        )


def _write(part: Part, what: str, suffix: str) -> None:
    schema, path = schema_of(what), part.reading.part(part.number, suffix)
    rows = 0
    tables = (conform(frame, schema) for frame in _frames(part, what))
    with part.reading.reading(), creating(path) as file:
        if suffix == ".parquet":
            with pq.ParquetWriter(file, schema, compression="zstd") as writer:
                for table in tables:
                    writer.write_table(table)
                    rows += len(table)
        else:
            with io.TextIOWrapper(file, encoding="utf-8", newline="") as text:
                for table in tables:
                    for row in table.to_pylist(maps_as_pydicts="lossy"):
                        text.write(line_of({n: _plain(n, v) for n, v in row.items()}, suffix))
                    rows += len(table)
    write_bytes(part.reading.part(part.number, COUNT), str(rows).encode())


def _plain(name: str, value: Any) -> Any:
    """Returns a value as texts have it: bytes as hex, a page's body as base64."""
    if isinstance(value, bytes):
        return base64.b64encode(value).decode() if name == "body" else value.hex()
    return value
