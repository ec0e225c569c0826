"""Verdicts of URL filters, on one URL and on a column."""

import abc
from typing import NamedTuple

import polars as pl

from ..base.columns import falses, zeros

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
