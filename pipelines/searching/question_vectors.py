"""Makes the vectors of questions, by the embedding that made those of an index."""

import functools
import logging
from collections.abc import Iterable

import polars as pl

from ...io.indexing.page_vectors import VectorMaker, Vectors, unit_vectors
from ...policy.chunking.chunk_rows import EMBEDDED_COLUMNS
from ...policy.chunking.embeddings import EMBEDDINGS, check_vectors
from ...policy.searching.search_query import Clause
from ...web.base.errors import UserError
from ...web.plugins.call_limits import CallTookTooLong, call_within
from ...web.plugins.plugin_files import fault_text, is_plugin_file
from ...web.plugins.plugins import callable_plugin, load_plugin
from .meaning_ranks import Question

_LOG = logging.getLogger("nutbeam.search")
_LONGEST_S = 10.0
_REMEMBERED = 500  # questions
_ALONE = "pages are ranked by their words alone"


class QuestionVectors:
    """Makes the vectors of questions; if it cannot, one line says why, and words alone count.

    Args:
        embedding: Name of the plug-in; empty: that which the index names, if it is installed. A file
            that only the index names is never run, since its maker may be a stranger.
        least_cosine: A page is near only if the cosine of its best chunk is larger.

    Raises:
        UsageError: There is no such plug-in, or it cannot be imported.
    """

    def __init__(self, embedding: str = "", least_cosine: float = 0.0) -> None:
        self._name, self._last_line = embedding, ""
        self._least_cosine = least_cosine
        if embedding:
            _load(embedding)

    def of(self, clauses: Iterable[Clause], maker: VectorMaker | None) -> Question | None:
        """Returns the words of a query as a vector; None if it has none, or there is none.

        Args:
            clauses: The query.
            maker: What made the vectors of the index; None if it has none.
        """
        words = [clause.text for clause in clauses if not clause.is_filter and not clause.name]
        if maker is None:
            if self._name:
                self._warn(
                    "the index has no vectors: nutbeam index with --full and --embedding adds them"
                )
            return None
        if not words:
            return None
        name = self._name or maker.embedding
        if not self._name and is_plugin_file(name):
            self._warn(f"the index has vectors; to rank by them, too, give --embedding {name}")
            return None
        try:
            vector = _question_vector(name, " ".join(words), maker.dimension)
            return Question(vector, self._least_cosine)
        except UserError as error:
            self._warn(str(error))
        return None

    def _warn(self, line: str) -> None:
        if line != self._last_line:
            self._last_line = line
            _LOG.warning("%s: %s", _ALONE, line)


@functools.cache
def _load(name: str) -> tuple[object, object]:
    """Returns a plug-in, and what is called with chunks."""
    plugin = load_plugin(EMBEDDINGS, name)
    return plugin, callable_plugin(plugin, f"embedding {name!r}")


@functools.lru_cache(maxsize=_REMEMBERED)
def _question_vector(name: str, words: str, dimension: int) -> Vectors:
    plugin, embed = _load(name)
    assert callable(embed)
    row = {"text": [words], "title": [""], "heading_path": [[]], "url": [None], "language": [None]}
    chunks = pl.DataFrame(row, schema=pl.Schema(EMBEDDED_COLUMNS.schema))
    try:
        result = call_within(lambda: embed(chunks), _LONGEST_S, lambda: f"embedding {name!r}")
        vectors = check_vectors(result, 1)
    except (Exception, SystemExit, CallTookTooLong) as error:
        raise UserError(f"embedding {name!r} failed: {fault_text(error, plugin)}") from error
    if vectors.shape[1] != dimension:
        raise UserError(
            f"embedding {name!r} returns vectors of {vectors.shape[1]:,} numbers, the index has some of "
            f"{dimension:,}: run nutbeam index with --full"
        )
    return unit_vectors(vectors)[0]
