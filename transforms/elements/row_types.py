"""Reads types of rows: of Beam, and of Python as Beam sees them."""

import dataclasses
import operator
import typing
from collections.abc import Callable, Mapping
from typing import Any, ClassVar, NamedTuple

import apache_beam as beam
import pyarrow as pa
from apache_beam.utils.timestamp import Timestamp

from .field_kinds import FieldKind, FieldTypes, RecordType, schema_of_kinds, time_kind


class _Probe(NamedTuple):
    field: int


# Beam's types of rows, which it does not document; a stand-in if this Beam has renamed them.
# There is no other way to find the fields of an element type. Beam 2.72 to 2.77 have these names.
# With the stand-in chunks flow as ever, so that all jobs work, and so do rows of a ``NamedTuple`` or
# dataclass. A ``beam.Row`` is refused with one line. ``pipelines/running/beam_internals.py`` warns of
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
    return schema_of_kinds(kinds_of(row_type))


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


class _BeamTypes(FieldTypes):
    """Reads the types of Beam, too."""

    times: ClassVar[Mapping[Any, FieldKind]] = {
        **FieldTypes.times,
        Timestamp: time_kind(lambda time: time.micros, lambda micros: Timestamp(micros=micros)),
    }

    def python_type(self, hint: Any) -> Any:
        return python_type(hint)

    def record_type(self, hint: Any) -> RecordType | None:
        row_type = constraint_of(hint)
        return None if row_type is None else RecordType(typed_fields(row_type), maker(row_type))


_BEAM_TYPES = _BeamTypes()


def kinds_of(row_type: Any) -> dict[str, FieldKind]:
    record = _BEAM_TYPES.record_type(row_type)
    assert record is not None
    return _BEAM_TYPES.kinds_of_fields(record)


def maker(row_type: RowType) -> Callable[..., Any]:
    """Returns the function that makes a row from the values of its fields, given by name."""
    return beam.Row if is_generated(row_type) else row_type.user_type
