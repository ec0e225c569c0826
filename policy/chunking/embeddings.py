"""Calls an embedding of a plug-in with chunks, and checks the vectors that it returns."""

import functools
import logging
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np
import polars as pl
import pyarrow as pa

from ...web.base.wording import format_count, quote_value
from ...web.plugins.call_limits import CallTookTooLong, call_within
from ...web.plugins.plugin_files import fault_text, plugin_label
from ...web.plugins.plugins import PluginGroup, callable_plugin, load_plugin
from ..components.columns import Column
from .chunk_rows import ChunkRows

EMBEDDINGS = PluginGroup("nutbeam.embeddings", "embedding", option="embedding")
EMBEDDING_COLUMN = Column(
    "embedding",
    pa.large_list(pa.float32()),
    "The vector of its text, by `--embedding`; null if the plug-in failed for it.",
)
_ROWS = 128  # of a call
_MOST_FAILURES = (
    8  # chunks that fail alone before the first success: then the plug-in is not called again
)
_LONGEST_S = 600.0
_LOG = logging.getLogger("nutbeam.plugins")
_logged: set[str] = set()


class Embedding(Protocol):
    """What an embedding is: a function of chunks, or a class whose objects are such functions.

    A class is made once in each process: it can load a model. It runs on the workers that read pages,
    in several threads of each process. A call has at most 128 chunks and may take 600 s. If it raises,
    or returns something else, the chunks are halved until those that fail are alone.
    """

    def __call__(self, chunks: pl.DataFrame, /) -> "np.ndarray | Sequence[Sequence[float]]":
        """Returns one vector per chunk, in the same order.

        Args:
            chunks: Columns of chunks: ``text``, ``title``, ``heading_path``, ``url``, ``language`` and
                those that are written.
        """


class EmbeddingReport(NamedTuple):
    """What became of the vectors of chunks.

    Attributes:
        chunks: Number of chunks.
        failed: How many have no vector, because the plug-in failed.
        dimension: Numbers of a vector; 0 if there is none.
        fault: What the plug-in raised last, and where; empty if it did not fail.
    """

    chunks: int = 0
    failed: int = 0
    dimension: int = 0
    fault: str = ""


class Embedder:
    """Embeds the chunks of some pages.

    Args:
        name: Name of the plug-in.

    Attributes:
        report: What became of the chunks until now.

    Raises:
        UsageError: There is no such plug-in, it cannot be imported, or no object of it can be made.
    """

    def __init__(self, name: str) -> None:
        self._function = load_plugin(EMBEDDINGS, name)
        self._embed = _callable(self._function, name)
        self._label = plugin_label(name)
        self.report = EmbeddingReport()

    def embed(self, chunks: ChunkRows) -> ChunkRows:
        """Returns chunks with the column ``embedding``.

        All vectors of one embedder must have the same number of dimensions.
        """
        parts = [_no_vectors(0), *map(self._embed_by_halves, chunks.iter_slices(_ROWS))]
        self.report = self.report._replace(chunks=self.report.chunks + len(chunks))
        return chunks.with_columns(pl.concat(parts))

    def _embed_by_halves(self, chunks: ChunkRows) -> pl.Series:
        """Returns the vectors of chunks; null if the plug-in fails for a chunk alone."""
        report = self.report
        if not report.dimension and report.failed >= _MOST_FAILURES:
            self.report = report._replace(failed=report.failed + len(chunks))
            return _no_vectors(len(chunks))
        what = f"embedding {self._label!r}"
        try:
            result = call_within(lambda: self._embed(chunks), _LONGEST_S, lambda: what)
            vectors = check_vectors(result, len(chunks), report.dimension)
        except (Exception, SystemExit, CallTookTooLong) as error:  # noqa: BLE001 - it may raise anything
            self.report = report._replace(fault=fault_text(error, self._function))
        else:
            self.report = report._replace(dimension=vectors.shape[1])
            return pl.Series(EMBEDDING_COLUMN.name, vectors).arr.to_list()
        if len(chunks) == 1:
            self.report = self.report._replace(failed=report.failed + 1)
            self._log_once(chunks)
            return _no_vectors(1)
        middle = len(chunks) // 2
        halves = (chunks[:middle], chunks[middle:])
        return pl.concat([self._embed_by_halves(half) for half in halves])

    def _log_once(self, chunk: ChunkRows) -> None:
        if self._label not in _logged:
            _logged.add(self._label)
            place = ", ".join(quote_value(chunk.item(0, name)) for name in ("url", "text"))
            _LOG.warning(
                "embedding %r failed for a chunk: %s: %s; chunks that fail are counted as %s",
                *(self._label, place, self.report.fault, embedding_reason(self._label)),
            )


def _no_vectors(number: int) -> pl.Series:
    return pl.Series(EMBEDDING_COLUMN.name, [None] * number, pl.List(pl.Float32))


def embedding_reason(name: str) -> str:
    """Returns what chunks are counted as for which an embedding fails.

    >>> embedding_reason("./model.py:embed")
    'embedding_model.embed'
    """
    return f"embedding_{plugin_label(name)}"


@functools.cache
def _callable(function: Callable[..., Any], name: str) -> Callable[..., Any]:
    return callable_plugin(function, f"embedding {name!r}")


def check_vectors(result: Any, number: int, dimension: int = 0) -> np.ndarray:
    """Returns the result of a plug-in as an array of 32-bit floats, a row per chunk.

    Args:
        result: The result.
        number: Number of chunks.
        dimension: Number of dimensions of earlier vectors; 0 is any.

    Raises:
        ValueError: It is no such array: it has other numbers of rows or dimensions, or a value that is
            not finite.

    >>> check_vectors([[1, 2], [3, 4]], 2).tolist()
    [[1.0, 2.0], [3.0, 4.0]]
    """
    try:
        with np.errstate(over="ignore"):  # what is too large is infinite
            vectors = np.asarray(result, np.float32)
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"expected an array or lists of numbers, all of one length: {error}"
        ) from error
    if vectors.ndim != 2 or not vectors.shape[1]:
        raise ValueError(f"expected a vector per chunk, got an array of the shape {vectors.shape}")
    if len(vectors) != number:
        expected = format_count(number, "vectors")
        raise ValueError(f"expected {expected}, one per chunk, got {len(vectors):,}")
    if dimension and vectors.shape[1] != dimension:
        raise ValueError(
            f"expected vectors of {dimension:,} numbers, as before, got {vectors.shape[1]:,}"
        )
    if not np.isfinite(vectors).all():
        raise ValueError("expected finite numbers, got one that is infinite or not a number")
    return vectors
