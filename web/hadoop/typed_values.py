"""Values of any class as text, as Java's toString writes them; maps of such values.

Metadata of Nutch are maps whose values have classes: texts, numbers, statuses of protocols. Here a value
is its class and its text, the same as in the dumps of Nutch's readers.
"""

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

from ..exchange.status import PROTOCOL_STATUS_NAMES
from .writables import BadWritable, WritableReader

_MAX_DEPTH = 8  # of maps in maps
_MAX_ENTRIES = 100_000
# Class ids of org.apache.hadoop.io.AbstractMapWritable.
HADOOP_IDS = {
    -127: "ArrayWritable", -126: "BooleanWritable", -125: "BytesWritable", -124: "FloatWritable",
    -123: "IntWritable", -122: "LongWritable", -121: "MapWritable", -120: "MD5Hash",
    -119: "NullWritable", -118: "ObjectWritable", -117: "SortedMapWritable", -116: "Text",
    -115: "TwoDArrayWritable", -114: "VIntWritable", -113: "VLongWritable",
}  # fmt: skip
# Class ids of org.apache.nutch.crawl.MapWritable, which Nutch had until 1.3.
NUTCH_IDS = {
    -127: "NullWritable", -126: "LongWritable", -125: "Text", -124: "MD5Hash",
    -123: "FetcherOutput", -122: "Content", -121: "ParseText", -120: "ParseData",
    -119: "NutchMapWritable", -118: "BytesWritable", -117: "FloatWritable", -116: "IntWritable",
    -115: "ObjectWritable", -114: "ProtocolStatus",
}  # fmt: skip
_PARSE_STATUS_NAMES = ("notparsed", "success", "failed")


class TypedEntry(NamedTuple):
    """An entry of a map.

    Attributes:
        key: As text.
        kind: The class of the value, without its package.
        value: As text.
    """

    key: str
    kind: str
    value: str


class ProtocolStatusValue(NamedTuple):
    """What a protocol answered (org.apache.nutch.protocol.ProtocolStatus).

    Attributes:
        code: See ``PROTOCOL_STATUS_NAMES``.
        last_modified: ms since 1970, or 0.
        arguments: Texts, such as the target of a redirect; None: there are none.
    """

    code: int
    last_modified: int
    arguments: tuple[str, ...] | None


def format_protocol_status(status: ProtocolStatusValue) -> str:
    """Returns a status as Nutch shows it.

    >>> format_protocol_status(ProtocolStatusValue(12, 0, ("http://a/",)))
    'moved(12), lastModified=0: http://a/'
    """
    name = PROTOCOL_STATUS_NAMES.get(status.code, "null")
    return f"{name}({status.code}), lastModified={status.last_modified}" + _format_arguments(
        status.arguments
    )


def _format_arguments(arguments: tuple[str, ...] | None) -> str:
    if arguments is None:
        return ""
    if len(arguments) == 1:
        return f": {arguments[0]}"
    return "".join(f", args[{index}]={text}" for index, text in enumerate(arguments))


def read_protocol_status(reader: WritableReader) -> ProtocolStatusValue:
    """Reads a ProtocolStatus of version 1 or 2."""
    version, code, modified = reader.read_byte(), reader.read_byte(), reader.read_long()
    arguments = _read_arguments(reader, version)
    return ProtocolStatusValue(code, modified, arguments)


def _read_arguments(reader: WritableReader, version: int) -> tuple[str, ...] | None:
    if version not in (1, 2):
        raise BadWritable(f"a status of version 1 or 2, got {version}")
    texts = reader.read_compressed_strings() if version == 1 else reader.read_strings()
    return None if texts is None else tuple(texts)


class ParseStatusValue(NamedTuple):
    """How parsing ended (org.apache.nutch.parse.ParseStatus).

    Attributes:
        major: 0: not parsed, 1: success, 2: failed.
        minor: Why, such as 100: redirected.
        arguments: Texts, such as a message; None: there are none.
    """

    major: int
    minor: int
    arguments: tuple[str, ...] | None


def read_parse_status(reader: WritableReader) -> ParseStatusValue:
    """Reads a ParseStatus of version 1 or 2."""
    version, major, minor = reader.read_byte(), reader.read_byte(), reader.read_short()
    return ParseStatusValue(major, minor, _read_arguments(reader, version))


def format_parse_status(status: ParseStatusValue) -> str:
    """Returns a status as Nutch shows it.

    >>> format_parse_status(ParseStatusValue(2, 200, ("why",)))
    'failed(2,200): why'
    """
    is_known = 0 <= status.major < len(_PARSE_STATUS_NAMES)
    name = _PARSE_STATUS_NAMES[status.major] if is_known else "UNKNOWN!"
    return f"{name}({status.major},{status.minor})" + _format_arguments(status.arguments)


def format_float(value: float, double: bool = False) -> str:
    """Returns a number of four bytes (or eight) as Java's Float.toString does.

    >>> format_float(0.1), format_float(1e-5), format_float(12345678.0), format_float(float("nan"))
    ('0.1', '1.0E-5', '1.2345678E7', 'NaN')
    """
    number: Any = np.float64(value) if double else np.float32(value)
    if not np.isfinite(number):
        return "NaN" if np.isnan(number) else "Infinity" if number > 0 else "-Infinity"
    if number == 0 or 1e-3 <= abs(number) < 1e7:
        return np.format_float_positional(number, unique=True, trim="0")
    text = np.format_float_scientific(number, unique=True, trim="0", exp_digits=1)
    return text.replace("e+", "E").replace("e", "E")


def read_map(reader: WritableReader, depth: int = 0) -> list[TypedEntry]:
    """Reads an org.apache.hadoop.io.MapWritable."""
    classes = dict(HADOOP_IDS)
    for _ in range(reader.read_byte()):
        number = reader.read_byte()
        classes[number] = reader.read_utf8().rpartition(".")[2]
    count = reader.read_count(2)
    return list(_read_entries(reader, count, classes, depth, both_ids_first=False))


def read_nutch_map(reader: WritableReader, depth: int = 0, old: bool = False) -> list[TypedEntry]:
    """Reads an org.apache.nutch.crawl.MapWritable, which Nutch had until 1.3.

    Args:
        old: Texts are of the class UTF8, as in Nutch 0.8.
    """
    count = reader.read_count(2)
    if not count:
        return []
    classes = dict(NUTCH_IDS)
    if old:
        classes[-125] = "UTF8"
    for _ in range(reader.read_byte()):
        number = reader.read_byte()
        name = reader.read_utf8() if old else reader.read_text()
        classes[number] = name.rpartition(".")[2]
    return list(_read_entries(reader, count, classes, depth, both_ids_first=True))


def _read_entries(
    reader: WritableReader, count: int, classes: dict[int, str], depth: int, both_ids_first: bool
) -> Iterator[TypedEntry]:
    if depth > _MAX_DEPTH or count > _MAX_ENTRIES:
        raise BadWritable(f"a map with {count} entries in {depth} maps")
    for _ in range(count):
        key_id = reader.read_byte()
        if both_ids_first:
            value_id = reader.read_byte()
            key = read_value(reader, classes.get(key_id, str(key_id)), depth)
        else:
            key = read_value(reader, classes.get(key_id, str(key_id)), depth)
            value_id = reader.read_byte()
        kind = classes.get(value_id, str(value_id))
        yield TypedEntry(key, kind, read_value(reader, kind, depth))


def read_value(reader: WritableReader, kind: str, depth: int = 0) -> str:
    """Reads a value of a class as text.

    Args:
        kind: The class, without its package.

    Raises:
        BadWritable: Its bytes are no such value, or the class is unknown.
    """
    if kind in ("MapWritable", "SortedMapWritable", "NutchMapWritable"):
        read = read_nutch_map if kind == "NutchMapWritable" else read_map
        entries = read(reader, depth + 1)
        return "{" + ", ".join(f"{entry.key}={entry.value}" for entry in entries) + "}"
    if kind not in _READERS:
        raise BadWritable(f"a value of the class {kind[:200]!r}, which is not known")
    return _READERS[kind](reader)


def _read_hex(reader: WritableReader) -> str:
    return reader.read_bytes(reader.read_int()).hex(" ")


_READERS: dict[str, Callable[[WritableReader], str]] = {
    "Text": WritableReader.read_text,
    "UTF8": WritableReader.read_utf8,
    "NullWritable": lambda reader: "(null)",
    "BooleanWritable": lambda reader: str(reader.read_boolean()).lower(),
    "ByteWritable": lambda reader: str(reader.read_byte()),
    "ShortWritable": lambda reader: str(reader.read_short()),
    "IntWritable": lambda reader: str(reader.read_int()),
    "LongWritable": lambda reader: str(reader.read_long()),
    "VIntWritable": lambda reader: str(reader.read_vint()),
    "VLongWritable": lambda reader: str(reader.read_vint()),
    "FloatWritable": lambda reader: format_float(reader.read_float()),
    "DoubleWritable": lambda reader: format_float(reader.read_double(), double=True),
    "BytesWritable": _read_hex,
    "MD5Hash": lambda reader: reader.read_bytes(16).hex(),
    "ProtocolStatus": lambda reader: format_protocol_status(read_protocol_status(reader)),
    "ParseStatus": lambda reader: format_parse_status(read_parse_status(reader)),
}
