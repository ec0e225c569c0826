"""SequenceFiles in memory, for tests: rows of a CrawlDb, and bytes that are damaged."""

import io
import json
import random
import tarfile

import polars as pl
from here import TESTS

from nutbeam.web.hadoop.crawl_datums import CRAWL_DATUMS, read_crawl_datums
from nutbeam.web.hadoop.datum_writing import CRAWL_DATUM_CLASS, encode_crawl_datums
from nutbeam.web.hadoop.sequence_files import read_blocks, read_header
from nutbeam.web.hadoop.sequence_writers import SequenceFileWriter
from nutbeam.web.hadoop.typed_values import format_float
from nutbeam.web.hadoop.writable_encoding import encode_vint

SYNC = bytes(range(100, 116))


def crawl_rows(number, seed=0):
    """Returns rows as a CrawlDb has: most are unfetched, fetched ones have metadata and a signature."""
    chance = random.Random(seed)
    urls = sorted(
        f"https://host{chance.randrange(number)}.example.org/page/{n}" for n in range(number)
    )
    return pl.DataFrame(
        [_crawl_row(url, chance) for url in urls], schema=CRAWL_DATUMS, orient="row"
    )


def _crawl_row(url, chance):
    fetched = chance.random() < 0.3
    metadata = []
    if fetched:
        target = (
            f": https://example.org/{'x' * chance.randrange(200)}" if chance.random() < 0.2 else ""
        )
        metadata = [
            ("_pst_", "ProtocolStatus", f"success(1), lastModified=0{target}"),
            ("_rs_", "IntWritable", str(chance.randrange(3000))),
            ("Content-Type", "Text", "text/html"),
            ("nutch.protocol.code", "Text", "200"),
        ]
    elif chance.random() < 0.3:
        metadata = [("_depth_", "IntWritable", str(chance.randrange(9)))]
    entries = [dict(zip(("key", "kind", "value"), entry, strict=True)) for entry in metadata]
    return (
        *(url, 2 if fetched else 1, 1_700_000_000_000 + chance.randrange(10**10)),
        *(chance.randrange(3), 2_592_000, chance.randrange(1000) / 8, chance.randrange(10**12)),
        *(chance.randbytes(16) if fetched else None, entries),
    )


def written(rows, **options):
    """Returns rows of a CrawlDb as a SequenceFile."""
    stream = io.BytesIO()
    writer = SequenceFileWriter(stream, CRAWL_DATUM_CLASS, sync=SYNC, **options)
    for key, value in encode_crawl_datums(rows):
        writer.append(encode_vint(len(key)) + key, value)
    writer.close()
    return stream.getvalue()


def datums(data, start=0, end=None):
    """Returns (rows of CrawlDatum, faults) of a SequenceFile, or of a range of it."""
    stream, faults = io.BytesIO(data), []
    header = read_header(stream)
    frames = [
        read_crawl_datums(block, header, faults.append)
        for block in read_blocks(stream, start=start, end=end, on_fault=faults.append)
    ]
    return pl.concat([pl.DataFrame(schema=CRAWL_DATUMS), *frames]), faults


def java_datums(rows):
    """Returns rows of CrawlDatum as tests/hadoop_java/Dump.java prints them."""
    return [
        {
            "key": row.pop("url"),
            **row,
            "score": float(format_float(row["score"])),
            "signature": row["signature"].hex() if row["signature"] is not None else None,
            "metadata": sorted(list(entry.values()) for entry in row["metadata"]),
        }
        for row in rows.to_dicts()
    ]


def java_records(lines):
    """Returns the lines of tests/hadoop_java/Dump.java as records."""
    records = [json.loads(line) for line in lines.splitlines()]
    for record in records:
        if "metadata" in record:
            record["metadata"].sort()
    return records


def unpack_nutch_crawl(folder):
    """Unpacks the crawl that Nutch made; tests/fixtures/nutch_crawl/README.md says how."""
    with tarfile.open(TESTS / "fixtures" / "nutch_crawl" / "crawl.tar.xz") as archive:
        archive.extractall(folder, filter="data")
