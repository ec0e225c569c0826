"""Accepts options of a transform as keywords, from Python and Beam YAML.

Each option is declared once, in the dataclass of its step (web/base/options.py).
"""

import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Optional, TypeVar

from ...web.base.options import Option, check_value, default_text, options_of, parse_value, validate

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
    try:
        options = cls(**{name: _value(declared[name], value) for name, value in values.items()})
        validate(options)
    except ValueError as error:
        raise ValueError(str(error).removeprefix("--")) from error
    return options


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
        # ``batch`` is only for jobs: YAML has no syntax for it.
        parameters = signature.parameters.values()
        own = [p for p in parameters if p.kind is not p.VAR_KEYWORD and p.name != "batch"]
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
