"""Frozen dataclasses that are made quickly: a command has some 250 of them before its first work.

For each frozen class, ``dataclasses.dataclass`` compiles the text of six methods, which takes a tenth of the time in
which a crawl gets to its first page. Here only ``__init__`` is compiled; the other methods are the same for all classes.
"""

import dataclasses
import operator
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # the same for a type checker
    from dataclasses import dataclass as dataclass  # noqa: PLC0414
else:

    def dataclass(*, frozen):
        """Returns a decorator that makes a frozen dataclass, as ``dataclasses.dataclass(frozen=True)`` does.

        >>> @dataclass(frozen=True)
        ... class Page:
        ...     url: str
        ...     links: list = dataclasses.field(default_factory=list)
        >>> Page("a"), Page("a") == Page(url="a", links=[]), Page("b") == Page("a")
        (Page(url='a', links=[]), True, False)
        >>> Page("a").url = "b"
        Traceback (most recent call last):
        dataclasses.FrozenInstanceError: cannot assign to field 'url'
        """
        if not frozen:
            raise ValueError("these classes are frozen; use dataclasses.dataclass")
        return _make_frozen


def _make_frozen(cls: type) -> type:
    dataclasses.dataclass(init=False, repr=False, eq=False)(cls)
    if "__init__" not in vars(cls):
        cls.__init__ = _init_of(cls)  # type: ignore[misc]
    for name, method in FROZEN_METHODS.items():
        if vars(cls).get(name) is None:  # that of __hash__ is None beside an __eq__
            setattr(cls, name, method)
    return cls


def _init_of(cls: type) -> Callable[..., None]:
    """Returns ``__init__`` of a class."""
    fields = [field for field in dataclasses.fields(cls) if field.init or _has_default(field)]
    names: dict[str, Any] = {
        "__name__": cls.__module__, "_set": object.__setattr__, "_FACTORY": _FACTORY
    }  # fmt: skip
    parameters, lines = list[str](), list[str]()
    for field in fields:
        name, default = field.name, ""
        if field.default is not dataclasses.MISSING:
            names[f"_default_{name}"], default = field.default, f"=_default_{name}"
        elif field.default_factory is not dataclasses.MISSING:
            names[f"_make_{name}"], default = field.default_factory, "=_FACTORY"
        value = name
        if default == "=_FACTORY":
            value = f"_make_{name}() if {name} is _FACTORY else {name}"
        if field.init:
            parameters.append(name + default)
        elif default == "=_FACTORY":
            value = f"_make_{name}()"
        else:
            value = f"_default_{name}"
        lines.append(f"  _set(self, {name!r}, {value})")
    if hasattr(cls, "__post_init__"):
        lines.append("  self.__post_init__()")
    text = f"def __init__({', '.join(['self', *parameters])}):\n" + "\n".join(lines or ["  pass"])
    exec(text, names)  # noqa: S102 - names of fields are identifiers
    init: Callable[..., None] = names["__init__"]
    init.__qualname__ = f"{cls.__qualname__}.__init__"
    init.__annotations__ = {field.name: field.type for field in fields if field.init} | {
        "return": None
    }
    return init


def _has_default(field: "dataclasses.Field[Any]") -> bool:
    missing = dataclasses.MISSING
    return field.default is not missing or field.default_factory is not missing


class _Factory:
    def __repr__(self) -> str:  # in the signature of a class
        return "<factory>"


_FACTORY = _Factory()


def _repr(self: Any) -> str:
    shown = (f"{f.name}={getattr(self, f.name)!r}" for f in dataclasses.fields(self) if f.repr)
    return f"{type(self).__qualname__}({', '.join(shown)})"


def _equals(self: Any, other: object) -> bool:
    if type(other) is not type(self):
        return NotImplemented
    values = _values_of(type(self))
    return bool(values(self) == values(other))


def _hash(self: Any) -> int:
    return hash(_values_of(type(self))(self))


def _values_of(cls: type) -> Callable[[Any], Any]:
    """Returns what gets the values by which objects of a class are equal."""
    if cls not in _getters:
        names = [field.name for field in dataclasses.fields(cls) if field.compare]
        _getters[cls] = operator.attrgetter(*names) if names else lambda _: ()
    return _getters[cls]


_getters: dict[type, Callable[[Any], Any]] = {}


def _set_no_field(self: Any, name: str, value: object) -> None:
    if _is_frozen(type(self), name):
        raise dataclasses.FrozenInstanceError(f"cannot assign to field {name!r}")
    object.__setattr__(self, name, value)


def _delete_no_field(self: Any, name: str) -> None:
    if _is_frozen(type(self), name):
        raise dataclasses.FrozenInstanceError(f"cannot delete field {name!r}")
    object.__delattr__(self, name)


def _is_frozen(cls: Any, name: str) -> bool:
    """Returns whether an attribute cannot be set; a class that only inherits may have others than the fields."""
    return "__dataclass_fields__" in vars(cls) or name in cls.__dataclass_fields__


FROZEN_METHODS: Mapping[str, Callable[..., Any]] = {
    "__repr__": _repr,
    "__eq__": _equals,
    "__hash__": _hash,
    "__setattr__": _set_no_field,
    "__delattr__": _delete_no_field,
}
