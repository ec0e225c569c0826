"""Searches an unpacked index: the best pages of a query, with a snippet of each."""

import contextlib
import dataclasses
import functools
import itertools
import json
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import tantivy

from ...io.indexing.shard_documents import (
    TEXT_FIELDS,
    analyzers,
    open_index,
    shard_schema,
    tantivy_errors,
)
from ...policy.indexing.best_passage import beginnings_of, best_passage
from ...policy.indexing.search_query import QUESTION_WORDS, Clause
from ...web.base.errors import UserError
from ...web.content.searched_forms import ANALYZERS, OTHER, STEMMERS, url_words
from ...web.pages.document_dates import document_date
from .search_completion import Completions, complete_text
from .search_facets import Facet, count_facets

# How much a word counts in each field.
BOOSTS = {"title": 1.0, "content": 1.0, "anchor": 1.0, "url": 0.7, "folded": 0.8}
_TIE = 0.15  # share of the other fields in the score of a word
_SHARE = 0.6  # of the words of a longer query, those that a page must have
_FAR = 8  # words between the words of a query, for pages where they are near
_NEAR_BOOST = 1.0
_FAR_PAIR, _PAIR_BOOST = 6, 0.8  # the same of two words
_MOST_NEAR = 8  # words of a query that may be near
_CHARACTERS = 3  # terms of a text without spaces that are searched as a whole only


def build_query(
    clauses: Sequence[Clause], present: Sequence[str], *, any_word: bool = False
) -> Any:
    """Returns the query of tantivy for the clauses of a query.

    Args:
        clauses: The clauses.
        present: Analyzers that the documents of the index have.
        any_word: Whether one of the words is enough.
    """
    words = [clause for clause in clauses if not clause.is_filter]
    musts: list[Any] = []
    optional: list[Any] = []
    extra: list[Any] = []
    for clause in words:
        clause_query = _clause_query(clause, present, drops=True)
        if clause_query is None:
            continue
        if clause.phrase or clause.name:
            musts.append(clause_query)
        else:
            # A common word of one language may be rare in another: it counts, but is optional.
            common = any(is_common(clause.text, analyzer) for analyzer in present)
            (extra if common else optional).append(clause_query)
    if not musts and not optional:  # it has only words that questions have
        optional = [q for c in words if (q := _clause_query(c, present, drops=False)) is not None]
        if words and not optional:
            return tantivy.Query.empty_query()
    occur = tantivy.Occur
    parts = [(occur.Must, query) for query in musts]
    if parts or optional:
        parts += [(occur.Should, query) for query in extra]
    if optional:
        parts.append((occur.Must, _most_of(optional, any_word)))
        parts += [(occur.Should, near) for near in _nearness_queries(words, present)]
    for clause in clauses:
        if clause.is_filter:
            query = _filter_query(clause, present)
            if query is not None:
                parts.append((occur.MustNot if clause.excluded else occur.Must, query))
    if not words:  # the order follows from the boost alone
        parts.append((occur.Must, tantivy.Query.const_score_query(_all_pages(), 1.0)))
    return tantivy.Query.boolean_query(parts)


def _most_of(queries: Sequence[Any], any_word: bool) -> Any:
    number = len(queries)
    least = 1 if any_word else number if number <= 2 else math.ceil(number * _SHARE)
    parts = [(tantivy.Occur.Should, query) for query in queries]
    return tantivy.Query.boolean_query(parts, minimum_number_should_match=least)


def _all_pages() -> Any:
    return tantivy.Query.all_query()


def _clause_query(clause: Clause, present: Sequence[str], *, drops: bool) -> Any:
    """Returns the query of words in the texts of pages; None if there is nothing to find.

    Args:
        clause: The clause.
        present: Analyzers of the index.
        drops: Whether words that questions have find nothing.
    """
    names = ("title",) if clause.name == "intitle" else TEXT_FIELDS
    if clause.name == "inurl":
        return _terms_query("url", "plain", url_words(clause.text))
    queries = []
    for analyzer in present:
        if drops and not clause.phrase and not clause.name and is_common(clause.text, analyzer):
            continue
        for name in names:
            queries.append(
                _terms_query(f"{name}_{analyzer}", f"text_{analyzer}", clause.text, BOOSTS[name])
            )
    common = drops and not clause.phrase and clause.text.lower() in QUESTION_WORDS
    if not clause.name and not common:
        queries.append(_terms_query("folded", "plain", clause.text, BOOSTS["folded"]))
        queries.append(_terms_query("url", "plain", url_words(clause.text), BOOSTS["url"]))
    queries = [query for query in queries if query is not None]
    return tantivy.Query.disjunction_max_query(queries, _TIE) if queries else None


def _terms_query(field: str, analyzer: str, text: str, boost: float = 1.0) -> Any:
    """Returns the query of a text in a field: its terms, one after the other."""
    query, schema = tantivy.Query, shard_schema()
    terms = analyzers()[analyzer].analyze(text)
    if not terms:
        return None
    if len(terms) == 1:
        terms_query = query.term_query(schema, field, terms[0], "position")
    else:
        terms_query = query.phrase_query(schema, field, terms)
        if analyzer == f"text_{OTHER}" and len(terms) > _CHARACTERS and " " not in text:
            terms_query = query.disjunction_max_query([terms_query, _pairs_query(field, terms)])
    return query.boost_query(terms_query, boost) if boost != 1.0 else terms_query


def _pairs_query(field: str, terms: Sequence[str]) -> Any:
    """Returns the query of most pairs of neighbours, for a text without spaces."""
    query, schema = tantivy.Query, shard_schema()
    pairs = dict.fromkeys(itertools.pairwise(terms))
    return _most_of([query.phrase_query(schema, field, list(pair)) for pair in pairs], False)


def _nearness_queries(words: Iterable[Clause], present: Sequence[str]) -> list[Any]:
    """Returns the queries of pages with words near one another, which count more.

    One is of all words in a text, the others are of two words that follow one another in the query.
    """
    wholes, pairs = list[Any](), dict[int, list[Any]]()
    for analyzer in present:
        texts = [c.text for c in words if not c.name and not is_common(c.text, analyzer)]
        terms = [t for text in texts for t in analyzers()[f"text_{analyzer}"].analyze(text)]
        if 2 <= len(terms) <= _MOST_NEAR:
            wholes += _phrases_in_fields(terms, analyzer, _FAR, _NEAR_BOOST)
        if 3 <= len(terms) <= _MOST_NEAR:
            for at, pair in enumerate(itertools.pairwise(terms)):
                near = _phrases_in_fields(pair, analyzer, _FAR_PAIR, _PAIR_BOOST)
                pairs.setdefault(at, []).extend(near)
    best = tantivy.Query.disjunction_max_query
    return [best(queries) for queries in (wholes, *pairs.values()) if queries]


def _phrases_in_fields(terms: Sequence[str], analyzer: str, far: int, boost: float) -> list[Any]:
    query, schema = tantivy.Query, shard_schema()
    return [
        query.boost_query(query.phrase_query(schema, f"{name}_{analyzer}", list(terms), far), boost)
        for name in ("content", "title")
    ]


def _filter_query(clause: Clause, present: Sequence[str]) -> Any:
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
        filter_query = _clause_query(clause, present, drops=False)
        if filter_query is None:
            return None
    return query.const_score_query(filter_query, 0.0)


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


ORDERS = ("relevance", "date")
Marks = tuple[tuple[int, int], ...]
_SNIPPET_CHARS = 220
_SEARCHED_CHARS = 200_000  # of a text
_WORD = re.compile(r"\w+")


@dataclasses.dataclass(frozen=True)
class Hit:
    """A page that a query has found.

    Attributes:
        url: Its URL.
        title: Its title; empty if it has none.
        snippet: A part of its text.
        marks: Begin and end of each word of the query in the snippet.
        score: Its score; the largest is first. 0 if the order is that of dates.
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


@dataclasses.dataclass(frozen=True)
class FoundPages:
    """The result of a query.

    Attributes:
        total: Number of all pages.
        hits: The best, in order.
        facets: How many of all pages have which host, type, language and year; if wanted.
    """

    total: int
    hits: tuple[Hit, ...]
    facets: tuple[Facet, ...] = ()


class Snippets:
    """Makes the snippets of one query: what they have in common is found once per field.

    Args:
        searcher: The index.
        query: The query of tantivy.
        clauses: The clauses from which it was made.
        documents: Number of documents of the index.
    """

    def __init__(
        self, searcher: Any, query: Any, clauses: Sequence[Clause], documents: int
    ) -> None:
        self._searcher, self._query, self._documents = searcher, query, documents
        self._texts = [c.text.lower() for c in clauses if not c.is_filter and not c.name]
        self._fields: dict[str, tuple[Any, Mapping[str, float]]] = {}

    def of(self, field: str, text: str) -> tuple[str, Marks]:
        """Returns the part of a text that fits the query best, and the marks in it."""
        if field not in self._fields:
            self._fields[field] = self._maker(field), self._beginnings(field)
        maker, beginnings = self._fields[field]
        document = tantivy.Document()
        document.add_text(field, best_passage(text[:_SEARCHED_CHARS], beginnings))
        generated = maker.snippet_from_doc(document)
        snippet = generated.fragment()
        if not snippet:
            return text[:_SNIPPET_CHARS], ()
        return snippet, marks_of(
            snippet, [(mark.start, mark.end) for mark in generated.highlighted()]
        )

    def _maker(self, field: str) -> Any:
        maker = tantivy.SnippetGenerator.create(self._searcher, self._query, shard_schema(), field)
        maker.set_max_num_chars(_SNIPPET_CHARS)
        return maker

    def _beginnings(self, field: str) -> dict[str, float]:
        """Returns the beginnings of the words of the query, and how much each counts.

        A rare word counts more than others; words that are common in the language do not count.
        """
        language = field.rpartition("_")[2]
        words = [word for text in self._texts for word in _WORD.findall(text)]
        words = [word for word in words if not is_common(word, language)] or words
        analyze = analyzers()[f"text_{language}"].analyze
        terms_by_beginning = beginnings_of(words, analyze, analyzers()["plain"].analyze)
        return {
            beginning: self._worth(field, terms) for beginning, terms in terms_by_beginning.items()
        }

    def _worth(self, field: str, terms: Iterable[str]) -> float:
        pages = min(self._searcher.doc_freq(field, term) for term in terms)
        return math.log(1 + self._documents / (1 + pages))


def marks_of(text: str, in_bytes: Iterable[tuple[int, int]]) -> Marks:
    """Returns marks in characters for marks in bytes; marks that touch become one.

    >>> marks_of("für dich", [(0, 3), (3, 4), (5, 9)])
    ((0, 3), (4, 8))
    """
    data, marks = text.encode(), list[tuple[int, int]]()
    for begin, end in sorted(in_bytes):
        first = len(data[:begin].decode(errors="ignore"))
        last = first + len(data[begin:end].decode(errors="ignore"))
        if marks and first <= marks[-1][1]:
            first, last = marks[-1][0], max(last, marks.pop()[1])
        marks.append((first, last))
    return tuple(marks)


class ShardSearch:
    """An unpacked index that is open.

    Attributes:
        documents: Number of documents.
    """

    def __init__(self, unpacked: Path) -> None:
        def unreadable(reason: str) -> UserError:
            return UserError(
                f"the unpacked index cannot be read: {unpacked}: {reason}: remove this folder"
            )

        with tantivy_errors(unreadable):
            self._searcher = open_index(unpacked).searcher()
            self._present = [a for a in ANALYZERS if self._searcher.doc_freq("analyzer", a)]
            count = self._searcher.search(tantivy.Query.all_query(), 1)
        self.documents = int(count.count or 0)

    def search(
        self,
        clauses: Sequence[Clause],
        top_n: int = 10,
        offset: int = 0,
        *,
        order: str = ORDERS[0],
        facets: bool = False,
    ) -> FoundPages:
        """Returns the best pages of a query, or the newest.

        Pages must have most of its words; if there is no such page, those that have any of them.

        Args:
            clauses: The query.
            top_n: Most pages to return.
            offset: Number of pages to leave out before.
            order: One of ``ORDERS``.
            facets: Whether to count values of all pages.
        """
        by = {"order_by_field": "date"} if order == "date" else {"weight_by_field": "weight"}
        with tantivy_errors(lambda reason: UserError(f"the query failed: {reason}")):
            for any_word in (False, True):
                query = build_query(clauses, self._present, any_word=any_word)
                result = self._searcher.search(query, max(1, top_n), offset=offset, **by)
                if result.count:
                    break
            snippets = Snippets(self._searcher, query, clauses, self.documents)
            hits = [
                self._hit(snippets, score if order == ORDERS[0] else 0.0, place)
                for score, place in result.hits[:top_n]
            ]
            counts = count_facets(self._searcher, query) if facets else ()
        return FoundPages(result.count or 0, tuple(hits), counts)

    def complete(self, text: str) -> Completions:
        """Returns how a text may go on, from the words of the index and the titles of its pages."""
        with tantivy_errors(lambda reason: UserError(f"the completion failed: {reason}")):
            return complete_text(self._searcher, text)

    def _hit(self, snippets: Snippets, score: float, place: Any) -> Hit:
        document = self._searcher.doc(place)
        fields = json.loads(document.get_first("document"))
        stored = document.to_dict()
        texts = {name.rpartition("_")[0]: (name, values[0]) for name, values in stored.items()}
        field, text = texts.get("content", ("", ""))
        snippet, marks = snippets.of(field, text) if text else ("", ())
        url = fields.get("url") or fields["id"]
        title = texts.get("title", ("", ""))[1]
        date = document_date(fields) or (None, "")
        return Hit(str(url), title, snippet, marks, round(score / 2, 4), fields, *date)
