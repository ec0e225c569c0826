"""Declares options, each once, as a field of a frozen dataclass.

Command-line flags, keys of ``nutbeam.toml``, environment variables, template
parameters and reference pages are made from these declarations.
"""

import dataclasses
import functools
import inspect
import math
import re
import types
import typing
from collections.abc import Collection, Hashable
from typing import Any, Literal, TypedDict, Unpack

from .dataclass import dataclass
from .wording import value_error

# Values of the suffixes, in seconds and in bytes.
DURATIONS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
LARGEST = 2**53  # the largest number that records of a table hold
LONGEST_S = 2**31 - 1  # the longest duration: columns of intervals hold no longer ones
SIZES = {
    prefix.lower() + binary: float(base**power)
    for power, prefix in enumerate(("", "k", "M", "G", "T"))
    for binary, base in (("", 1000), ("i", 1024))
    if prefix or not binary
}
BYTES = ("B", "bytes")

_TRUE = ("true", "yes", "on", "1")
_FALSE = ("false", "no", "off", "0")
_NUMBER = re.compile(r"([-+]?(?:\d[\d_]*\.?\d*|\.\d+)(?:[eE][-+]?\d+)?)\s*([A-Za-z]*)", re.ASCII)

_Kind = type  # inside Option, "type" is a field


@dataclass(frozen=True)
class Option:
    """The declaration of one option.

    Attributes:
        name: Field name, in snake_case; the flag is ``--name``.
        type: ``str``, ``int``, ``float``, ``bool`` or ``tuple``.
        default: Value if none is given, in ``unit``.
        help: One or two sentences for ``--help`` and the reference page.
        unit: Unit of the value: ``s``, ``ms``, ``h``, ``d`` are durations,
            ``B`` or ``bytes`` are sizes; any other word is only shown.
        nutch: The Nutch property for the option.
        choices: The only accepted values, if not empty.
        minimum: Smallest accepted value, in ``unit``.
        maximum: Largest accepted value, in ``unit``; without it a duration is at most ``LONGEST_S``.
        pattern: Regular expression that a string must match as a whole.
        form: What such a string is, in words, for messages.
        group: Heading under which the option is listed.
        short: Letter of the short form, such as ``o`` for ``-o``.
        item: Type of the elements of a tuple; else the same as ``type``.
        optional: Whether None is a value.
        separator: What separates the values of a tuple in one text: a comma, or white space.
        plugins: Whether the values name plug-ins; then ``choices`` are the built-in ones only.
        takes: What else than a text a program may give for one: ``path``, ``number`` or ``time``.
    """

    name: str
    type: _Kind
    default: Any
    help: str
    unit: str | None = None
    nutch: str | None = None
    choices: tuple[Any, ...] = ()
    minimum: float | None = None
    maximum: float | None = None
    pattern: str | None = None
    form: str = ""
    group: str = ""
    short: str | None = None
    item: _Kind = str
    optional: bool = False
    separator: Literal[",", " "] = ","
    plugins: bool = False
    takes: Literal["", "path", "number", "time"] = ""

    @property
    def flag(self) -> str:
        """The flag as it is typed: ``--name``."""
        return f"--{self.name}"

    @property
    def accepted_values(self) -> str:
        """Description of the values that are accepted.

        >>> Option("timeout", float, 10.0, "", unit="s", item=float).accepted_values
        'a number of s (suffixes ms, s, m, h, d are accepted)'
        """
        if self.item is bool:
            return "true or false"
        if self.item is str:
            return "a text"
        number = "a whole number" if self.item is int else "a number"
        if self.unit in DURATIONS:
            return f"{number} of {self.unit} (suffixes {', '.join(DURATIONS)} are accepted)"
        if self.unit in BYTES:
            return f"{number} of bytes (suffixes k, M, G, T, Ki, Mi, Gi, Ti are accepted)"
        return f"{number} of {self.unit}" if self.unit else number


class Facts(TypedDict, total=False):
    """Facts about an option that are not given for every option; see ``Option``."""

    unit: str | None
    nutch: str | None
    choices: tuple[Any, ...] | list[Any]
    minimum: float | None
    maximum: float | None
    pattern: str | None
    form: str
    group: str | None
    short: str | None
    separator: Literal[",", " "]
    plugins: bool
    takes: Literal["", "path", "number", "time"]


def option(default: Any, help: str, **facts: Unpack[Facts]) -> Any:
    """Returns the dataclass field that declares an option; see ``Option``.

    The class attribute ``GROUP`` is the group of options without one.

    >>> @dataclasses.dataclass(frozen=True)
    ... class HttpOptions:
    ...     timeout: float = option(10.0, "wait", unit="s", nutch="http.timeout", minimum=0)
    >>> (declared,) = options_of(HttpOptions)
    >>> declared.flag, declared.group, parse_value(declared, "2m")
    ('--timeout', 'http', 120.0)
    """
    metadata = {"group": None, **facts, "help": help, "choices": tuple(facts.get("choices", ()))}
    return dataclasses.field(default=default, metadata={"option": metadata})


def seconds(
    default: float | None,
    help: str,
    nutch: str | None = None,
    minimum: float | None = 0,
    **facts: Any,
) -> Any:
    """Returns the field of an option that is a time; see ``Option``."""
    return option(default, help, unit="s", nutch=nutch, minimum=minimum, **facts)


def shared_option(cls: type, name: str, **default: Any) -> Any:
    """Returns the field of an option that another dataclass declares.

    The default may differ (``default=...``).

    >>> @dataclasses.dataclass(frozen=True)
    ... class HttpOptions:
    ...     timeout: float = option(10.0, "wait", unit="s", nutch="http.timeout")
    >>> @dataclasses.dataclass(frozen=True)
    ... class HastyOptions:
    ...     timeout: float = shared_option(HttpOptions, "timeout", default=1.0)
    >>> (declared,) = options_of(HastyOptions)
    >>> declared.default, declared.nutch, declared.group
    (1.0, 'http.timeout', 'http')
    """
    (field,) = (field for field in dataclasses.fields(cls) if field.name == name)
    metadata = dict(field.metadata["option"])
    metadata["group"] = metadata["group"] or _group(cls, name)
    value = default.get("default", field.default)
    return dataclasses.field(default=value, metadata={"option": metadata})


def options_of(cls: type) -> tuple[Option, ...]:
    """Returns the options that a dataclass and its bases declare, in order.

    Fields that ``option`` did not make are left out.

    Raises:
        TypeError: A field has a type that no flag can hold.
    """
    return _options_of(cls)


@functools.cache
def _options_of(cls: Hashable) -> tuple[Option, ...]:
    assert isinstance(cls, type)
    hints = typing.get_type_hints(cls)
    return tuple(
        _option_of_field(cls, field, hints[field.name])
        for field in dataclasses.fields(cls)
        if "option" in field.metadata
    )


def _option_of_field(cls: type, field: "dataclasses.Field[Any]", hint: Any) -> Option:
    metadata = dict(field.metadata["option"])
    kind, optional = _without_none(hint)
    item = kind
    if typing.get_origin(kind) is tuple:
        item, kind = typing.get_args(kind)[0], tuple
    if typing.get_origin(item) is typing.Literal:
        metadata["choices"] = typing.get_args(item)
        item = type(metadata["choices"][0])
        kind = kind if kind is tuple else item
    if item not in (str, int, float, bool) or kind not in (item, tuple):
        raise TypeError(f"{cls.__name__}.{field.name} has a type no flag can hold: {hint!r}")
    metadata["group"] = metadata["group"] or _group(cls, field.name)
    return Option(
        name=field.name, type=kind, default=field.default, item=item, optional=optional, **metadata
    )


def _without_none(hint: Any) -> tuple[Any, bool]:
    if typing.get_origin(hint) in (typing.Union, types.UnionType):
        other_types = [arg for arg in typing.get_args(hint) if arg is not type(None)]
        return (other_types[0] if len(other_types) == 1 else hint), True
    return hint, False


def _group(cls: type, name: str) -> str:
    """Returns ``GROUP`` of the class that declares a field, else its name without "Options".

    If a class redeclares a field of its base, the base counts.
    """
    field = cls.__dataclass_fields__[name]  # type: ignore[attr-defined]
    (declaring, *_) = (base for base in cls.__mro__ if _declares(base, name, field))
    owner = [base for base in declaring.__mro__ if name in _annotations(base)][-1]
    if "GROUP" in vars(owner):
        return str(vars(owner)["GROUP"])
    words = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", " ", owner.__name__.removesuffix("Options")).lower()
    return words or owner.__module__.rpartition(".")[2]


def _declares(cls: type, name: str, field: "dataclasses.Field[Any]") -> bool:
    return name in _annotations(cls) and getattr(cls, "__dataclass_fields__", {})[name] is field


def _annotations(cls: type) -> dict[str, Any]:
    return inspect.get_annotations(cls)


def validate(options: Any, given_names: Collection[str] = ()) -> None:
    """Checks every option of a dataclass, then the ``__post_init__`` of all its classes.

    So a class that inherits from several others keeps the checks of each, whether or not they
    call ``super()``. A class may also have a method ``check_given`` for values that are a mistake only if
    they were given, even if they are the default.

    Args:
        options: The options.
        given_names: Names of the options that were given.

    Raises:
        ValueError: One line that names the flag and quotes the value.
    """
    for declared in options_of(type(options)):
        check_value(declared, getattr(options, declared.name))
    for base in type(options).__mro__:
        if "__post_init__" in vars(base):
            vars(base)["__post_init__"](options)
        if "check_given" in vars(base):
            vars(base)["check_given"](options, given_names)


def parse_value(option: Option, text: str) -> Any:
    r"""Parses and checks the value of an option.

    Durations may have a suffix (ms, s, m, h, d), and are converted to the option's unit. Sizes may
    have k, M, G, T (powers of 1000) and Ki, Mi, Gi, Ti (of 1024). The option's separator separates
    the values of a tuple; where that is a comma, ``\,`` is a comma in a value. If None is a value,
    the empty text means None.

    Raises:
        ValueError: One line that names the flag and quotes the value.

    >>> parse_value(Option("content_limit", int, 0, "", unit="bytes", item=int), "64Ki")
    65536
    >>> parse_value(Option("allow", tuple, (), ""), "a,b")
    ('a', 'b')
    >>> parse_value(Option("include", tuple, (), "", separator=" "), "/[0-9]{2,4}/ /a")
    ('/[0-9]{2,4}/', '/a')
    """
    if option.optional and text.strip().lower() in (("",) if option.item is str else ("", "none")):
        return None
    if option.type is tuple:
        values = [_parse_item(option, part) for part in _parts(option, text)]
        return check_value(option, tuple(values))
    return check_value(option, _parse_item(option, text))


def _parts(option: Option, text: str) -> list[str]:
    if option.separator == " ":
        return text.split()
    parts = re.split(r"(?<!\\),", text) if text.strip() else []
    return [part.strip().replace("\\,", ",") for part in parts]


def check_value(option: Option, value: Any) -> Any:
    """Checks and returns a value that is not text (from Python or a toml file).

    Whole numbers become floats if the option is a float; lists become tuples.

    Raises:
        ValueError: One line that names the flag and quotes the value.
    """
    if value is None and option.optional:
        return None
    if option.type is tuple:
        if isinstance(value, str) or not isinstance(value, tuple | list):
            raise _option_error(option, f"a list, each {option.accepted_values}", value)
        return tuple(_check_item(option, item) for item in value)
    return _check_item(option, value)


def default_text(option: Option) -> str:
    """Returns the default as text of a command line; empty for None and empty tuples.

    >>> default_text(Option("threads", int, 50, "", item=int))
    '50'
    """
    return value_text(option, option.default)


def value_text(option: Option, value: Any) -> str:
    """Returns a value as text of a command line, without its unit."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float):
        return f"{value:g}" if float(f"{value:g}") == value else repr(value)
    if isinstance(value, tuple):
        texts = [value_text(option, item) for item in value]
        if option.separator == " ":
            return " ".join(texts)
        return ",".join(text.replace(",", "\\,") for text in texts)
    return str(value)


def _parse_item(option: Option, text: str) -> Any:
    if option.item is str:
        return text
    if option.item is bool:
        if text.strip().lower() not in _TRUE + _FALSE:
            raise _option_error(option, option.accepted_values, text)
        return text.strip().lower() in _TRUE
    return _parse_number(option, text)


def _parse_number(option: Option, text: str) -> int | float:
    match = _NUMBER.fullmatch(text.strip())
    scale = _scale(option, match[2]) if match else None
    if match is None or scale is None:
        raise _option_error(option, option.accepted_values, text)
    try:
        if scale == 1.0 and option.item is int:
            return int(match[1])
        number = float(match[1])
        if scale != 1.0:
            # To 15 digits: 3 ms are 0.003 s, not 0.0030000000000000005. Not to a number of
            # decimals: small numbers would become 0.
            number = float(f"{number * scale:.15g}")
    except (ValueError, OverflowError) as error:
        raise _option_error(option, option.accepted_values, text) from error
    if math.isinf(number) or (option.item is int and number != int(number)):
        raise _option_error(option, option.accepted_values, text)
    return int(number) if option.item is int else number


def _scale(option: Option, suffix: str) -> float | None:
    """Returns the factor for a suffix; None if the suffix is unknown."""
    if not suffix:
        return 1.0
    if option.unit in DURATIONS and suffix in DURATIONS:
        return DURATIONS[suffix] / DURATIONS[option.unit]
    if option.unit in BYTES:
        return SIZES.get(suffix.lower().removesuffix("b"))
    return None


def _check_item(option: Option, value: Any) -> Any:
    value = _convert_value(option, value)
    if option.choices and value not in option.choices and not option.plugins:
        choices = ", ".join(str(choice) for choice in option.choices if choice != "")
        raise _option_error(option, f"one of {choices}", value)
    if option.pattern and not re.fullmatch(option.pattern, value):
        raise _option_error(option, option.form or f"a text that matches {option.pattern}", value)
    unit = f" {option.unit}" if option.unit else ""
    if option.minimum is not None and value < option.minimum:
        raise _option_error(option, f"at least {option.minimum:g}{unit}", value)
    maximum = option.maximum
    if maximum is None and option.unit in DURATIONS:
        maximum = LONGEST_S / DURATIONS[option.unit]
    if option.item is int and abs(value) > LARGEST:
        raise _option_error(option, f"at most {LARGEST:,}", value)
    if maximum is not None and value > maximum:
        raise _option_error(option, f"at most {maximum:.12g}{unit}", value)
    return value


def _convert_value(option: Option, value: Any) -> Any:
    if option.item is float and type(value) in (int, float) and math.isfinite(value):
        return float(value)
    if option.item is float or type(value) is not option.item:
        raise _option_error(option, option.accepted_values, value)
    return value


def _option_error(option: Option, expected: str, value: object) -> ValueError:
    return value_error(f"{option.flag} must be {expected}", value)
