"""Nutch's classes read a CrawlDb that is written here, and find each URL by its index."""

import polars as pl
import pytest
from hadoop_files import crawl_rows, java_datums
from nutch_java import NEEDS_NUTCH, read_with_nutch

from nutbeam.web.hadoop.crawl_datums import CRAWL_DATUMS
from nutbeam.web.hadoop.datum_writing import CRAWL_DATUM_CLASS, encode_crawl_datums
from nutbeam.web.hadoop.sequence_files import Compression
from nutbeam.web.hadoop.sequence_writers import MapFileWriter

pytestmark = NEEDS_NUTCH
TYPED = [
    ("text", "Text", "t\u00fc\u4e16 " * 100),
    ("int", "IntWritable", "-5"),
    ("long", "LongWritable", "5000000000"),
    ("vint", "VIntWritable", "-200"),
    ("vlong", "VLongWritable", "1099511627776"),
    ("float", "FloatWritable", "1.0E-5"),
    ("boolean", "BooleanWritable", "true"),
    ("nothing", "NullWritable", "(null)"),
    ("bytes", "BytesWritable", "00 01 ff"),
    ("hash", "MD5Hash", "0cc175b9c0f1b6a831c399e269772661"),
    ("_pst_", "ProtocolStatus", "failed(2), lastModified=7, args[0]=a, args[1]=b"),
    ("_pst2_", "ProtocolStatus", "moved(12), lastModified=0: http://example.org/"),
]


def export_rows():
    """Returns rows of a CrawlDb with all that metadata may have, sorted as Text is."""
    entries = [dict(zip(("key", "kind", "value"), entry, strict=True)) for entry in TYPED]
    rows = crawl_rows(600)
    unusual = rows.head(2).with_columns(
        url=pl.Series(["https://z.example.org/\u4e16", "https://z.example.org/" + "q" * 3000]),
        metadata=pl.Series([entries, entries], dtype=CRAWL_DATUMS["metadata"]),
    )
    return pl.concat([rows, unusual]).sort("url")


def write_map_file(folder, rows, **options):
    folder.mkdir(parents=True)
    with (folder / "data").open("wb") as data, (folder / "index").open("wb") as index:
        writer = MapFileWriter(data, index, CRAWL_DATUM_CLASS, **options)
        for key, value in encode_crawl_datums(rows):
            writer.append(key, value)
        writer.close()


@pytest.mark.long
def test_nutch_reads_a_crawl_db_of_each_compression(tmp_path):
    rows = export_rows()
    forms = [
        {"compression": Compression.NONE},
        *(
            {"compression": Compression.RECORD, "codec": codec}
            for codec in ("DefaultCodec", "Lz4Codec")
        ),
        *({"codec": codec} for codec in ("DefaultCodec", "BZip2Codec", "SnappyCodec", "Lz4Codec")),
    ]
    folders = [tmp_path / f"part-r-{number:05}" for number in range(len(forms))]
    for folder, options in zip(folders, forms, strict=True):
        write_map_file(folder, rows, **options)
    expected = java_datums(rows)
    read = read_with_nutch(folders)
    assert len(read) == len(expected) * len(forms)
    for start in range(0, len(read), len(expected)):
        assert read[start : start + len(expected)] == expected


def test_keys_of_a_map_file_must_ascend(tmp_path):
    rows = crawl_rows(3)
    with pytest.raises(ValueError, match="keys of a map file must ascend, got b'https"):
        write_map_file(tmp_path / "part", rows.reverse())
