"""Functions shared by the commands that take single URLs."""

import json
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import polars as pl

from ...web.base.errors import UsageError
from ...web.base.visible import visible, visible_lines
from ...web.rules.url_rules import UrlOptions, UrlRules
from ...web.urls.schemes import SCHEMES
from ..base.command import Argument

URLS = Argument("urls", "URLs to check; none reads them from standard input.", nargs="*")


def urls_of(given: Sequence[str]) -> Iterator[str]:
    """Yields the given URLs; without any, or for ``-``, the lines of standard input."""
    for url in given or ("-",):
        if url == "-":
            yield from (line.rstrip("\r\n") for line in sys.stdin)
        else:
            yield url


def say(record: Mapping[str, Any], lines: Iterable[str], form: str) -> None:
    """Prints and flushes a result: one line of JSON, or readable lines."""
    _say(record, visible_lines(lines), form)


def say_columns(record: Mapping[str, Any], columns: Iterable[str], form: str) -> None:
    """Prints and flushes a result: one line of JSON, or one of columns with tabs between them."""
    _say(record, "\t".join(map(visible, columns)), form)


def _say(record: Mapping[str, Any], text: str, form: str) -> None:
    print(json.dumps(record, ensure_ascii=False) if form == "json" else text, flush=True)


def odd_delay_note(value: str) -> str:
    """Returns what is to be known of a crawl delay that is no time.

    >>> odd_delay_note("soon")
    "its crawl delay 'soon' is no time, so it is not obeyed"
    """
    return f"its crawl delay {value[:100]!r} is no time, so it is not obeyed"


def row_key(url: str, flag: str, rules: UrlRules | None = None) -> str:
    """Returns the row key of a URL that an option names.

    Args:
        url: The URL.
        flag: The option.
        rules: Rules that normalize it; None means the default rules, for all schemes.

    Raises:
        UsageError: A crawl could not request the URL.
    """
    rules = rules or UrlRules(UrlOptions(schemes=SCHEMES))
    _, key, reason = rules.admit(pl.Series([url]), "default", filters=False).row(0)
    if key is None:
        raise UsageError(f"{flag} is no URL that can be crawled ({reason}): {url!r}")
    return str(key)
