"""Functions shared by the commands that only read: workers write part files, the command joins them."""

import csv
import dataclasses
import gzip
import io
import json
import os
import re
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, cast

import apache_beam as beam
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq

from ...io.snapshots.manifest import Manifest, Pinned, newest_manifest
from ...io.snapshots.operations import new_id
from ...io.storage.files import creating, names
from ...io.storage.local_place import LocalPlace
from ...io.storage.parquet_files import row_groups
from ...io.storage.place_addresses import place_of
from ...io.storage.places import Place
from ...io.table.opening import open_table
from ...io.tablets.file_lists import DataFile
from ...io.tablets.tablets import Tablet, tablets
from ...policy.components.columns import Column
from ...policy.components.schema import conform
from ...policy.components.vocabulary import record_of, shown_frame, shown_schema
from ...web.base.errors import UsageError
from ..base.command import NUTCH_FILE
from ..launch.launch import LaunchOptions, launch_args, preflight, workers_elsewhere
from ..launch.runner import make_pipeline, run_pipeline


@dataclasses.dataclass(frozen=True)
class Reading(Pinned):
    """The snapshot that an export reads, and the folder of its part files.

    Attributes:
        address: Address of the table.
        folder: Address of the folder for the part files.
        snapshot: Number of the snapshot; the launcher pins it, because nothing is changed.
    """

    address: str
    folder: str
    snapshot: int

    def part_file(self, number: int, suffix: str) -> Place:
        """Returns the place of a part file; they are joined in the order of their numbers."""
        return place_of(self.folder) / f"part-{number:08d}{suffix}"

    def find(self, component: str, key: str) -> dict[str, Any] | None:
        """Returns the row of a key in a component of tablets, or None."""
        rows = self.find_rows(component, pl.Series("key", [key]))
        return rows.row(0, named=True) if len(rows) else None


@dataclasses.dataclass(frozen=True)
class ReadItem:
    """A tablet or file that one worker reads, with the batch or index that owns it; or the list of batches."""

    reading: Reading
    number: int
    tablet: Tablet | None = None
    file: DataFile | None = None
    owner: str = ""


def tablets_of(reading: Reading, component: str = "state") -> Iterator[ReadItem]:
    """Yields an item for each tablet of a component."""
    for number, tablet in enumerate(tablets(reading.files(component))):
        yield ReadItem(reading, number, tablet)


@contextmanager
def export_parts(
    address: str,
    build: Callable[[beam.PCollection[ReadItem], Reading], Any],
    beam_args: Sequence[str],
    options: LaunchOptions,
    divide: Callable[[Reading], Iterator[ReadItem]] = tablets_of,
) -> Iterator[tuple[Manifest, list[Place]]]:
    """Runs a pipeline that writes files; yields the snapshot and the files, in order.

    The files are removed afterwards.

    Args:
        address: Address of the table.
        build: Builds the pipeline from a collection of items.
        beam_args: Arguments for Beam.
        options: Options of the launch.
        divide: Function that divides the snapshot into items.
    """
    preflight(address, options, beam_args)
    manifest = newest_manifest(address)
    address = open_table(address).worker_address()
    folder = _folder(address, elsewhere=workers_elsewhere(beam_args))
    reading = Reading(address, str(folder), manifest.snapshot)
    try:
        pipeline = make_pipeline([*launch_args(options, beam_args), *beam_args])
        items = (
            pipeline
            | "Reading" >> beam.Create([reading])
            | "Parts" >> beam.FlatMap(divide).with_output_types(ReadItem)
            # Spreads the items over the workers.
            | "Spread" >> beam.Reshuffle()
        )
        build(items, reading)
        run_pipeline(pipeline)
        yield manifest, [folder / name for name in names(folder) if not name.startswith(".")]
    finally:
        folder.remove_tree()


def _folder(address: str, *, elsewhere: bool) -> Place:
    """Returns a folder for part files, in the table so that workers elsewhere find it.

    If no worker is elsewhere, a temporary folder takes the place of one in a store, or of one that
    cannot be made: a user without permission to write in a table can still read it.
    """
    folder = open_table(address).files / "exports" / new_id()
    try:
        folder.make_folder()
    except OSError as error:
        if elsewhere:
            reason = f"cannot write the parts to {str(folder)!r}: {error.strerror}"
            raise UsageError(reason) from error
    else:
        if elsewhere or folder.has_cheap_seeks:
            return folder
    return LocalPlace(tempfile.mkdtemp(prefix="nutbeam-"))


@dataclasses.dataclass(frozen=True)
class Output:
    """The file that an export writes.

    Attributes:
        path: Path of the file; None is standard output.
        suffix: Its format: ``.jsonl``, ``.csv`` or ``.parquet``.
        compressed: Whether it is compressed with gzip.
    """

    path: Path | None
    suffix: str
    compressed: bool = False

    def write(self, path: Place, records: Iterable[Mapping[str, Any]]) -> None:
        """Writes records as a part file, in CSV or JSON lines."""
        self.write_text(path, (_line(record, self.suffix) for record in records))

    def write_text(self, path: Place, texts: Iterable[str]) -> None:
        """Writes texts as a part file."""
        with creating(path) as part, io.TextIOWrapper(part, encoding="utf-8", newline="") as text:
            text.writelines(texts)

    def write_frames(
        self, path: Place, frames: Iterable[pl.DataFrame], columns: Sequence[Column]
    ) -> None:
        """Writes stored rows as a part file, with these columns as users see them."""
        if self.suffix != ".parquet":
            rows = (row for frame in frames for row in frame.iter_rows(named=True))
            self.write(path, (record_of(row, columns) for row in rows))
            return
        schema = shown_schema(columns)
        with creating(path) as file, pq.ParquetWriter(file, schema, compression="zstd") as writer:
            for frame in frames:
                writer.write_table(conform(shown_frame(frame, columns), schema))

    @contextmanager
    def open_file(self) -> Iterator[IO[bytes]]:
        """Opens the file, or standard output; the same content makes the same file."""
        if self.path is None:
            yield sys.stdout.buffer
            return
        with self.path.open("wb") as file:
            if not self.compressed:
                yield file
                return
            # Without name and time.
            with gzip.GzipFile("", "wb", 6, file, mtime=0) as packed:
                yield cast(IO[bytes], packed)

    def join(self, parts: list[Place], names: Iterable[str], schema: pa.Schema = None) -> int:
        """Joins all part files, for CSV after a line of column names; returns the number of rows.

        Args:
            parts: The part files in order.
            names: Names of the columns.
            schema: Schema of Parquet files.
        """
        if self.suffix == ".parquet":
            return _join_parquet(parts, self.path, schema)
        rows = quotes = 0
        with self.open_file() as out:
            out.write(csv_line(names).encode() if self.suffix == ".csv" else b"")
            for part in parts:
                with part.open_for_reading() as file:
                    while block := file.read(1 << 20):
                        out.write(block)
                        # A line break within quotes does not end a row of CSV.
                        pieces = block.split(b'"') if self.suffix == ".csv" else [block]
                        rows += sum(piece.count(b"\n") for piece in pieces[quotes % 2 :: 2])
                        quotes += len(pieces) - 1
        return rows


def _line(record: Mapping[str, Any], suffix: str) -> str:
    """Returns a record as a line of CSV or JSON."""
    return csv_line(record.values()) if suffix == ".csv" else json.dumps(record) + "\n"


def output_of(text: str, flag: str, suffix: str = "") -> Output:
    """Returns the output for an option's value: a path, or ``-`` for standard output.

    Raises:
        UsageError: The file cannot be written; raised before any work is done.
    """
    if text == "-":
        return Output(None, suffix or ".jsonl")
    path = Path(text)
    folder = path.absolute().parent
    if not folder.is_dir():
        raise UsageError(f"no folder {str(folder)!r} for {flag} {text!r}")
    if path.is_dir():
        raise UsageError(f"{flag} must be a file, got the folder {text!r}")
    if not os.access(path if path.exists() else folder, os.W_OK):
        raise UsageError(f"cannot write {flag} {text!r}: permission denied")
    compressed = path.suffix == ".gz"
    return Output(path, suffix or (path.with_suffix("") if compressed else path).suffix, compressed)


def check_dump(dump: str, regex: str, *endings: str) -> None:
    """Checks ``--dump`` and ``--regex`` of a command that writes records.

    Raises:
        ValueError: The file has another ending, and is not that of Nutch; or the expression is wrong.
    """
    if dump not in ("", "-") and Path(dump).suffix not in endings and Path(dump).name != NUTCH_FILE:
        raise ValueError(f"--dump must end in {' or '.join(endings)}, got {dump!r}")
    try:
        re.compile(regex)
    except re.error as error:
        raise ValueError(f"--regex is no regular expression: {error}: {regex!r}") from error


def _join_parquet(parts: list[Place], path: Path | None, schema: pa.Schema) -> int:
    rows = 0
    with pq.ParquetWriter(path, schema, compression="zstd") as writer:
        for part in parts:
            for group in row_groups(part, schema):
                writer.write_table(group)
                rows += len(group)
    return rows


def csv_line(values: Iterable[Any]) -> str:
    """Returns a line of a CSV file; nested values are JSON.

    >>> csv_line(["a,b", None, "=1+1", {"n": 1}])[:-1]
    '"a,b",,\\'=1+1,"{""n"": 1}"'
    """
    line = io.StringIO()
    plain = [json.dumps(v) if isinstance(v, dict | list) else v for v in values]
    # A spreadsheet must not interpret the text of a page as a formula.
    safe = [
        f"'{v}" if isinstance(v, str) and v[:1] in ("=", "+", "-", "@", "\t", "\r") else v
        for v in plain
    ]
    csv.writer(line, lineterminator="\n").writerow(safe)
    return line.getvalue()
