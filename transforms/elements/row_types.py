"""Maps types of rows to Arrow: the column of each field, and the conversion of its values."""

import collections.abc
import dataclasses
import datetime
import operator
import types
import typing
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, NamedTuple

import apache_beam as beam
import numpy as np
import pyarrow as pa
from apache_beam.utils.timestamp import Timestamp

from ...policy.components.schema import TEXT


class _Probe(NamedTuple):
    field: int


# Beam's types of rows, which it does not document; a stand-in if this Beam has renamed them.
# There is no other way to find the fields of an element type. Beam 2.72 to 2.77 have these names.
# With the stand-in chunks flow as ever, so that all jobs work, and so do rows of a ``NamedTuple`` or
# dataclass. A ``beam.Row`` is refused with one line. ``pipelines/launch/beam_internals.py`` warns of
# a version of Beam that was not tried.
try:
    from apache_beam.typehints.native_type_compatibility import convert_to_python_type
    from apache_beam.typehints.row_type import GeneratedClassRowTypeConstraint as _Generated
    from apache_beam.typehints.row_type import RowTypeConstraint
    from apache_beam.typehints.typehints import TypeConstraint as _Constraint

    RowType = RowTypeConstraint
    operator.attrgetter("_fields", "user_type", "from_fields")(RowType.from_user_type(_Probe))
except (ImportError, AttributeError):
    _Generated = _Constraint = ()  # type: ignore[misc, assignment]

    class RowType:  # type: ignore[no-redef]
        """Stands for Beam's type of rows; it has the fields of a ``NamedTuple``."""

        def __init__(self, fields: Any, user_type: type) -> None:
            self.user_type = user_type
            self._fields = tuple(fields)

        @classmethod
        def from_user_type(cls, user_type: type) -> Any:
            if not hasattr(user_type, "_fields"):
                return None
            return cls(typing.get_type_hints(user_type).items(), user_type)

        @staticmethod
        def from_fields(fields: Any) -> Any:
            names = [name for name, _ in fields]
            raise ValueError(f"this version of Beam has no known type for rows of {names}")


def row_type_of_class(user_type: type) -> RowType | None:
    """Returns the type of rows that are objects of a class; None if it has no declared fields.

    The type of a dataclass is made here, because Beam 2.72 knows none.
    """
    row_type = RowType.from_user_type(user_type)
    if row_type is not None or not dataclasses.is_dataclass(user_type):
        return row_type
    hints = typing.get_type_hints(user_type)
    fields = [(field.name, hints[field.name]) for field in dataclasses.fields(user_type)]
    return RowType(fields, user_type)


def typed_fields(row_type: RowType) -> tuple[tuple[str, Any], ...]:
    """Returns the names and types of the fields of a row type."""
    return row_type._fields


def is_generated(row_type: RowType) -> bool:
    """Returns whether Beam has made the class of the rows, as of ``beam.Row``."""
    return isinstance(row_type, _Generated)


def python_type(hint: Any) -> Any:
    """Returns a type, in Python's form if it has Beam's; row types stay as they are."""
    if isinstance(hint, _Constraint) and not isinstance(hint, RowType):
        return convert_to_python_type(hint)
    return hint


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


@dataclasses.dataclass(frozen=True)
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


def arrow_schema(row_type: Any) -> pa.Schema:
    """Returns the schema of chunks for a type of rows.

    Args:
        row_type: A ``NamedTuple``, a dataclass, or an element type of Beam.

    Raises:
        ValueError: A field has a type that chunks cannot hold.

    >>> print(arrow_schema(typing.NamedTuple("Seed", url=str, score=float)))
    url: large_string
    score: double
    """
    return pa.schema([(name, kind.arrow) for name, kind in kinds_of(row_type).items()])


def extended_row_type(row_type: RowType, fields: Mapping[str, Any], name: str) -> Any:
    """Returns a type of rows with additional fields.

    Raises:
        ValueError: A field exists already.
    """
    there = field_names(row_type)
    for field in fields:
        if field in there:
            raise ValueError(f"{name} adds the column {field!r}, which is there already")
    more: list[tuple[str, Any]] = [*typed_fields(row_type), *fields.items()]
    return RowType.from_fields(more)


def row_type_with(fields: Mapping[str, Any]) -> Any:
    """Returns a type of rows with these fields."""
    return RowType.from_fields(list(fields.items()))


def optional(hint: Any) -> Any:
    """Returns the type of a field that may also be None."""
    return typing.Optional[python_type(hint)]  # noqa: UP045 - not every type has the operator


def field_types(row_type: RowType) -> dict[str, Any]:
    """Returns the types of the fields of a row type, by name."""
    return dict(typed_fields(row_type))


def field_names(row_type: RowType) -> list[str]:
    """Returns the names of the fields of a row type."""
    return [field for field, _ in typed_fields(row_type)]


def is_unknown(hint: Any) -> bool:
    """Returns whether an element type has no information about the elements."""
    return hint in (None, Any, beam.typehints.Any)


def constraint_of(hint: Any) -> RowType | None:
    if isinstance(hint, RowType):
        return hint
    return row_type_of_class(hint) if isinstance(hint, type) else None


def kinds_of(row_type: Any) -> dict[str, FieldKind]:
    constraint = constraint_of(row_type)
    assert constraint is not None
    return {name: _kind(hint, name) for name, hint in typed_fields(constraint)}


def _kind(hint: Any, field: str) -> FieldKind:
    """Returns how values of a type are stored in a chunk."""
    hint = python_type(hint)
    origin, args = typing.get_origin(hint), typing.get_args(hint)
    if origin in (typing.Union, types.UnionType):
        alternatives = [arg for arg in args if arg is not type(None)]
        if len(alternatives) == 1:
            return _kind(alternatives[0], field)
    elif hint in _PLAIN:
        return FieldKind(_PLAIN[hint])
    elif hint in _TIMES:
        return _TIMES[hint]
    elif (row_type := constraint_of(hint)) is not None:
        return _struct(row_type, field)
    elif isinstance(origin, type) and issubclass(origin, collections.abc.Mapping):
        return _map(*(_kind(arg, field) for arg in args))
    elif _is_sequence(origin, args):
        return _list(_kind(args[0], field))
    raise ValueError(f"field {field!r} has a type that chunks cannot hold: {hint!r}")


def _is_sequence(origin: Any, args: tuple[Any, ...]) -> bool:
    if not isinstance(origin, type) or not issubclass(origin, collections.abc.Iterable):
        return False
    return args[1:] == ((...,) if origin is tuple else ())


def _struct(row_type: RowType, field: str) -> FieldKind:
    kinds = {name: _kind(hint, f"{field}.{name}") for name, hint in typed_fields(row_type)}
    packs = {name: kind.pack or _identity for name, kind in kinds.items()}
    unpacks = {name: kind.unpack or _identity for name, kind in kinds.items()}
    make = maker(row_type)
    return _nullable_kind(
        pa.struct([(name, kind.arrow) for name, kind in kinds.items()]),
        lambda row: {name: pack(getattr(row, name)) for name, pack in packs.items()},
        lambda row: make(**{name: unpack(row[name]) for name, unpack in unpacks.items()}),
        pa.struct([(name, kind.read) for name, kind in kinds.items()]),
    )


def _map(key: FieldKind, item: FieldKind) -> FieldKind:
    pack, unpack = item.pack or _identity, item.unpack or _identity
    return _nullable_kind(
        pa.map_(key.arrow, item.arrow),
        lambda values: [(name, pack(value)) for name, value in values.items()],
        lambda values: {name: unpack(value) for name, value in values},
        pa.map_(key.read, item.read),
    )


def _list(item: FieldKind) -> FieldKind:
    pack, unpack = item.pack or _identity, item.unpack or _identity
    return _nullable_kind(
        pa.large_list(item.arrow),
        lambda values: [pack(value) for value in values],
        lambda values: [unpack(value) for value in values],
        pa.large_list(item.read),
    )


def _nullable_kind(arrow: pa.DataType, pack: Pack, unpack: Pack, read_as: pa.DataType) -> FieldKind:
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


def _time_kind(pack: Pack, unpack: Pack) -> FieldKind:
    return _nullable_kind(pa.timestamp("us", "UTC"), pack, unpack, pa.int64())


_TIMES = {
    datetime.datetime: _time_kind(_micros_of, lambda micros: _EPOCH + micros * _MICROSECOND),
    Timestamp: _time_kind(lambda time: time.micros, lambda micros: Timestamp(micros=micros)),
}


def maker(row_type: RowType) -> Callable[..., Any]:
    """Returns the function that makes a row from the values of its fields, given by name."""
    return beam.Row if is_generated(row_type) else row_type.user_type


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
