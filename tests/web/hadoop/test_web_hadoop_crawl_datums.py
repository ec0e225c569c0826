"""Damaged and unusual values cost their record, or their metadata, and nothing else."""

import io

import pytest
from hadoop_files import crawl_rows, datums, written

from nutbeam.web.hadoop.crawl_datums import read_crawl_datums
from nutbeam.web.hadoop.datum_writing import CRAWL_DATUM_CLASS, encode_crawl_datums
from nutbeam.web.hadoop.hadoop_faults import HadoopFileError
from nutbeam.web.hadoop.segment_values import read_parse_texts
from nutbeam.web.hadoop.sequence_files import Compression, read_blocks, read_header
from nutbeam.web.hadoop.sequence_writers import SequenceFileWriter
from nutbeam.web.hadoop.wrapped_values import unwrap_values
from nutbeam.web.hadoop.writable_encoding import encode_text

ROWS = crawl_rows(40)
VALUES = [value for _, value in encode_crawl_datums(ROWS)]
FETCHED = next(value for value in VALUES if len(value) > 100)


def file_of(values, value_class=CRAWL_DATUM_CLASS):
    """Returns a SequenceFile; the keys are numbers."""
    stream = io.BytesIO()
    writer = SequenceFileWriter(stream, value_class, compression=Compression.NONE)
    for number, value in enumerate(values):
        writer.append(encode_text(str(number)), value)
    writer.close()
    return stream.getvalue()


@pytest.mark.parametrize(
    "value",
    [
        b"",
        b"\0" + FETCHED[1:],
        b"\x08" + FETCHED[1:],
        FETCHED[:27],
        VALUES[0][:28] + b"\0more",
        encode_text("a value of another class, which is long enough"),
    ],
)
def test_a_value_that_is_no_crawl_datum_is_left_out_and_counted(value):
    rows, (fault,) = datums(file_of([FETCHED, value, FETCHED]))
    assert rows.get_column("url").to_list() == ["0", "2"]
    assert fault.reason == "bad_value"


@pytest.mark.parametrize(
    "map_bytes",
    [
        b"\1\1\0\5a.Odd\0\0\0\1\x8c\1k\1value",  # a class that nobody knows
        b"\0\0\0\0\2\x8c\1k\x8c\1v",  # an entry is missing
        b"\0\x7f\xff\xff\xff\x8c\1k\x8c\1v",
        b"\0\0\0\0\1\x8c\x88\x7f\xff\xff\xff\xff\xff\xff\xffk\x8c\1v",
        b"\0\0\0\0\1\x8c\1k\x8c\1v and more",
    ],
)
def test_a_row_whose_metadata_are_damaged_keeps_its_other_fields(map_bytes):
    value = VALUES[0][:27] + b"\0\1" + map_bytes
    rows, (fault,) = datums(file_of([FETCHED, value, FETCHED]))
    assert fault.reason == "bad_metadata"
    assert rows.height == 3
    assert rows.row(1)[1:7] == ROWS.row(0)[1:7]
    assert rows.get_column("metadata").list.len().to_list() == [4, 0, 4]


def test_values_of_several_versions_keep_their_order():
    values = [
        FETCHED,
        bytes([6]) + VALUES[0][1:28] + b"\0",
        b"\7",
        bytes([2]) + VALUES[0][1:19],
        FETCHED,
    ]
    rows, (fault,) = datums(file_of(values))
    assert rows.get_column("url").to_list() == ["0", "1", "3", "4"]
    assert fault.reason == "bad_value"


def test_a_map_with_many_entries_and_nested_maps_is_read():
    entry = b"\x8c\1k\x87\0\0\0\0\1\x8c\1a\x8c\1b"  # its value is a map
    value = VALUES[0][:27] + b"\0\1" + b"\0\0\0\0\x28" + entry * 40
    rows, faults = datums(file_of([value]))
    assert faults == []
    entries = rows.get_column("metadata").to_list()[0]
    assert entries == [{"key": "k", "kind": "MapWritable", "value": "{a=b}"}] * 40


@pytest.mark.parametrize(("number", "text_number"), [(10, 16), (7, 14)])
def test_wrapped_values_are_read_by_their_class_in_old_and_new_numbers(number, text_number):
    values = [bytes([number]) + FETCHED, bytes([text_number, 2]) + encode_text("text"), b"\xfe"]
    stream, faults = io.BytesIO(file_of(values, "org.apache.nutch.crawl.NutchWritable")), []
    header = read_header(stream)
    (block,) = read_blocks(stream)
    unwrapped = {
        part_header.value_class: (part, part_header)
        for part_header, part in unwrap_values(block, header, faults.append)
    }
    assert read_crawl_datums(*unwrapped["CrawlDatum"]).get_column("url").to_list() == ["0"]
    assert read_parse_texts(*unwrapped["ParseText"]).rows() == [("1", "text")]
    assert [fault.reason for fault in faults] == ["bad_value"]


def test_a_fault_is_an_error_where_nobody_counts_faults():
    stream = io.BytesIO(written(ROWS)[:-1])
    with pytest.raises(HadoopFileError, match="truncated_file at byte"):
        list(read_blocks(stream))
