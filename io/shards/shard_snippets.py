"""Snippets of the pages that a query has found."""

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ...policy.searching.best_passage import beginnings_of, best_passage
from ...policy.searching.search_query import Clause
from .shard_queries import is_common
from .tantivy_schema import analyzers, shard_schema, tantivy

Marks = tuple[tuple[int, int], ...]
_SNIPPET_CHARS = 220
_SEARCHED_CHARS = 200_000  # of a text
_WORD = re.compile(r"\w+")


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
        document = tantivy().Document()
        document.add_text(field, best_passage(text[:_SEARCHED_CHARS], beginnings))
        generated = maker.snippet_from_doc(document)
        snippet = generated.fragment()
        if not snippet:
            return text[:_SNIPPET_CHARS], ()
        return snippet, marks_of(
            snippet, [(mark.start, mark.end) for mark in generated.highlighted()]
        )

    def _maker(self, field: str) -> Any:
        maker = tantivy().SnippetGenerator.create(
            self._searcher, self._query, shard_schema(), field
        )
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
