"""How the fields of rows are stored in chunks: the column of each type, and the conversion of its values.

It reads types as Python declares them. ``row_types.py`` reads those of Beam, too.
"""

import collections.abc
import dataclasses
import datetime
import types
import typing
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, ClassVar, NamedTuple

import numpy as np
import pyarrow as pa

from ...policy.components.schema import TEXT
from ...web.base.dataclass import dataclass

_PLAIN = {
    str: TEXT,
    bytes: pa.large_binary(),
    bool: pa.bool_(),
    int: pa.int64(),
    float: pa.float64(),
    np.int8: pa.int8(),
    np.int16: pa.int16(),
    np.int32: pa.int32(),
    np.int64: pa.int64(),
    np.float32: pa.float32(),
    np.float64: pa.float64(),
}
Pack = Callable[[Any], Any]
_EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)
_MICROSECOND = datetime.timedelta(microseconds=1)


@dataclass(frozen=True)
class FieldKind:
    """How values of one type are stored in a chunk.

    Attributes:
        arrow: The column's type.
        pack: Converts a value for Arrow; None if it needs no conversion.
        unpack: Converts a value of Arrow back.
        read_as: The type to which the column is cast before its values are read; None if it is
            ``arrow``. Times are read as numbers, because Beam's reach further than Python's.
    """

    arrow: pa.DataType
    pack: Pack | None = None
    unpack: Pack | None = None
    read_as: pa.DataType | None = None

    @property
    def read(self) -> pa.DataType:
        return self.read_as or self.arrow


class RecordType(NamedTuple):
    """A type whose values have named fields.

    Attributes:
        fields: The name and the type of each.
        make: Makes a value from the values of its fields, given by name.
    """

    fields: tuple[tuple[str, Any], ...]
    make: Callable[..., Any]


def _is_sequence(origin: Any, args: tuple[Any, ...]) -> bool:
    if not isinstance(origin, type) or not issubclass(origin, collections.abc.Iterable):
        return False
    return args[1:] == ((...,) if origin is tuple else ())


def _struct(kinds: Mapping[str, FieldKind], make: Callable[..., Any]) -> FieldKind:
    packs = {name: kind.pack or _identity for name, kind in kinds.items()}
    unpacks = {name: kind.unpack or _identity for name, kind in kinds.items()}
    return nullable_kind(
        pa.struct([(name, kind.arrow) for name, kind in kinds.items()]),
        lambda row: {name: pack(getattr(row, name)) for name, pack in packs.items()},
        lambda row: make(**{name: unpack(row[name]) for name, unpack in unpacks.items()}),
        pa.struct([(name, kind.read) for name, kind in kinds.items()]),
    )


def _map(key: FieldKind, item: FieldKind) -> FieldKind:
    pack, unpack = item.pack or _identity, item.unpack or _identity
    return nullable_kind(
        pa.map_(key.arrow, item.arrow),
        lambda values: [(name, pack(value)) for name, value in values.items()],
        lambda values: {name: unpack(value) for name, value in values},
        pa.map_(key.read, item.read),
    )


def _list(item: FieldKind) -> FieldKind:
    pack, unpack = item.pack or _identity, item.unpack or _identity
    return nullable_kind(
        pa.large_list(item.arrow),
        lambda values: [pack(value) for value in values],
        lambda values: [unpack(value) for value in values],
        pa.large_list(item.read),
    )


def nullable_kind(arrow: pa.DataType, pack: Pack, unpack: Pack, read_as: pa.DataType) -> FieldKind:
    """Returns a kind whose values may also be None."""
    return FieldKind(
        arrow,
        lambda value: None if value is None else pack(value),
        lambda value: None if value is None else unpack(value),
        read_as,
    )


def _micros_of(time: datetime.datetime) -> int:
    aware = time if time.tzinfo else time.replace(tzinfo=datetime.UTC)
    return (aware - _EPOCH) // _MICROSECOND


def time_kind(pack: Pack, unpack: Pack) -> FieldKind:
    return nullable_kind(pa.timestamp("us", "UTC"), pack, unpack, pa.int64())


class FieldTypes:
    """The types that fields may have, and how each is stored."""

    times: ClassVar[Mapping[Any, FieldKind]] = {
        datetime.datetime: time_kind(_micros_of, lambda micros: _EPOCH + micros * _MICROSECOND)
    }

    def python_type(self, hint: Any) -> Any:
        """Returns a type in Python's form."""
        return hint

    def record_type(self, hint: Any) -> RecordType | None:
        """Returns a ``NamedTuple`` or a dataclass as a record type; None if it is another type."""
        if not isinstance(hint, type) or not (
            hasattr(hint, "_fields") or dataclasses.is_dataclass(hint)
        ):
            return None
        return RecordType(tuple(typing.get_type_hints(hint).items()), hint)

    def kinds_of_fields(self, record: RecordType, field: str = "") -> dict[str, FieldKind]:
        """Returns how each field of a record type is stored.

        Args:
            record: The record type.
            field: What the names of its fields begin with in messages.

        Raises:
            ValueError: A field has a type that chunks cannot hold.
        """
        return {name: self._kind(hint, f"{field}{name}") for name, hint in record.fields}

    def _kind(self, hint: Any, field: str) -> FieldKind:
        hint = self.python_type(hint)
        origin, args = typing.get_origin(hint), typing.get_args(hint)
        if origin in (typing.Union, types.UnionType):
            alternatives = [arg for arg in args if arg is not type(None)]
            if len(alternatives) == 1:
                return self._kind(alternatives[0], field)
        elif hint in _PLAIN:
            return FieldKind(_PLAIN[hint])
        elif hint in self.times:
            return self.times[hint]
        elif (record := self.record_type(hint)) is not None:
            return _struct(self.kinds_of_fields(record, f"{field}."), record.make)
        elif isinstance(origin, type) and issubclass(origin, collections.abc.Mapping):
            return _map(*(self._kind(arg, field) for arg in args))
        elif _is_sequence(origin, args):
            return _list(self._kind(args[0], field))
        advice = "; declare it, such as with str(value) or a NamedTuple" if hint is Any else ""
        raise ValueError(f"field {field!r} has a type that chunks cannot hold: {hint!r}{advice}")


_PYTHON_TYPES = FieldTypes()


def schema_of_kinds(kinds: Mapping[str, FieldKind]) -> pa.Schema:
    """Returns the schema of chunks with these fields."""
    return pa.schema([(name, kind.arrow) for name, kind in kinds.items()])


def schema_of_class(record_class: type) -> pa.Schema:
    """Returns the schema of chunks for a ``NamedTuple`` or a dataclass.

    Raises:
        ValueError: A field has a type that chunks cannot hold.
    """
    record = _PYTHON_TYPES.record_type(record_class)
    assert record is not None
    return schema_of_kinds(_PYTHON_TYPES.kinds_of_fields(record))


def _identity(value: Any) -> Any:
    return value


def rows_to_table(rows: list[Any], kinds: Mapping[str, FieldKind]) -> pa.Table:
    """Returns rows as one table.

    Raises:
        ValueError: A value does not have its field's type; the message has the field's name.
    """
    columns = {}
    for name, kind in kinds.items():
        values = [getattr(row, name) for row in rows]
        try:
            packed = values if kind.pack is None else map(kind.pack, values)
            columns[name] = pa.array(packed, kind.arrow)
        except (pa.ArrowException, TypeError, AttributeError, OverflowError) as error:
            raise ValueError(f"field {name!r} must hold {kind.arrow}: {error}") from error
    return pa.table(columns, pa.schema([(name, kind.arrow) for name, kind in kinds.items()]))


def table_to_rows(
    table: pa.Table, kinds: Mapping[str, FieldKind], make: Callable[..., Any]
) -> Iterator[Any]:
    """Yields the rows of a table; ``make`` makes each row from the values of its fields."""
    columns: list[Iterable[Any]] = []
    for name, kind in kinds.items():
        if name not in table.column_names:
            columns.append([None] * len(table))
            continue
        column = table.column(name)
        values = (column if column.type == kind.read else column.cast(kind.read)).to_pylist()
        columns.append(values if kind.unpack is None else map(kind.unpack, values))
    names = list(kinds)
    for row in zip(*columns, strict=True):
        yield make(**dict(zip(names, row, strict=True)))
