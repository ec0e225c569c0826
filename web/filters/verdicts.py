"""Verdicts of URL filters, on one URL and on a column.

``ColumnState`` has those on a column while the rules of a file are applied to it, one after another.
"""

import abc
import dataclasses
from typing import NamedTuple

import polars as pl

from ..base.columns import falses, put, zeros
from ..patterns.patterns import Pattern, TimeLimit

# Reasons why a filter refuses a URL.
FILTERED = "filtered"
EXCLUDED = "excluded"
NOT_INCLUDED = "not_included"
TIMEOUT = "filter_timeout"


class Verdict(NamedTuple):
    """The verdict of a filter on a URL.

    Attributes:
        accept: Whether the filter accepts the URL.
        line: Line of the filter's file that decided; 0 if none did.
        slow: Whether the rule of that line ran out of time; then the URL is refused.
    """

    accept: bool
    line: int = 0
    slow: bool = False


class Verdicts(NamedTuple):
    """The verdicts on a column: one row per URL, in the same order, without nulls."""

    accept: pl.Series
    line: pl.Series
    slow: pl.Series


class UrlFilter(abc.ABC):
    """A URL filter.

    Attributes:
        name: Its name in messages: that of its file, if it has one.
        reason: Why it refuses URLs, in counts.
    """

    name: str
    reason: str = FILTERED

    def decide(self, url: str) -> Verdict:
        """Returns the verdict on a URL."""
        # A column cannot contain surrogates; command-line arguments that are not UTF-8 have some.
        urls = pl.Series([url.encode(errors="replace").decode()])
        accept, line, slow = self.decide_column(urls)
        return Verdict(accept.item(), line.item(), slow.item())

    @abc.abstractmethod
    def decide_column(self, urls: pl.Series) -> Verdicts:
        """Returns the verdict on each URL; nulls are refused."""

    @abc.abstractmethod
    def rule(self, line: int, url: str = "") -> str:
        """Returns the rule at a line of the file, for messages.

        For line 0, returns what the filter does where no rule decides, with the given URL if
        there is one.
        """


def verdicts(accept: pl.Series, line: pl.Series | None = None) -> Verdicts:
    """Builds verdicts without timeouts."""
    if line is None:
        line = zeros(len(accept))
    return Verdicts(accept, line, falses(len(accept)))


@dataclasses.dataclass(frozen=True, slots=True)
class UrlRule:
    """One line of a filter file.

    Attributes:
        line: Line number in the file, from 1.
        pattern: The pattern.
        accept: Whether the rule accepts the URLs in which the pattern is found.
    """

    line: int
    pattern: Pattern
    accept: bool = False


class ColumnState:
    """The verdicts so far. The first rule whose pattern is found in a URL decides.

    Attributes:
        undecided: Mask of the URLs that no rule has decided yet.
        accept: Mask of the URLs that a rule accepts.
        line: Lines of the rules that decided, else 0.
        slow: Mask of the URLs for which a rule ran out of time; these are refused.
    """

    def __init__(self, undecided: pl.Series) -> None:
        self.undecided = undecided
        self.accept = self.slow = falses(len(undecided))
        self.line = zeros(len(undecided))
        self._limit = TimeLimit()

    def apply(self, rule: UrlRule, texts: pl.Series, among: pl.Series) -> None:
        """Applies a rule to the URLs that no rule has decided.

        Args:
            rule: The rule.
            texts: Text to search, for each URL.
            among: Mask of the URLs to which the rule applies.
        """
        rows = (among & self.undecided).arg_true()
        whole = len(rows) == len(texts)
        matches, slow = self._limit.search_column(
            rule.pattern, texts if whole else texts.gather(rows)
        )
        if not matches.any():
            return
        if not whole:
            matches, slow = (put(falses(len(texts)), rows, mask) for mask in (matches, slow))
        self.undecided &= ~matches
        self.line = self.line.set(matches, rule.line)
        self.slow |= slow
        if rule.accept:
            self.accept |= matches & ~slow
