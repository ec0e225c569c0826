"""Values of expressions: a polars expression with its type."""

import dataclasses
from collections.abc import Callable, Mapping
from enum import Enum

import polars as pl

from ...web.base import wording
from ...web.base.dataclass import dataclass
from .syntax import Refused

# Times a polars expression may use parts of itself: it is a tree, so a part that is used twice is in it twice.
MAX_WEIGHT = 5000


class Type(Enum):
    """Types of values, as messages call them."""

    NUMBER = "a number"
    TEXT = "a text"
    TRUTH = "true or false"
    TIME = "a time"
    DURATION = "a duration"
    TEXTS = "a list of texts"
    RECORDS = "a list"
    MAP = "a map"
    CHOICE = "a list of values"
    MISSING = "None"


@dataclass(frozen=True)
class Codes:
    """The codes of a column, such as statuses.

    Attributes:
        number: The codes as they are stored.
        words: For each name, the codes that it means.
    """

    number: pl.Expr
    words: Mapping[str, tuple[int, ...]]


@dataclass(frozen=True)
class Value:
    """A value of each row.

    Attributes:
        expr: The polars expression. Times are ms since 1970, durations seconds.
        type: Its type.
        weight: Size of the expression.
        constant: The value itself, if it is written in the expression; of a choice a tuple.
        is_constant: Whether it is a constant.
        finite: Whether a number is surely neither NaN nor infinite.
        codes: The codes that a text stands for, if it is the name of a code.
        unit: Unit of the numbers of a column.
    """

    expr: pl.Expr
    type: Type
    weight: int = 1
    constant: object = None
    is_constant: bool = False
    finite: bool = True
    codes: Codes | None = None
    unit: str = ""

    def __post_init__(self) -> None:
        if self.weight > MAX_WEIGHT:
            raise Refused("the expression is too complex")


@dataclass(frozen=True)
class Field:
    """A name that expressions may use.

    Attributes:
        name: The name.
        value: Its value.
        meaning: A sentence for the documentation.
    """

    name: str
    value: Value
    meaning: str = ""


def number(expr: pl.Expr, *parts: Value, finite: bool = False) -> Value:
    """Returns a number made of some parts, each used once."""
    return Value(expr, Type.NUMBER, 1 + sum(part.weight for part in parts), finite=finite)


def truth(expr: pl.Expr, *parts: Value) -> Value:
    """Returns true or false, made of some parts, each used once; a missing value is false."""
    return Value(expr.fill_null(False), Type.TRUTH, 2 + sum(part.weight for part in parts))


def text(expr: pl.Expr, *parts: Value) -> Value:
    """Returns a text made of some parts, each used once."""
    return Value(expr, Type.TEXT, 1 + sum(part.weight for part in parts))


def finite(value: Value) -> Value:
    """Returns a number or duration with missing values in place of NaN and infinity."""
    if value.finite:
        return value
    expr = pl.when(value.expr.is_finite()).then(value.expr)
    return dataclasses.replace(value, expr=expr, weight=2 * value.weight + 2, finite=True)


def literal(value: object) -> Value:
    """Returns a constant.

    Raises:
        Refused: It is no finite number.
    """
    match value:
        case None:
            return Value(pl.lit(None), Type.MISSING, is_constant=True)
        case bool():
            return Value(pl.lit(value), Type.TRUTH, constant=value, is_constant=True)
        case str():
            return Value(pl.lit(value), Type.TEXT, constant=value, is_constant=True)
        case int() if -(2**53) <= value <= 2**53:
            return Value(pl.lit(value), Type.NUMBER, constant=value, is_constant=True)
        case int() | float():
            as_float = float(value)
            if as_float - as_float != 0:
                raise Refused("a number that is too large")
            return Value(pl.lit(as_float), Type.NUMBER, constant=as_float, is_constant=True)
    raise Refused(f"no value of the language: {type(value).__name__}")


_FOLDED = {
    Type.NUMBER: pl.Float64,
    Type.DURATION: pl.Float64,
    Type.TIME: pl.Float64,
    Type.TEXT: pl.String,
    Type.TRUTH: pl.Boolean,
}


def as_literal(value: Value) -> Value:
    """Turns a value without columns into a polars literal; other values stay.

    polars' optimizer turns some expressions without columns into a column of a single row, which
    does not fit the other columns.
    """
    dtype = _FOLDED.get(value.type)
    if dtype is None or value.is_constant or value.weight == 1 or value.expr.meta.root_names():
        return value
    folded = pl.select(finite(value).expr.cast(dtype)).item()
    # As a written number, it has the type of what it is compared with: scores are Float32.
    expr = pl.lit(folded) if isinstance(folded, float) else pl.lit(folded, dtype)
    return Value(expr, value.type, constant=folded, is_constant=folded is not None)


def combine(parts: list[Value], every: bool) -> Value:
    """Returns whether all of some truths, or any, are true."""
    decisive = [part for part in parts if part.is_constant and part.constant is not every]
    others = [part for part in parts if not part.is_constant]
    if decisive or not others:
        return literal(not every if decisive else every)
    if len(others) == 1:
        return others[0]
    horizontal = pl.all_horizontal if every else pl.any_horizontal
    return unify(others, "the conditions", horizontal)


def as_truth(value: Value) -> Value:
    """Returns whether a value counts as true: as in Python, and a missing value is false."""
    return as_literal(_truth_of(value))


def _truth_of(value: Value) -> Value:
    expr = value.expr
    match value.type:
        case Type.TRUTH:
            return value if value.is_constant else truth(expr, value)
        case Type.NUMBER | Type.DURATION:
            sound = finite(value)
            return truth(sound.expr != 0, sound)
        case Type.TEXT:
            return truth(expr.str.len_bytes() > 0, value)
        case Type.TEXTS | Type.RECORDS | Type.MAP:
            return truth(expr.list.len() > 0, value)
        case Type.TIME:
            return Value(expr.is_not_null(), Type.TRUTH, value.weight + 1)
        case Type.MISSING:
            return literal(False)
    raise Refused(f"{value.type.value} is neither true nor false")


def unify(values: list[Value], what: str, build: Callable[[list[pl.Expr]], pl.Expr]) -> Value:
    """Returns a value made of several of one type; missing ones fit every type.

    Raises:
        Refused: Their types differ.
    """
    types = list(dict.fromkeys(v.type for v in values if v.type is not Type.MISSING))
    if len(types) > 1:
        raise Refused(f"{what} must be of one type, got {types[0].value} and {types[1].value}")
    type_ = types[0] if types else Type.MISSING
    if type_ is Type.CHOICE:
        raise Refused(f"{what} cannot be {type_.value}")
    weight = 1 + sum(value.weight for value in values)
    sound = all(value.finite for value in values)
    return Value(build([value.expr for value in values]), type_, weight, finite=sound)


def iso_time(text: str) -> int:
    """Returns a time in ISO form as ms since 1970; without a zone it is UTC.

    Raises:
        Refused: It is no time.

    >>> iso_time("1970-01-02"), iso_time("1970-01-01T00:00:01Z"), iso_time("1970-01-01 01:00+01:00")
    (86400000, 1000, 0)
    """
    try:
        return wording.time_of(text)
    except ValueError:
        raise Refused(
            f"a time is written as '2026-01-31' or '2026-01-31T12:00:00Z', not as {text[:40]!r},"
        ) from None
