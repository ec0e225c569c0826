"""Routes documents to the writers of an index, and renames their fields."""

import dataclasses
from collections.abc import Collection, Mapping

import polars as pl

from ...web.base.quoting import quoted
from ..expression_columns import fields_of_frame
from ..expressions.compiler import condition
from ..indexing.index_pages import DROPPED

_ID = "id"


@dataclasses.dataclass(frozen=True)
class FieldMapping:
    """Changes of the fields of documents before a writer gets them, in this order.

    Attributes:
        copy: (field, fields that get its values, too).
        rename: (field, its new name).
        remove: Fields that are left out.

    Raises:
        ValueError: It changes ``id``, by which documents are replaced and deleted.
    """

    copy: tuple[tuple[str, tuple[str, ...]], ...] = ()
    rename: tuple[tuple[str, str], ...] = ()
    remove: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        copied = [(source, target) for source, targets in self.copy for target in targets]
        changes = [
            *(f"copy {source} to {target}" for source, target in copied if target == _ID != source),
            *(
                f"rename {old} to {new}"
                for old, new in self.rename
                if _ID in (old, new) and old != new
            ),
            *(f"remove {name}" for name in self.remove if name == _ID),
        ]
        if changes:
            raise ValueError(
                f"a mapping must not change {_ID}, which names a document: got {quoted(changes[0])}"
            )


@dataclasses.dataclass(frozen=True)
class WriterRule:
    """A writer, with what it gets.

    Attributes:
        name: Its name.
        kind: Kind of the writer: ``solr``.
        parameters: What the kind needs, such as an address.
        mapping: Changes of fields.
    """

    name: str
    kind: str
    parameters: Mapping[str, str]
    mapping: FieldMapping = FieldMapping()


@dataclasses.dataclass(frozen=True)
class IndexRoute:
    """Documents that go to some writers.

    Attributes:
        expr: Expression that is true of them; empty: those that no other route takes.
        writers: Names of the writers.
    """

    expr: str
    writers: tuple[str, ...]


@dataclasses.dataclass(frozen=True)
class IndexRoutes:
    """Writers, and which documents each gets.

    Attributes:
        writers: The writers.
        routes: Where documents go; if there are none, every writer gets every document.

    Raises:
        ValueError: Two writers have one name, or a route names a writer that is not there.
    """

    writers: tuple[WriterRule, ...]
    routes: tuple[IndexRoute, ...] = ()

    def __post_init__(self) -> None:
        names = [writer.name for writer in self.writers]
        for name in names:
            if names.count(name) > 1:
                raise ValueError(f"two index writers are called {quoted(name)}")
        for route in self.routes:
            for name in route.writers:
                if name not in names:
                    known = ", ".join(names) or "none"
                    raise ValueError(f"no index writer {quoted(name)}: there are {known}")

    def shares(self, documents: pl.DataFrame) -> dict[str, pl.Series]:
        """Returns for each writer which documents it gets.

        Raises:
            ExpressionError: The expression of a route is wrong.
        """
        every = pl.Series([True], dtype=pl.Boolean).new_from_index(0, len(documents))
        if not self.routes:
            return {writer.name: every for writer in self.writers}
        shares = {writer.name: ~every for writer in self.writers}
        fields, taken = fields_of_frame(documents), ~every
        for route in self.routes:
            if route.expr:
                wanted = condition(route.expr, fields).of(documents)
                taken |= wanted
                for name in route.writers:
                    shares[name] |= wanted
        for route in self.routes:
            for name in () if route.expr else route.writers:
                shares[name] |= ~taken
        return shares

    def without(self, names: Collection[str]) -> "IndexRoutes":
        """Returns the routes without some writers.

        Raises:
            ValueError: A route names one of them, or no writer is left.
        """
        for route in self.routes:
            for name in route.writers:
                if name in names:
                    raise ValueError(
                        f"a route names index writer {quoted(name)}, which cannot be used"
                    )
        left = tuple(writer for writer in self.writers if writer.name not in names)
        if not left:
            raise ValueError("no index writer can be used")
        return IndexRoutes(left, self.routes)


def mapped_fields(documents: pl.DataFrame, mapping: FieldMapping) -> pl.DataFrame:
    """Returns documents with the fields that a writer gets; ``dropped_by`` is none of them.

    Values that are added to a field that has some make it a list, as in Nutch.

    >>> documents = pl.DataFrame({"id": ["a"], "title": ["T"], "segment": ["1"]})
    >>> mapping = FieldMapping((("title", ("search",)),), (("title", "name"),), ("segment",))
    >>> mapped_fields(documents, mapping).to_dicts()
    [{'id': 'a', 'search': 'T', 'name': 'T'}]
    """
    changed = documents.drop(DROPPED, strict=False)
    for source, targets in mapping.copy:
        for target in targets if source in documents.columns else ():
            if target != source:
                changed = _added(changed, target, documents.get_column(source))
    for source, target in mapping.rename:
        if source in documents.columns and target != source:
            changed = _added(changed.drop(source), target, documents.get_column(source))
    return changed.drop(mapping.remove, strict=False)


def _added(documents: pl.DataFrame, name: str, values: pl.Series) -> pl.DataFrame:
    if name not in documents.columns:
        return documents.with_columns(values.alias(name))
    both = pl.concat_list(_texts(documents.get_column(name)), _texts(values)).list.drop_nulls()
    found = documents.select(both.alias(name))
    some = pl.when(pl.col(name).list.len() > 0).then(name)
    return documents.with_columns(found.select(some))


def _texts(values: pl.Series) -> pl.Series:
    if values.dtype == pl.List(pl.String):
        empty = pl.Series([[]], dtype=pl.List(pl.String)).new_from_index(0, len(values))
        return values.zip_with(values.is_not_null(), empty)
    texts = values.cast(pl.String)
    return texts.to_frame("text").select(pl.concat_list("text")).to_series()
