"""Reads indexes of archives, to import chosen records: CDXJ, CDX, the columnar URL index (Parquet)."""

import json
from collections import defaultdict
from collections.abc import Iterator, Mapping
from pathlib import PurePosixPath
from typing import Any

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq

from ...web.archives.cdx import CdxColumns, cdx_legend
from ...web.base.errors import UsageError
from ..batches.seed_lines import lines
from ..storage.file_errors import errors_as
from ..storage.places import Place

# Common Crawl's names of the columns that say where a record is.
_COLUMNS = ("warc_filename", "warc_record_offset", "warc_record_length")
_LENGTH = "length"  # may be missing
_FIELDS = ("filename", "offset", _LENGTH)
_LARGEST = 1 << 50


def read_record_index(place: Place) -> tuple[dict[str, list[tuple[int, int]]], int]:
    """Returns the records that an index names.

    Args:
        place: A file whose name ends with ``.parquet``, or lines of CDXJ or CDX, perhaps packed.

    Returns:
        For each name of a file the positions and lengths of its records, in order, each once, where a
        length of 0 is unknown; and the number of rows that cannot be used.

    Raises:
        UsageError: It cannot be read, or is no such index.
    """
    records: dict[str, set[tuple[int, int]]] = defaultdict(set)
    bad_rows = 0
    rows = _parquet_rows(place) if place.suffix == ".parquet" else _rows_of_lines(place)
    for row in rows:
        record = _checked(row)
        if record is None:
            bad_rows += 1
        else:
            records[record[0]].add(record[1:])
    if not records:
        raise UsageError(
            f"index {str(place)!r} names no record: expected lines of CDXJ or CDX with name of the "
            f"file and offset, or Parquet with {', '.join(_COLUMNS)}"
        )
    return {name: sorted(records[name]) for name in sorted(records)}, bad_rows


def _checked(row: Mapping[str, Any] | None) -> tuple[str, int, int] | None:
    """Returns name, position and length; None if one of them cannot be right.

    A name is a path below the folder of the archive: it must not lead out of it.
    """
    try:
        name, offset, length = (str({_LENGTH: 0, **(row or {})}[field]) for field in _FIELDS)
        path = PurePosixPath(name)
        if not name or "\0" in name or path.is_absolute() or ".." in path.parts or ":" in name:
            return None
        at, size = int(offset), int(length)
    except (KeyError, ValueError):
        return None
    return (name, at, size) if 0 <= at < _LARGEST and 0 <= size < _LARGEST else None


def _rows_of_lines(place: Place) -> Iterator[Mapping[str, Any] | None]:
    columns = CdxColumns()
    with errors_as(f"cannot read index {str(place)!r}"), place.open_for_reading() as file:
        for line in lines(file):
            legend = cdx_legend(line)
            if legend is not None:
                columns = legend
            elif line.strip() and not line.startswith("!"):
                yield columns.place_in(line) or _cdxj_row(line)


def _cdxj_row(line: str) -> Mapping[str, Any] | None:
    at = line.find("{")
    try:
        row = json.loads(line[at:]) if at >= 0 else None
    except (ValueError, RecursionError):
        return None
    return row if isinstance(row, dict) else None


def _parquet_rows(place: Place) -> Iterator[Mapping[str, Any]]:
    try:
        with errors_as(f"cannot read index {str(place)!r}"):
            source, _ = place.parquet_source()
        with pq.ParquetFile(source) as file:
            missing = [name for name in _COLUMNS if name not in file.schema_arrow.names]
            if missing:
                raise UsageError(f"index {str(place)!r} has no column {missing[0]!r}")
            for rows in file.iter_batches(columns=list(_COLUMNS)):
                frame = pl.DataFrame(pa.Table.from_batches([rows]))
                yield from frame.rename(dict(zip(_COLUMNS, _FIELDS, strict=True))).iter_rows(
                    named=True
                )
    except (OSError, pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        raise UsageError(f"index {str(place)!r} cannot be read: {error}") from error
