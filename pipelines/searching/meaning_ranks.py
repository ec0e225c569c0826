"""Ranks pages by the meaning of their chunks beside their words, where an index has vectors."""

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import tantivy

from ...io.indexing.page_vectors import ShardVectors, Vectors
from ...io.indexing.shard_documents import shard_schema
from ...policy.searching.rank_fusion import best_chunk_scores, fuse_ranks
from ...policy.searching.search_query import Clause
from .query_building import QueryBuilder

_NEAREST = 50  # pages that are ranked by their meaning
# If filters leave some of them out, this many times more pages are looked at, up to a limit.
_MORE, _MOST_LOOKED_AT = 4, 10_000
_FUSED = 200  # pages with the words of a query that are ranked again; others follow them
_MULTIPLIED_BYTES = 64 << 20  # of vectors at once


class Question(NamedTuple):
    """What is asked for, as a vector.

    Attributes:
        vector: A unit vector.
        least_cosine: A page is near only if the cosine of its best chunk is larger.
    """

    vector: Vectors
    least_cosine: float = 0.0


class RankedPages(NamedTuple):
    """Pages in the order of both ranks.

    Attributes:
        query: tantivy's query of all of them.
        total: Number of all of them.
        hits: Score and place of some.
    """

    query: Any
    total: int
    hits: list[tuple[float, Any]]


class MeaningRanks:
    """The vectors of an index, for one open index.

    Args:
        searcher: The index.
        builder: Makes its queries.
        shards: Its vectors.
    """

    def __init__(
        self, searcher: Any, builder: QueryBuilder, shards: Sequence[ShardVectors]
    ) -> None:
        self._searcher, self._builder, self._shards = searcher, builder, shards
        self._urls = [url for shard in shards for url in shard.urls]
        self._gone = np.array([not url for url in self._urls], np.bool_)

    def rank(
        self, query: Any, clauses: Sequence[Clause], question: Question, top_n: int, offset: int
    ) -> RankedPages:
        """Returns pages by reciprocal rank fusion of their words and their best chunks.

        Args:
            query: tantivy's query of the words.
            clauses: The clauses that it was made of; phrases and operators hold for all pages.
            question: What was asked for.
            top_n: Most pages to return.
            offset: Number of pages to leave out before.
        """
        most = max(_FUSED, offset + top_n)
        by_words = [
            place for _, place in self._searcher.search(query, most, weight_by_field="weight").hits
        ]
        needed = [c for c in clauses if c.is_filter or c.phrase or c.name]
        nearest, nearest_query = self._nearest_pages(question, needed)
        place_of = {_address(place): place for place in (*by_words, *nearest)}
        first, rest = by_words[:_FUSED], by_words[_FUSED:]
        orders = [[*map(_address, places)] for places in (first, nearest)]
        scored = fuse_ranks(orders)
        fused = {address for address, _ in scored}
        scored += [(_address(place), 0.0) for place in rest if _address(place) not in fused]
        should = tantivy.Occur.Should
        every = tantivy.Query.boolean_query([(should, query), (should, nearest_query)])
        return RankedPages(
            every,
            int(self._searcher.search(every, 1).count or 0),
            [
                (round(score, 6), place_of[address])
                for address, score in scored[offset : offset + top_n]
            ],
        )

    def _nearest_pages(self, question: Question, needed: Sequence[Clause]) -> tuple[list[Any], Any]:
        """Returns the places of the nearest pages that a query allows, and the query of them.

        The query has only these pages, so that the number of pages does not depend on how many were
        looked at.
        """
        scores = np.concatenate([_page_scores(shard, question.vector) for shard in self._shards])
        scores[self._gone] = -1.0
        order = np.argsort(-scores, kind="stable")[:_MOST_LOOKED_AT]
        urls = [self._urls[at] for at in order if scores[at] > question.least_cosine]
        allowed = self._builder.build(needed) if needed else tantivy.Query.all_query()
        if needed and not self._searcher.search(allowed, 1).count:
            urls = []
        places, pages = list[Any](), tantivy.Query.empty_query()
        start, number = 0, _NEAREST
        while start < len(urls) and len(places) < _NEAREST:
            part = urls[start : start + number]
            ranked = _ranked_pages(part, allowed)
            hits = self._searcher.search(ranked, _NEAREST - len(places)).hits
            chosen = [part[len(part) - round(score)] for score, _ in hits]
            if chosen:
                both = [
                    (tantivy.Occur.Should, one) for one in (pages, _ranked_pages(chosen, allowed))
                ]
                pages = tantivy.Query.boolean_query(both)
            places += [place for _, place in hits]
            start, number = start + number, number * _MORE
        return places, pages


def _page_scores(shard: ShardVectors, vector: Vectors) -> Vectors:
    """Returns the cosine of the best chunk of each page with a unit vector."""
    products = [part @ vector for part in _parts(shard.matrix)]
    return best_chunk_scores(np.concatenate([*products, np.zeros(0, np.float32)]), shard.counts)


def _parts(matrix: Vectors) -> Iterator[Vectors]:
    rows = max(1, _MULTIPLIED_BYTES // (4 * matrix.shape[1]))
    for start in range(0, len(matrix), rows):
        yield matrix[start : start + rows]


def _ranked_pages(urls: Sequence[str], allowed: Any) -> Any:
    """Returns the query of some pages that are allowed; of these the first has the largest score."""
    query, occur = tantivy.Query, tantivy.Occur
    pages = [
        (occur.Should, query.const_score_query(query.term_query(shard_schema(), "id", url, "basic"), float(rank)))
        for rank, url in zip(range(len(urls), 0, -1), urls, strict=True)
    ]  # fmt: skip
    ranked = query.boolean_query(pages) if pages else query.empty_query()
    return query.boolean_query(
        [(occur.Must, ranked), (occur.Must, query.const_score_query(allowed, 0.0))]
    )


def _address(place: Any) -> tuple[int, int]:
    return place.segment_ord, place.doc
