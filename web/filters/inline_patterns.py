"""Patterns of URLs in options: ``--include`` and ``--exclude``."""

from collections.abc import Iterable

from ..patterns.patterns import pattern_of
from .regex_filter import FilterRule, RuleList
from .verdicts import EXCLUDED, NOT_INCLUDED


def include_filter(patterns: Iterable[str]) -> RuleList:
    """Returns the filter that accepts only URLs in which one of the patterns is found.

    Raises:
        ValueError: A pattern does not compile.

    >>> docs = include_filter(["/docs/", "/blog/"])
    >>> docs.decide("http://foo.com/blog/"), docs.decide("http://foo.com/")
    (Verdict(accept=True, line=2, slow=False), Verdict(accept=False, line=0, slow=False))
    """
    flag = "--include"
    return RuleList(_rules(flag, patterns, accept=True), flag, reason=NOT_INCLUDED)


def exclude_filter(patterns: Iterable[str]) -> RuleList:
    """Returns the filter that refuses URLs in which one of the patterns is found.

    Raises:
        ValueError: A pattern does not compile.

    >>> exclude_filter(["/login"]).decide("http://foo.com/login?next=/")
    Verdict(accept=False, line=1, slow=False)
    """
    flag = "--exclude"
    return RuleList(_rules(flag, patterns, accept=False), flag, otherwise=True, reason=EXCLUDED)


def _rules(flag: str, patterns: Iterable[str], accept: bool) -> list[FilterRule]:
    expected = f"{flag} must be a regular expression that is found in URLs"
    numbered = enumerate(patterns, start=1)
    return [FilterRule(number, pattern_of(expected, text), accept) for number, text in numbered]
