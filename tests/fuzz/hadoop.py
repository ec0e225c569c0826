"""Fuzzing of files that Hadoop and Nutch wrote: SequenceFiles, and the values in them."""

import io

import numpy as np
from hadoop_files import crawl_rows, written

from nutbeam.web.hadoop.crawl_datums import CRAWL_DATUMS, read_crawl_datums
from nutbeam.web.hadoop.datum_writing import encode_crawl_datums
from nutbeam.web.hadoop.hadoop_faults import HADOOP_REASONS, HadoopFileError
from nutbeam.web.hadoop.host_datums import HOST_DATUMS, read_host_datums
from nutbeam.web.hadoop.link_values import LINK_DB, read_inlinks
from nutbeam.web.hadoop.segment_values import (
    CONTENTS,
    PARSE_DATA,
    PARSE_TEXTS,
    read_contents,
    read_parse_data,
    read_parse_texts,
)
from nutbeam.web.hadoop.sequence_files import (
    Compression,
    RecordBlock,
    SequenceFileHeader,
    read_blocks,
    read_header,
)
from nutbeam.web.hadoop.typed_values import TypedEntry
from nutbeam.web.hadoop.wrapped_values import unwrap_values
from nutbeam.web.hadoop.writable_encoding import encode_map, encode_text

from .target import Clock, Target

KINDS = {
    "CrawlDatum": (read_crawl_datums, CRAWL_DATUMS),
    "Inlinks": (read_inlinks, LINK_DB),
    "HostDatum": (read_host_datums, HOST_DATUMS),
    "Content": (read_contents, CONTENTS),
    "ParseData": (read_parse_data, PARSE_DATA),
    "ParseText": (read_parse_texts, PARSE_TEXTS),
}
MAP = encode_map([TypedEntry("_pst_", "ProtocolStatus", "moved(12), lastModified=0: http://a/"),
                  TypedEntry("_rs_", "IntWritable", "5")])  # fmt: skip
WORDS = [
    *(b"SEQ\x04", b"SEQ\x06", b"\xff\xff\xff\xff", b"\x7f\xff\xff\xff", b"\x80\0\0\0", b"\0\0\0\1"),
    *(
        b"\x8f\xc8",
        b"\x8e\xff\xff",
        b"\x88" + b"\x7f" * 8,
        b"\x80" + b"\xff" * 8,
        b"\x87\0",
        b"x\x9c",
    ),
    *(b"\0\0\0\0", b"\1", b"\7", b"\4", b"\x1f\x8b\x08", b"BZh9", b"\x28\xb5\x2f\xfd", b"\xff"),
    *(
        b"org.apache.hadoop.io.compress.",
        b"SnappyCodec",
        b"Lz4Codec",
        b"GzipCodec",
        b"DefaultCodec",
    ),
    *(b"BZip2Codec", b"ZStandardCodec", b"org.apache.nutch.protocol.ProtocolStatus", MAP, MAP[44:]),
]


def check(data: bytes) -> None:
    """The input is a SequenceFile."""
    faults: list = []
    with Clock(3):
        stream = io.BytesIO(data)
        try:
            header = read_header(stream)
            for block in read_blocks(stream, on_fault=faults.append):
                _check_spans(block)
                read_crawl_datums(block, header, faults.append)
        except HadoopFileError:
            pass
        middle = len(data) // 2
        for start, end in ((0, middle), (middle, None)):
            try:
                for block in read_blocks(stream, start=start, end=end, on_fault=faults.append):
                    _check_spans(block)
            except HadoopFileError:
                break
    for fault in faults:
        assert fault.reason in HADOOP_REASONS
        assert 0 <= fault.position < len(data)
    positions = [fault.position for fault in faults if fault.reason == "truncated_file"]
    assert len(positions) <= 4


def _check_spans(block: RecordBlock) -> None:
    for buffer, starts, lengths in (
        (block.keys, block.key_starts, block.key_lengths),
        (block.values, block.value_starts, block.value_lengths),
    ):
        assert len(starts) == len(lengths) == block.rows > 0
        assert (lengths >= 0).all()
        assert (starts >= 0).all()
        assert (starts[:-1] + lengths[:-1] <= starts[1:]).all()
        assert starts[-1] + lengths[-1] <= len(buffer)


def check_values(data: bytes) -> None:
    """The first line is the value class, the others are values."""
    kind, _, rest = data.partition(b"\n")
    name = kind.decode("latin-1")
    values = rest.split(b"\n--\n")
    header = SequenceFileHeader(6, "Text", name, Compression.NONE, "", {}, bytes(16), 0)
    block = _block([encode_text("http://a/")] * len(values), values)
    faults: list = []
    with Clock(3):
        if name == "NutchWritable":
            for each, part in unwrap_values(block, header, faults.append):
                _check_kind(each, part, faults)
        else:
            _check_kind(header, block, faults)
    assert all(fault.reason in HADOOP_REASONS for fault in faults)


def _check_kind(header: SequenceFileHeader, block: RecordBlock, faults: list) -> None:
    if header.value_class in KINDS:
        read, schema = KINDS[header.value_class]
        mine: list = []
        rows = read(block, header, mine.append)
        faults += mine
        assert rows.schema == schema
        if header.value_class == "CrawlDatum":
            bad = sum(fault.reason == "bad_value" for fault in mine)
            assert len(rows) + bad == block.rows
            again = list(encode_crawl_datums(rows))
            assert len(again) == len(rows)
            if again:
                copy = _block([encode_text("a")] * len(again), [value for _, value in again])
                assert len(read(copy, header)) == len(rows)


def _block(keys: list[bytes], values: list[bytes]) -> RecordBlock:
    spans = []
    for items in (keys, values):
        lengths = np.array([len(item) for item in items], np.int64)
        spans += [np.frombuffer(b"".join(items), np.uint8), np.cumsum(lengths) - lengths, lengths]
    return RecordBlock(*spans, np.arange(len(keys)))


def seeds() -> list[bytes]:
    rows = crawl_rows(12)
    plain = [written(rows, compression=compression) for compression in Compression]
    return [
        *plain,
        *(written(rows, codec=codec) for codec in ("GzipCodec", "SnappyCodec", "Lz4Codec")),
    ]


def value_seeds() -> list[bytes]:
    datums = [value for _, value in encode_crawl_datums(crawl_rows(9, seed=3))]
    old = bytes([4]) + datums[0][1:28] + b"\0\1" + b"\0\0\0\1\0\x83\x83" + b"\1a\1b"
    links = (
        b"\0\0\0\2"
        + encode_text("http://b/")
        + encode_text("b")
        + encode_text("http://c/" * 20)
        + b"\0"
    )
    flagged = b"\0\0\0\1" + encode_text("http://b/") + encode_text("b") + b"\1" + MAP
    pairs = b"\0\0\0\1" + encode_text("Date") + b"\0\0\0\1" + encode_text("today")
    content = b"\xff\xff\xff\xff" + encode_text("u") * 2 + b"\0\0\0\3abc" + encode_text("t") + pairs
    parse = (
        b"\5\2\1\0\0\xff\xff\xff\xff"
        + encode_text("T")
        + b"\0\0\0\1"
        + encode_text("u") * 2
        + b"\0"
    )
    host = bytes(12) + encode_text("http://h/") + bytes(64) + MAP
    return [
        b"CrawlDatum\n" + b"\n--\n".join([*datums, old]),
        *(
            b"NutchWritable\n" + b"\n--\n".join(byte + datum for datum in datums)
            for byte in (b"\7", b"\n")
        ),
        *(b"Inlinks\n" + value for value in (links, flagged)),
        b"Content\n" + content,
        b"ParseData\n" + parse + pairs * 2,
        b"ParseText\n\2" + encode_text("text"),
        *(b"HostDatum\n" + value for value in (host, host[:40] + MAP)),
    ]


TARGETS = (
    Target("sequence_files", check, seeds, WORDS, 6000),
    Target("nutch_values", check_values, value_seeds, WORDS, 3000),
)
