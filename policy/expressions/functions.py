"""Functions of expressions, also called as methods: ``lower(title)`` is ``title.lower()``."""

import dataclasses
import functools
from collections.abc import Callable, Mapping

import polars as pl

from ...web.base.dataclass import dataclass
from .syntax import Refused, or_nearest
from .values import Type, Value, as_truth, finite, iso_time, literal, number, text, truth, unify

MAX_PATTERN = 1000


@dataclass(frozen=True)
class Function:
    """A function.

    Attributes:
        fewest: Smallest number of values that it takes.
        most: Largest number.
        apply: Makes its value; ``Refused`` if the values do not fit.
        meaning: A sentence for the documentation.
    """

    fewest: int
    most: int
    apply: Callable[..., Value]
    meaning: str


def call_function(name: str, values: list[Value]) -> Value:
    """Returns the value of a function.

    Raises:
        Refused: There is no such function, or it does not take these values.
    """
    name = _OTHER_NAMES.get(name, name)
    function = FUNCTIONS.get(name)
    if function is None:
        raise Refused(f"unknown function {or_nearest(name, FUNCTIONS)}")
    if not function.fewest <= len(values) <= function.most:
        wanted = f"{function.fewest}"
        if function.most != function.fewest:
            wanted = f"{function.fewest} to {function.most}"
        raise Refused(f"{name}() takes {wanted} values, got {len(values)}")
    try:
        return function.apply(*values)
    except Refused as error:
        raise Refused(f"{name}(): {error}") from None


def _texts(*values: Value) -> None:
    for value in values:
        if value.type is not Type.TEXT:
            raise Refused(f"takes a text, got {value.type.value}")


def _len(value: Value) -> Value:
    match value.type:
        case Type.TEXT:
            length = value.expr.str.len_chars()
        case Type.TEXTS | Type.RECORDS | Type.MAP:
            length = value.expr.list.len()
        case _:
            raise Refused(f"takes a text, a list or a map, got {value.type.value}")
    return number(length.cast(pl.Int64), value, finite=True)


def _on_text(function: Callable[[pl.Expr], pl.Expr]) -> Callable[[Value], Value]:
    def apply(value: Value) -> Value:
        _texts(value)
        return text(function(value.expr), value)

    return apply


def _on_texts(function: Callable[[pl.Expr, pl.Expr], pl.Expr]) -> Callable[[Value, Value], Value]:
    def apply(value: Value, part: Value) -> Value:
        _texts(value, part)
        return truth(function(value.expr, part.expr), value, part)

    return apply


def _contains(value: Value, part: Value) -> Value:
    _texts(part)
    if value.type is Type.TEXTS:
        has = value.expr.list.contains(part.expr) & part.expr.is_not_null()
        return truth(has, value, part, part)
    _texts(value)
    return truth(value.expr.str.contains(part.expr, literal=True), value, part)


def matched_by(value: Value, pattern: Value, whole: bool) -> Value:
    """Returns whether a regular expression matches a text.

    Args:
        value: The text.
        pattern: The pattern, a constant text. polars matches it in linear time.
        whole: Whether it must match the whole text.

    Raises:
        Refused: The pattern is not a constant, or is not a regular expression.
    """
    _texts(value)
    if not isinstance(pattern.constant, str):
        raise Refused("a regular expression must be a text that is written out")
    return truth(value.expr.str.contains(checked_pattern(pattern.constant, whole)), value)


_MATCHES = functools.partial(matched_by, whole=True)
_SEARCH = functools.partial(matched_by, whole=False)


def checked_pattern(pattern: str, whole: bool) -> str:
    """Returns a pattern as polars takes it.

    Raises:
        Refused: It is too long or too large, or is not a regular expression.

    >>> checked_pattern("a|b", whole=True)
    '^(?:a|b)$'
    """
    if len(pattern) > MAX_PATTERN:
        raise Refused(f"a regular expression has at most {MAX_PATTERN} characters")
    for form in [pattern, f"^(?:{pattern})$"] if whole else [pattern]:
        try:
            pl.Series([""]).str.contains(form)
        except pl.exceptions.PolarsError as error:
            lines = str(error).partition("This error occurred")[0].split("\n")
            why = next((line for line in lines if line.startswith("error:")), lines[0])
            raise Refused(
                f"bad regular expression ({why.removeprefix('error:').strip()})"
            ) from None
    return form


def _duration(seconds: int) -> Callable[[Value], Value]:
    def apply(value: Value) -> Value:
        if value.type is not Type.NUMBER:
            raise Refused(f"takes a number, got {value.type.value}")
        product = number(value.expr.cast(pl.Float64) * seconds, value)
        return dataclasses.replace(product, type=Type.DURATION)

    return apply


def _time(value: Value) -> Value:
    match value:
        case Value(type=Type.TIME):
            return value
        case Value(type=Type.TEXT, constant=str() as written):
            return Value(pl.lit(iso_time(written)), Type.TIME)
        case Value(type=Type.NUMBER):
            return dataclasses.replace(finite(value), type=Type.TIME, is_constant=False)
    raise Refused("takes a text that is written out, or ms since 1970")


def _float(value: Value) -> Value:
    if value.type is Type.NUMBER:
        return value
    _texts(value)
    stripped = value.expr.str.strip_chars()
    return number(stripped.cast(pl.Float64, strict=False), value)


def _abs(value: Value) -> Value:
    if value.type not in (Type.NUMBER, Type.DURATION):
        raise Refused(f"takes a number, got {value.type.value}")
    return dataclasses.replace(
        value, expr=value.expr.abs(), weight=value.weight + 1, is_constant=False, constant=None
    )


def _extreme(choose: Callable[..., pl.Expr]) -> Callable[..., Value]:
    def apply(*values: Value) -> Value:
        chosen = unify([finite(value) for value in values], "the values", choose)
        if chosen.type not in (Type.NUMBER, Type.DURATION, Type.TIME):
            raise Refused(f"takes numbers, got {chosen.type.value}")
        return chosen

    return apply


def _empty(value: Value) -> Value:
    if value.type in (Type.NUMBER, Type.TIME, Type.DURATION, Type.TRUTH):
        return Value(finite(value).expr.is_null(), Type.TRUTH, finite(value).weight + 1)
    filled = as_truth(value)
    return literal(not filled.constant) if filled.is_constant else truth(~filled.expr, filled)


def entry(value: Value, name: Value) -> Value:
    """Returns an entry of a map or a list; missing if there is none.

    Raises:
        Refused: The value has no entries, or the name does not fit.
    """
    if value.type is Type.MAP:
        if not isinstance(name.constant, str):
            raise Refused("the name of an entry must be a text that is written out")
        struct = pl.element().struct
        named = pl.element().filter(struct.field("key") == name.constant)
        return text(value.expr.list.eval(named.struct.field("value")).list.last(), value)
    if value.type is Type.TEXTS:
        place = name.constant
        if not isinstance(place, int) or isinstance(place, bool) or abs(place) > 2**31:
            raise Refused("the place in a list must be a whole number that is written out")
        return text(value.expr.list.get(place, null_on_oob=True), value)
    raise Refused(f"{value.type.value} has no entries")


FUNCTIONS: Mapping[str, Function] = {
    "len": Function(1, 1, _len, "Number of characters, or of items."),
    "lower": Function(1, 1, _on_text(lambda a: a.str.to_lowercase()), "In lower case."),
    "upper": Function(1, 1, _on_text(lambda a: a.str.to_uppercase()), "In upper case."),
    "strip": Function(1, 1, _on_text(lambda a: a.str.strip_chars()), "Without outer white space."),
    "startswith": Function(2, 2, _on_texts(lambda a, b: a.str.starts_with(b)), "Begins with it."),
    "endswith": Function(2, 2, _on_texts(lambda a, b: a.str.ends_with(b)), "Ends with it."),
    "contains": Function(2, 2, _contains, "A text or list has it, as `in`."),
    "matches": Function(2, 2, _MATCHES, "A regular expression matches the whole text, as `=~`."),
    "search": Function(2, 2, _SEARCH, "A regular expression matches somewhere in the text."),
    "float": Function(1, 1, _float, "A text as a number; missing if it is none."),
    "abs": Function(1, 1, _abs, "Without its sign."),
    "min": Function(2, 8, _extreme(pl.min_horizontal), "The smallest; missing ones do not count."),
    "max": Function(2, 8, _extreme(pl.max_horizontal), "The largest; missing ones do not count."),
    "empty": Function(1, 1, _empty, "Missing, or without characters or items."),
    "get": Function(2, 2, entry, "An entry of a map, as `metadata['name']`."),
    "time": Function(1, 1, _time, "A time that is written as `'2026-01-31T12:00:00Z'`, or ms."),
    "weeks": Function(1, 1, _duration(604_800), "A duration in weeks."),
    "days": Function(1, 1, _duration(86_400), "A duration in days."),
    "hours": Function(1, 1, _duration(3600), "A duration in hours."),
    "minutes": Function(1, 1, _duration(60), "A duration in minutes."),
    "seconds": Function(1, 1, _duration(1), "A duration in seconds."),
}
# Java's names, which Nutch's users write, and others.
_OTHER_NAMES = {
    "size": "len", "length": "len", "toLowerCase": "lower", "toUpperCase": "upper",
    "trim": "strip", "startsWith": "startswith", "endsWith": "endswith", "isEmpty": "empty",
    "number": "float", "int": "float",
}  # fmt: skip
