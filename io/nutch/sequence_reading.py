"""Reads SequenceFiles of Nutch, on this machine or in a store: the records of a part of a file."""

import contextlib
from collections.abc import Callable, Iterator
from typing import BinaryIO, cast

import polars as pl

from ...web.hadoop.crawl_datums import read_crawl_datums
from ...web.hadoop.hadoop_faults import OnFault
from ...web.hadoop.host_datums import read_host_datums
from ...web.hadoop.link_values import read_inlinks
from ...web.hadoop.segment_values import read_contents, read_parse_data, read_parse_texts
from ...web.hadoop.sequence_files import (
    RecordBlock,
    SequenceFileHeader,
    read_blocks,
    read_header,
)
from ...web.nutch_text.text_records import DATUM, HOSTDB_HOST, LINKDB_LINK
from ..storage.file_errors import errors_as
from ..storage.place_addresses import place_of


@contextlib.contextmanager
def open_sequence(address: str) -> Iterator[BinaryIO]:
    """Opens a file that can seek.

    Raises:
        UserError: It cannot be read; also if that fails in the block.
    """
    place = place_of(address)
    with (
        errors_as(f"cannot read {address}"),
        place.open_parts(place.size_and_version()[0]) as file,
    ):
        yield cast(BinaryIO, file)


def read_part(
    kind: str, address: str, part: tuple[int, int | None], on_fault: OnFault
) -> Iterator[pl.DataFrame]:
    """Yields the records of a part of a file.

    Args:
        kind: Kind of the file, see ``NutchFile``.
        address: Address of the file.
        part: Its first byte, and the byte after it; None: it ends with the file.
        on_fault: Called for each damaged part of the file.

    Yields:
        ``DATUM``; of a linkdb ``LINKDB_LINK``, of a hostdb ``HOSTDB_HOST``, of ``content``, ``parse_data``
        and ``parse_text`` CONTENTS, PARSE_DATA and PARSE_TEXTS of ``web/hadoop/segment_values.py``.
    """
    read = _READERS.get(kind, _datums)
    start, end = part
    with open_sequence(address) as file:
        header = read_header(file)
        for block in read_blocks(file, start=start, end=end, on_fault=on_fault, header=header):
            yield read(block, header, on_fault)


def first_url_after(kind: str, address: str, start: int) -> str | None:
    """Returns the URL of the first record of a part of a file; None if there is none."""
    parts = read_part(kind, address, (start, None), lambda _: None)
    with contextlib.closing(parts):  # type: ignore[type-var]
        return next((rows.item(0, "url") for rows in parts if len(rows)), None)


def _datums(block: RecordBlock, header: SequenceFileHeader, on_fault: OnFault) -> pl.DataFrame:
    rows = read_crawl_datums(block, header, on_fault).rename({"interval": "fetch_interval"})
    return _with_plain_metadata(rows).select(DATUM.names()).cast(DATUM)


def _links(block: RecordBlock, header: SequenceFileHeader, on_fault: OnFault) -> pl.DataFrame:
    links = read_inlinks(block, header, on_fault).rename({"from_url": "source"})
    return links.select(LINKDB_LINK.names())


def _hosts(block: RecordBlock, header: SequenceFileHeader, on_fault: OnFault) -> pl.DataFrame:
    names = {"homepage_url": "homepage", "not_modified": "notmodified"}
    hosts = _with_plain_metadata(read_host_datums(block, header, on_fault).rename(names))
    return hosts.select(HOSTDB_HOST.names()).cast(HOSTDB_HOST)


def _with_plain_metadata(rows: pl.DataFrame) -> pl.DataFrame:
    """Returns rows with metadata as maps of texts; null for those without entries."""
    field = pl.element().struct.field
    entries = pl.col("metadata").list.eval(pl.struct(key=field("key"), value=field("value")))
    filled = pl.when(pl.col("metadata").list.len() > 0).then(entries)
    return rows.with_columns(filled.cast(DATUM["metadata"]).alias("metadata"))


_READERS: dict[str, Callable[[RecordBlock, SequenceFileHeader, OnFault], pl.DataFrame]] = {
    "linkdb": _links,
    "hostdb": _hosts,
    "content": read_contents,
    "parse_data": read_parse_data,
    "parse_text": read_parse_texts,
}
