"""What the commands that only read share: parts written by workers, put together here."""

import contextlib
import csv
import dataclasses
import io
import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, BinaryIO

import apache_beam as beam
import pyarrow as pa
import pyarrow.parquet as pq

from ...io.snapshots.manifest import Pinned, newest_manifest
from ...io.snapshots.operations import new_id
from ...io.storage.files import names, opened, remove_tree
from ...io.storage.parquet_files import parquet_file
from ...io.storage.places import Place, place_of
from ...io.storage.reach import is_shared, temporary_folder
from ...io.table.opening import open_table
from ...web.base.errors import UsageError
from ..launch.launch import LaunchOptions, launch_args, preflight, worker_address, workers_elsewhere
from ..launch.runner import make_pipeline, run_pipeline


@dataclasses.dataclass(frozen=True)
class Reading(Pinned):
    """What an export reads, and where its parts go.

    Attributes:
        table: Address of the table.
        folder: Where the parts go.
        snapshot: Number of the snapshot; pinned at launch, as nothing is changed.
    """

    table: str
    folder: str
    snapshot: int

    def part(self, number: int, suffix: str) -> Place:
        """Returns the place of a part; parts are put together in the order of their numbers."""
        return place_of(self.folder) / f"part-{number:08d}{suffix}"


@contextlib.contextmanager
def exported(
    table: str,
    build: Callable[[Any, Reading], Any],
    beam_args: Sequence[str],
    options: LaunchOptions,
) -> Iterator[list[Place]]:
    """Runs a pipeline that writes parts; yields them in order, and removes them afterwards."""
    preflight(table, options, beam_args)
    manifest = newest_manifest(table)
    table = worker_address(table)
    folder = _folder(table, elsewhere=workers_elsewhere(beam_args))
    reading = Reading(table, str(folder), manifest.snapshot)
    try:
        pipeline = make_pipeline([*launch_args(options, beam_args), *beam_args])
        build(pipeline | "Reading" >> beam.Create([reading]), reading)
        run_pipeline(pipeline)
        yield [folder / name for name in names(folder) if not name.startswith(".")]
    finally:
        remove_tree(folder)


def _folder(table: str, *, elsewhere: bool) -> Place:
    """Returns a folder for parts: in the table, where workers elsewhere find it, too."""
    folder = open_table(table).files / "exports" / new_id()
    if is_shared(folder):
        return folder if elsewhere else temporary_folder()
    try:
        Path(str(folder)).mkdir(parents=True)
    except OSError as error:  # who may only read a table may export it all the same
        if elsewhere:
            raise UsageError(
                f"cannot write the parts to {str(folder)!r}: {error.strerror}"
            ) from error
        return temporary_folder()
    return folder


def check_output(path: Path, flag: str) -> None:
    """Refuses a place where no file can be written, before any work is done.

    Raises:
        UsageError: There is no such folder, or it or the file may not be written.
    """
    folder = path.absolute().parent
    if not folder.is_dir():
        raise UsageError(f"no folder {str(folder)!r} for {flag} {str(path)!r}")
    if path.is_dir():
        raise UsageError(f"{flag} must be a file, got the folder {str(path)!r}")
    if not os.access(path if path.exists() else folder, os.W_OK):
        raise UsageError(f"cannot write {flag} {str(path)!r}: permission denied")


def join_bytes(parts: list[Place], out: BinaryIO, head: bytes = b"") -> int:
    """Writes all parts, one behind the other, to an open file; returns how many lines."""
    out.write(head)
    lines = 0
    for part in parts:
        with opened(part) as file:
            while block := file.read(1 << 20):
                lines += block.count(b"\n")
                out.write(block)
    return lines


def join_parquet(parts: list[Place], out: Path, schema: pa.Schema) -> int:
    """Writes all rows of Parquet parts to one file; returns how many."""
    rows = 0
    with pq.ParquetWriter(out, schema, compression="zstd") as writer:
        for part in parts:
            with parquet_file(part) as file:
                for group in range(file.num_row_groups):
                    table = file.read_row_group(group)
                    writer.write_table(table)
                    rows += len(table)
    return rows


def line_of(record: Mapping[str, Any], suffix: str) -> str:
    """Returns a record as a line of a CSV file (``.csv``) or of JSON lines."""
    return csv_line(record.values()) if suffix == ".csv" else json.dumps(record) + "\n"


def csv_line(values: Iterable[Any]) -> str:
    """Returns a line of a CSV file; what is nested is JSON.

    >>> csv_line(["a,b", None, "=1+1", {"n": 1}])[:-1]
    '"a,b",,\\'=1+1,"{""n"": 1}"'
    """
    line = io.StringIO()
    plain = [json.dumps(v) if isinstance(v, dict | list) else v for v in values]
    # A spreadsheet must not take what a page sent for a formula.
    safe = [
        f"'{v}" if isinstance(v, str) and v[:1] in ("=", "+", "-", "@", "\t", "\r") else v
        for v in plain
    ]
    csv.writer(line, lineterminator="\n").writerow(safe)
    return line.getvalue()
