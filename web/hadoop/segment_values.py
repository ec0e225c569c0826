"""Values of Nutch's segments: Content, ParseData and ParseText.

``crawl_generate``, ``crawl_fetch`` and ``crawl_parse`` have CrawlDatum, see ``crawl_datums``.
"""

from collections.abc import Callable
from typing import TypeAlias

import polars as pl

from .hadoop_codecs import BrokenCompression, find_codec
from .hadoop_faults import OnFault, raise_fault
from .record_keys import check_value_class, read_record_keys
from .sequence_files import RecordBlock, SequenceFileHeader
from .single_values import read_single_values
from .typed_values import ParseStatusValue, format_parse_status, read_map, read_parse_status
from .writables import BadWritable, WritableReader

ContentRows: TypeAlias = pl.DataFrame
ParseDataRows: TypeAlias = pl.DataFrame
ParseTextRows: TypeAlias = pl.DataFrame
_Pairs: TypeAlias = list[dict[str, str]]
_TextReader: TypeAlias = Callable[[WritableReader], str]

# A name with several values has a struct for each.
TEXT_PAIRS: pl.DataType = pl.List(pl.Struct({"key": pl.String, "value": pl.String}))
CONTENTS = pl.Schema(
    {
        "url": pl.String(),  # the key
        "content_url": pl.String(),
        "base_url": pl.String(),
        "content": pl.Binary(),
        "content_type": pl.String(),
        "metadata": TEXT_PAIRS,
    }
)
PARSE_DATA = pl.Schema(
    {
        "url": pl.String(),
        "status": pl.Int8(),  # 0: not parsed, 1: success, 2: failed
        "minor_status": pl.Int16(),
        "status_text": pl.String(),  # as Nutch shows it
        "title": pl.String(),
        "outlinks": pl.List(pl.Struct({"url": pl.String, "anchor": pl.String})),
        "content_metadata": TEXT_PAIRS,
        "parse_metadata": TEXT_PAIRS,
    }
)
PARSE_TEXTS = pl.Schema({"url": pl.String(), "text": pl.String()})

_SUCCESS = ParseStatusValue(1, 0, None)


def read_contents(
    block: RecordBlock, header: SequenceFileHeader, on_fault: OnFault = raise_fault
) -> ContentRows:
    """Returns the records of a block as rows of ``CONTENTS``.

    Args:
        on_fault: Called for each record that is left out.

    Raises:
        HadoopFileError: The file has other classes.
    """
    check_value_class(header, "Content")
    return _read_rows(block, header, CONTENTS, _read_content, on_fault)


def read_parse_data(
    block: RecordBlock, header: SequenceFileHeader, on_fault: OnFault = raise_fault
) -> ParseDataRows:
    """Returns the records of a block as rows of ``PARSE_DATA``; see ``read_contents``."""
    check_value_class(header, "ParseData")
    return _read_rows(block, header, PARSE_DATA, _read_parse_data, on_fault)


def read_parse_texts(
    block: RecordBlock, header: SequenceFileHeader, on_fault: OnFault = raise_fault
) -> ParseTextRows:
    """Returns the records of a block as rows of ``PARSE_TEXTS``; see ``read_contents``."""
    check_value_class(header, "ParseText")
    return _read_rows(block, header, PARSE_TEXTS, _read_parse_text, on_fault)


def _read_rows(
    block: RecordBlock,
    header: SequenceFileHeader,
    schema: pl.Schema,
    read_one: Callable[[bytes], tuple],
    on_fault: OnFault,
) -> pl.DataFrame:
    urls, block = read_record_keys(block, header, on_fault)
    expected = header.value_class.rpartition(".")[2]
    indexes, values = read_single_values(block, read_one, expected, on_fault)
    of_values = {name: dtype for name, dtype in schema.items() if name != "url"}
    rows = pl.DataFrame(values, schema=of_values, orient="row")
    return rows.with_columns(url=urls.gather(indexes)).select(schema.names())


def _read_content(data: bytes) -> tuple:
    """Reads a Content: version -1, or a deflated one of version 0 to 2, with its length."""
    reader = WritableReader(data)
    size = reader.read_int()
    if size == -1:
        return _read_parts(reader, WritableReader.read_text)
    if size < 0:
        raise BadWritable(f"version -1, got {size}")
    try:
        raw = find_codec("DefaultCodec").decompress(reader.read_bytes(size))
    except BrokenCompression as error:
        raise BadWritable(f"deflated bytes: {error}") from error
    reader.check_end()
    reader = WritableReader(raw)
    version = reader.read_byte()
    if version not in (0, 1, 2):
        raise BadWritable(f"version 0 to 2, got {version}")
    return _read_parts(
        reader, WritableReader.read_text if version == 2 else WritableReader.read_utf8
    )


def _read_parts(reader: WritableReader, read_text: _TextReader) -> tuple:
    url, base_url = read_text(reader), read_text(reader)
    content = reader.read_bytes(reader.read_int())
    content_type = read_text(reader)
    metadata = _read_pairs(reader, read_text)
    reader.check_end()
    return url, base_url, content, content_type, metadata


def _read_pairs(reader: WritableReader, read_text: _TextReader) -> _Pairs:
    """Reads names, each with a number of values (org.apache.nutch.metadata.Metadata)."""
    pairs = []
    for _ in range(reader.read_count(5)):
        key = read_text(reader)
        pairs += [{"key": key, "value": read_text(reader)} for _ in range(reader.read_count(1))]
    return pairs


def _read_parse_data(data: bytes) -> tuple:
    """Reads a ParseData of version 1 to 5; links have a flag since Nutch 1.6, but not a new version."""
    version = WritableReader(data).read_byte()
    if version not in range(1, 6):
        raise BadWritable(f"version 1 to 5, got {version}")
    for has_flags in (True, False) if version == 5 else (False,):
        try:
            return _read_parse_parts(WritableReader(data, 1), version, has_flags)
        except BadWritable as error:
            problem = error
    raise problem


def _read_parse_parts(reader: WritableReader, version: int, has_flags: bool) -> tuple:
    read_text = WritableReader.read_text if version == 5 else WritableReader.read_utf8
    status = read_parse_status(reader) if version > 1 else _SUCCESS
    title = read_text(reader)
    outlinks = []
    for _ in range(reader.read_count(2)):
        outlinks.append({"url": read_text(reader), "anchor": read_text(reader)})
        if has_flags:
            flag = reader.read_byte()
            if flag not in (0, 1):
                raise BadWritable(f"a flag of an outlink, got {flag}")
            if flag:
                read_map(reader)
    if version < 3:
        content_metadata = [
            {"key": read_text(reader), "value": read_text(reader)}
            for _ in range(reader.read_count(4))
        ]
    else:
        content_metadata = _read_pairs(reader, read_text)
    parse_metadata = _read_pairs(reader, read_text) if version > 3 else []
    reader.check_end()
    status_text = format_parse_status(status)
    return (
        *(status.major, status.minor, status_text, title, outlinks),
        *(content_metadata, parse_metadata),
    )


def _read_parse_text(data: bytes) -> tuple:
    """Reads a ParseText: version 1 is compressed, version 2 is not."""
    reader = WritableReader(data)
    version = reader.read_byte()
    if version not in (1, 2):
        raise BadWritable(f"version 1 or 2, got {version}")
    text = reader.read_compressed_string() or "" if version == 1 else reader.read_text()
    reader.check_end()
    return (text,)
