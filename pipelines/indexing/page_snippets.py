"""Snippets of pages: the part of the text of each that fits a query best."""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from ...io.indexing.shard_documents import analyzers
from ...policy.indexing.best_passage import beginnings_of, best_passage
from ...policy.indexing.search_query import Clause
from ...policy.indexing.snippet_choice import Marks, Match, choose_snippet
from ...web.content.searched_forms import term_mark
from .query_building import QueryBuilder, is_common

_SEARCHED_CHARS = 200_000  # of a text
_PASSAGE_CHARS = 50_000
_WORD = re.compile(r"\w+")


class _Wanted(NamedTuple):
    """What the texts of a language are searched for.

    Attributes:
        beginnings: Beginnings of words, and how much each counts.
        worths: Terms, and how much each counts.
        term_of: The term of each word without its accents.
    """

    beginnings: Mapping[str, float]
    worths: Mapping[str, float]
    term_of: Mapping[str, str]


class PageSnippets:
    """Makes the snippets of one query: what they have in common is found once per language.

    Args:
        searcher: The index.
        builder: Made the query.
        clauses: The clauses from which it was made.
    """

    def __init__(self, searcher: Any, builder: QueryBuilder, clauses: Sequence[Clause]) -> None:
        self._searcher, self._builder = searcher, builder
        self._clauses = [c for c in clauses if not c.is_filter and not c.name]
        self._wanted: dict[str, _Wanted] = {}

    def of(self, analyzer: str, text: str) -> tuple[str, Marks]:
        """Returns the part of a text that fits the query best, and the marks in it."""
        if analyzer not in self._wanted:
            self._wanted[analyzer] = self._make_wanted(analyzer)
        wanted, text = self._wanted[analyzer], text[:_SEARCHED_CHARS]
        # A passage is short; a text without the words as they are written is returned whole.
        passage = best_passage(text, wanted.beginnings)[:_PASSAGE_CHARS]
        matches = [*_matches(passage, analyzer, wanted)]
        cut = not text.startswith(passage), not text.endswith(passage)
        return choose_snippet(passage, matches, wanted.worths, cut=cut)

    def _make_wanted(self, analyzer: str) -> _Wanted:
        """Returns what is searched in texts of a language.

        A rare word counts more than others; words that are common in the language do not count.
        """
        every = [(word, c) for c in self._clauses for word in _WORD.findall(c.text.lower())]
        words = [word for word, c in every if c.phrase or not is_common(word, analyzer)]
        words = words or [word for word, _ in every]
        analyze, fold = (analyzers()[name].analyze for name in (f"text_{analyzer}", "plain"))
        terms_by_beginning = beginnings_of(words, analyze, fold)
        worth_of, mark = self._builder.rarity, term_mark(analyzer)
        pages = {
            term: int(self._searcher.doc_freq("content", mark + term))
            for terms in terms_by_beginning.values()
            for term in terms
        }
        return _Wanted(
            {
                beginning: worth_of(min(pages[term] for term in terms))
                for beginning, terms in terms_by_beginning.items()
            },
            {term: worth_of(number) for term, number in pages.items()},
            {
                plain: term
                for word in words
                for plain, term in zip(fold(word), analyze(word), strict=False)
            },
        )


def _matches(passage: str, analyzer: str, wanted: _Wanted) -> Iterable[Match]:
    """Yields the words of a query in a passage, in order."""
    cut = analyzers()[f"text_{analyzer}"]
    terms = cut.analyze(passage)
    # To read a token takes long: in ASCII only those of the query are read.
    places = [at for at, term in enumerate(terms) if term in wanted.worths or not passage.isascii()]
    tokens = cut.pre_tokenize(passage).tokens if places else []
    for at in places:
        term, begin, end = terms[at], tokens[at].char_offset_from, tokens[at].char_offset_to
        if term not in wanted.worths:
            word = passage[begin:end]
            plain = [] if word.isascii() else analyzers()["plain"].analyze(word)
            term = wanted.term_of.get(plain[0], "") if len(plain) == 1 else ""
        if term:
            yield Match(begin, end, term)
