"""Links to pages, from Nutch's LinkDb: one row a link.

::

    Inlinks   number | from_url anchor | from_url anchor | …           until Nutch 1.21
              number | from_url anchor flag [map] | …                  since Nutch 1.22

Both have no version: a value has the form whose links end where the value ends.
"""

import struct
from typing import TypeAlias

import numpy as np
import polars as pl

from .byte_spans import bytes_of, read_texts
from .hadoop_faults import HadoopFault, OnFault, raise_fault
from .metadata_columns import METADATA_LIST, read_maps
from .record_keys import check_value_class, read_record_keys
from .sequence_files import RecordBlock, SequenceFileHeader
from .typed_values import read_map
from .writables import BadWritable, WritableReader

LinkDbRows: TypeAlias = pl.DataFrame
LINK_DB = pl.Schema(
    {
        "url": pl.String(),  # the target
        "from_url": pl.String(),
        "anchor": pl.String(),
        "metadata": METADATA_LIST,
    }
)
_COUNT = struct.Struct(">i")


class _LinkSpans:
    """Where the parts of links are in a buffer: flat lists of starts and lengths.

    Attributes:
        texts: Of the URL and the anchor of each link.
        maps: Of the map of each link, or of no bytes.
        rows: The record of each link.
    """

    def __init__(self) -> None:
        self.texts: tuple[list[int], list[int]] = [], []
        self.maps: tuple[list[int], list[int]] = [], []
        self.rows: list[int] = []

    def add(self, other: "_LinkSpans") -> None:
        """Adds the links of a record."""
        for mine, theirs in zip(
            (*self.texts, *self.maps), (*other.texts, *other.maps), strict=True
        ):
            mine += theirs
        self.rows += other.rows


def read_inlinks(
    block: RecordBlock, header: SequenceFileHeader, on_fault: OnFault = raise_fault
) -> LinkDbRows:
    """Returns the links of a block as rows of ``LINK_DB``.

    Args:
        on_fault: Called for each record that is left out.

    Raises:
        HadoopFileError: The file has other classes.
    """
    check_value_class(header, "Inlinks")
    urls, block = read_record_keys(block, header, on_fault)
    data = bytes_of(block.values)
    spans = _LinkSpans()
    forms = [True, False]
    ends = block.value_starts + block.value_lengths
    for row, (at, end) in enumerate(zip(block.value_starts.tolist(), ends.tolist(), strict=True)):
        for has_flags in forms:
            links = _read_links(data, at, end, row, has_flags)
            if links is not None:
                spans.add(links)
                if links.rows:  # without links both forms are equal
                    forms = [has_flags, not has_flags]
                break
        else:
            detail = "Inlinks of Nutch"
            on_fault(HadoopFault("bad_value", int(block.positions[row]), detail))
    return _link_rows(block, urls, spans)


def _read_links(data: bytes, at: int, end: int, row: int, has_flags: bool) -> _LinkSpans | None:
    """Returns the links of a record, if they end where it ends."""
    if at + 4 > end:
        return None
    (count,) = _COUNT.unpack_from(data, at)
    at += 4
    if not 0 <= count * 2 <= end - at:
        return None
    spans = _LinkSpans()
    starts, lengths = spans.texts
    for _ in range(count):
        for _ in range(2):
            if at >= end:
                return None
            length = data[at]
            at += 1
            if length > 127:
                length, at = _long_length(data, at - 1)
            starts.append(at)
            lengths.append(length)
            at += length
            if length < 0 or at > end:
                return None
        if has_flags:
            if at >= end or data[at] > 1:
                return None
            map_start = at + 1
            map_end = map_start if not data[at] else _end_of_map(data, map_start)
            if map_end > end:
                return None
            spans.maps[0].append(map_start)
            spans.maps[1].append(map_end - map_start)
            at = map_end
    spans.rows = [row] * count
    if not has_flags:
        spans.maps[0].extend([at] * count)
        spans.maps[1].extend([0] * count)
    return spans if at == end else None


def _long_length(data: bytes, at: int) -> tuple[int, int]:
    """Returns a length of several bytes, and where the text begins."""
    reader = WritableReader(data, at)
    try:
        return reader.read_vint(), reader.position
    except BadWritable:
        return -1, at


def _end_of_map(data: bytes, at: int) -> int:
    """Returns where a map ends; after the data if it does not."""
    reader = WritableReader(data, at)
    try:
        read_map(reader)
    except BadWritable:
        return len(data) + 1
    return reader.position


def _link_rows(block: RecordBlock, urls: pl.Series, spans: _LinkSpans) -> LinkDbRows:
    starts, lengths = (np.array(each, np.int64) for each in spans.texts)
    texts = read_texts(block.values, starts, lengths)
    starts, lengths = (np.array(each, np.int64) for each in spans.maps)
    maps, _ = read_maps(block.values, starts, lengths)
    columns = {
        "url": urls.gather(spans.rows),
        "from_url": texts.gather_every(2),
        "anchor": texts.gather_every(2, 1),
        "metadata": maps,
    }
    return pl.DataFrame(columns, schema=LINK_DB)
