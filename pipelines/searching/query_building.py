"""Makes the query of tantivy from the clauses of a query.

A word is searched in the form that each language of the index gives it. All forms of a word count
alike: how rare it is follows from the pages of all languages together.
"""

import contextlib
import functools
import itertools
import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import tantivy

from ...io.indexing.document_terms import whole_title_term
from ...io.indexing.language_terms import language_terms
from ...io.indexing.shard_documents import (
    TEXT_FIELDS,
    analyzers,
    shard_schema,
)
from ...policy.searching.accents import accented_spellings
from ...policy.searching.search_query import QUESTION_WORDS, Clause
from ...web.content.searched_forms import OTHER, STEMMERS, url_words

# How much a word counts in each field.
BOOSTS = {"title": 1.5, "content": 1.0, "anchor": 1.0, "url": 1.0, "folded": 0.8}
_TIE = 0.15  # share of the other fields in the score of a word
_SHARE = 0.6  # of the words of a longer query, those that a page must have
_FAR = 8  # words between the words of a query, for pages where they are near
_NEAR_BOOST = 1.0
_FAR_PAIR, _PAIR_BOOST = 6, 0.8  # the same of two words
_WHOLE_TITLE = 0.5  # more for a title that is all that is searched for, of the rarity of its words
_MOST_NEAR = 8  # words of a query that may be near
_CHARACTERS = 3  # terms of a text without spaces that are searched as a whole only
_REMEMBERED = 500  # texts, with their terms
_MOST_CHARACTERS = 64  # terms of such a text that are searched

# The terms of a text by the analyzers that an index has.
Forms = Mapping[str, list[str]]


class QueryBuilder:
    """Makes queries for one index.

    Args:
        searcher: The index.
        present: Analyzers that its documents have.
    """

    def __init__(self, searcher: Any, present: Sequence[str]) -> None:
        self._searcher, self._present = searcher, present
        self._documents = max(1, searcher.num_docs)
        self._forms = functools.lru_cache(maxsize=_REMEMBERED)(self._make_forms)

    def build(self, clauses: Sequence[Clause], *, any_word: bool = False) -> Any:
        """Returns the query of tantivy for the clauses of a query.

        Args:
            clauses: The clauses.
            any_word: Whether one of the words is enough.
        """
        words = [clause for clause in clauses if not clause.is_filter]
        musts: list[Any] = []
        optional: list[Any] = []
        extra: list[Any] = []
        for clause in words:
            clause_query = self.clause_query(clause, drops=True)
            if clause_query is None:
                continue
            if clause.phrase or clause.name:
                musts.append(clause_query)
            else:
                # A common word of one language may be rare in another: it counts, but is optional.
                common = any(is_common(clause.text, analyzer) for analyzer in self._present)
                (extra if common else optional).append(clause_query)
        if not musts and not optional:  # it has only words that questions have
            queries = (self.clause_query(clause, drops=False) for clause in words)
            optional = [query for query in queries if query is not None]
            if words and not optional:
                return tantivy.Query.empty_query()
        occur = tantivy.Occur
        parts = [(occur.Must, query) for query in musts]
        if parts or optional:
            parts += [(occur.Should, query) for query in extra]
        if optional:
            parts.append((occur.Must, _most_of(optional, any_word)))
            parts += [(occur.Should, near) for near in self._nearness_queries(words)]
            parts += [(occur.Should, title) for title in self._whole_title_queries(words)]
        for clause in clauses:
            if clause.is_filter:
                query = self._filter_query(clause)
                if query is not None:
                    parts.append((occur.MustNot if clause.excluded else occur.Must, query))
        if not words:  # the order follows from the boost alone
            parts.append((occur.Must, tantivy.Query.const_score_query(_all_pages(), 1.0)))
        return tantivy.Query.boolean_query(parts)

    def clause_query(self, clause: Clause, *, drops: bool) -> Any:
        """Returns the query of words in the texts of pages; None if there is nothing to find.

        Args:
            clause: The clause.
            drops: Whether words that questions have find nothing.
        """
        if clause.name == "inurl":
            return _plain_query("url", url_words(clause.text))
        searched = forms = self._forms(clause.text)
        if drops and not clause.phrase and not clause.name:
            searched = {key: form for key, form in forms.items() if not is_common(clause.text, key)}
        spaceless = " " not in clause.text
        queries = [
            _boosted(
                self._form_query(name, forms[analyzer], spaceless and analyzer == OTHER), boost
            )
            for name in (("title",) if clause.name == "intitle" else TEXT_FIELDS)
            for analyzer, boost in self._weigh(name, forms, BOOSTS[name]).items()
            if analyzer in searched
        ]
        common = drops and not clause.phrase and clause.text.lower() in QUESTION_WORDS
        if not clause.name and not common:
            queries.append(_boosted(_plain_query("folded", clause.text), BOOSTS["folded"]))
            queries.append(_boosted(_plain_query("url", url_words(clause.text)), BOOSTS["url"]))
        queries = [query for query in queries if query is not None]
        if not queries:
            return None if common or not any(searched.values()) else tantivy.Query.empty_query()
        return tantivy.Query.disjunction_max_query(queries, _TIE)

    def _make_forms(self, text: str) -> Forms:
        """Returns the terms of a text in each language.

        A word that was typed without its accents has those of the spelling that pages of the language
        have, since a stemmer knows only words with their accents.
        """
        forms = {analyzer: language_terms(text, analyzer) for analyzer in self._present}
        word = text.lower()
        if self._searcher.doc_freq("folded", word):
            pages_with = functools.partial(self._searcher.doc_freq, "words")
            for spelling in accented_spellings(word, pages_with):
                for analyzer, terms in [*forms.items()]:
                    accented = language_terms(spelling, analyzer)
                    if self._pages(accented) > self._pages(terms):
                        forms[analyzer] = accented
        return forms

    def _pages(self, terms: Sequence[str]) -> int:
        return min((self._searcher.doc_freq("content", term) for term in terms), default=0)

    def _weigh(self, field: str, forms: Forms, boost: float) -> dict[str, float]:
        """Returns the boosts of the forms of a text that a field has.

        tantivy counts the pages of each form by itself. The boost makes of that what it is for the
        pages of all forms. If forms have different numbers of terms, each counts by itself.
        """
        pages_by_analyzer = {
            analyzer: [self._searcher.doc_freq(field, term) for term in terms[:_MOST_CHARACTERS]]
            for analyzer, terms in forms.items()
            if terms
        }
        pages_by_analyzer = {
            analyzer: pages for analyzer, pages in pages_by_analyzer.items() if any(pages)
        }
        alike = len({len(pages) for pages in pages_by_analyzer.values()}) == 1
        sums = [sum(pages) for pages in zip(*pages_by_analyzer.values(), strict=False)]
        together = sum(map(self.rarity, sums))
        return {
            analyzer: boost * (together / sum(map(self.rarity, pages)) if alike else 1.0)
            for analyzer, pages in pages_by_analyzer.items()
        }

    def rarity(self, pages: int) -> float:
        """Returns what BM25 makes of the number of pages that have a term."""
        rest = max(0, self._documents - pages)
        return math.log(1 + (rest + 0.5) / (pages + 0.5))

    def _form_query(self, field: str, terms: Sequence[str], spaceless: bool) -> Any:
        terms = terms[:_MOST_CHARACTERS]
        query = _terms_query(field, terms)
        if spaceless and len(terms) > _CHARACTERS:
            return tantivy.Query.disjunction_max_query([query, _pairs_query(field, terms)])
        return query

    def _nearness_queries(self, words: Iterable[Clause]) -> list[Any]:
        """Returns the queries of pages with words near one another, which count more.

        One is of all words in a text, the others are of two words that follow one another in the
        query.
        """
        texts = [clause.text for clause in words if not clause.name]
        texts = [text for text in texts if not any(is_common(text, a) for a in self._present)]
        forms = {
            analyzer: [term for text in texts for term in self._forms(text)[analyzer]]
            for analyzer in self._present
        }
        whole = {key: terms for key, terms in forms.items() if 2 <= len(terms) <= _MOST_NEAR}
        groups = [self._near_queries(whole, _FAR, _NEAR_BOOST)]
        pairs_by_analyzer = {
            analyzer: [*itertools.pairwise(terms)]
            for analyzer, terms in whole.items()
            if len(terms) > 2
        }
        for at in range(max(map(len, pairs_by_analyzer.values()), default=0)):
            pair = {
                key: [*pairs[at]] for key, pairs in pairs_by_analyzer.items() if at < len(pairs)
            }
            groups.append(self._near_queries(pair, _FAR_PAIR, _PAIR_BOOST))
        best = tantivy.Query.disjunction_max_query
        return [best(queries) for queries in groups if queries]

    def _whole_title_queries(self, words: Sequence[Clause]) -> list[Any]:
        """Returns the query of pages whose title, or a part of it, is all that is searched for."""
        text = " ".join(clause.text for clause in words)
        if any(clause.name for clause in words):
            return []
        terms = {analyzer: whole_title_term(text, analyzer) for analyzer in self._present}
        queries = [
            tantivy.Query.const_score_query(
                _terms_query("title", [term]), _WHOLE_TITLE * self._rarity_of(text, analyzer)
            )
            for analyzer, term in terms.items()
            if term and self._searcher.doc_freq("title", term)
        ]
        return [tantivy.Query.disjunction_max_query(queries)] if queries else []

    def _rarity_of(self, text: str, analyzer: str) -> float:
        terms = language_terms(text, analyzer)
        return sum(self.rarity(self._searcher.doc_freq("content", term)) for term in terms)

    def _near_queries(self, forms: Forms, far: int, boost: float) -> list[Any]:
        return [
            _boosted(
                tantivy.Query.phrase_query(shard_schema(), name, list(forms[analyzer]), far), weight
            )
            for name in ("content", "title")
            for analyzer, weight in self._weigh(name, forms, boost).items()
        ]

    def _filter_query(self, clause: Clause) -> Any:
        """Returns the query of a clause that only selects pages."""
        query, schema, kinds = tantivy.Query, shard_schema(), tantivy.FieldType
        text = clause.text
        if clause.name in ("site", "lang", "type"):
            filter_query = query.term_query(schema, clause.name, text, "basic")
        elif clause.name == "after":
            filter_query = query.range_query(schema, "date", kinds.Integer, int(text), None)
        elif clause.name == "before":
            filter_query = query.range_query(
                schema, "date", kinds.Integer, None, int(text), include_upper=False
            )
        else:
            filter_query = self.clause_query(clause, drops=False)
            if filter_query is None:
                return None
        return query.const_score_query(filter_query, 0.0)


def _most_of(queries: Sequence[Any], any_word: bool) -> Any:
    number = len(queries)
    least = 1 if any_word else number if number <= 2 else math.ceil(number * _SHARE)
    parts = [(tantivy.Occur.Should, query) for query in queries]
    return tantivy.Query.boolean_query(parts, minimum_number_should_match=least)


def _all_pages() -> Any:
    return tantivy.Query.all_query()


def _boosted(query: Any, boost: float) -> Any:
    return query if query is None or boost == 1.0 else tantivy.Query.boost_query(query, boost)


def _plain_query(field: str, text: str) -> Any:
    terms = analyzers()["plain"].analyze(text)
    return _terms_query(field, terms) if terms else None


def _terms_query(field: str, terms: Sequence[str]) -> Any:
    """Returns the query of terms in a field, one after the other."""
    query, schema = tantivy.Query, shard_schema()
    if len(terms) == 1:
        return query.term_query(schema, field, terms[0], "position")
    return query.phrase_query(schema, field, list(terms))


def _pairs_query(field: str, terms: Sequence[str]) -> Any:
    """Returns the query of most pairs of neighbours, for a text without spaces."""
    query, schema = tantivy.Query, shard_schema()
    pairs = dict.fromkeys(itertools.pairwise(terms))
    return _most_of([query.phrase_query(schema, field, list(pair)) for pair in pairs], False)


def is_common(word: str, analyzer: str) -> bool:
    """Returns whether a word is too common in a language to be required."""
    if analyzer in ("en", OTHER) and word.lower() in QUESTION_WORDS:
        return True
    return word.lower() in _common_words(analyzer)


@functools.cache
def _common_words(analyzer: str) -> "_CommonWords":
    return _CommonWords(analyzer)


class _CommonWords:
    """Words that tantivy's list of a language has."""

    def __init__(self, analyzer: str) -> None:
        self._analyzer: Any = None
        if analyzer in STEMMERS:
            builder = tantivy.TextAnalyzerBuilder(tantivy.Tokenizer.simple())
            with contextlib.suppress(ValueError):  # some languages have no list
                builder = builder.filter(tantivy.Filter.lowercase())
                builder = builder.filter(tantivy.Filter.stopword(STEMMERS[analyzer]))
                self._analyzer = builder.build()

    def __contains__(self, word: str) -> bool:
        return self._analyzer is not None and not self._analyzer.analyze(word)
