"""Index filters by rules of the operator.

``static``, ``replace`` and ``subcollection`` make fields; ``expr`` and ``mimetype`` leave documents out.
"""

import functools
import operator
import re
from collections.abc import Iterable
from typing import NamedTuple
from xml.etree.ElementTree import Element

import polars as pl

from ...web.base.dataclass import dataclass
from ...web.base.wording import quote_value
from ...web.rule_files.rule_files import RuleFile, entries, read_elements, read_rule_file
from ..components.index_schema import INDEX_PAGES_COLUMNS
from ..conditions import fields_of, fields_of_frame
from ..expressions.compiler import DOCUMENT, condition
from ..expressions.functions import checked_pattern
from ..expressions.syntax import Refused
from .index_filter import IndexFilter, IndexFilterOptions, types_of_pages

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


def _rust_replacement(match: re.Match[str]) -> str:
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
        field.strip(),
        (target or field).strip(),
        checked,
        _IN_TEXT.sub(_rust_replacement, text),
        only,
    )


_LISTS = ("whitelist", "blacklist")


class ExprFilter(IndexFilter):
    """Leaves out documents for which ``--index_expr`` is not true (Nutch's index-jexl-filter).

    It may use the columns of INDEX_PAGES, and the fields of earlier filters: ``doc.lang``, or
    ``lang`` where no column has the name. So ``url`` is the URL of the page, and ``doc.url`` the
    one that is shown.
    """

    name = "expr"

    def __init__(self, options: IndexFilterOptions) -> None:
        super().__init__(options)
        if not options.index_expr.strip():
            raise ValueError("the index filter expr needs --index_expr")

    def apply(self, documents: pl.DataFrame, pages: pl.DataFrame) -> pl.DataFrame:
        """Marks the documents that are left out."""
        columns = fields_of(
            column for column in INDEX_PAGES_COLUMNS if column.name in pages.columns
        )
        own = documents.select(pl.all().name.prefix(f"{DOCUMENT}."))
        fields = fields_of_frame(own)
        alone = {name.partition(".")[2]: field for name, field in fields.items()}
        usable_fields = alone | columns | fields
        wanted = condition(self.options.index_expr, usable_fields).of(pages.hstack(own))
        return self.dropping(documents, ~wanted)


class MimeTypeFilter(IndexFilter):
    """Leaves out documents by their MIME type, as ``--mimetype_file`` says.

    A line ``+`` accepts all types but those listed, a line ``-`` only those. A listed type is the
    beginning of types: ``image`` is all images.
    """

    name = "mimetype"
    reads = ()

    def apply(self, documents: pl.DataFrame, pages: pl.DataFrame) -> pl.DataFrame:
        """Marks the documents that are left out; one without a type is not listed."""
        accept, listed = read_mime_types(
            read_rule_file(self.options.mimetype_file, flag="--mimetype_file")
        )
        types = types_of_pages(pages)
        hit = _any_of(types, (types.str.starts_with(prefix) for prefix in listed))
        return self.dropping(documents, hit if accept else ~hit)


@functools.lru_cache(maxsize=8)
def read_mime_types(file: RuleFile) -> tuple[bool, tuple[str, ...]]:
    """Returns (whether other types are accepted, the listed types).

    Raises:
        ValueError: No line is ``+`` or ``-``.

    >>> read_mime_types(RuleFile("types", "# no images\\n+\\nimage\\n"))
    (True, ('image',))
    """
    lines = [line for _, line in entries(file.text)]
    modes = [line for line in lines if line in ("+", "-")]
    if not modes:
        raise ValueError(f"{file.name} must have a line + (accept others) or - (accept only these)")
    return modes[-1] == "+", tuple(line.lower() for line in lines if line not in ("+", "-"))


@dataclass(frozen=True)
class Subcollection:
    """A part of an index: pages by texts in their URLs.

    Attributes:
        name: Value of the field.
        field: Name of the field.
        whitelist: A URL of it has one of these.
        blacklist: And none of these.
    """

    name: str
    field: str
    whitelist: tuple[str, ...]
    blacklist: tuple[str, ...]


class SubcollectionFields(IndexFilter):
    """Indexes the subcollections that a page belongs to (Nutch's subcollections.xml)."""

    name = "subcollection"
    reads = ()
    fields = {"subcollection": "Names of its subcollections."}  # noqa: RUF012

    def apply(self, documents: pl.DataFrame, pages: pl.DataFrame) -> pl.DataFrame:
        """Adds the field, and others that subcollections name."""
        urls = documents.get_column("id").str.to_lowercase()
        names_by_field: dict[str, list[pl.Expr]] = {}
        for part in read_subcollections(
            read_rule_file(self.options.subcollections_file, flag="--subcollections_file")
        ):
            inside = _has_one(urls, part.whitelist) & ~_has_one(urls, part.blacklist)
            name = pl.when(pl.lit(inside)).then(pl.lit(part.name))
            names_by_field.setdefault(part.field, []).append(name)
        return documents.with_columns(
            _texts_or_null(pl.concat_list(names).list.drop_nulls()).alias(field)
            for field, names in names_by_field.items()
        )


def _texts_or_null(texts: pl.Expr) -> pl.Expr:
    return pl.when(texts.list.len() > 0).then(texts)


def _has_one(urls: pl.Series, texts: tuple[str, ...]) -> pl.Series:
    return _any_of(urls, (urls.str.contains(text.lower(), literal=True) for text in texts))


def _any_of(values: pl.Series, conditions: Iterable[pl.Series]) -> pl.Series:
    """Returns which values fulfil at least one of the conditions; none without conditions."""
    return functools.reduce(operator.or_, conditions, values.is_null() & False).fill_null(False)


@functools.lru_cache(maxsize=8)
def read_subcollections(file: RuleFile) -> tuple[Subcollection, ...]:
    """Returns the subcollections of a file.

    Raises:
        ValueError: It is not XML, or subcollections have no name; the message has all faults.
    """
    faults: list[str] = []
    subcollections = read_elements(file, "subcollection", _subcollection, faults)
    if faults:
        raise ValueError("; ".join(faults))
    return subcollections


def _subcollection(file: RuleFile, element: Element) -> Subcollection:
    texts = {child.tag: (child.text or "").strip() for child in element}
    if not texts.get("name"):
        raise ValueError(f"{file.name}: a subcollection has no name")
    lists = ([line.strip() for line in texts.get(name, "").splitlines()] for name in _LISTS)
    white, black = (tuple(line for line in lines if line) for lines in lists)
    return Subcollection(texts["name"], texts.get("key") or "subcollection", white, black)
