"""Reads structures in Thrift's compact protocol, as the ends and the pages of Parquet files have them.

pyarrow ends the process for some damage to the end of a file, so what must be known before a file
is opened is read here.
"""

from typing import Any

Fields = dict[int, Any]
_STOP, _TRUE, _FALSE, _BYTE, _DOUBLE, _BINARY, _LIST, _SET, _STRUCT = 0, 1, 2, 3, 7, 8, 9, 10, 12
_INTEGERS = (4, 5, 6)
_DEEPEST = 12


def read_struct(data: bytes, at: int = 0, depth: int = 0) -> tuple[Fields, int]:
    """Returns (the fields of a structure by number, where it ends).

    Raises:
        ValueError: It is damaged, or ends after the data.

    >>> read_struct(bytes([0x15, 0x04, 0x18, 0x01, 0x61, 0x00]))
    ({1: 2, 2: b'a'}, 6)
    """
    if depth > _DEEPEST:
        raise ValueError("a structure is too deep")
    fields: Fields = {}
    number = 0
    try:
        while (byte := data[at]) != _STOP:
            at += 1
            kind, step = byte & 15, byte >> 4
            if step:
                number += step
            else:
                number, at = _integer(data, at)
            if kind in (_TRUE, _FALSE):
                fields[number] = kind == _TRUE
            else:
                fields[number], at = _value(data, at, kind, depth)
    except IndexError:
        raise ValueError("a structure ends after the data") from None
    return fields, at + 1


def _value(data: bytes, at: int, kind: int, depth: int) -> tuple[Any, int]:
    if kind in _INTEGERS:
        return _integer(data, at)
    if kind == _BINARY:
        length, at = _varint(data, at)
        return data[at : at + length], at + length
    if kind == _STRUCT:
        return read_struct(data, at, depth + 1)
    if kind in (_LIST, _SET):
        return _list(data, at, depth + 1)
    if kind in (_BYTE, _TRUE, _FALSE):
        return data[at], at + 1
    if kind == _DOUBLE:
        return data[at : at + 8], at + 8
    raise ValueError("a structure has a value of an unknown kind")


def _list(data: bytes, at: int, depth: int) -> tuple[list, int]:
    if depth > _DEEPEST:
        raise ValueError("a structure is too deep")
    size, kind = data[at] >> 4, data[at] & 15
    at += 1
    if size == 15:
        size, at = _varint(data, at)
    values = []
    for _ in range(size):
        value, at = _value(data, at, kind, depth)
        values.append(value)
    return values, at


def _integer(data: bytes, at: int) -> tuple[int, int]:
    number, at = _varint(data, at)
    return (number >> 1) ^ -(number & 1), at


def _varint(data: bytes, at: int) -> tuple[int, int]:
    byte = data[at]
    at += 1
    number, shift = byte & 127, 7
    while byte > 127:
        byte = data[at]
        at += 1
        number |= (byte & 127) << shift
        shift += 7
        if shift > 70:
            raise ValueError("a structure has a number that is too large")
    return number, at
