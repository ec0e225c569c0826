"""Reads SequenceFiles of Nutch, on this machine or in a store: the records of a part of a file."""

import contextlib
from collections.abc import Iterator
from typing import IO

import polars as pl

from ...web.hadoop.crawl_datums import read_crawl_datums
from ...web.hadoop.hadoop_faults import OnFault
from ...web.hadoop.sequence_files import read_blocks, read_header
from ...web.nutch_text.text_records import DATUM
from ..storage.file_errors import errors_as
from ..storage.place_addresses import place_of


@contextlib.contextmanager
def open_sequence(address: str) -> Iterator[IO[bytes]]:
    """Opens a file that can seek.

    Raises:
        UserError: It cannot be read; also if that fails in the block.
    """
    place = place_of(address)
    with (
        errors_as(f"cannot read {address}"),
        place.open_parts(place.size_and_version()[0]) as file,
    ):
        yield file


def read_datums(
    address: str, start: int, end: int | None, on_fault: OnFault
) -> Iterator[pl.DataFrame]:
    """Yields records of a CrawlDb, or of a segment, as ``DATUM``.

    Args:
        address: Address of the file.
        start: First byte of the part.
        end: First byte after it; None: the part ends with the file.
        on_fault: Called for each damaged part.
    """
    with open_sequence(address) as file:
        header = read_header(file)
        for block in read_blocks(file, start=start, end=end, on_fault=on_fault, header=header):
            yield _plain_datums(read_crawl_datums(block, header, on_fault))


def _plain_datums(rows: pl.DataFrame) -> pl.DataFrame:
    """Returns rows with metadata as maps of texts; null for those without entries."""
    field = pl.element().struct.field
    entries = pl.col("metadata").list.eval(pl.struct(key=field("key"), value=field("value")))
    filled = pl.when(pl.col("metadata").list.len() > 0).then(entries)
    plain = rows.rename({"interval": "fetch_interval"}).with_columns(filled.alias("metadata"))
    return plain.select(DATUM.names()).cast(DATUM)
