"""Conditions of operators on rows of the table: the option ``--expr``, declared once.

Its names are the columns of a component as users see them; see ``expression_columns``.
"""

import dataclasses
import functools
from collections.abc import Iterable

from ..web.base.options import option
from .components.columns import Column, Columns
from .components.schema import STATE_COLUMNS
from .expression_columns import fields_of
from .expressions.compiler import Expression, condition
from .expressions.expression_error import ExpressionError


@dataclasses.dataclass(frozen=True)
class ExprOptions:
    """The option of commands that choose rows by an expression."""

    GROUP = "expression"

    expr: str = option(
        "",
        'Take only rows for which this expression is true, such as "score > 0.5 and status == '
        "'unfetched'\". Its names are the columns of the data dictionary, as in nutbeam sql.",
        nutch="generate.expr, generate -expr, readdb -expr, readhostdb -expr",
    )


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
