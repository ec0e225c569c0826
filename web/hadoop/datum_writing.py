"""Encodes rows as CrawlDatum of version 7, so that Nutch opens a CrawlDb that is exported."""

import itertools
import struct
from collections.abc import Iterator

import polars as pl

from .crawl_datums import CrawlDatumRows
from .typed_values import TypedEntry
from .writable_encoding import encode_map

CRAWL_DATUM_CLASS = "org.apache.nutch.crawl.CrawlDatum"
_VERSION = 7
_FIXED = struct.Struct(">BBqbifqB")
_MAX_SIGNATURE_BYTES = 127  # Nutch writes the length as a signed byte


def encode_crawl_datums(rows: CrawlDatumRows) -> Iterator[tuple[bytes, bytes]]:
    """Yields (bytes of the URL, bytes of the CrawlDatum) for rows of ``CRAWL_DATUMS``.

    Raises:
        ValueError: A signature is longer than Nutch can read.
    """
    fixed_names = ("url", "status", "fetch_time", "retries", "interval", "score", "modified_time")
    for (url, status, *times_and_score, modified), signature, entries in zip(
        rows.select(fixed_names).iter_rows(),
        rows.get_column("signature").to_list(),
        _entry_lists(rows.get_column("metadata")),
        strict=True,
    ):
        signature = signature or b""
        if len(signature) > _MAX_SIGNATURE_BYTES:
            raise ValueError(f"a signature must have at most 127 bytes, got {len(signature)}")
        fixed = _FIXED.pack(_VERSION, status, *times_and_score, modified, len(signature))
        map_bytes = b"\x01" + encode_map(entries) if entries else b"\x00"
        yield url.encode("utf-8", "replace"), fixed + signature + map_bytes


def _entry_lists(metadata: pl.Series) -> Iterator[list[TypedEntry]]:
    """Yields the entries of each row: polars makes dictionaries of structs, which takes much longer."""
    counts = metadata.list.len().fill_null(0).to_list()
    structs = metadata.filter(metadata.list.len() > 0).explode().struct
    columns = (structs.field(name).to_list() for name in TypedEntry._fields)
    entries = map(TypedEntry, *columns)
    for count in counts:
        yield list(itertools.islice(entries, count))
