"""Index filters that leave documents out: ``expr`` and ``mimetype``; and ``subcollection``."""

import dataclasses
import functools
import operator
from collections.abc import Iterable
from xml.etree.ElementTree import Element

import polars as pl

from ...web.rule_files.rule_files import RuleFile, entries, read_rule_file
from ..components.index_schema import INDEX_PAGES_COLUMNS
from ..conditions import fields_of, fields_of_frame
from ..expressions.compiler import DOCUMENT, condition
from .index_filter import IndexFilter
from .index_options import IndexFilterOptions
from .index_pages import found_types
from .nutch_xml import read_xml

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
        types = found_types(pages)
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


@dataclasses.dataclass(frozen=True)
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
        ValueError: It is not XML, or a subcollection has no name.
    """
    root = read_xml(file)
    return tuple(_subcollection(file, element) for element in root.iter("subcollection"))


def _subcollection(file: RuleFile, element: Element) -> Subcollection:
    texts = {child.tag: (child.text or "").strip() for child in element}
    if not texts.get("name"):
        raise ValueError(f"{file.name}: a subcollection has no name")
    lists = ([line.strip() for line in texts.get(name, "").splitlines()] for name in _LISTS)
    white, black = (tuple(line for line in lines if line) for lines in lists)
    return Subcollection(texts["name"], texts.get("key") or "subcollection", white, black)
