"""Conditions of operators on rows of the table: the option ``--expr``, and the options of readdb.

The names in expressions are documented columns of a component, as users see them.
"""

import functools
import re
from collections.abc import Iterable

import polars as pl
import pyarrow as pa

from ..web.base.dataclass import dataclass
from ..web.base.option_checks import Launch
from ..web.base.options import option
from .base.key_columns import from_keys, host_keys, host_names
from .components.columns import Column, Columns, Form
from .components.schema import STATE_COLUMNS, STATUS_NAMES, StateRows
from .components.vocabulary import (
    HOST_COLUMN,
    STATUS_WORDS,
    URL_COLUMN,
    names_of_codes,
    statuses_of,
)
from .expressions.compiler import Expression, columns_of, condition
from .expressions.syntax import ExpressionError
from .expressions.values import Codes, Field, Type, Value

_DAY_MS = 86_400_000
_STATUSES = {word: tuple(map(int, statuses_of(word))) for word in STATUS_WORDS}
_HASHES = float(1 << 64)


def fields_of(columns: Iterable[Column]) -> dict[str, Field]:
    """Returns the names of columns for expressions, by name; rows with keys have URL and host, too.

    Columns whose values users do not see as numbers, texts, times, lists or maps are left out.

    >>> from .components.schema import STATE_COLUMNS
    >>> fields = fields_of(STATE_COLUMNS.pick("key", "status", "score"))
    >>> list(fields)
    ['url', 'host', 'key', 'status', 'score']
    """
    all_columns = list(columns)
    names = {column.name for column in all_columns}
    fields = {}
    if "key" in names:
        derived = {URL_COLUMN: from_keys, HOST_COLUMN: _hosts}
        for column, function in derived.items():
            if column.name not in names:
                expr = pl.col("key").map_batches(function, return_dtype=pl.String)
                value = Value(expr, Type.TEXT)
                fields[column.name] = Field(column.name, value, column.meaning)
    for column in all_columns:
        if (value_or_none := _value(column)) is not None:
            fields[column.name] = Field(column.name, value_or_none, column.meaning)
    return fields


def fields_of_frame(frame: pl.DataFrame) -> dict[str, Field]:
    """Returns the columns of a frame for expressions, by name; times are numbers of ms.

    >>> list(fields_of_frame(pl.DataFrame({"a": ["x"], "b": [1.5], "c": [{"d": 1}]})))
    ['a', 'b']
    """
    fields = {}
    for name, dtype in frame.schema.items():
        value = _plain(pl.col(name), dtype)
        if value is not None and value.type not in (Type.MAP, Type.RECORDS):
            fields[name] = Field(name, value)
    return fields


def _value(column: Column) -> Value | None:
    stored = pl.col(column.name)
    match column.form:
        case Form.TIME:
            return Value(stored, Type.TIME)
        case Form.DAY:
            return Value(stored.cast(pl.Int64) * _DAY_MS, Type.TIME)
        case Form.CODE:
            return _code(column, stored)
        case Form.HEX:
            return Value(stored.bin.encode("hex"), Type.TEXT)
        case Form.URL:
            return Value(stored.map_batches(from_keys, return_dtype=pl.String), Type.TEXT)
    dtype = pl.Schema(pa.schema([(column.name, column.type)]))[column.name]
    return _plain(stored, dtype, column.unit)


def _plain(stored: pl.Expr, dtype: pl.DataType, unit: str = "") -> Value | None:
    """Returns the value of a column by its type; None if expressions have no such type."""
    if isinstance(dtype, pl.Map):
        struct = pl.Struct({"key": pl.String, "value": pl.String})
        return Value(stored.cast(pl.List(struct)), Type.MAP)
    if dtype.is_numeric():
        if dtype.is_integer():
            stored = stored.cast(pl.Float64 if dtype == pl.UInt64 else pl.Int64)
        return Value(stored, Type.NUMBER, finite=dtype.is_integer(), unit=unit)
    if isinstance(dtype, pl.List):
        return Value(stored, Type.TEXTS if dtype.inner == pl.String else Type.RECORDS)
    types = {pl.Boolean(): Type.TRUTH, pl.String(): Type.TEXT}
    return Value(stored, types[dtype]) if dtype in types else None


def _code(column: Column, stored: pl.Expr) -> Value:
    """Returns the names of codes; statuses have the words of other options, too."""
    names = dict(column.codes)
    words: dict[str, tuple[int, ...]] = {name: (code,) for code, name in names.items()}
    if names == STATUS_NAMES:
        words |= _STATUSES
    codes = Codes(stored.cast(pl.Int64), words)
    return Value(names_of_codes(stored, names), Type.TEXT, weight=3, codes=codes)


def _hosts(keys: pl.Series) -> pl.Series:
    return host_names(host_keys(keys))


@dataclass(frozen=True)
class ExprOptions:
    """The option of commands that choose rows by an expression."""

    GROUP = "expression"

    expr: str = option(
        "",
        'Take only rows for which this expression is true, such as "score > 0.5 and status == '
        "'unfetched'\". Its names are the columns of the data dictionary, as in nutbeam sql.",
        nutch="generate.expr, generate -expr, readdb -expr, readhostdb -expr",
    )

    def check_setup(self, _: Launch) -> None:
        """Compiles the expression."""
        wanted_rows(self.expr)


def wanted_rows(
    text: str, columns: Iterable[Column] = STATE_COLUMNS, now: int = 0
) -> Expression | None:
    """Returns the condition of ``--expr``, or None if there is none.

    Args:
        text: The value of the option.
        columns: The declared columns of the rows, as stored.
        now: What ``now()`` is, ms.

    Raises:
        ValueError: The expression is wrong; one line names the option and quotes the place.

    >>> wanted_rows("") is None, wanted_rows("score > 1").needs
    (True, ('score',))
    >>> wanted_rows("scor > 1")
    Traceback (most recent call last):
    ValueError: --expr: unknown name 'scor'; did you mean 'score'? at character 1 of the \
expression: 'scor > 1'
    """
    return _compile_condition(text, Columns(columns), now) if text.strip() else None


@functools.lru_cache(maxsize=16)
def _compile_condition(text: str, columns: Columns, now: int) -> Expression:
    try:
        return condition(text, fields_of(columns), now)
    except ExpressionError as error:
        raise ValueError(f"--expr: {error}") from error


@dataclass(frozen=True)
class RowOptions(ExprOptions):
    """Options that choose rows; a row must meet all that are given."""

    GROUP = "rows"

    regex: str = option(
        "", "Take only URLs that match this regular expression as a whole.", nutch="readdb -regex"
    )
    status: str = option(
        "", "Take only this status; fetched is db_fetched and db_notmodified.",
        choices=("", *STATUS_WORDS), nutch="readdb -status",
    )  # fmt: skip
    retry: int = option(
        0, "Take only records with at least this many retries.", minimum=0, nutch="readdb -retry"
    )
    sample: float = option(
        1.0, "Take about this share of the rows, always the same ones: those with a small hash.",
        minimum=0.0, maximum=1.0, nutch="readdb -sample",
    )  # fmt: skip

    def needs(self) -> tuple[str, ...]:
        """Returns the columns of the state that ``chosen_rows`` needs."""
        names = columns_of(self.conditions())
        return tuple(dict.fromkeys([*names, "key"])) if self.regex else names

    def conditions(self, now: int = 0) -> list[pl.Expr]:
        """Returns the conditions of rows but for ``regex``; ``now``: what ``now()`` is, ms."""
        conditions = []
        if self.sample < 1:
            conditions.append(pl.col("key").hash(0).cast(pl.Float64) < self.sample * _HASHES)
        if self.retry:
            conditions.append(pl.col("retries") >= self.retry)
        if self.status:
            conditions.append(pl.col("status").is_in(statuses_of(self.status)))
        if (wanted := wanted_rows(self.expr, now=now)) is not None:
            conditions.append(wanted.expr)
        return conditions


def chosen_rows(rows: StateRows, options: RowOptions, now: int) -> StateRows:
    """Returns the rows that meet the options, in the same order.

    Args:
        rows: Rows of the state, with at least the columns ``options.needs()``.
        options: The options.
        now: What ``now()`` is in an expression, ms.
    """
    conditions = options.conditions(now)
    chosen = rows.filter(conditions) if conditions else rows
    if not options.regex:
        return chosen
    matches = re.compile(options.regex).fullmatch
    urls = from_keys(chosen.get_column("key"))
    return chosen.filter(pl.Series([matches(url) is not None for url in urls], dtype=pl.Boolean))
