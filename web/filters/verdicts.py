"""What a URL filter says, of one URL and of a column of them."""

from typing import NamedTuple, Protocol

import polars as pl

from ..base.columns import falses, zeros

# Why a filter refuses a URL.
FILTERED = "filtered"
TIMEOUT = "filter_timeout"


class Verdict(NamedTuple):
    """What a filter says of a URL.

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
    """Which URLs are taken. Both ways to ask say the same.

    Attributes:
        name: What messages call it: that of its file, if it has one.
    """

    name: str

    def decide(self, url: str) -> Verdict:
        """Returns what it says of a URL."""

    def decide_column(self, urls: pl.Series) -> Verdicts:
        """Returns what it says of each URL; nulls are not taken."""

    def rule(self, line: int, url: str = "") -> str:
        """Returns the rule at a line of its file; for 0, what it does where none decides.

        Of the URL that was asked for, if one is given.
        """


def verdicts(accept: pl.Series, line: pl.Series | None = None) -> Verdicts:
    """Returns verdicts that no rule has run out of time for."""
    if line is None:
        line = zeros(len(accept))
    return Verdicts(accept, line, falses(len(accept)))
