"""Dataclasses with the options of many others, made without compiling methods for each."""

import dataclasses
from typing import Any, TypeVar, dataclass_transform

from .dataclass import FROZEN_METHODS

_Class = TypeVar("_Class", bound=type)


@dataclass_transform(frozen_default=True)
def joined_options(cls: _Class) -> _Class:
    """Makes a frozen dataclass of a class that joins the options of others.

    It behaves as with ``dataclass(frozen=True)``, without compiling ``__init__``: with hundreds of fields that
    takes long, and few objects are made.

    >>> from nutbeam.web.base.options import option
    >>> @joined_options
    ... class Joined:
    ...     depth: int = option(3, "depth")
    ...     scope: str = option("any", "scope")
    >>> Joined(1, scope="host"), Joined() == Joined(3), len({Joined(), Joined(3, "any")})
    (Joined(depth=1, scope='host'), True, 1)
    >>> Joined(width=1)
    Traceback (most recent call last):
    TypeError: Joined() has no field 'width'
    """
    dataclasses.dataclass(init=False, repr=False, eq=False)(cls)
    for name, method in FROZEN_METHODS.items():
        setattr(cls, name, method)
    cls.__init__ = _init  # type: ignore[misc]
    return cls


def _init(self: Any, /, *args: Any, **values: Any) -> None:
    fields, cls = dataclasses.fields(self), type(self).__name__
    if len(args) > len(fields):
        raise TypeError(f"{cls}() takes {len(fields)} values, got {len(args)}")
    for field, value in zip(fields, args, strict=False):
        if field.name in values:
            raise TypeError(f"{cls}() got {field.name!r} twice")
        values[field.name] = value
    for field in fields:  # in their order, as vars() shows them
        vars(self)[field.name] = (
            values.pop(field.name) if field.name in values else _default(cls, field)
        )
    for name in values:
        raise TypeError(f"{cls}() has no field {name!r}")
    if hasattr(self, "__post_init__"):
        self.__post_init__()


def _default(cls: str, field: "dataclasses.Field[Any]") -> Any:
    if field.default_factory is not dataclasses.MISSING:
        return field.default_factory()
    if field.default is dataclasses.MISSING:
        raise TypeError(f"{cls}() lacks {field.name!r}")
    return field.default
