"""The options of a generate, as its snapshot records them: ``explain`` judges rows by them."""

import dataclasses
from collections.abc import Mapping
from typing import Any, TypeVar

from ...policy.generating.selection import GenerateOptions
from ...policy.recorded_rules import recorded_options
from ...policy.scope import TargetOptions

_Of = TypeVar("_Of", bound=GenerateOptions)
_FIELDS = {f.name: f for kind in (TargetOptions, GenerateOptions) for f in dataclasses.fields(kind)}


def choosing_record(options: GenerateOptions) -> dict[str, Any]:
    """Returns the options of choosing that are not the defaults, for JSON.

    >>> choosing_record(GenerateOptions(min_score=0.5))
    {'min_score': 0.5}
    """
    return recorded_options(options, TargetOptions, GenerateOptions)


def as_recorded(options: _Of, record: Mapping[str, Any]) -> _Of:
    """Returns options with those of a record, and defaults for the others of choosing.

    >>> as_recorded(GenerateOptions(top_n=9), {"min_score": 0.5, "of_later": 1}).min_score
    0.5
    """
    present = [name for name in _FIELDS if hasattr(options, name)]
    recorded_values = {
        n: tuple(v) if isinstance(v, list) else v for n, v in record.items() if n in present
    }
    default = {name: _FIELDS[name].default for name in present}
    # A value of another type is a stranger's.
    right = {n: v for n, v in recorded_values.items() if _is_like(v, default[n])}
    values: dict[str, Any] = default | right
    return dataclasses.replace(options, **values)


def _is_like(value: Any, default: Any) -> bool:
    if isinstance(default, tuple):
        return isinstance(value, tuple) and all(isinstance(part, str) for part in value)
    if isinstance(default, float) or default is None:
        return type(value) in (int, float)
    return type(value) is type(default)
