"""export: writes a component of the table to one file, with the stored columns.

::

    tablets, or files of batches ─ rows, as Parquet, CSV or JSON lines ─▶ parts ─▶ one file
"""

import base64
import dataclasses
import functools
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import apache_beam as beam
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq

from ...io.rows.duckdb_views import batches_frame, files_of
from ...io.snapshots.manifest import Manifest
from ...io.storage.files import creating
from ...io.storage.parquet_files import row_groups
from ...io.tablets.checksums import verify_file, verify_tablets
from ...policy.kinds import KINDS, kind_of, kinds_in_tablets, kinds_of_batches
from ...policy.schema import TEXT, conform, to_frame
from ...web.base.errors import UsageError
from ...web.base.options import option
from ...web.urls.row_keys import from_host_key, from_key
from ..command_line.command import TABLE, Invocation
from ..launch.launch import LaunchOptions
from .export import Output, Part, Reading, exported, output_of, tablets_of

ARGUMENTS = (TABLE,)
KINDS_OF_FILES = ("parquet", "csv", "jsonl")
FORMATS = ("text", "json", *KINDS_OF_FILES)


@dataclasses.dataclass(frozen=True)
class Options(LaunchOptions):
    """Options of export."""

    what: str = option(
        "state",
        "What to write: state, hosts, batches, or a component of the batches, such as pages or "
        "documents: then the files of all batches.",
        group="export",
    )
    output: str = option(
        "-",
        "File to write; - is standard output. Without --format the ending gives the format: "
        ".parquet, .csv or .jsonl; standard output is JSON lines.",
        short="o",
        group="export",
    )

    def __post_init__(self) -> None:
        known = (*kinds_in_tablets(), "batches", *kinds_of_batches())
        if self.what not in known:
            raise ValueError(f"--what must be one of {', '.join(known)}, got {self.what!r}")


def run(invocation: Invocation) -> int:
    options, table = invocation.options, str(invocation.table)
    kind = kind_of_file(invocation.format, options.output)
    output = output_of(options.output, "--output", f".{kind}")

    def build(parts: beam.PCollection[Part], _: Reading) -> None:
        parts | "Write" >> beam.Map(_write, options.what, output)

    divide = functools.partial(_parts, what=options.what)
    schema = schema_of(options.what)
    with exported(table, build, invocation.beam_args, options, divide) as parts:
        number = output.join(parts, schema.names, schema)
    if output.path:
        record = {"what": options.what, "rows": number, "output": str(output.path)}
        text = f"{number:,} rows of {options.what} in {output.path}"
        print(json.dumps(record) if invocation.format == "json" else text)
    return 0


def kind_of_file(format: str, output: str) -> str:
    """Returns the kind of file to write, one of ``KINDS_OF_FILES``.

    Args:
        format: The option; ``text`` and ``json`` are formats of the message, not of the rows.
        output: Path of the file; ``-`` is standard output.

    Raises:
        UsageError: Neither the option nor the path has a kind, or the output of Parquet would be
            standard output.

    >>> kind_of_file("text", "rows.csv"), kind_of_file("jsonl", "rows"), kind_of_file("text", "-")
    ('csv', 'jsonl', 'jsonl')
    """
    if format in KINDS_OF_FILES:
        if format == "parquet" and output == "-":
            raise UsageError("--format parquet needs a file: give --output")
        return format
    kind = "jsonl" if output == "-" else Path(output).suffix[1:]
    if kind not in KINDS_OF_FILES:
        endings = ", ".join(f".{kind}" for kind in KINDS_OF_FILES)
        raise UsageError(f"--output must end in {endings}, or --format say how, got {output!r}")
    return kind


def schema_of(what: str) -> pa.Schema:
    """Returns the columns of an export: batch, URL or host, and the columns that are stored."""
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
        yield from tablets_of(reading, what)
    else:
        for number, (batch, file) in enumerate(files_of(reading.root, manifest, what)):
            yield Part(reading, number, file=file, batch=batch)


def _frames(part: Part, what: str) -> Iterator[pl.DataFrame]:
    root = part.reading.root
    if what == "batches":
        yield batches_frame(part.reading.manifest())
        return
    # Damaged rows are not exported.
    if part.tablet is not None:
        verify_tablets(root, part.tablet)
        frames = root.scan(what, part.tablet)
    else:
        assert part.file is not None
        verify_file(root, part.file)
        groups = row_groups(root / part.file.path, KINDS[what].schema)
        frames = (to_frame(group) for group in groups)
    named = from_host_key if _name(what) == "host" else from_key
    for frame in frames:
        names = [named(key) for key in frame.get_column("key")]
        yield frame.with_columns(
            pl.Series(_name(what), names, dtype=pl.String), batch=pl.lit(part.batch)
        )


def _write(part: Part, what: str, output: Output) -> None:
    schema, path = schema_of(what), part.reading.part(part.number, output.suffix)
    tables = (conform(frame, schema) for frame in _frames(part, what))
    with part.reading.reading():
        if output.suffix != ".parquet":
            rows = (row for table in tables for row in table.to_pylist(maps_as_pydicts="lossy"))
            output.write(path, ({n: _plain(n, v) for n, v in row.items()} for row in rows))
            return
        with creating(path) as file, pq.ParquetWriter(file, schema, compression="zstd") as writer:
            for table in tables:
                writer.write_table(table)


def _plain(name: str, value: Any) -> Any:
    """Returns a value for text formats: bytes as hex, a page's body as base64."""
    if isinstance(value, bytes):
        return base64.b64encode(value).decode() if name == "body" else value.hex()
    return value
