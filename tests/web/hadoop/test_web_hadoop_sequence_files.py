"""SequenceFiles are read and written: each compression and codec, ranges, and damaged parts."""

import io
import itertools
import zlib

import polars as pl
import pytest
from hadoop_files import SYNC, crawl_rows, datums, written

from nutbeam.web.hadoop import hadoop_codecs
from nutbeam.web.hadoop.datum_writing import CRAWL_DATUM_CLASS, encode_crawl_datums
from nutbeam.web.hadoop.hadoop_codecs import MAX_RECORD_BYTES, codec_class, find_codec
from nutbeam.web.hadoop.hadoop_faults import HadoopFileError
from nutbeam.web.hadoop.sequence_files import Compression, read_blocks, read_header
from nutbeam.web.hadoop.sequence_writers import SequenceFileWriter

ROWS = crawl_rows(3000)
MANY_ROWS = crawl_rows(20_000)
CODECS = ("DefaultCodec", "GzipCodec", "BZip2Codec", "ZStandardCodec", "SnappyCodec", "Lz4Codec")
MARK = b"\xff\xff\xff\xff" + SYNC
FILES = {compression: written(ROWS, compression=compression) for compression in Compression}
each_compression = pytest.mark.parametrize("compression", Compression)


def test_a_header_says_classes_compression_and_codec():
    header = read_header(io.BytesIO(FILES[Compression.RECORD]))
    assert header.key_class == "org.apache.hadoop.io.Text"
    assert header.value_class == "org.apache.nutch.crawl.CrawlDatum"
    assert header.compression is Compression.RECORD
    assert header.codec_class == "org.apache.hadoop.io.compress.DefaultCodec"
    assert header.sync == SYNC


@each_compression
@pytest.mark.parametrize("version", [4, 5])
def test_headers_of_older_versions_are_read(version, compression):
    """Version 5 has no metadata, version 4 no codec."""
    data = FILES[compression]
    codec = b"\x2aorg.apache.hadoop.io.compress.DefaultCodec"
    head, _, records = data.partition(bytes(4) + SYNC)
    if version == 4:
        head = head.removesuffix(codec)
    assert datums(b"SEQ" + bytes([version]) + head[4:] + SYNC + records)[0].equals(ROWS)


def test_keys_of_the_class_utf8_are_read():
    """Nutch 0.8 had them: two bytes of length, and the text."""
    stream = io.BytesIO()
    writer = SequenceFileWriter(stream, CRAWL_DATUM_CLASS, key_class="org.apache.hadoop.io.UTF8")
    for key, value in encode_crawl_datums(ROWS):
        writer.append(len(key).to_bytes(2, "big") + key, value)
    writer.append(b"\0\5four", b"")
    writer.append(b"\0", b"")
    writer.close()
    rows, faults = datums(stream.getvalue())
    assert rows.equals(ROWS)
    assert [fault.reason for fault in faults] == ["bad_key", "bad_key"]


@pytest.mark.parametrize("codec", CODECS)
def test_rows_are_read_with_each_codec(codec):
    assert datums(written(ROWS, codec=codec))[0].equals(ROWS)


@pytest.mark.parametrize("codec", ["DefaultCodec", "GzipCodec"])
def test_python_s_own_zlib_reads_the_same(codec, monkeypatch):
    monkeypatch.setattr(hadoop_codecs, "fastest_zlib", lambda: zlib)
    data = written(ROWS, compression=Compression.RECORD, codec=codec)
    assert datums(data)[0].equals(ROWS)
    magic = b"x\x9c" if codec == "DefaultCodec" else b"\x1f\x8b"
    _, (fault,) = datums(data.replace(magic, b"??", 1))
    assert fault.reason == "broken_compression"


@each_compression
def test_rows_are_read_with_each_compression(compression):
    rows, faults = datums(FILES[compression])
    assert rows.equals(ROWS)
    assert faults == []


@each_compression
def test_ranges_that_follow_one_another_have_each_record_once(compression):
    data = written(MANY_ROWS, compression=compression)
    cuts = [0, 7, 100, 5000, 5001, len(data) // 3, len(data) // 2, len(data) - 3, len(data)]
    parts = [datums(data, start, end)[0] for start, end in itertools.pairwise(cuts)]
    assert pl.concat(parts).equals(MANY_ROWS)
    assert sum(part.height > 0 for part in parts) > 2


@each_compression
def test_a_truncated_file_has_its_first_records_and_one_fault(compression):
    data = FILES[compression]
    rows, (fault,) = datums(data[: len(data) - 5])
    assert rows.equals(ROWS.head(rows.height))
    assert fault.reason == "truncated_file"
    assert compression is Compression.BLOCK or rows.height == ROWS.height - 1


def test_reading_goes_on_at_the_next_sync_mark():
    data = bytearray(FILES[Compression.NONE])
    marks = [at for at in range(len(data)) if data.startswith(MARK, at)]
    damaged = marks[3] + len(MARK)
    data[damaged : damaged + 4] = b"\x80\0\0\0"
    rows, (fault,) = datums(bytes(data))
    assert (fault.reason, fault.position) == ("bad_record_length", damaged)
    assert ROWS.height - 200 < rows.height < ROWS.height
    assert rows.get_column("url").is_in(ROWS.get_column("url").implode()).all()
    assert rows.row(-1) == ROWS.row(-1)


def test_a_length_beyond_the_next_sync_mark_costs_only_records_up_to_it():
    data = bytearray(FILES[Compression.NONE])
    at = data.index(MARK) + len(MARK)
    data[at : at + 4] = (150_000).to_bytes(4, "big")
    rows, (fault,) = datums(bytes(data))
    assert fault.reason == "bad_record_length"
    assert rows.height > ROWS.height - 200


@each_compression
def test_a_sync_mark_of_another_file_is_a_fault(compression):
    data = bytearray(written(MANY_ROWS, compression=compression))
    at = data.index(MARK, 3000)
    data[at + 4] ^= 1
    rows, (fault,) = datums(bytes(data))
    assert (fault.reason, fault.position) == ("bad_sync_mark", at)
    assert 0 < rows.height < MANY_ROWS.height


def test_a_damaged_block_costs_its_records():
    rows = MANY_ROWS
    data = bytearray(written(rows))
    marks = [at for at in range(len(data)) if data.startswith(MARK, at)]
    data[marks[1] + 5000] ^= 255
    read, (fault,) = datums(bytes(data))
    assert (fault.reason, fault.position) == ("broken_compression", marks[1])
    assert 0 < read.height < rows.height
    assert read.row(-1) == rows.row(-1)


def test_a_damaged_value_of_record_compression_costs_one_record():
    data = bytearray(FILES[Compression.RECORD])
    at = data.index(b"x\x9c")
    data[at + 3] ^= 255
    rows, (fault,) = datums(bytes(data))
    assert fault.reason in ("broken_compression", "bad_value")
    assert rows.height == ROWS.height - 1


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda data: b"", "must begin with SEQ, got b''"),
        (lambda data: b"PK\x03\x04" + data, "must begin with SEQ"),
        (lambda data: b"SEQ\x07" + data[4:], "must be 4 to 6, got 7"),
        (lambda data: data[:30], "header of a SequenceFile is damaged"),
        (
            lambda data: data.replace(b"compress.DefaultCodec", b"compress.DefaultKodek"),
            "must be one of BZip2Codec, .*DefaultKodek",
        ),
    ],
)
def test_a_file_that_cannot_be_read_at_all_is_one_error(change, message):
    with pytest.raises(HadoopFileError, match=message):
        datums(change(FILES[Compression.BLOCK]))


def test_values_of_another_class_are_one_error_that_names_it():
    data = FILES[Compression.NONE].replace(b"nutch.crawl.CrawlDatum", b"nutch.crawl.CrowlDatum")
    with pytest.raises(HadoopFileError, match=r"must be CrawlDatum, got .*CrowlDatum"):
        datums(data)


@pytest.mark.parametrize("codec", CODECS)
def test_codecs_refuse_bytes_that_would_fill_the_memory(codec, monkeypatch):
    data = find_codec(codec_class(codec)).compress(bytes(3 << 20))
    monkeypatch.setattr("nutbeam.web.hadoop.hadoop_codecs.MAX_RECORD_BYTES", 1 << 20)
    monkeypatch.setattr("nutbeam.web.hadoop.hadoop_codecs._SMALL_BYTES", 0)
    with pytest.raises(Exception, match="long"):
        find_codec(codec_class(codec)).decompress(data)


def test_a_codec_decodes_several_chunks_of_a_block():
    for codec in CODECS:
        found = find_codec(codec_class(codec))
        data = b"".join(b"%d " % number for number in range(100_000))
        assert found.decompress(found.compress(data)) == data


def test_a_block_has_where_its_records_begin():
    data = FILES[Compression.NONE]
    for block in read_blocks(io.BytesIO(data)):
        for row in (0, block.rows - 1):
            length = int.from_bytes(data[block.positions[row] :][:4], "big")
            assert length == block.key_lengths[row] + block.value_lengths[row] < MAX_RECORD_BYTES


def test_a_wrong_length_and_a_hole_are_not_read_into_memory():
    """A file of 300 MB, whose first record claims 200 MB, with a sync mark after 1 MB, and then a hole."""
    data = FILES[Compression.NONE]
    header_bytes = read_header(io.BytesIO(data)).header_bytes
    claimed = (200 << 20).to_bytes(4, "big") + (9).to_bytes(4, "big")
    stream = SparseStream(data[:header_bytes] + claimed + bytes(1 << 20) + MARK, 300 << 20)
    faults = []
    assert list(read_blocks(stream, on_fault=faults.append)) == []
    assert [fault.reason for fault in faults] == ["bad_record_length"] * 2
    assert stream.longest_read <= 8 << 20


class SparseStream(io.BytesIO):
    """A stream that claims to be longer than its bytes.

    Attributes:
        longest_read: Most bytes that a call has asked for.
    """

    def __init__(self, data, size):
        super().__init__(data)
        self._size = size
        self.longest_read = 0

    def seek(self, offset, whence=io.SEEK_SET):
        return self._size if whence == io.SEEK_END else super().seek(offset, whence)

    def read(self, size=-1):
        self.longest_read = max(self.longest_read, size)
        return super().read(size).ljust(size, b"\0")


@each_compression
def test_a_file_that_becomes_shorter_while_it_is_read_is_truncated(compression):
    stream = ShrunkStream(FILES[compression][:5000])
    faults = []
    list(read_blocks(stream, on_fault=faults.append))
    assert [fault.reason for fault in faults] == ["truncated_file"]


class ShrunkStream(io.BytesIO):
    """A stream that claims to be longer than it is."""

    def seek(self, offset, whence=io.SEEK_SET):
        return 9000 if whence == io.SEEK_END else super().seek(offset, whence)
