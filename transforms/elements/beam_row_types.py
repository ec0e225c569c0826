"""Beam's types of rows, which it does not document; a stand-in if this Beam has renamed them.

There is no other way to find the fields of an element type. Beam 2.72 to 2.77 have these names.
With the stand-in chunks flow as ever, so that all jobs work, and so do rows of a ``NamedTuple``. A
``beam.Row`` is refused with one line. ``pipelines/launch/beam_internals.py`` warns of a version of
Beam that was not tried.
"""

import operator
import typing
from typing import Any, NamedTuple

__all__ = ["RowType", "is_generated", "python_type", "typed_fields"]


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

        def __init__(self, user_type: type) -> None:
            self.user_type = user_type
            self._fields = tuple(typing.get_type_hints(user_type).items())

        @classmethod
        def from_user_type(cls, user_type: type) -> Any:
            return cls(user_type) if hasattr(user_type, "_fields") else None

        @staticmethod
        def from_fields(fields: Any) -> Any:
            names = [name for name, _ in fields]
            raise ValueError(f"this version of Beam has no known type for rows of {names}")


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
