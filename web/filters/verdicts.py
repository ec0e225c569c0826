"""Verdicts of URL filters, on one URL and on a column."""

from typing import NamedTuple, Protocol

import polars as pl

from ..base.columns import falses, zeros

# Why a filter refuses a URL.
FILTERED = "filtered"
TIMEOUT = "filter_timeout"


class Verdict(NamedTuple):
    """The verdict of a filter on a URL.

    Attributes:
        accept: Whether it takes the URL.
        line: Line of the filter's file that decided; 0 where none did.
        slow: Whether the rule of that line ran out of time; then the URL is refused.
    """

    accept: bool
    line: int = 0
    slow: bool = False


class Verdicts(NamedTuple):
    """The same for a column: as many rows in the same order, no nulls."""

    accept: pl.Series
    line: pl.Series
    slow: pl.Series


class UrlFilter(Protocol):
    """A URL filter. ``decide`` and ``decide_column`` give the same verdicts.

    Attributes:
        name: Its name in messages: that of its file, if it has one.
    """

    name: str

    def decide(self, url: str) -> Verdict:
        """Returns the verdict on a URL."""

    def decide_column(self, urls: pl.Series) -> Verdicts:
        """Returns the verdict on each URL; nulls are not taken."""

    def rule(self, line: int, url: str = "") -> str:
        """Returns the rule at a line of its file; for 0, what it does where none decides.

        For the given URL, if there is one.
        """


def verdicts(accept: pl.Series, line: pl.Series | None = None) -> Verdicts:
    """Returns verdicts that no rule has run out of time for."""
    if line is None:
        line = zeros(len(accept))
    return Verdicts(accept, line, falses(len(accept)))
