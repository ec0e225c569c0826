"""Decodes many maps of metadata at once: step by step one entry of each map.

::

    map 1   header | key value | key value |
    map 2   header | key value |
    map 3   header | key value | key value | key value |
                     step 1      step 2      step 3

The maps of Nutch have few entries of few classes. Maps of other form are decoded one at a time.
"""

import dataclasses
from collections.abc import Callable
from typing import TypeAlias

import numpy as np
import polars as pl
import pyarrow as pa

from .byte_spans import Bytes, Integers, copy_spans, read_rows, read_texts, read_vints
from .typed_values import TypedEntry, read_map, read_value
from .writable_encoding import STATUS_HEADER, STATUS_ID
from .writables import BadWritable, WritableReader

ENTRY = pl.Struct({"key": pl.String, "kind": pl.String, "value": pl.String})
METADATA_LIST: pl.DataType = pl.List(ENTRY)
MapReader: TypeAlias = Callable[[bytes], list[TypedEntry]]

_STATUS_HEADER = np.frombuffer(STATUS_HEADER, np.uint8)
_MAX_STEPS = 16  # entries of a map; those with more are decoded one at a time
_PADDING = 64  # so that no read is outside the buffer
_TEXT, _INT, _LONG, _FLOAT, _BOOLEAN, _NULL = -116, -123, -122, -124, -126, -119
_SIZES = {_INT: 4, _LONG: 8, _FLOAT: 4, _BOOLEAN: 1, _NULL: 0}
_KINDS = {
    _TEXT: "Text", _INT: "IntWritable", _LONG: "LongWritable", _FLOAT: "FloatWritable",
    _BOOLEAN: "BooleanWritable", _NULL: "NullWritable", STATUS_ID: "ProtocolStatus",
}  # fmt: skip
_KIND_NUMBERS = np.zeros(256, np.int64)
_KIND_NUMBERS[np.array(list(_KINDS)) & 0xFF] = range(len(_KINDS))
_INT32, _INT64 = np.dtype([("n", ">i4")]), np.dtype([("n", ">i8")])
_STATUS_BYTES = 14  # version, code, time, number of arguments


@dataclasses.dataclass
class _Entries:
    """Spans of keys and values, one item each for an entry of a map."""

    rows: Integers
    key_starts: Integers
    key_lengths: Integers
    kinds: Integers
    value_starts: Integers
    value_lengths: Integers


def read_whole_map(data: bytes) -> list[TypedEntry]:
    """Returns the entries of an org.apache.hadoop.io.MapWritable that is all of the bytes.

    Raises:
        BadWritable: It is none.
    """
    reader = WritableReader(data)
    entries = read_map(reader)
    reader.check_end()
    return entries


def read_maps(
    buffer: Bytes, starts: Integers, lengths: Integers, read_one: MapReader = read_whole_map
) -> tuple[pl.Series, Integers]:
    """Returns maps as lists of entries, and the indexes of those that cannot be decoded.

    Args:
        buffer: Bytes that have the maps.
        starts: Where each map begins; they ascend.
        lengths: Bytes of each map; 0: there is none, and its list is empty.
        read_one: Decodes maps of unusual form.

    Returns:
        A list of structs ``key``, ``kind`` and ``value`` for each map. What cannot be decoded has an
        empty list.
    """
    padded = np.concatenate([buffer, np.zeros(_PADDING, np.uint8)])
    entries, unusual = _step_through(padded, starts, starts + lengths)
    frame = _entry_frame(padded, entries)
    bad: list[int] = []
    if len(unusual):
        one_by_one, bad = _read_unusual(padded, starts, lengths, unusual, read_one)
        frame = pl.concat([frame, one_by_one]).sort("row", maintain_order=True)
    rows, *fields = frame.get_columns()
    counts = np.bincount(rows.to_numpy(), minlength=len(starts))
    offsets = np.concatenate([[0], np.cumsum(counts)])
    structs = pl.DataFrame(fields).to_struct("entry").to_arrow()
    lists = pa.LargeListArray.from_arrays(pa.array(offsets, pa.int64()), structs)
    return pl.Series(pl.from_arrow(lists), dtype=METADATA_LIST), np.array(bad, np.int64)


def _read_unusual(
    buffer: Bytes, starts: Integers, lengths: Integers, rows: Integers, read_one: MapReader
) -> tuple[pl.DataFrame, list[int]]:
    """Decodes maps one at a time; equal ones once."""
    decoded: dict[bytes, list[TypedEntry] | None] = {}
    flat: list[tuple[int, str, str, str]] = []
    bad = []
    spans = copy_spans(buffer, starts[rows], lengths[rows])
    for row, span in zip(rows.tolist(), spans.to_pylist(), strict=True):
        if span not in decoded:
            try:
                decoded[span] = read_one(span)
            except BadWritable:
                decoded[span] = None
        entries = decoded[span]
        if entries is None:
            bad.append(row)
        else:
            flat += [(row, *entry) for entry in entries]
    schema = {"row": pl.Int64, "key": pl.String, "kind": pl.String, "value": pl.String}
    return pl.DataFrame(flat, schema=schema, orient="row"), bad


def _step_through(buffer: Bytes, starts: Integers, ends: Integers) -> tuple[_Entries, Integers]:
    """Returns the entries of maps of usual form, by rows, and the rows of the others."""
    (rows,) = np.nonzero(ends > starts)
    is_usual = np.zeros(len(starts), bool)
    cursor, has_status = _skip_headers(buffer, starts[rows], ends[rows])
    counts = read_rows(buffer, np.minimum(cursor, len(buffer) - 4), _INT32)["n"].astype(np.int64)
    cursor += 4
    usual = (cursor > 4) & (cursor <= ends[rows]) & (counts >= 0) & (counts <= _MAX_STEPS)
    steps: list[_Entries] = []
    active = rows[usual], cursor[usual], counts[usual], has_status[usual]
    for step in range(_MAX_STEPS + 1):
        active_rows, cursor, counts, has_status = active
        done = counts == step
        is_usual[active_rows[done & (cursor == ends[active_rows])]] = True
        active_rows, cursor, counts, has_status = (each[~done] for each in active)
        if not len(active_rows):
            break
        entries, after, fits = _read_step(
            buffer, active_rows, cursor, ends[active_rows], has_status
        )
        steps.append(entries)
        active = active_rows[fits], after[fits], counts[fits], has_status[fits]
    return _by_rows(steps, is_usual), rows[~is_usual[rows]]


def _skip_headers(buffer: Bytes, starts: Integers, ends: Integers) -> tuple[Integers, Integers]:
    """Returns where the numbers of entries are, or 0, and whether a header names ProtocolStatus."""
    cursor = np.where(buffer[starts] == 0, starts + 1, 0)
    has_status = np.zeros(len(starts), bool)
    size = len(_STATUS_HEADER)
    (candidates,) = np.nonzero((buffer[starts] == 1) & (starts + size <= ends))
    windows = np.lib.stride_tricks.sliding_window_view(buffer, size)[starts[candidates]]
    matching = candidates[(windows == _STATUS_HEADER).all(axis=1)]
    cursor[matching] = starts[matching] + size
    has_status[matching] = True
    return cursor, has_status


def _read_step(
    buffer: Bytes, rows: Integers, cursor: Integers, ends: Integers, has_status: Integers
) -> tuple[_Entries, Integers, Integers]:
    """Reads an entry of each map; returns them, where they end, and which are of usual form."""
    last = len(buffer) - _PADDING
    key_lengths, widths = read_vints(buffer, cursor + 1)
    key_starts = cursor + 1 + widths
    fits = (buffer[cursor] == _TEXT & 0xFF) & (key_lengths >= 0) & (key_starts + key_lengths < ends)
    value_at = np.where(fits, key_starts + key_lengths, 0)
    kinds = buffer[value_at].astype(np.int8).astype(np.int64)
    value_starts = value_at + 1
    value_lengths = np.full(len(rows), -1)
    is_text = kinds == _TEXT
    text_lengths, widths = read_vints(buffer, value_starts[is_text])
    value_starts[is_text] += widths
    value_lengths[is_text] = text_lengths
    for kind, size in _SIZES.items():
        value_lengths[kinds == kind] = size
    is_status = (kinds == STATUS_ID) & has_status
    value_lengths[is_status] = _status_lengths(buffer, value_starts[is_status])
    after = value_starts + value_lengths
    fits &= (value_lengths >= 0) & (after <= ends) & (after <= last)
    entries = _Entries(rows, key_starts, key_lengths, kinds, value_starts, value_lengths)
    return _chosen(entries, fits), after, fits


def _status_lengths(buffer: Bytes, starts: Integers) -> Integers:
    """Returns the bytes of statuses with at most one argument; -1 for others."""
    arguments = read_rows(buffer, starts + _STATUS_BYTES - 4, _INT32)["n"]
    lengths = np.where((arguments == -1) | (arguments == 0), _STATUS_BYTES, -1).astype(np.int64)
    (one,) = np.nonzero(arguments == 1)
    places = np.minimum(starts[one] + _STATUS_BYTES, len(buffer) - 4)
    text_bytes = read_rows(buffer, places, _INT32)["n"].astype(np.int64)
    lengths[one] = np.where(text_bytes >= 0, _STATUS_BYTES + 4 + text_bytes, -1)
    return np.where(buffer[starts] == 2, lengths, -1)


def _chosen(entries: _Entries, chosen: Integers) -> _Entries:
    fields = (getattr(entries, field.name) for field in dataclasses.fields(entries))
    return _Entries(*(values[chosen] for values in fields))


def _by_rows(steps: list[_Entries], is_usual: Integers) -> _Entries:
    """Joins steps; leaves out maps that turned out to be unusual."""
    if not steps:
        return _Entries(*(np.empty(0, np.int64) for _ in dataclasses.fields(_Entries)))
    names = [field.name for field in dataclasses.fields(_Entries)]
    entries = _Entries(*(np.concatenate([getattr(step, name) for step in steps]) for name in names))
    (usual,) = np.nonzero(is_usual[entries.rows])
    order = usual[np.argsort(entries.rows[usual], kind="stable")]
    return _chosen(entries, order)


def _entry_frame(buffer: Bytes, entries: _Entries) -> pl.DataFrame:
    """Returns entries as rows: the number of their map, key, class and value as texts."""
    texts = []
    places = []
    for kind in np.unique(entries.kinds).tolist():
        (chosen,) = np.nonzero(entries.kinds == kind)
        starts, lengths = entries.value_starts[chosen], entries.value_lengths[chosen]
        texts.append(_value_texts(buffer, kind, starts, lengths))
        places.append(chosen)
    values = pl.Series("value", [], dtype=pl.String)
    if texts:
        values = pl.concat(texts).gather(np.argsort(np.concatenate(places)))
    names = pl.Series(list(_KINDS.values()))
    kinds = names.gather(_KIND_NUMBERS[entries.kinds & 0xFF])
    keys = read_texts(buffer, entries.key_starts, entries.key_lengths)
    columns = [pl.Series("row", entries.rows), keys.alias("key"), kinds.alias("kind")]
    return pl.DataFrame([*columns, values.alias("value")])


def _value_texts(buffer: Bytes, kind: int, starts: Integers, lengths: Integers) -> pl.Series:
    if kind == _TEXT:
        return read_texts(buffer, starts, lengths)
    if kind in (_INT, _LONG):
        numbers = read_rows(buffer, starts, _INT32 if kind == _INT else _INT64)["n"]
        return pl.Series(numbers.astype(np.int64)).cast(pl.String)
    spans = copy_spans(buffer, starts, lengths).dictionary_encode()
    shown = [
        read_value(WritableReader(span), _KINDS[kind]) for span in spans.dictionary.to_pylist()
    ]
    return pl.Series(shown, dtype=pl.String).gather(spans.indices.to_numpy())
