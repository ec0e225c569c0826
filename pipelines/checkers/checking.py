"""Functions shared by the commands that take single URLs."""

import json
import os
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import polars as pl

from ...io.batches.seed_files import is_binary, lines
from ...web.base.errors import UsageError
from ...web.base.visible import visible, visible_lines
from ...web.rules.url_rules import UrlOptions, UrlRules
from ...web.urls.schemes import SCHEMES
from ..base.command import Argument

URLS = Argument(
    "urls", "URLs to check, and files of URLs; none reads them from standard input.", nargs="*"
)


def urls_of(given: Sequence[str]) -> Iterator[str]:
    """Yields the given URLs, and the lines of files; without any, or for ``-``, standard input.

    Raises:
        UsageError: A file cannot be read, or is no text.
    """
    for url in given or ("-",):
        if url == "-":
            yield from (line.rstrip("\r\n") for line in sys.stdin)
        elif "://" in url or not os.path.lexists(url):
            yield url
        else:
            yield from _lines_in(url)


def _lines_in(path: str) -> Iterator[str]:
    """Yields the lines of a file that are not empty."""
    try:
        with Path(path).open("rb") as file:
            if is_binary(file.read(8_192)):
                raise UsageError(f"a file of URLs must be text, got {path!r}")
            file.seek(0)
            yield from filter(None, map(str.strip, lines(file)))
    except OSError as error:
        reason = error.strerror or str(error)
        raise UsageError(f"a file of URLs must be readable, got {path!r}: {reason}") from error


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
