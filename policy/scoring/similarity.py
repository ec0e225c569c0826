"""The scoring ``similarity``: a page's score is the cosine between its title and text and a given text.

The text is in ``--goldstandard_file``. Texts are compared by how often each word occurs in them:
words are runs of letters and digits, in lower case. The score is between 0 (no word in common) and
1. A link gets the score of its page whole; of several the largest counts, until the page itself is
fetched.
"""

import functools
import math
from collections.abc import Iterator
from typing import TypeAlias

import polars as pl
import pyarrow as pa

from ...web.rule_files.rule_files import entries, read_rule_file
from ..components.schema import StateRows
from .scoring import CarriedColumn, Scoring, ScoringOptions, SharingRows

WordRows: TypeAlias = pl.DataFrame  # ``word``, and its text or how often it occurs
_WORD = r"[\p{L}\p{N}]+"
_OWN, _PASSED = "own_similarity", "passed_similarity"
# About how many bytes of text are divided into words at once: a word takes some 30 bytes.
_BYTES = 8 << 20


class Similarity(Scoring):
    """Scores pages by their text.

    Raises:
        ValueError: A file is missing, cannot be read, or has no word.
    """

    name = "similarity"
    document_columns = ("title", "text")
    passed = (CarriedColumn(pa.field(_PASSED, pa.float64()), pl.col(_PASSED).max()),)
    own = (CarriedColumn(pa.field(_OWN, pa.float64()), pl.col(_OWN).first()),)
    sorts = "no"

    def __init__(self, options: ScoringOptions) -> None:
        super().__init__(options)
        if not options.goldstandard_file:
            raise ValueError("--scoring similarity needs a text: give --goldstandard_file")
        self._text = read_rule_file(options.goldstandard_file, flag="--goldstandard_file").text
        path = options.stopword_file
        stop = read_rule_file(path, flag="--stopword_file").text if path else ""
        self._stop = frozenset(word.lower() for _, word in entries(stop))
        if not len(gold_words(self._text, self._stop)):
            raise ValueError(
                f"--goldstandard_file must have words, got {options.goldstandard_file!r}"
            )

    def share(self, pages: SharingRows) -> SharingRows:
        """Measures the title and text of pages; a page without a text keeps its score."""
        gold = gold_words(self._text, self._stop)
        # As in Nutch, whose texts begin with the title. No text is no title either.
        titled = pl.concat_str(
            pl.col("document.title").fill_null(""), "document.text", separator=" "
        )
        measures = similarities(pages.select(titled).to_series(), gold, self._stop)
        pages = pages.with_columns(measures.alias(_OWN))
        measured = pl.coalesce(_OWN, "score")
        # The links of an unchanged page count as seen, but scorings after this one share nothing.
        return pages.with_columns(
            score=pl.when("unchanged").then("score").otherwise(measured),
            share=pl.when("unchanged").then(0.0).otherwise(measured),
            **{_PASSED: measured},
        )

    def arrived(self, rows: StateRows, now: int) -> StateRows:
        """Sets the score of pages with a new text, and of pages that were never fetched."""
        waits = pl.col("last_fetch_time").is_null()
        is_new = pl.col("status").is_null()
        best = pl.when(is_new).then(_PASSED).otherwise(pl.max_horizontal("score", _PASSED))
        score = pl.when(pl.col(_OWN).is_not_null()).then(_OWN)
        return rows.with_columns(
            score=score.when(waits & pl.col(_PASSED).is_not_null()).then(best).otherwise("score")
        )


@functools.lru_cache(maxsize=4)
def gold_words(text: str, stop: frozenset[str]) -> WordRows:
    """Returns the words of the given text: ``word``, ``gold`` (how often it occurs)."""
    counted = _words(pl.Series([text]), stop).group_by("word").len("gold")
    return counted.with_columns(pl.col("gold").cast(pl.Int64))


def similarities(texts: pl.Series, gold: WordRows, stop: frozenset[str]) -> pl.Series:
    """Returns the cosine between each text and the given one; null for null.

    >>> gold = gold_words("red apple, green apple", frozenset())
    >>> similarities(pl.Series(["Green apple!", "pear", None]), gold, frozenset()).round(3).to_list()
    [0.866, 0.0, None]
    """
    length = math.sqrt(int((gold.get_column("gold") ** 2).sum()))
    parts = [_products(part, gold, stop) for part in _pieces(texts)]
    sums = pl.concat([pl.DataFrame(schema=_SUMS), *parts]).with_columns(
        # Whole numbers up to here, so the order of rows does not matter.
        cosine=pl.col("product") / (pl.col("square").cast(pl.Float64).sqrt() * length)
    )
    cosine = sums.get_column("cosine").fill_nan(0.0)
    return cosine.set(texts.is_null(), None)


_SUMS = {"product": pl.Int64, "square": pl.Int64}


def _pieces(texts: pl.Series) -> Iterator[pl.Series]:
    """Yields texts in pieces of limited size."""
    sizes = texts.str.len_bytes().fill_null(0).cum_sum() // _BYTES
    for piece in pl.DataFrame({"text": texts, "piece": sizes}).partition_by(
        "piece", maintain_order=True
    ):
        yield piece.get_column("text")


def _products(texts: pl.Series, gold: WordRows, stop: frozenset[str]) -> pl.DataFrame:
    """Returns, for each text, its scalar product with the given one and with itself."""
    counts = _words(texts, stop).group_by("text", "word").len("n").cast({"n": pl.Int64})
    joined = counts.join(gold, on="word", how="left")
    sums = joined.group_by("text").agg(
        product=(pl.col("n") * pl.col("gold").fill_null(0)).sum(), square=(pl.col("n") ** 2).sum()
    )
    all_texts = pl.DataFrame({"text": pl.int_range(len(texts), dtype=pl.UInt32, eager=True)})
    text_sums = all_texts.join(sums, on="text", how="left", maintain_order="left")
    return text_sums.select(pl.col(*_SUMS).fill_null(0)).cast(_SUMS)  # type: ignore[arg-type]


def _words(texts: pl.Series, stop: frozenset[str]) -> WordRows:
    """Returns the words of texts: ``text`` (number of the text), ``word``."""
    word = texts.str.to_lowercase().str.extract_all(_WORD)
    words = pl.DataFrame({"word": word}).with_row_index("text").explode("word").drop_nulls("word")
    return words.filter(~pl.col("word").is_in(list(stop))) if stop else words
