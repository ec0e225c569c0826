"""URLs and lists of URLs on a command line of a checker, and how it prints what it found."""

import io
import json
import logging
import os
import re
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import polars as pl

from ...io.batches.seed_lines import (
    BLANK_IN_URL,
    UrlLine,
    dropped_line,
    lines,
    numbered_lines,
    typed_line,
)
from ...io.storage.address_kinds import is_place
from ...web.base.errors import UsageError
from ...web.base.visible import visible, visible_lines
from ...web.rules.url_rules import UrlOptions, UrlRules, checked_rules
from ...web.urls.schemes import SCHEMES
from ..base.command import Argument, configuration

URLS = Argument(
    "urls",
    "URLs to check, and files and folders of them; none reads them from standard input.",
    nargs="*",
)
_LOG = logging.getLogger(__name__)
# A scheme without ``//``; after a host, a port follows.
_OTHER_URL = re.compile(r"(?!https?:|ftp:|file:)[A-Za-z][A-Za-z0-9+.-]*:(?![\d/\\])")


def urls_of(words: Sequence[str]) -> Iterator[str]:
    """Returns the given URLs, and those in files; without any, or for ``-``, in standard input.

    Lists of URLs are read as those of seeds: comments and ``name=value`` are left out, and a line with
    blanks whose meaning is not sure is refused, with a warning.

    Raises:
        UsageError: A word is neither a URL nor a file, or a file is no text.
        UserError: A file cannot be read.
    """
    places = [word for word in words if word != "-" and is_place(word) and not _is_other_url(word)]
    if places:
        from ...io.batches.seeds import sources  # late: it takes longer than to check a URL

        sources(places)
    return _urls_of(words or ("-",))


def _is_other_url(word: str) -> bool:
    """Returns whether a word is a URL such as ``mailto:x``, which lists take and refuse, too."""
    return _OTHER_URL.match(word) is not None and not os.path.lexists(word)


def _urls_of(words: Sequence[str]) -> Iterator[str]:
    for word in words:
        if word == "-":
            lines = _lines_of_standard_input()
        elif _is_other_url(word):
            lines = iter([UrlLine("", word, word)])
        elif is_place(word):
            from ...io.batches.seeds import url_lines

            lines = url_lines([word])
        else:
            lines = iter([typed_line(word)])
        for line in lines:
            if line.url is not None:
                yield line.url
            else:
                _LOG.warning("%s", dropped_line(line.where, BLANK_IN_URL, line.text))


def _lines_of_standard_input() -> Iterator[UrlLine]:
    """Yields the lines of standard input, each as soon as it is there."""
    stream: Iterable[str] = sys.stdin
    if isinstance(sys.stdin, io.TextIOWrapper) and isinstance(sys.stdin.buffer, io.BufferedReader):
        start = sys.stdin.buffer.peek(2)[:2]
        if start.isascii() and b"\0" not in start:
            sys.stdin.reconfigure(encoding="utf-8", errors="replace")
        else:  # packed, or in another encoding
            stream = lines(sys.stdin.buffer)
    return numbered_lines("standard input", stream)


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


def rules_of(options: UrlOptions) -> UrlRules:
    """Returns the URL rules for options; logs rules in rule files that have no effect.

    Raises:
        UsageError: A file is missing, or has a rule that cannot be used.
    """
    with configuration():
        return checked_rules(options)
