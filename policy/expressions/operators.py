"""Operators of expressions: comparisons, ``in``, arithmetic."""

import ast
import dataclasses
import operator

import polars as pl

from .syntax import Refused, or_nearest
from .values import (
    Codes,
    Type,
    Value,
    as_literal,
    combine,
    finite,
    iso_time,
    literal,
    number,
    text,
    truth,
)

MAX_EXPONENT = 64
_SIGNS: dict[type[ast.AST], str] = {
    ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/", ast.FloorDiv: "//", ast.Mod: "%",
    ast.Pow: "**", ast.Eq: "==", ast.NotEq: "!=", ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">",
    ast.GtE: ">=", ast.Is: "is", ast.IsNot: "is not", ast.In: "in", ast.NotIn: "not in",
}  # fmt: skip
_ORDERS = {"<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge}
_SUMS = {"+": operator.add, "-": operator.sub, "*": operator.mul}
_ORDERED = (Type.NUMBER, Type.TEXT, Type.TIME, Type.DURATION)
_ARITHMETIC = (Type.NUMBER, Type.DURATION)


def sign_of(node: ast.AST) -> str:
    """Returns an operator as it is written."""
    return _SIGNS[type(node)]


def compare(left: Value, sign: str, right: Value) -> Value:
    """Returns a comparison: true or false, also if a value is missing.

    Raises:
        Refused: The values cannot be compared so.
    """
    if sign in ("in", "not in"):
        is_in = _is_in(left, right)
        return is_in if sign == "in" else invert(is_in)
    if sign in ("is", "is not"):
        if right.type is not Type.MISSING:
            other = "==" if sign == "is" else "!="
            raise Refused(f"{sign!r} is only for None; use {other!r} to compare values")
        sign = "==" if sign == "is" else "!="
    if Type.MISSING in (left.type, right.type):
        return _with_missing(left, sign, right)
    if sign in ("==", "!="):
        coded = _with_codes(left, right) or _with_codes(right, left)
        if coded is not None:
            return coded if sign == "==" else invert(coded)
    left, right = _alike(left, right)
    if sign in _ORDERS:
        if left.type not in _ORDERED:
            raise Refused(f"{sign!r} does not order values that are {left.type.value}")
        return truth(_ORDERS[sign](left.expr, right.expr), left, right)
    if left.type not in (*_ORDERED, Type.TRUTH):
        raise Refused(f"{sign!r} does not compare {left.type.value}; 'in' looks into it")
    equal = left.expr.eq_missing(right.expr) if sign == "==" else left.expr.ne_missing(right.expr)
    return truth(equal, left, right)


def invert(value: Value) -> Value:
    """Returns whether a truth is false."""
    return literal(not value.constant) if value.is_constant else truth(~value.expr, value)


def _with_missing(left: Value, sign: str, right: Value) -> Value:
    if Type.CHOICE in (left.type, right.type):
        raise Refused("a list of values may stand only after in")
    if sign not in ("==", "!="):
        return literal(False)  # as with every missing value
    value = finite(right if left.type is Type.MISSING else left)
    if value.type is Type.MISSING:
        return literal(sign == "==")
    missing = value.expr.is_null() if sign == "==" else value.expr.is_not_null()
    return Value(missing, Type.TRUTH, value.weight + 1)


def _with_codes(value: Value, other: Value) -> Value | None:
    """Returns the comparison of a code with a constant name or number; None for other values."""
    if value.codes is None or not other.is_constant:
        return None
    return _has_code(value, _codes_of(value.codes, other))


def _has_code(value: Value, wanted: list[int]) -> Value:
    assert value.codes is not None
    return truth(value.codes.number.is_in(wanted), value) if wanted else literal(False)


def _codes_of(codes: Codes, other: Value) -> list[int]:
    match other.constant:
        case bool():
            pass
        case str() as word:
            if word.lower() not in codes.words:
                raise Refused(f"unknown name {or_nearest(word.lower(), codes.words)}")
            return list(codes.words[word.lower()])
        case int() as code:
            return [code] if 0 <= code < 2**31 else []
    raise Refused(f"a code is compared with its name or number, not with {other.type.value}")


def _alike(left: Value, right: Value) -> tuple[Value, Value]:
    """Returns both values as ones of the same type."""
    left, right = finite(left), finite(right)
    if left.type is right.type:
        return left, right
    if left.type is Type.TIME:
        return left, _as_time(right)
    if right.type is Type.TIME:
        return _as_time(left), right
    if {left.type, right.type} == set(_ARITHMETIC):
        return _as_duration(left), _as_duration(right)
    raise Refused(f"{left.type.value} cannot be compared with {right.type.value}")


def _as_time(value: Value) -> Value:
    """Returns a text such as 2026-01-31 as a time, or a number of ms, as Nutch has it."""
    if value.type is Type.TEXT and isinstance(value.constant, str):
        return dataclasses.replace(value, expr=pl.lit(iso_time(value.constant)), type=Type.TIME)
    if value.type is Type.NUMBER:
        return dataclasses.replace(value, type=Type.TIME)
    raise Refused(f"a time cannot be compared with {value.type.value}")


def _as_duration(value: Value) -> Value:
    if value.type is Type.NUMBER and value.unit not in ("", "s"):
        raise Refused(f"a duration cannot be compared with a number of {value.unit}")
    return dataclasses.replace(value, type=Type.DURATION)


def _is_in(left: Value, right: Value) -> Value:
    if left.type is Type.CHOICE:
        raise Refused("a list of values stands after in")
    match right.type:
        case Type.CHOICE:
            return _is_one_of(left, right)
        case Type.TEXT if left.type is Type.TEXT:
            return truth(right.expr.str.contains(left.expr, literal=True), left, right)
        case Type.TEXTS if left.type is Type.TEXT:
            has = right.expr.list.contains(left.expr) & left.expr.is_not_null()
            return truth(has, left, left, right)
        case Type.MAP if isinstance(left.constant, str):
            name = pl.element().struct.field("key")
            return truth(right.expr.list.eval(name == left.constant).list.any(), right)
        case Type.MAP:
            raise Refused("the name of an entry must be written out")
    raise Refused(f"{left.type.value} cannot be in {right.type.value}")


def _is_one_of(left: Value, right: Value) -> Value:
    """Returns whether a value is one of those that are written out."""
    options = right.constant
    assert isinstance(options, tuple)
    if left.codes is not None:
        choices = [option for option in options if option.type is not Type.MISSING]
        parts = [_has_code(left, [code for one in choices for code in _codes_of(left.codes, one)])]
        options = [option for option in options if option.type is Type.MISSING]
    else:
        parts = []
    parts += [compare(left, "==", option) for option in options]
    return combine([as_literal(part) for part in parts], every=False)


def calculate(left: Value, sign: str, right: Value) -> Value:
    """Returns the result of arithmetic; missing if a value is missing or there is no result.

    Raises:
        Refused: The values cannot be calculated with so.
    """
    if Type.MISSING in (left.type, right.type):
        raise Refused(f"None has no {sign}")
    if sign == "+" and left.type is right.type is Type.TEXT:
        return text(left.expr + right.expr, left, right)
    if Type.TIME in (left.type, right.type):
        return _with_time(left, sign, right)
    for value in (left, right):
        if value.type not in _ARITHMETIC:
            raise Refused(f"{sign} does not take {value.type.value} here")
    a, b = left.expr.cast(pl.Float64), right.expr.cast(pl.Float64)
    if sign in _SUMS:
        result = number(_SUMS[sign](a, b), left, right)
    elif sign == "**":
        result = number(a.pow(_exponent(right)), left)
    else:
        result = _divide(left, sign, right)
    durations = [left.type, right.type].count(Type.DURATION)
    if durations == 0 or (sign == "/" and durations == 2) or sign == "**":
        return result
    return dataclasses.replace(result, type=Type.DURATION)


def _exponent(value: Value) -> float:
    exponent = value.constant
    if not isinstance(exponent, int | float) or isinstance(exponent, bool):
        raise Refused("an exponent must be a number that is written out")
    if abs(exponent) > MAX_EXPONENT:
        raise Refused(f"an exponent must be from -{MAX_EXPONENT} to {MAX_EXPONENT}")
    return float(exponent)


def _divide(left: Value, sign: str, right: Value) -> Value:
    a, b = left.expr.cast(pl.Float64), right.expr.cast(pl.Float64)
    divisor = b if right.constant else pl.when(b != 0).then(b)
    parts = (left, right) if right.constant else (left, right, right)
    match sign:
        case "/":
            return number(a / divisor, *parts)
        case "//":
            return number((a / divisor).floor(), *parts)
    # As Python: the sign of the divisor. polars rounds differently, so it is written out.
    rest = a - (a / divisor).floor() * divisor
    return number(rest, left, left, *parts[1:], *parts[1:])


def _with_time(left: Value, sign: str, right: Value) -> Value:
    """Returns a time later or earlier, or the duration between two times."""
    if sign == "-" and left.type is right.type is Type.TIME:
        between = number((left.expr - right.expr).cast(pl.Float64) / 1000, left, right)
        return dataclasses.replace(between, type=Type.DURATION)
    time, other = (left, right) if left.type is Type.TIME else (right, left)
    if sign not in ("+", "-") or (sign == "-" and time is right) or other.type not in _ARITHMETIC:
        raise Refused(f"{sign} does not take {left.type.value} and {right.type.value}")
    other = finite(_as_duration(other))
    ms = other.expr.cast(pl.Float64) * 1000
    moved = time.expr + ms if sign == "+" else time.expr - ms
    return dataclasses.replace(number(moved, time, other), type=Type.TIME)


def negate(value: Value) -> Value:
    """Returns the negative of a number or a duration.

    Raises:
        Refused: It is neither.
    """
    if value.type not in _ARITHMETIC:
        raise Refused(f"- does not take {value.type.value}")
    constant = -value.constant if isinstance(value.constant, int | float) else None
    return dataclasses.replace(value, expr=-value.expr, weight=value.weight + 1, constant=constant)
