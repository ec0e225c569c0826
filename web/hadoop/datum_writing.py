"""Encodes rows as CrawlDatum of version 7, so that Nutch opens a CrawlDb that is exported."""

import struct
from collections.abc import Iterator

from .crawl_datums import CRAWL_DATUMS, CrawlDatumRows
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
    names = [name for name in CRAWL_DATUMS if name not in ("signature", "metadata")]
    encoded_maps: dict[tuple[TypedEntry, ...], bytes] = {}
    columns = rows.select(*names, "signature", "metadata")
    for (
        url,
        status,
        fetch_time,
        retries,
        interval,
        score,
        modified,
        signature,
        metadata,
    ) in columns.iter_rows():
        signature = signature or b""
        if len(signature) > _MAX_SIGNATURE_BYTES:
            raise ValueError(f"a signature must have at most 127 bytes, got {len(signature)}")
        fixed = _FIXED.pack(
            _VERSION, status, fetch_time, retries, interval, score, modified, len(signature)
        )
        map_bytes = b"\x00"
        if metadata:
            entries = tuple(
                TypedEntry(each["key"], each["kind"], each["value"]) for each in metadata
            )
            if entries not in encoded_maps:
                if len(encoded_maps) > 10_000:
                    encoded_maps.clear()
                encoded_maps[entries] = b"\x01" + encode_map(entries)
            map_bytes = encoded_maps[entries]
        yield url.encode("utf-8", "replace"), fixed + signature + map_bytes
