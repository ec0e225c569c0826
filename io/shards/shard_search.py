"""Searches a view of an index."""

import dataclasses
import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from ...policy.searching.search_languages import ANALYZERS
from ...policy.searching.search_query import Clause
from ...web.base.errors import UserError
from .shard_queries import build_query
from .tantivy_schema import register_analyzers, shard_schema, tantivy, tantivy_errors

_SNIPPET_CHARS = 220
_SEARCHED_CHARS = 200_000  # of a text, for its snippet


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
    marks: tuple[tuple[int, int], ...]
    score: float
    fields: dict[str, Any]


@dataclasses.dataclass(frozen=True)
class FoundPages:
    """What a query has found.

    Attributes:
        total: Number of all pages.
        hits: The best, in order.
    """

    total: int
    hits: tuple[Hit, ...]


class ShardSearch:
    """An open view of an index.

    Attributes:
        documents: Number of documents.
    """

    def __init__(self, view: Path) -> None:
        def unreadable(reason: str) -> UserError:
            return UserError(
                f"the unpacked index cannot be read: {view}: {reason}: remove this folder"
            )

        with tantivy_errors(unreadable):
            self._index = tantivy().Index.open(str(view))
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
            hits = [self._hit(query, score, place) for score, place in result.hits[:top_n]]
        return FoundPages(result.count or 0, tuple(hits))

    def _hit(self, query: Any, score: float, place: Any) -> Hit:
        document = self._searcher.doc(place)
        fields = json.loads(document.get_first("document"))
        stored = document.to_dict()
        texts = {name.rpartition("_")[0]: (name, values[0]) for name, values in stored.items()}
        field, text = texts.get("content", ("", ""))
        snippet, marks = self._snippet(query, field, text) if text else ("", ())
        url = fields.get("url") or fields["id"]
        title = texts.get("title", ("", ""))[1]
        return Hit(str(url), title, snippet, marks, round(score / 2, 4), fields)

    def _snippet(
        self, query: Any, field: str, text: str
    ) -> tuple[str, tuple[tuple[int, int], ...]]:
        maker = tantivy().SnippetGenerator.create(self._searcher, query, shard_schema(), field)
        maker.set_max_num_chars(_SNIPPET_CHARS)
        document = tantivy().Document()
        document.add_text(field, text[:_SEARCHED_CHARS])
        found = maker.snippet_from_doc(document)
        snippet = found.fragment()
        if not snippet:
            return text[:_SNIPPET_CHARS], ()
        return snippet, marks_of(snippet, [(mark.start, mark.end) for mark in found.highlighted()])


def marks_of(text: str, in_bytes: Iterable[tuple[int, int]]) -> tuple[tuple[int, int], ...]:
    """Returns marks in characters for marks in bytes; marks that touch become one.

    >>> marks_of("für dich", [(0, 3), (3, 4), (5, 9)])
    ((0, 3), (4, 8))
    """
    data, found = text.encode(), list[tuple[int, int]]()
    for begin, end in sorted(in_bytes):
        first = len(data[:begin].decode(errors="ignore"))
        last = first + len(data[begin:end].decode(errors="ignore"))
        if found and first <= found[-1][1]:
            first, last = found[-1][0], max(last, found.pop()[1])
        found.append((first, last))
    return tuple(found)
