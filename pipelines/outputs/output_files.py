"""The files that rows are written to, for users: JSON lines, CSV, Parquet; workers write parts of them."""

import csv
import gzip
import io
import json
import os
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, cast

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq

from ...io.storage.file_errors import errors_as
from ...io.storage.files import creating
from ...io.storage.parquet_files import row_groups
from ...io.storage.places import Place
from ...policy.components.columns import Column
from ...policy.components.schema import conform
from ...policy.components.vocabulary import record_of, shown_frame, shown_schema
from ...web.base.dataclass import dataclass
from ...web.base.errors import UsageError


@dataclass(frozen=True)
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
        write_parquet(path, (conform(shown_frame(f, columns), schema) for f in frames), schema)

    @contextmanager
    def open_file(self) -> Iterator[IO[bytes]]:
        """Opens the file, or standard output; the same content makes the same file.

        Until the block ends, the file is as it was before.
        """
        if self.path is None:
            yield sys.stdout.buffer
            return
        with _replaced_at_end(self.path) as path, path.open("wb") as file:
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


@contextmanager
def _replaced_at_end(path: Path) -> Iterator[Path]:
    """Yields where a file is written, so that a kill leaves the old file or none, but no part of the new one.

    A pipe, a device, and a file in a folder where nothing may be created are written in place.
    """
    path = path.resolve()
    if (path.exists() and not path.is_file()) or not os.access(path.parent, os.W_OK):
        yield path
        return
    unfinished = path.with_name(f".{path.name}.unfinished")
    try:
        with errors_as(f"cannot write {str(path)!r}"):
            yield unfinished
            unfinished.replace(path)
    finally:
        unfinished.unlink(missing_ok=True)


def write_parquet(path: Place, tables: Iterable[pa.Table], schema: pa.Schema) -> None:
    """Writes rows as a part file in Parquet, one table after the other."""
    with creating(path) as file, pq.ParquetWriter(file, schema, compression="zstd") as writer:
        for table in tables:
            writer.write_table(table)


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


def _join_parquet(parts: list[Place], path: Path | None, schema: pa.Schema) -> int:
    rows = 0
    assert path is not None
    with (
        _replaced_at_end(path) as place,
        pq.ParquetWriter(place, schema, compression="zstd") as writer,
    ):
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
