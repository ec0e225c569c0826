"""URL filters on whole columns."""

import functools

import polars as pl

from .domains import registered_domain
from .filters import RegexFilter
from .patterns import Pattern
from .urls import host


def column_accepts(url_filter: RegexFilter, urls: pl.Series) -> pl.Series:
    """Returns which URLs a filter takes: ``RegexFilter.accepts`` for a column.

    Args:
        url_filter: The rules.
        urls: Normalized URLs; nulls are not taken.
    """
    accepted = pl.repeat(False, len(urls), dtype=pl.Boolean, eager=True)
    undecided = urls.is_not_null()
    for rule in url_filter.rules:
        if not undecided.any():
            break
        hits = _hits(rule.pattern, urls, undecided)
        if rule.site is not None:
            hits &= _is_on(urls, hits, rule.site)
        if rule.accept:
            accepted |= hits
        undecided &= ~hits
    return accepted


def _hits(pattern: Pattern, urls: pl.Series, among: pl.Series) -> pl.Series:
    """Returns where a pattern is found, of the URLs that ``among`` says."""
    if pattern.column is not None and is_column_pattern(pattern.column):
        among = among & urls.str.contains(pattern.column).fill_null(False)
        if pattern.exact:
            return among
    search = pattern.python.search
    return _keep(among, [search(url) is not None for url in urls.filter(among)])


def _is_on(urls: pl.Series, among: pl.Series, site: str) -> pl.Series:
    names = [host(url) for url in urls.filter(among)]
    return _keep(among, [site in (name, registered_domain(name)) for name in names])


def _keep(mask: pl.Series, kept: list[bool]) -> pl.Series:
    """Returns the mask without those of its places that ``kept`` says no to."""
    at = mask.arg_true()
    return pl.repeat(False, len(mask), dtype=pl.Boolean, eager=True).scatter(
        at.filter(pl.Series(kept, dtype=pl.Boolean)), True
    )


@functools.cache
def is_column_pattern(text: str) -> bool:
    """Returns whether polars' engine takes a pattern."""
    try:
        pl.Series([""]).str.contains(text)
    except pl.exceptions.ComputeError:
        return False
    return True
