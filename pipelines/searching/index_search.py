"""Searches an unpacked index: the best pages of a query, with a snippet of each."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import tantivy

from ...io.indexing.language_terms import language_terms
from ...io.indexing.page_vectors import VectorMaker, differing_vectors, read_vectors
from ...io.indexing.shard_documents import (
    TEXT_FIELDS,
    analyzers,
    open_index,
    tantivy_errors,
)
from ...policy.searching.search_query import Clause
from ...policy.searching.snippet_choice import Marks, without_title
from ...web.base.dataclass import dataclass
from ...web.base.errors import UserError
from ...web.content.searched_forms import ANALYZERS, url_words
from ...web.pages.document_dates import document_date
from .meaning_ranks import MeaningRanks, Question
from .page_snippets import PageSnippets
from .query_building import QueryBuilder
from .search_completion import Completions, complete_text
from .search_facets import Facet, count_facets
from .whole_index import WholeIndex

_FEW_PAGES, _SEVERAL_WORDS = 10, 3
RESULT_ORDERS = ("relevance", "date")


@dataclass(frozen=True)
class Hit:
    """A page that a query has found.

    Attributes:
        url: Its URL.
        title: Its title; empty if it has none.
        snippet: A part of its text.
        marks: Begin and end of each word of the query in the snippet.
        score: Its score; the largest is first. 0 if the order is that of dates. If pages are ranked
            by their meaning, too, that of ``fuse_ranks``.
        fields: All other fields of the document.
        date: Its date, UTC ms; None if it has none.
        date_kind: What that is: ``published``, ``modified`` or ``fetched``; empty if it has none.
    """

    url: str
    title: str
    snippet: str
    marks: Marks
    score: float
    fields: dict[str, Any]
    date: int | None = None
    date_kind: str = ""


class SearchNote(NamedTuple):
    """A line about a query.

    Attributes:
        text: What it says.
        query: A query that it offers, after the text; empty: none.
    """

    text: str
    query: str = ""


@dataclass(frozen=True)
class FoundPages:
    """The result of a query.

    Attributes:
        total: Number of all pages.
        hits: The best, in order.
        facets: How many of all pages have which host, type, language and year; if wanted.
        searched: The query that was searched, if words were corrected; else empty.
        notes: What a person should know of the query, and of its words that no page has.
        by_meaning: Whether pages are ranked by their meaning, too.
    """

    total: int
    hits: tuple[Hit, ...]
    facets: tuple[Facet, ...] = ()
    searched: str = ""
    notes: tuple[SearchNote, ...] = ()
    by_meaning: bool = False


class ShardSearch:
    """An unpacked index that is open.

    Attributes:
        documents: Number of documents.
        present: Analyzers that they have.
        vector_maker: What made the vectors of their chunks; None if there are none.
    """

    def __init__(self, unpacked: Path) -> None:
        def unreadable(reason: str) -> UserError:
            return UserError(
                f"the unpacked index cannot be read: {unpacked}: {reason}: remove this folder"
            )

        with tantivy_errors(unreadable):
            self._searcher = open_index(unpacked).searcher()
            self.present = [a for a in ANALYZERS if self._searcher.doc_freq("analyzer", a)]
            count = self._searcher.search(tantivy.Query.all_query(), 1)
            shards = [*read_vectors(unpacked)]
        self.documents = int(count.count or 0)
        self._builder = QueryBuilder(self._searcher, self.present)
        self.vector_maker = one_maker([shard.maker for shard in shards])
        self._meaning = MeaningRanks(self._searcher, self._builder, shards)

    def search(
        self,
        clauses: Sequence[Clause],
        top_n: int = 10,
        offset: int = 0,
        *,
        order: str = RESULT_ORDERS[0],
        facets: bool = False,
        question: Question | None = None,
    ) -> FoundPages:
        """Returns the best pages of a query, or the newest.

        Pages must have most of its words. If there is no such page, or if there are few and the query
        has several words, they need only have any of them; those with more words have more scores.

        Args:
            clauses: The query.
            top_n: Most pages to return.
            offset: Number of pages to leave out before.
            order: One of ``RESULT_ORDERS``.
            facets: Whether to count values of all pages.
            question: Pages are then ranked by its vector, too, and those with near chunks are
                found without the words. The index must have vectors of its length.
        """
        free = [clause for clause in clauses if not clause.is_filter and not clause.name]
        least = _FEW_PAGES if len(free) >= _SEVERAL_WORDS else 1
        by = {"order_by_field": "date"} if order == "date" else {"weight_by_field": "weight"}
        with tantivy_errors(lambda reason: UserError(f"the query failed: {reason}")):
            for any_word in (False, True):
                query = self._builder.build(clauses, any_word=any_word)
                result = self._searcher.search(query, max(1, top_n), offset=offset, **by)
                if result.count >= least:
                    break
            total, places = result.count or 0, result.hits[:top_n]
            if order == "date":
                places = [(0.0, place) for _, place in places]
            elif question is None:
                places = [
                    (round(score / 2, 4), place) for score, place in places
                ]  # see stored_weight
            else:
                query, total, places = self._meaning.rank(query, clauses, question, top_n, offset)
            snippets = PageSnippets(self._searcher, self._builder, clauses)
            hits = [self._hit(snippets, score, place) for score, place in places]
            counts = count_facets(self._searcher, query) if facets else ()
        return FoundPages(total, tuple(hits), counts, by_meaning=question is not None)

    def whole(self) -> WholeIndex:
        """Returns all pages and words of the index."""
        return WholeIndex(self._searcher, self._builder, self.present)

    def complete(self, text: str) -> Completions:
        """Returns how a text may go on, from the words of the index and the titles of its pages."""
        with tantivy_errors(lambda reason: UserError(f"the completion failed: {reason}")):
            return complete_text(self._searcher, text)

    def pages_with(self, word: str) -> int:
        """Returns how many pages have a word, in any form that a search for it finds; about."""
        counts = [
            self._pages_with_all("url", analyzers()["plain"].analyze(url_words(word))),
            self._pages_with_all("folded", analyzers()["plain"].analyze(word)),
        ]
        for analyzer in self.present:
            terms = language_terms(word, analyzer)
            counts += (self._pages_with_all(name, terms) for name in TEXT_FIELDS)
        return max(counts)

    def pages_of_value(self, name: str, value: str) -> int:
        """Returns how many pages have a value of ``site``, ``lang`` or ``type``; about."""
        return int(self._searcher.doc_freq(name, value))

    def values(self, name: str, most: int) -> list[str]:
        """Returns the values of ``site``, ``lang`` or ``type`` that most pages have."""
        return [value for value, _ in self._searcher.terms_with_prefix(name, "", limit=most)]

    def pages_with_spelling(self, word: str) -> int:
        """Returns how many pages have a word as it is written, in lower case; about."""
        written = int(self._searcher.doc_freq("words", word))
        return written or int(self._searcher.doc_freq("folded", word))

    def spellings(self, beginning: str) -> list[tuple[str, int]]:
        """Returns the words that begin so, each with the number of its pages."""
        return [*self._searcher.terms_with_prefix("words", beginning)]

    def _pages_with_all(self, field: str, terms: Sequence[str]) -> int:
        return min((int(self._searcher.doc_freq(field, term)) for term in terms), default=0)

    def _hit(self, snippets: PageSnippets, score: float, place: Any) -> Hit:
        document = self._searcher.doc(place)
        fields = json.loads(document.get_first("document"))
        title, content = (_stored_text(document, name) for name in TEXT_FIELDS[:2])
        analyzer, text = document.get_first("analyzer"), without_title(content, title)
        snippet, marks = snippets.of(analyzer, text) if text else ("", ())
        url = fields.get("url") or fields["id"]
        date = document_date(fields) or (None, "")
        return Hit(str(url), title, snippet, marks, score, fields, *date)


def _stored_text(document: Any, name: str) -> str:
    text = document.get_first(f"{name}_text")
    return "" if text is None else text.decode()


def one_maker(makers: Sequence[VectorMaker]) -> VectorMaker | None:
    """Returns what made all vectors of an index; None if there are none.

    Raises:
        UserError: They cannot be compared.
    """
    for maker in makers:
        if maker != makers[0]:
            raise UserError(differing_vectors(makers[0], maker))
    return makers[0] if makers else None
