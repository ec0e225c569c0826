"""Searches an unpacked index."""

import dataclasses
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ...policy.searching.search_languages import ANALYZERS
from ...policy.searching.search_query import Clause
from ...web.base.errors import UserError
from .shard_queries import build_query
from .shard_snippets import Snippets
from .tantivy_schema import register_analyzers, tantivy, tantivy_errors


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
    """The result of a query.

    Attributes:
        total: Number of all pages.
        hits: The best, in order.
    """

    total: int
    hits: tuple[Hit, ...]


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
