"""Filters of URLs: their verdicts on one URL and on a column, and chains of filters.

``ColumnState`` has the verdicts on a column while the rules of a file are applied to it, one after
another.
"""

import abc
import dataclasses
from collections.abc import Sequence
from typing import Literal, NamedTuple

import polars as pl

from ..base.columns import falses, nulls, put, zeros
from ..patterns.patterns import Pattern, TimeLimit

# Reasons why a filter refuses a URL.
FILTERED = "filtered"
EXCLUDED = "excluded"
NOT_INCLUDED = "not_included"
FILTER_TIMEOUT = "filter_timeout"


class Verdict(NamedTuple):
    """The verdict of a filter on a URL.

    Attributes:
        accept: Whether the filter accepts the URL.
        line: Line of the filter's file that decided; 0 if none did. For a plug-in, the number of
            the word with which it refuses the URL.
        slow: Whether the rule of that line ran out of time, or the plug-in failed; then the URL is
            refused.
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
        slow_reason: Why it refuses URLs of which the verdict says ``slow``.
    """

    name: str
    reason: str = FILTERED
    slow_reason: str = FILTER_TIMEOUT

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

    def place(self, line: int) -> str:
        """Returns what decided, for messages: ``FILE:LINE``, or only the name if no line did."""
        return f"{self.name}:{line}" if line else self.name


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


# The URLs whose deciding rule is named.
Named = Literal["all", "refused", "none"]


class FilterChain:
    """Filters in order; the first one that refuses a URL decides.

    >>> from .list_filters import PrefixFilter, SuffixFilter
    >>> chain = FilterChain([PrefixFilter("http:", "p.txt"), SuffixFilter("+\\n.gif", "s.txt")])
    >>> chain.judge("http://foo.com/a.gif"), chain.judge("http://foo.com/")
    (('filtered', 's.txt:2', '.gif'), (None, 's.txt', 'accepts what has no suffix of it'))
    """

    def __init__(self, filters: Sequence[UrlFilter]) -> None:
        self.filters = tuple(filters)

    def judge(self, url: str) -> tuple[str | None, str, str]:
        """Returns the verdict on a URL.

        Returns:
            (reason why it is refused, or None; the line that decided, as ``FILE:LINE``, or only
            the filter's name; the rule at that line). If all filters accept it, line and rule are
            those of the last filter. Without filters they are empty.
        """
        judged: tuple[str | None, str, str] = (None, "", "")
        for each, verdict in self.list_verdicts(url):
            by = each.place(verdict.line)
            judged = _reason(each, verdict), by, each.rule(verdict.line, url)
        return judged

    def list_verdicts(self, url: str) -> list[tuple[UrlFilter, Verdict]]:
        """Returns the verdict of each filter, up to the first that refuses the URL."""
        verdicts = []
        for each in self.filters:
            verdicts.append((each, each.decide(url)))
            if not verdicts[-1][1].accept:
                break
        return verdicts

    def judge_column(self, urls: pl.Series, named: Named = "all") -> pl.DataFrame:
        """Returns ``reason`` and ``by`` of each URL, the first two values of ``judge``.

        Both are null for nulls; ``by`` is null, too, if the rule need not be named.
        """
        reason = nulls(len(urls))
        by = nulls(len(urls))
        undecided = urls.is_not_null()
        for each in self.filters:
            if not undecided.any():
                break
            whole = bool(undecided.all())
            verdicts = each.decide_column(urls if whole else urls.filter(undecided))
            refused = None if verdicts.accept.all() else _reasons(each, verdicts)
            at = None if whole else undecided.arg_true()
            reason = _put_values(reason, at, refused)
            if named == "all":
                by = _put_values(by, at, _names(each, verdicts.line))
            elif named == "refused" and refused is not None:
                refused_rows = refused.is_not_null().arg_true()
                names = _names(each, verdicts.line.gather(refused_rows))
                by = put(by, refused_rows if at is None else at.gather(refused_rows), names)
            if refused is not None:
                undecided = undecided & reason.is_null()
        return pl.DataFrame({"reason": reason, "by": by})


def _reason(url_filter: UrlFilter, verdict: Verdict) -> str | None:
    if verdict.accept:
        return None
    return url_filter.slow_reason if verdict.slow else url_filter.reason


def _reasons(url_filter: UrlFilter, verdicts: Verdicts) -> pl.Series:
    frame = pl.DataFrame({"accept": verdicts.accept, "slow": verdicts.slow})
    refused = pl.when(~pl.col("accept")).then(pl.lit(url_filter.reason))
    reason = pl.when("slow").then(pl.lit(url_filter.slow_reason)).otherwise(refused)
    return frame.select(reason.alias("reason")).to_series()


def _names(url_filter: UrlFilter, line: pl.Series) -> pl.Series:
    places = {number: url_filter.place(number) for number in line.unique()}
    return line.replace_strict(places, return_dtype=pl.String).alias("by")


def _put_values(column: pl.Series, at: pl.Series | None, values: pl.Series | None) -> pl.Series:
    """Returns a column with new values at some positions; None means all positions."""
    if values is None:
        return column
    return values if at is None else put(column, at, values)
