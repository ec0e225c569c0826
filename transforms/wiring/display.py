"""Makes display data: the configuration of a step, without secrets, for a runner's web page."""

import dataclasses
import functools
import re
from typing import Any

import apache_beam as beam

from ...web.base.options import options_of

# Names of options that may have a secret, or the path of a secret.
_SECRET = re.compile(r"auth|cookie|credential|header|_key$|passw|proxy|secret|token|_file$|_path$")
_LOGIN = re.compile(r"//[^/\s]*@")  # a URL with a user, and perhaps a password
_LONGEST = 200


class Displayed(beam.PTransform):
    """A transform that shows its fields, if it is a dataclass.

    Options are shown one by one, functions by name. A field of any other kind is left out.
    """

    def display_data(self) -> dict[str, Any]:
        return display_fields(self)


def display_fields(step: Any) -> dict[str, str | int | float | bool]:
    """Returns the fields of a dataclass that may be shown, by name.

    >>> @dataclasses.dataclass
    ... class Step:
    ...     most: int
    ...     columns: tuple[str, ...]
    ...     api_token: str
    ...     divide: object
    >>> display_fields(Step(3, ("key", "score"), "hush", len))
    {'most': 3, 'columns': 'key,score', 'divide': 'len'}
    """
    shown: dict[str, str | int | float | bool] = {}
    for field in dataclasses.fields(step):
        for name, value in _items(field.name, getattr(step, field.name)):
            if not _SECRET.search(name) and not (isinstance(value, str) and _LOGIN.search(value)):
                shown[name] = value[:_LONGEST] if isinstance(value, str) else value
    return shown


def _items(name: str, value: Any) -> list[tuple[str, str | int | float | bool]]:
    if isinstance(value, str | int | float | bool):
        return [(name, value)]
    if not isinstance(value, type) and dataclasses.is_dataclass(value) and options_of(type(value)):
        return [
            item
            for option in options_of(type(value))
            for item in _items(option.name, getattr(value, option.name))
        ]
    if isinstance(value, tuple | list):
        if all(isinstance(item, str | int | float | bool) for item in value):
            return [(name, ",".join(map(str, value)))] if value else []
        return [item for part in value for item in _items(name, part)]
    if isinstance(value, type):
        return [(name, value.__name__)]
    if isinstance(value, functools.partial):
        keyword_items = [item for key, part in value.keywords.items() for item in _items(key, part)]
        return [*_items(name, value.func), *keyword_items]
    if callable(value):
        return [(name, getattr(value, "__name__", type(value).__name__))]
    return []
