"""CrawlDatum, a row of Nutch's CrawlDb and of its segments, in columns: versions 1 to 7.

::

    version status fetch_time retries interval score | modified signature_length signature | flag map
    1       1      8          1       4        4     | 8        1                n         | 1    m
    all versions                                     | from 3                              | from 4

Numbers are big-endian. Up to version 5 the interval is a float of days, after that an int of seconds. In
version 1 the number of links stands in place of the score. Before version 5 statuses were numbered
otherwise. Up to version 6 the map is of Nutch's own class. See org.apache.nutch.crawl.CrawlDatum.
"""

from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import polars as pl

from .byte_spans import Integers, copy_spans, read_rows
from .hadoop_faults import HadoopFault, OnFault, raise_fault
from .metadata_columns import METADATA_LIST, read_maps, read_whole_map
from .record_keys import check_value_class, read_record_keys, report_rows
from .sequence_files import RecordBlock, SequenceFileHeader
from .typed_values import TypedEntry, read_map, read_nutch_map
from .writables import BadWritable, WritableReader

CrawlDatumRows: TypeAlias = pl.DataFrame
CRAWL_DATUMS = pl.Schema(
    {
        "url": pl.String(),
        "status": pl.UInt8(),  # as in version 7, see DATUM_STATUS_NAMES
        "fetch_time": pl.Int64(),  # ms since 1970; in a CrawlDb that of the next fetch
        "retries": pl.Int8(),
        "interval": pl.Int32(),  # s
        "score": pl.Float32(),
        "modified_time": pl.Int64(),  # ms since 1970, or 0
        "signature": pl.Binary(),
        "metadata": METADATA_LIST,
    }
)
DATUM_STATUS_NAMES = {
    0x01: "db_unfetched", 0x02: "db_fetched", 0x03: "db_gone", 0x04: "db_redir_temp",
    0x05: "db_redir_perm", 0x06: "db_notmodified", 0x07: "db_duplicate", 0x08: "db_orphan",
    0x21: "fetch_success", 0x22: "fetch_retry", 0x23: "fetch_redir_temp", 0x24: "fetch_redir_perm",
    0x25: "fetch_gone", 0x26: "fetch_notmodified",
    0x41: "signature", 0x42: "injected", 0x43: "linked", 0x44: "parse_metadata",
}  # fmt: skip

_FIELDS = [("version", "u1"), ("status", "u1"), ("fetch_time", ">i8"), ("retries", "i1")]
_LATER = [("modified_time", ">i8"), ("signature_bytes", "i1")]
_DAYS, _SECONDS, _SCORE, _LINKS = (
    ("days", ">f4"),
    ("seconds", ">i4"),
    ("score", ">f4"),
    ("links", ">i4"),
)
_LAYOUTS = {
    1: np.dtype([*_FIELDS, _DAYS, _LINKS]),
    2: np.dtype([*_FIELDS, _DAYS, _SCORE]),
    **dict.fromkeys((3, 4, 5), np.dtype([*_FIELDS, _DAYS, _SCORE, *_LATER])),
    **dict.fromkeys((6, 7), np.dtype([*_FIELDS, _SECONDS, _SCORE, *_LATER])),
}
_SECONDS_PER_DAY = 86400
# Statuses before version 5, and those of today.
_OLD_STATUSES = {0: 0x41, 1: 0x01, 2: 0x02, 3: 0x03, 4: 0x43, 5: 0x21, 6: 0x22, 7: 0x25}


def read_crawl_datums(
    block: RecordBlock, header: SequenceFileHeader, on_fault: OnFault = raise_fault
) -> CrawlDatumRows:
    """Returns the records of a block as rows of ``CRAWL_DATUMS``.

    Args:
        on_fault: Called for each record that is left out, and for each whose metadata are left out.

    Raises:
        HadoopFileError: The file has other classes.
    """
    check_value_class(header, "CrawlDatum")
    urls, block = read_record_keys(block, header, on_fault)
    rows = read_datum_values(block, on_fault)
    # Not with_columns: polars plans a query for it, which takes longer than the work.
    indexes, *columns = rows.get_columns()
    return pl.DataFrame([urls.gather(indexes).alias("url"), *columns])


def read_datum_values(block: RecordBlock, on_fault: OnFault) -> pl.DataFrame:
    """Returns the values of a block as columns of ``CRAWL_DATUMS``, and ``row``: their indexes."""
    long_enough = block.value_lengths > 0
    versions = np.zeros(block.rows, np.uint8)
    versions[long_enough] = block.values[block.value_starts[long_enough]]
    frames = []
    readable = np.zeros(block.rows, bool)
    for version in np.unique(versions).tolist():
        if version in _LAYOUTS:
            chosen = versions == version
            frame, fits = _read_version(block, chosen, version, on_fault)
            frames.append(frame)
            readable[np.nonzero(chosen)[0][fits]] = True
    report_rows(block, ~readable, "bad_value", "a CrawlDatum of version 1 to 7", on_fault)
    schema = {
        "row": pl.Int64(),
        **{name: CRAWL_DATUMS[name] for name in CRAWL_DATUMS if name != "url"},
    }
    if len(frames) == 1:
        return frames[0]
    return pl.concat([pl.DataFrame(schema=schema), *frames]).sort("row")


def _read_version(
    block: RecordBlock, chosen: npt.NDArray[np.bool_], version: int, on_fault: OnFault
) -> tuple[pl.DataFrame, npt.NDArray[np.bool_]]:
    """Reads the records of a version; returns them, and which of them are readable."""
    layout = _LAYOUTS[version]
    (rows,) = np.nonzero(chosen)
    fits = block.value_lengths[rows] >= layout.itemsize
    ends = block.value_starts[rows] + block.value_lengths[rows]
    fields = read_rows(block.values, block.value_starts[rows[fits]], layout)
    cursor = block.value_starts[rows] + layout.itemsize
    signature_bytes = np.zeros(len(rows), np.int64)
    if version >= 3:
        signature_bytes[fits] = np.maximum(fields["signature_bytes"], 0)
    map_starts = cursor + signature_bytes
    has_map = np.zeros(len(rows), bool)
    if version >= 4:
        fits &= map_starts < ends
        has_map[fits] = block.values[map_starts[fits]] != 0
        map_starts += 1
    fits &= np.where(has_map, map_starts < ends, map_starts == ends)
    fields = fields[fits[block.value_lengths[rows] >= layout.itemsize]]
    rows, cursor, map_starts, ends = rows[fits], cursor[fits], map_starts[fits], ends[fits]
    read_one = read_whole_map if version == 7 else _read_old_map
    metadata, bad = read_maps(block.values, map_starts, ends - map_starts, read_one)
    for index in bad.tolist():
        detail = "the map of a CrawlDatum; its other fields are read"
        on_fault(HadoopFault("bad_metadata", int(block.positions[rows[index]]), detail))
    spans = copy_spans(block.values, cursor, signature_bytes[fits], empty_is_null=True)
    signatures = pl.Series(pl.from_arrow(spans), dtype=pl.Binary)
    return _frame(rows, fields, version, signatures, metadata), fits


def _frame(
    rows: Integers,
    fields: npt.NDArray[np.void],
    version: int,
    signatures: pl.Series,
    metadata: pl.Series,
) -> pl.DataFrame:
    names = fields.dtype.names or ()
    if "seconds" in names:
        interval = fields["seconds"].astype(np.int32)
    else:
        seconds = np.nan_to_num(fields["days"].astype(np.float64) * _SECONDS_PER_DAY)
        interval = np.clip(np.rint(seconds), 0, np.iinfo(np.int32).max).astype(np.int32)
    status = pl.Series(fields["status"])
    if version < 5:
        status = status.replace_strict(_OLD_STATUSES, default=0x01, return_dtype=pl.UInt8)
    none = np.zeros(len(rows), np.int64)
    later = "modified_time" in names
    return pl.DataFrame(
        {
            "row": rows.astype(np.int64),
            "status": status,
            "fetch_time": fields["fetch_time"].astype(np.int64),
            "retries": fields["retries"],
            "interval": interval,
            "score": fields["score" if "score" in names else "links"].astype(np.float32),
            "modified_time": fields["modified_time"].astype(np.int64) if later else none,
            "signature": signatures,
            "metadata": metadata,
        }
    )


def _read_old_map(data: bytes) -> list[TypedEntry]:
    """Reads a map of the versions 4 to 6.

    Nutch's own class wrote it, in Nutch 0.8 with texts of the class UTF8. Later versions of Nutch read it
    as Hadoop's class, which it then must be.
    """
    for read in (read_nutch_map, _read_oldest_map, read_map):
        reader = WritableReader(data)
        try:
            entries = read(reader)
            reader.check_end()
            return entries
        except BadWritable:
            continue
    raise BadWritable("a MapWritable of Nutch or of Hadoop")


def _read_oldest_map(reader: WritableReader) -> list[TypedEntry]:
    return read_nutch_map(reader, old=True)
