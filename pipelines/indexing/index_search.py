"""Searches an unpacked index: the best pages of a query, with a snippet of each."""

import dataclasses
import json
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from ...io.indexing.shard_documents import (
    analyzers,
    register_analyzers,
    shard_schema,
    tantivy,
    tantivy_errors,
)
from ...policy.indexing.best_passage import beginnings_of, best_passage
from ...policy.indexing.search_query import Clause
from ...web.base.errors import UserError
from ...web.content.search_languages import ANALYZERS
from .index_queries import build_query, is_common

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
        score: Its score; the largest is first.
        fields: All other fields of the document.
    """

    url: str
    title: str
    snippet: str
    marks: Marks
    score: float
    fields: dict[str, Any]


@dataclasses.dataclass(frozen=True)
class FoundPages:
    """The result of a query.

    Attributes:
        total: Number of all pages.
        hits: The best, in order.
    """

    total: int
    hits: tuple[Hit, ...]


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
            self._index = tantivy().Index.open(str(unpacked))
            register_analyzers(self._index)
            self._searcher = self._index.searcher()
            self._present = [a for a in ANALYZERS if self._searcher.doc_freq("analyzer", a)]
            count = self._searcher.search(tantivy().Query.all_query(), 1)
        self.documents = int(count.count or 0)

    def search(self, clauses: Sequence[Clause], top_n: int = 10, offset: int = 0) -> FoundPages:
        """Returns the best pages of a query.

        Pages must have most of its words; if there is no such page, those that have any of them.
        """
        with tantivy_errors(lambda reason: UserError(f"the query failed: {reason}")):
            for any_word in (False, True):
                query = build_query(clauses, self._present, any_word=any_word)
                result = self._searcher.search(
                    query, max(1, top_n), offset=offset, weight_by_field="weight"
                )
                if result.count:
                    break
            snippets = Snippets(self._searcher, query, clauses, self.documents)
            hits = [self._hit(snippets, score, place) for score, place in result.hits[:top_n]]
        return FoundPages(result.count or 0, tuple(hits))

    def _hit(self, snippets: Snippets, score: float, place: Any) -> Hit:
        document = self._searcher.doc(place)
        fields = json.loads(document.get_first("document"))
        stored = document.to_dict()
        texts = {name.rpartition("_")[0]: (name, values[0]) for name, values in stored.items()}
        field, text = texts.get("content", ("", ""))
        snippet, marks = snippets.of(field, text) if text else ("", ())
        url = fields.get("url") or fields["id"]
        title = texts.get("title", ("", ""))[1]
        return Hit(str(url), title, snippet, marks, round(score / 2, 4), fields)
