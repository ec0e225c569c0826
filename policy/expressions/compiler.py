"""Compiles expressions to polars expressions; nothing is ever evaluated as Python.

Python's own parser parses them; each node is checked against a list.
"""

import ast
import dataclasses
from collections.abc import Iterable, Mapping

import polars as pl

from ...web.base.dataclass import dataclass
from .functions import call_function, entry, matched_by
from .operators import calculate, compare, invert, negate, sign_of
from .syntax import MATCH_SIGNS, Refused, Syntax, or_nearest
from .values import Field, Type, Value, as_literal, as_truth, combine, finite, literal, unify

# Nutch's names, and ours.
NUTCH_NAMES = {
    "fetchTime": "fetch_time",
    "modifiedTime": "modified_time",
    "interval": "fetch_interval",
    "fetchInterval": "fetch_interval",
    "retriesSinceFetch": "retries",
}
# Nutch's rules for documents have their fields here: ``doc.lang``.
DOCUMENT = "doc"
_RESULT = "value of the expression"
_RESULTS = (Type.NUMBER, Type.TEXT, Type.TRUTH, Type.TIME, Type.DURATION)


@dataclass(frozen=True)
class Expression:
    """A compiled expression.

    Attributes:
        text: As the user wrote it.
        type: Type of its values.
        expr: Its values, for ``select``, ``filter`` and the like. Times are ms since 1970,
            durations seconds.
    """

    text: str
    type: Type
    expr: pl.Expr

    @property
    def needs(self) -> tuple[str, ...]:
        """Columns that a frame must have."""
        return columns_of([self.expr])

    def of(self, frame: pl.DataFrame) -> pl.Series:
        """Returns its value for each row."""
        return frame.with_columns(self.expr.alias(_RESULT)).get_column(_RESULT)


def columns_of(expressions: Iterable[pl.Expr]) -> tuple[str, ...]:
    """Returns the columns that expressions need, each once."""
    return tuple(dict.fromkeys(name for each in expressions for name in each.meta.root_names()))


def condition(text: str, fields: Mapping[str, Field], now: int = 0) -> Expression:
    """Compiles an expression that is true or false of each row; a missing value is false.

    Args:
        text: The expression.
        fields: The names that it may use.
        now: What ``now()`` is, ms.

    Raises:
        ExpressionError: It is wrong; one line quotes the place.

    >>> from .values import Field, Type, Value
    >>> fields = {"n": Field("n", Value(pl.col("n"), Type.NUMBER))}
    >>> frame = pl.DataFrame({"n": [1, 2, None]})
    >>> frame.filter(condition("n > 1 || n eq null", fields).expr).rows()
    [(2,), (None,)]
    """
    compiler = _Compiler(text, fields, now)
    return compiler.result(truth_wanted=True)


def value_of(text: str, fields: Mapping[str, Field], now: int = 0) -> Expression:
    """Compiles an expression that has a number, text, time, duration or truth for each row.

    Arguments and errors are those of ``condition``.
    """
    return _Compiler(text, fields, now).result(truth_wanted=False)


class _Compiler:
    def __init__(self, text: str, fields: Mapping[str, Field], now: int) -> None:
        self._syntax = Syntax(text)
        self._fields, self._now = fields, now

    def result(self, truth_wanted: bool) -> Expression:
        body = self._syntax.body
        value = self._value(body)
        try:
            value = as_truth(value) if truth_wanted else finite(value)
            if value.type not in _RESULTS:
                raise Refused(f"the result must be a single value, got {value.type.value}")
        except Refused as error:
            raise self._syntax.error(str(error), body) from None
        return Expression(self._syntax.text, value.type, value.expr)

    def _value(self, node: ast.expr) -> Value:
        try:
            return as_literal(self._compile(node))
        except Refused as error:
            raise self._syntax.error(str(error), node) from None

    def _compile(self, node: ast.expr) -> Value:
        match node:
            case ast.Constant(value=value):
                return literal(value)
            case ast.Name(id=name):
                return self._field(name)
            case ast.BoolOp(op=op, values=values):
                parts = [as_truth(self._value(value)) for value in values]
                return combine(parts, every=isinstance(op, ast.And))
            case ast.UnaryOp(op=ast.USub(), operand=operand):
                return negate(self._value(operand))
            case ast.UnaryOp(op=ast.UAdd(), operand=operand):
                return negate(negate(self._value(operand)))
            case ast.UnaryOp(operand=operand):  # not, and Nutch's !
                return invert(as_truth(self._value(operand)))
            case ast.BinOp(left=left, op=operator, right=right):
                return calculate(self._value(left), sign_of(operator), self._value(right))
            case ast.Compare():
                return self._comparison(node)
            case ast.IfExp(test=test, body=body, orelse=other):
                return self._choice(test, body, other)
            case ast.Call(func=func, args=values):
                return self._call(func, values)
            case ast.Attribute(value=ast.Name(id=name), attr=attribute) if name == DOCUMENT:
                return self._document_field(attribute)
            case ast.Subscript(value=ast.Name(id=name), slice=ast.Constant(value=str(inner))) if (
                name == DOCUMENT
            ):
                return self._document_field(inner)
            case ast.Subscript(value=value, slice=place):
                return entry(self._value(value), self._value(place))
            case ast.List(elts=items) | ast.Tuple(elts=items):
                return self._items(items)
        raise Refused(f"{type(node).__name__} is not part of the language")

    def _document_field(self, name: str) -> Value:
        own = f"{DOCUMENT}.{name}"
        return self._field(own if own in self._fields else name)

    def _field(self, name: str) -> Value:
        field = self._fields.get(name) or self._fields.get(NUTCH_NAMES.get(name, ""))
        if field is None:
            raise Refused(f"unknown name {or_nearest(name, self._fields)}")
        return field.value

    def _comparison(self, node: ast.Compare) -> Value:
        parts, previous = [], self._value(node.left)
        for operator, right in zip(node.ops, node.comparators, strict=True):
            sign = sign_of(operator)
            pattern = self._pattern(right) if sign in ("==", "!=") else None
            if pattern is not None:
                matches = matched_by(previous, pattern, whole=True)
                parts.append(as_literal(matches if sign == "==" else invert(matches)))
                previous = pattern
                continue
            value = self._value(right)
            parts.append(as_literal(compare(previous, sign, value)))
            previous = value
        return combine(parts, every=True)

    def _pattern(self, node: ast.expr) -> Value | None:
        """Returns the pattern of Nutch's ``=~``; see ``python_form``."""
        if not isinstance(node, ast.UnaryOp) or not isinstance(node.op, ast.Invert):
            return None
        if not self._syntax.text.startswith(MATCH_SIGNS, self._syntax.at(node)):
            return None  # it is Nutch's !
        match node.operand:
            case ast.Constant(value=str(pattern)):
                return literal(pattern)
        raise Refused("a text is matched by =~ with a pattern that is written out")

    def _choice(self, test: ast.expr, body: ast.expr, other: ast.expr) -> Value:
        chosen = as_truth(self._value(test))
        values = [chosen, self._value(body), self._value(other)]
        choice = unify(
            values[1:], "both values", lambda e: pl.when(chosen.expr).then(e[0]).otherwise(e[1])
        )
        if chosen.is_constant:
            return values[1 if chosen.constant else 2]
        return dataclasses.replace(choice, weight=choice.weight + chosen.weight)

    def _call(self, func: ast.expr, nodes: list[ast.expr]) -> Value:
        match func, nodes:
            case ast.Name(id="now"), []:
                return Value(pl.lit(self._now), Type.TIME)
            case ast.Attribute(value=ast.Name(id=name), attr="getFieldValue"), [
                ast.Constant(value=str(field))
            ] if name == DOCUMENT:
                value = self._document_field(field)
                return entry(value, literal(0)) if value.type is Type.TEXTS else value
            case ast.Name(id=name), _:
                return call_function(name, [self._value(node) for node in nodes])
            case ast.Attribute(value=value, attr=name), _:
                return call_function(name, [self._value(node) for node in (value, *nodes)])
        raise Refused("only functions can be called")

    def _items(self, nodes: list[ast.expr]) -> Value:
        values = [self._value(node) for node in nodes]
        for node, value in zip(nodes, values, strict=True):
            if not value.is_constant or value.type is Type.CHOICE:
                raise self._syntax.error("a list must have values that are written out", node)
        weight = 1 + sum(value.weight for value in values)
        return Value(pl.lit(None), Type.CHOICE, weight, tuple(values), is_constant=True)
