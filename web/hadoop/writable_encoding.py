"""Encodes values as Hadoop's and Nutch's classes write them: texts, numbers, maps of metadata."""

import contextlib
import functools
import re
import struct
from collections.abc import Callable, Sequence

from .typed_values import HADOOP_IDS, ProtocolStatusValue, TypedEntry

_STATUS_CLASS = b"org.apache.nutch.protocol.ProtocolStatus"
STATUS_ID = 1  # in maps whose header names the class
# The header of maps that have a ProtocolStatus, and nothing else that Hadoop does not know.
STATUS_HEADER = b"\x01\x01" + len(_STATUS_CLASS).to_bytes(2, "big") + _STATUS_CLASS
_STATUS_TEXT = re.compile(r"\w+\((-?\d+)\), lastModified=(-?\d+)(.*)", re.DOTALL)
_ARGUMENT = re.compile(r", args\[\d+\]=")
_IDS = {name: number for number, name in HADOOP_IDS.items()}
_INT, _LONG = struct.Struct(">i"), struct.Struct(">q")


def encode_vint(number: int) -> bytes:
    """Encodes a number in one to nine bytes (WritableUtils.writeVLong).

    >>> [encode_vint(number).hex() for number in (5, -112, 128, -113)]
    ['05', '90', '8f80', '8770']
    """
    if -112 <= number <= 127:
        return (number & 0xFF).to_bytes(1, "big")
    first, value = (-112, number) if number >= 0 else (-120, ~number)
    size = (value.bit_length() + 7) // 8
    return ((first - size) & 0xFF).to_bytes(1, "big") + value.to_bytes(size, "big")


def encode_text(text: str) -> bytes:
    """Encodes a Text.

    >>> encode_text("a")
    b'\\x01a'
    """
    data = text.encode("utf-8", "replace")
    return encode_vint(len(data)) + data


def encode_map(entries: Sequence[TypedEntry]) -> bytes:
    """Encodes an org.apache.hadoop.io.MapWritable.

    A value of a class that is not written here becomes a Text.
    """
    items = [_encode_entry(*entry) for entry in entries]
    has_status = any(is_status for is_status, _ in items)
    header = STATUS_HEADER if has_status else b"\x00"
    return b"".join([header, _INT.pack(len(items)), *(encoded for _, encoded in items)])


@functools.lru_cache(1 << 16)
def _encode_entry(key: str, kind: str, text: str) -> tuple[bool, bytes]:
    """Returns whether the value is a ProtocolStatus, and the entry: two ids of classes, each with a value."""
    number, value = _IDS["Text"], encode_text(text)
    if kind in _ENCODERS:
        # A text that is no value of its class stays a text.
        with contextlib.suppress(ValueError, struct.error, OverflowError):
            value = _ENCODERS[kind](text)
            number = STATUS_ID if kind == "ProtocolStatus" else _IDS[kind]
    encoded = _id_byte(_IDS["Text"]) + encode_text(key) + _id_byte(number) + value
    return number == STATUS_ID, encoded


def _id_byte(number: int) -> bytes:
    return (number & 0xFF).to_bytes(1, "big")


def parse_protocol_status(text: str) -> ProtocolStatusValue:
    """Returns the status that ``format_protocol_status`` and Nutch's dumps show.

    >>> parse_protocol_status("moved(12), lastModified=0: http://a/")
    ProtocolStatusValue(code=12, last_modified=0, arguments=('http://a/',))

    Raises:
        ValueError: The text is no status.
    """
    match = _STATUS_TEXT.fullmatch(text)
    if match is None:
        raise ValueError(
            f"the status of a protocol must be NAME(CODE), lastModified=MS, got {text!r}"
        )
    arguments: tuple[str, ...] | None = None
    if match[3].startswith(": "):
        arguments = (match[3][2:],)
    elif match[3]:
        arguments = tuple(_ARGUMENT.split(match[3])[1:])
    return ProtocolStatusValue(int(match[1]), int(match[2]), arguments)


def _encode_status(text: str) -> bytes:
    code, last_modified, arguments = parse_protocol_status(text)
    pieces = [struct.pack(">bbq", 2, code, last_modified)]
    pieces.append(_INT.pack(-1 if arguments is None else len(arguments)))
    for argument in arguments or ():
        data = argument.encode("utf-8", "replace")
        pieces += (_INT.pack(len(data)), data)
    return b"".join(pieces)


def _encode_boolean(text: str) -> bytes:
    return b"\x01" if text == "true" else b"\x00"


def _encode_bytes(text: str) -> bytes:
    data = bytes.fromhex(text)
    return _INT.pack(len(data)) + data


def _encode_hash(text: str) -> bytes:
    data = bytes.fromhex(text)
    if len(data) != 16:
        raise ValueError(text)
    return data


_ENCODERS: dict[str, Callable[[str], bytes]] = {
    "Text": encode_text,
    "NullWritable": lambda text: b"",
    "BooleanWritable": _encode_boolean,
    "IntWritable": lambda text: _INT.pack(int(text)),
    "LongWritable": lambda text: _LONG.pack(int(text)),
    "VIntWritable": lambda text: encode_vint(int(text)),
    "VLongWritable": lambda text: encode_vint(int(text)),
    "FloatWritable": lambda text: struct.pack(">f", float(text)),
    "BytesWritable": _encode_bytes,
    "MD5Hash": _encode_hash,
    "ProtocolStatus": _encode_status,
}
