"""Index filters of fields that the operator defines: ``static`` and ``replace``."""

import functools
import re
from typing import NamedTuple

import polars as pl

from ...web.base.wording import quote_value
from ...web.rule_files.rule_files import entries
from ..expressions.functions import checked_pattern
from ..expressions.syntax import Refused
from .index_filter import IndexFilter
from .index_options import IndexFilterOptions

_CASE_INSENSITIVE = 2  # of Java's flags; the others that have a letter
_FLAGS = {_CASE_INSENSITIVE: "i", 4: "x", 8: "m", 32: "s"}
_RULE = re.compile(r"([^:=/]+)(?::([^=/]+))?=(.)(.*)", re.DOTALL)
_IN_TEXT = re.compile(r"\\(.)|\$(\d+)|\$")


class Static(IndexFilter):
    """Gives all documents the same fields."""

    name = "static"
    reads = ()

    def __init__(self, options: IndexFilterOptions) -> None:
        super().__init__(options)
        self._fields = dict(map(_static_field, options.index_static))

    def apply(self, documents: pl.DataFrame, pages: pl.DataFrame) -> pl.DataFrame:
        """Adds the fields."""
        return documents.with_columns(
            pl.lit(pl.Series([values], dtype=pl.List(pl.String))).first().alias(name)
            for name, values in self._fields.items()
        )


def _static_field(text: str) -> tuple[str, list[str]]:
    """Returns (name, values) of a field.

    >>> _static_field("site: a b")
    ('site', ['a', 'b'])
    """
    name, colon, values = text.partition(":")
    if not name.strip() or not colon or not values.split():
        raise ValueError(f"index_static must be of the form name:value, got {quote_value(text)}")
    return name.strip(), values.split()


class Replacement(NamedTuple):
    """A replacement in a field.

    Attributes:
        field: The field that is read.
        target: The field that is written.
        pattern: Regular expression, as polars takes it.
        text: What replaces each match.
        only: Which pages: (``host`` or ``url``, pattern), or None for all.
    """

    field: str
    target: str
    pattern: str
    text: str
    only: tuple[str, str] | None


class Replace(IndexFilter):
    """Replaces texts in fields, by regular expressions (Nutch's index-replace)."""

    name = "replace"
    reads = ()

    def __init__(self, options: IndexFilterOptions) -> None:
        super().__init__(options)
        self._rules = read_replacements(options.index_replace)

    def apply(self, documents: pl.DataFrame, pages: pl.DataFrame) -> pl.DataFrame:
        """Replaces in the fields; a field that a document does not have stays away."""
        for rule in self._rules:
            if rule.field not in documents.columns:
                continue
            documents = documents.with_columns(_replaced_texts(rule, documents))
        return documents


def _replaced_texts(rule: Replacement, documents: pl.DataFrame) -> pl.Expr:
    source = pl.col(rule.field)
    if documents.schema[rule.field] == pl.List(pl.String):
        changed = source.list.eval(pl.element().str.replace_all(rule.pattern, rule.text))
    else:
        changed = source.cast(pl.String).str.replace_all(rule.pattern, rule.text)
    if rule.only is None:
        return changed.alias(rule.target)
    name, pattern = rule.only
    column = "id" if name == "url" else "host"
    chosen = pl.lit(False)
    if column in documents.columns:
        chosen = pl.col(column).str.contains(pattern).fill_null(False)
    earlier_texts: pl.Expr = pl.lit(None, documents.schema[rule.field])
    if rule.target in documents.columns:
        earlier_texts = pl.col(rule.target)
    return pl.when(chosen).then(changed).otherwise(earlier_texts).alias(rule.target)


@functools.lru_cache(maxsize=8)
def read_replacements(text: str) -> tuple[Replacement, ...]:
    """Returns the replacements of Nutch's ``index.replace.regexp``.

    Raises:
        ValueError: A line is wrong; the message has its number.

    >>> read_replacements("title=/(a)b/$1c/2")[0]
    Replacement(field='title', target='title', pattern='(?i)(a)b', text='${1}c', only=None)
    """
    only: tuple[str, str] | None = None
    replacements = []
    for number, line in entries(text):
        name, equals, value = line.partition("=")
        try:
            if equals and name.strip() in ("hostmatch", "urlmatch"):
                only = name.strip().removesuffix("match"), checked_pattern(value.strip(), False)
                continue
            replacements.append(_replacement(line, only))
        except (Refused, ValueError) as error:
            raise ValueError(f"index_replace:{number}: {error}, got {quote_value(line)}") from None
    return tuple(replacements)


def _as_in_rust(match: re.Match[str]) -> str:
    """Returns a part of Java's replacement text: an escaped character, a group, a dollar."""
    if match[2]:
        return f"${{{match[2]}}}"
    return "$$" if match[1] in ("$", None) else match[1]


def _replacement(line: str, only: tuple[str, str] | None) -> Replacement:
    form = "a line must be field=/regex/text/flags"
    rule = _RULE.fullmatch(line)
    if rule is None:
        raise ValueError(form)
    field, target, mark, rest = rule.groups()
    parts = rest.split(mark)
    if len(parts) != 3 or not parts[0]:
        raise ValueError(form)
    pattern, text, flags = parts
    if flags.strip() and not flags.strip().isdigit():
        raise ValueError("flags must be a number, the sum of Java's flags")
    number = int(flags.strip()[:9] or 0)
    letters = "".join(letter for flag, letter in _FLAGS.items() if number & flag)
    checked = checked_pattern(f"(?{letters}){pattern}" if letters else pattern, False)
    return Replacement(
        field.strip(), (target or field).strip(), checked, _IN_TEXT.sub(_as_in_rust, text), only
    )
