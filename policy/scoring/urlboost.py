"""The scoring ``urlboost``: multiplies by a factor that a file of patterns gives to URLs.

A line is ``FACTOR PATTERN``, such as ``2.5 ^https?://[^/]+/news/``. The patterns are Java's regular
expressions, as in URL filters. The first one that is found in a URL decides; other URLs keep their
value. Empty lines and lines that begin with ``#`` are ignored.
"""

import functools
import math

import polars as pl

from ...web.base.columns import put
from ...web.base.dataclass import dataclass
from ...web.base.wording import quote_value
from ...web.patterns.patterns import Pattern, TimeLimit, compile_pattern
from ...web.rule_files.rule_files import RuleFile, entries, read_rule_file
from ..base.key_columns import from_keys
from ..components.schema import StateRows
from .scoring import Scoring, ScoringOptions


@dataclass(frozen=True)
class Boost:
    """A line of the file: a factor, and the pattern of URLs that get it."""

    factor: float
    pattern: Pattern


class UrlBoost(Scoring):
    """Multiplies the sort value, or the score of new rows (``--url_boost_of``).

    Raises:
        ValueError: The file is missing, cannot be read, or has a bad line.
    """

    name = "urlboost"

    def __init__(self, options: ScoringOptions) -> None:
        super().__init__(options)
        if not options.url_boost_file:
            raise ValueError("--scoring urlboost needs patterns: give --url_boost_file")
        self._boosts = read_boosts(read_rule_file(options.url_boost_file, flag="--url_boost_file"))
        self._of_new = options.url_boost_of == "new"
        self.sorts = "no" if self._of_new else "other"

    def injected(self, rows: StateRows) -> StateRows:
        """Multiplies the scores of new seeds."""
        return self._multiply(rows, "score") if self._of_new else rows

    def sort_value(self, rows: StateRows) -> StateRows:
        """Multiplies the sort value."""
        return rows if self._of_new else self._multiply(rows, "sort_value")

    def arrived(self, rows: StateRows, now: int) -> StateRows:
        """Multiplies the scores of new rows."""
        is_new = rows.get_column("status").is_null()
        if not self._of_new or not is_new.any():
            return rows
        at = is_new.arg_true()
        boosted = self._multiply(rows.select("key", "score")[at], "score").get_column("score")
        return rows.with_columns(put(rows.get_column("score"), at, boosted))

    def _multiply(self, rows: StateRows, name: str) -> StateRows:
        factor = factors(rows.get_column("key"), self._boosts)
        return rows.with_columns(pl.col(name) * factor)


def factors(keys: pl.Series, boosts: tuple[Boost, ...]) -> pl.Series:
    """Returns the factor of each URL: that of the first pattern found in it, else 1.

    A pattern that takes too long for a URL is not found in it.

    >>> boosts = read_boosts(RuleFile("boosts", "2.5 /news/"))
    >>> factors(pl.Series(["com.a:http/news/1", "com.a:http/"]), boosts).to_list()
    [2.5, 1.0]
    """
    urls, limit = from_keys(keys), TimeLimit()
    boost_factors = pl.Series([1.0], dtype=pl.Float64).new_from_index(0, len(keys))
    waiting = pl.int_range(len(keys), dtype=pl.UInt32, eager=True)
    for boost in boosts:
        hits, slow = limit.search_column(boost.pattern, urls.gather(waiting))
        hits &= ~slow
        boost_factors = put(boost_factors, waiting.filter(hits), boost.factor)
        waiting = waiting.filter(~hits)
    return boost_factors


@functools.lru_cache(maxsize=8)
def read_boosts(file: RuleFile) -> tuple[Boost, ...]:
    """Returns the lines of a file.

    Raises:
        ValueError: A line has no factor or no pattern; the message has its number.
    """
    return tuple(_boost(file.name, number, line) for number, line in entries(file.text))


def _boost(file: str, number: int, line: str) -> Boost:
    text, *rest = line.split(maxsplit=1)
    pattern = rest[0] if rest else ""
    try:
        factor = float(text)
    except ValueError:
        factor = math.nan
    if not (0 <= factor < math.inf) or not pattern.strip():
        raise ValueError(
            f"{file}:{number}: a line must be FACTOR PATTERN with a factor of at least 0, got "
            f"{quote_value(line)}"
        )
    try:
        return Boost(factor, compile_pattern(pattern.strip()))
    except ValueError as error:
        raise ValueError(
            f"{file}:{number}: a pattern must be a regular expression, got {quote_value(line)}: {error}"
        ) from error
