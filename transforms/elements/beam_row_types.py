"""Beam's types of rows, which it does not document; a stand-in if this Beam has renamed them.

There is no other way to find the fields of an element type. Beam 2.72 to 2.77 have these names.
Those of a dataclass are made here, because Beam 2.72 knows none. With the stand-in chunks flow as
ever, so that all jobs work, and so do rows of a ``NamedTuple`` or dataclass. A ``beam.Row`` is refused
with one line. ``pipelines/launch/beam_internals.py`` warns of a version of
Beam that was not tried.
"""

import dataclasses
import operator
import typing
from typing import Any, NamedTuple

__all__ = ["RowType", "is_generated", "python_type", "row_type_of_class", "typed_fields"]


class _Probe(NamedTuple):
    field: int


try:
    from apache_beam.typehints.native_type_compatibility import convert_to_python_type
    from apache_beam.typehints.row_type import GeneratedClassRowTypeConstraint as _Generated
    from apache_beam.typehints.row_type import RowTypeConstraint as RowType
    from apache_beam.typehints.typehints import TypeConstraint as _Constraint

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
    """Returns the type of rows that are objects of a class; None if it has no declared fields."""
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
