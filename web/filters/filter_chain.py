"""Several URL filters, all of which must accept a URL."""

from collections.abc import Sequence
from typing import Literal

import polars as pl

from ..base.columns import nulls, put
from .verdicts import TIMEOUT, UrlFilter, Verdict, Verdicts

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
            by = rule_place(each.name, verdict.line)
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
                by = _put_values(by, at, _names(each.name, verdicts.line))
            elif named == "refused" and refused is not None:
                refused_rows = refused.is_not_null().arg_true()
                names = _names(each.name, verdicts.line.gather(refused_rows))
                by = put(by, refused_rows if at is None else at.gather(refused_rows), names)
            if refused is not None:
                undecided = undecided & reason.is_null()
        return pl.DataFrame({"reason": reason, "by": by})


def rule_place(name: str, line: int) -> str:
    """Returns ``FILE:LINE``, or only the name if no line decided."""
    return f"{name}:{line}" if line else name


def _reason(url_filter: UrlFilter, verdict: Verdict) -> str | None:
    if verdict.accept:
        return None
    return TIMEOUT if verdict.slow else url_filter.reason


def _reasons(url_filter: UrlFilter, verdicts: Verdicts) -> pl.Series:
    frame = pl.DataFrame({"accept": verdicts.accept, "slow": verdicts.slow})
    refused = pl.when(~pl.col("accept")).then(pl.lit(url_filter.reason))
    reason = pl.when("slow").then(pl.lit(TIMEOUT)).otherwise(refused)
    return frame.select(reason.alias("reason")).to_series()


def _names(name: str, line: pl.Series) -> pl.Series:
    by = pl.when(line > 0).then(pl.format("{}:{}", pl.lit(name), line)).otherwise(pl.lit(name))
    return pl.select(by.alias("by")).to_series()


def _put_values(column: pl.Series, at: pl.Series | None, values: pl.Series | None) -> pl.Series:
    """Returns a column with new values at some positions; None means all positions."""
    if values is None:
        return column
    return values if at is None else put(column, at, values)
