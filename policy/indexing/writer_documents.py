"""Which documents each writer of an index gets, with which fields, and which it has refused."""

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, NamedTuple

import polars as pl

from ...web.base.wording import format_count
from ..components.index_routes import FieldMapping, IndexRoutes
from ..components.index_schema import ADD, DEAD_LETTERS, DROPPED, CandidateRows, IndexPageFacts
from ..components.reasons import counted_reasons
from ..components.schema import conform_frame
from ..conditions import fields_of_frame
from ..expressions.compiler import condition

if TYPE_CHECKING:
    from .index_documents import DocumentRules


class WriterDocuments(NamedTuple):
    """Documents, and which of them each writer gets.

    Attributes:
        decided: The decisions about all pages, with ``action`` and ``reason``.
        documents: The documents of the pages to be added, in their order.
        shares: For each writer, which of these it gets.
    """

    decided: CandidateRows
    documents: pl.DataFrame
    shares: dict[str, pl.Series]


def decide_writer_documents(
    facts: IndexPageFacts, rules: "DocumentRules", routes: IndexRoutes
) -> WriterDocuments:
    """Decides what pages become in the index of each writer.

    Args:
        facts: What is known of the pages, all of which are to be added.
        rules: How pages become documents.
        routes: The writers.
    """
    from .index_documents import decide_documents  # late: a crawl does not index

    documents, decided = decide_documents(facts, rules)
    documents = select_rows(documents, decided.get_column("action") == ADD)
    return WriterDocuments(decided, documents, share_documents(routes, documents))


def select_rows(rows: pl.DataFrame, chosen: pl.Series) -> pl.DataFrame:
    """Returns the chosen rows; if these are all, without a copy of large texts."""
    return rows if chosen.all() else rows.filter(chosen)


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
    """Returns documents with the fields that a writer gets, without those that no document has.

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
    changed = changed.drop(mapping.remove, strict=False)
    return changed.select(field for field in changed if field.null_count() < max(1, len(field)))


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


_REFUSED = "refused"


class Refusal(NamedTuple):
    """What a writer has refused in a run.

    Attributes:
        writer: Its name; empty: it is the only one.
        number: How many documents.
        every: Whether it has taken no other.
    """

    writer: str
    number: int
    every: bool

    @property
    def line(self) -> str:
        """One line for people."""
        who = f"index writer {self.writer!r}" if self.writer else "the index writer"
        quantity = "all " if self.every and self.number > 1 else ""
        return f"{who} refused {quantity}{format_count(self.number, 'documents')}: {_advice()}"


def refusals(counts: Mapping[str, int]) -> Iterator[Refusal]:
    """Yields which writers have refused documents, by the counts of runs of ``index``.

    >>> [refusal[:] for refusal in refusals({"indexed": 1, "refused": 2})]
    [('', 2, False)]
    >>> [refusal[:] for refusal in refusals({"indexed": 1, "a/added": 1, "b/refused": 1})]
    [('b', 1, True)]
    """
    for name, number in counts.items():
        writer, _, reason = name.rpartition("/")
        if reason == _REFUSED and number:
            taken = f"{writer}/added" if writer else "indexed"  # one writer alone has no name there
            yield Refusal(writer, number, not counts.get(taken))


def refused_before(number: int) -> str:
    """Returns the line about documents that were refused before, and are not sent again.

    >>> refused_before(2).partition(":")[0]
    'writers refused 2 documents in earlier runs'
    """
    return f"writers refused {format_count(number, 'documents')} in earlier runs: {_advice()}"


def _advice() -> str:
    return counted_reasons("index -")[_REFUSED].advice


def letters_of(rows: pl.DataFrame, refused: pl.DataFrame, writer: str, time: int) -> pl.DataFrame:
    """Returns DEAD_LETTERS rows of documents that a writer has refused.

    Args:
        rows: Pages that were sent: ``key``, ``id``.
        refused: Refused documents: ``id``, ``reason``, ``document``.
        writer: Name of the writer.
        time: When they were sent, ms.
    """
    letters = refused.unique("id", keep="last").join(rows.select("id", "key"), on="id", how="inner")
    letters = letters.with_columns(writer=pl.lit(writer), time=pl.lit(time))
    return conform_frame(letters.select(DEAD_LETTERS.names), DEAD_LETTERS)
