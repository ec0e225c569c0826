"""Configures transforms: shows their fields on a runner's web page, and takes options as keywords.

Display data have no secrets. Keywords come from Python and Beam YAML. Each option is declared once, in
the dataclass of its step (web/base/options.py).
"""

import contextlib
import dataclasses
import functools
import inspect
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Optional, TypeVar

import apache_beam as beam

from ...web.base.keyword_wording import in_keywords
from ...web.base.options import Option, check_value, default_text, options_of, parse_value, validate
from . import chunk_coder  # noqa: F401 - all transforms have their names here, and the coder of chunks

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


Transform = TypeVar("Transform", bound=type)
_Options = TypeVar("_Options")


def options_from(
    cls: type[_Options], whole: Any, keywords: Mapping[str, Any], **defaults: Any
) -> _Options:
    """Returns the checked options of a transform, from one object or from keywords.

    Texts are parsed as on the command line, so ``"2m"`` is 120 s.

    Args:
        cls: The type of the options that keywords are for.
        whole: The options as one object, or None.
        keywords: Values by name.
        defaults: Defaults that differ from those of ``cls``.

    Raises:
        TypeError: There is no such option, or there are an object and keywords.
        ValueError: A value is not valid; the message is one line that quotes it.

    >>> from ...web.engine.pace import FetchOptions
    >>> options_from(FetchOptions, None, {"server_delay": "500ms"}).server_delay
    0.5
    """
    if whole is not None:
        if keywords:
            raise TypeError(f"options must be one object or keywords, got both: {list(keywords)}")
        return whole
    declared = {option.name: option for option in options_of(cls)}
    for name in keywords:
        if name not in declared:
            raise TypeError(f"got an unexpected keyword argument {name!r}")
    values = defaults | dict(keywords)
    with errors_in_keywords(cls):
        options = cls(**{name: _value(declared[name], value) for name, value in values.items()})
        validate(options)
    return options


@contextlib.contextmanager
def errors_in_keywords(cls: type) -> Iterator[None]:
    """Says in a ``ValueError`` of the block keywords in place of the flags of a command line.

    Args:
        cls: The type of the options.
    """
    try:
        yield
    except ValueError as error:
        switches = {option.name for option in options_of(cls) if option.type is bool}
        raise ValueError(in_keywords(str(error), switches)) from error


def with_keywords(cls: type, **defaults: Any) -> Callable[[Transform], Transform]:
    """Adds the options of ``cls`` to the signature and docstring of a transform.

    ``help`` and Beam YAML read these. The constructor itself takes the options as keywords.

    Args:
        cls: The options.
        defaults: Defaults that differ from those of ``cls``.
    """

    def decorate(transform: Transform) -> Transform:
        init: Any = vars(transform)["__init__"]
        signature = inspect.signature(init)
        own = [p for p in signature.parameters.values() if p.kind is not p.VAR_KEYWORD]
        declared = options_of(cls)
        more = [
            inspect.Parameter(
                option.name,
                inspect.Parameter.KEYWORD_ONLY,
                default=defaults.get(option.name, option.default),
                annotation=_annotation(option),
            )
            for option in declared
        ]
        init.__signature__ = signature.replace(parameters=[*own, *more])
        lines = "".join(_line(option, defaults) for option in declared)
        transform.__doc__ = f"{(transform.__doc__ or '').rstrip()}\n{lines}    "
        return transform

    return decorate


def _value(option: Option, value: Any) -> Any:
    if isinstance(value, str) and (option.type is tuple or option.item is not str):
        return parse_value(option, value)
    return check_value(option, value)


def _annotation(option: Option) -> Any:
    kind: Any = Sequence[option.item] if option.type is tuple else option.item  # type: ignore[name-defined]
    # Beam's schemas do not support X | None.
    return Optional[kind] if option.optional else kind  # noqa: UP045


def _line(option: Option, defaults: Mapping[str, Any]) -> str:
    unit = f" Unit: {option.unit}." if option.unit else ""
    default = defaults.get(option.name, default_text(option))
    stated = f" Default: {default}." if default != "" else ""
    return f"        {option.name}: {option.help}{unit}{stated}\n"
