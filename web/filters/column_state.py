"""Verdicts on a column of URLs while the rules of a file are applied to it, one after another."""

import dataclasses

import polars as pl

from ..base.columns import falses, put, zeros
from ..patterns.patterns import Pattern, TimeLimit


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
