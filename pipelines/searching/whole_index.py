"""All pages and words of an open index, with the score that a word alone gives each page."""

import json
import math
import re
from collections.abc import Hashable, Iterator, Sequence
from typing import Any, NamedTuple

import tantivy

from ...io.indexing.language_terms import language_terms
from ...io.indexing.shard_documents import TEXT_FIELDS, analyzers, shard_schema
from ...policy.searching.best_passage import beginnings_of
from ...policy.searching.search_query import Clause
from ...web.content.legibility import SPACELESS_RANGES
from ...web.pages.document_dates import DocumentDate, document_date
from .query_building import QueryBuilder, is_common

_SPACELESS = re.compile(f"[{SPACELESS_RANGES}\uac00-\ud7a3]")
_MOST_PAGES_AT_ONCE = 1_000


class StoredPage(NamedTuple):
    """A page of an index.

    Attributes:
        place: Where the index has it.
        url: URL to show.
        title: Its title; empty if it has none.
        text: Its text.
        date: Its date, if it has one.
        factor: By which the scores of its words are multiplied.
    """

    place: Hashable
    url: str
    title: str
    text: str
    date: DocumentDate | None
    factor: float


class WholeIndex:
    """All pages and words of an open index.

    Args:
        searcher: tantivy's searcher.
        builder: Makes its queries.
        present: Analyzers that its documents have.
    """

    def __init__(self, searcher: Any, builder: QueryBuilder, present: Sequence[str]) -> None:
        self._searcher, self._builder, self._present = searcher, builder, present
        self.documents = int(searcher.num_docs)

    def pages(self) -> Iterator[StoredPage]:
        """Yields all pages."""
        hits = self._searcher.search(tantivy.Query.all_query(), max(1, self.documents)).hits
        for start in range(0, len(hits), _MOST_PAGES_AT_ONCE):
            places = [place for _, place in hits[start : start + _MOST_PAGES_AT_ONCE]]
            weights = self._searcher.fast_field_values("weight", places)
            for place, weight in zip(places, weights, strict=True):
                yield self._page(place, weight)

    def _page(self, place: Any, weight: float) -> StoredPage:
        stored = self._searcher.doc(place).to_dict()
        title, text = (
            bytes(stored.get(f"{name}_text", [b""])[0]).decode() for name in TEXT_FIELDS[:2]
        )
        fields = json.loads(stored["document"][0])
        url, date = str(fields.get("url") or fields["id"]), document_date(fields)
        return StoredPage(_name(place), url, title, text, date, math.log2(2 + weight) / 2)

    def values_of(self, field: str) -> dict[Hashable, list[str]]:
        """Returns the values of ``lang`` or ``type`` that each page has, by its place."""
        values = dict[Hashable, list[str]]()
        for value, _ in self._searcher.terms_with_prefix(field, ""):
            query = tantivy.Query.term_query(shard_schema(), field, value, "basic")
            hits = self._searcher.search(query, max(1, self.documents), count=False).hits
            for _, place in hits:
                values.setdefault(_name(place), []).append(value)
        return values

    def words(self) -> Iterator[str]:
        """Yields the words of all pages; of scripts without spaces, each character that they have."""
        characters = set[str]()
        for word, _ in self._searcher.terms_with_prefix("words", ""):
            if _SPACELESS.search(word):
                characters.update(_SPACELESS.findall(word))
            else:
                yield word
        yield from characters

    def scores_of(self, word: str) -> dict[Hashable, float]:
        """Returns the score that the search for a word gives each page, by its place."""
        query = self._builder.build([Clause("", word)])
        found = self._searcher.search(
            query, max(1, self.documents), count=False, weight_by_field="weight"
        )
        return {_name(place): score / 2 for score, place in found.hits}

    def rarity_of(self, word: str) -> float:
        """Returns how much a word counts by the number of pages whose text has it."""
        terms = [term for one in self._present for term in language_terms(word, one)[:1]]
        return self._builder.rarity(sum(self._searcher.doc_freq("content", one) for one in terms))

    def beginning_of(self, word: str) -> str:
        """Returns the beginning that the forms of a word share, without accents."""
        fold = analyzers()["plain"].analyze
        beginnings = (
            beginning
            for analyzer in self._present
            for beginning in beginnings_of([word], analyzers()[f"text_{analyzer}"].analyze, fold)
        )
        return "".join(fold(min(beginnings, key=len, default=word)))

    def is_common(self, word: str) -> bool:
        """Returns whether a word is not required, because it is common in a language."""
        return any(is_common(word, analyzer) for analyzer in self._present)


def without_accents(word: str) -> str:
    """Returns a word as it is searched without accents.

    >>> without_accents("información")
    'informacion'
    """
    return "".join(analyzers()["plain"].analyze(word))


def _name(place: Any) -> Hashable:
    return place.segment_ord, place.doc
