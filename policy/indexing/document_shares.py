"""Routes documents to the writers of an index, and renames their fields."""

import polars as pl

from ..components.index_routes import FieldMapping, IndexRoutes
from ..components.index_schema import DROPPED
from ..conditions import fields_of_frame
from ..expressions.compiler import condition


def share_documents(routes: IndexRoutes, documents: pl.DataFrame) -> dict[str, pl.Series]:
    """Returns for each writer which documents it gets.

    Raises:
        ExpressionError: The expression of a route is wrong.
    """
    every = pl.Series([True], dtype=pl.Boolean).new_from_index(0, len(documents))
    if not routes.routes:
        return {writer.name: every for writer in routes.writers}
    shares = {writer.name: ~every for writer in routes.writers}
    fields, taken = fields_of_frame(documents), ~every
    for route in routes.routes:
        if route.expr:
            wanted = condition(route.expr, fields).of(documents)
            taken |= wanted
            for name in route.writers:
                shares[name] |= wanted
    for route in routes.routes:
        for name in () if route.expr else route.writers:
            shares[name] |= ~taken
    return shares


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
                changed = _add_values(changed, target, documents.get_column(source))
    for source, target in mapping.rename:
        if source in documents.columns and target != source:
            changed = _add_values(changed.drop(source), target, documents.get_column(source))
    return changed.drop(mapping.remove, strict=False)


def _add_values(documents: pl.DataFrame, name: str, values: pl.Series) -> pl.DataFrame:
    if name not in documents.columns:
        return documents.with_columns(values.alias(name))
    texts = pl.concat_list(_texts(documents.get_column(name)), _texts(values)).list.drop_nulls()
    merged = documents.select(texts.alias(name))
    present = pl.when(pl.col(name).list.len() > 0).then(name)
    return documents.with_columns(merged.select(present))


def _texts(values: pl.Series) -> pl.Series:
    if values.dtype == pl.List(pl.String):
        empty = pl.Series([[]], dtype=pl.List(pl.String)).new_from_index(0, len(values))
        return values.zip_with(values.is_not_null(), empty)
    texts = values.cast(pl.String)
    return texts.to_frame("text").select(pl.concat_list("text")).to_series()
