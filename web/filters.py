"""URL filters: which URLs are crawled."""

import dataclasses
import re
from collections.abc import Iterator

from .domains import registered_domain
from .patterns import Pattern, compile_pattern
from .urls import BadUrl, host

_HOST = re.compile(r"[a-z][a-z0-9+.-]*://(\[[0-9a-f:.]+\]|[^/?#:@\[\]\\A-Z]*)")


@dataclasses.dataclass(frozen=True)
class FilterRule:
    """One line of a filter file.

    Attributes:
        accept: Whether URLs in which the pattern is found are taken.
        pattern: What is looked for.
        site: Host or registered domain that the rule is limited to; None for all.
        line: Line number in the file, from 1.
    """

    accept: bool
    pattern: Pattern
    site: str | None
    line: int

    def __str__(self) -> str:
        limit = f" (only on {self.site})" if self.site else ""
        return f"line {self.line}: {'+' if self.accept else '-'}{self.pattern.text}{limit}"


class RegexFilter:
    """Rules of a file in the format of Nutch's regex-urlfilter.txt.

    ``+PATTERN`` or ``-PATTERN`` a line. The first rule whose pattern is found
    anywhere in the URL decides; where none is found, the URL is rejected.
    Lines that begin with ``#`` or a space, and empty lines, mean nothing;
    ``> SITE`` limits the rules below it, up to ``<``, to a host or registered
    domain (nutch.md 3.5).

    Args:
        text: The file.
        name: What messages call it.

    Raises:
        ValueError: A line is none of these, or its pattern does not compile;
            one line with the file, the line number and the rule.

    Attributes:
        rules: In the order of the file.
        name: What messages call it.

    >>> shop = RegexFilter("-[?]add=\\n+^https?://shop[.]example[.]com/", "shop.txt")
    >>> shop.accepts("http://shop.example.com/?add=1"), shop.accepts("http://foo.com/")
    (False, False)
    >>> str(shop.decide("http://shop.example.com/"))
    'line 2: +^https?://shop[.]example[.]com/'
    """

    def __init__(self, text: str, name: str) -> None:
        self.name = name
        self.rules = tuple(_read_rules(text, name))

    def decide(self, url: str) -> FilterRule | None:
        """Returns the rule that decides on a URL; None where none does, which rejects it."""
        for rule in self.rules:
            if rule.pattern.python.search(url) and (rule.site is None or _is_on(url, rule.site)):
                return rule
        return None

    def accepts(self, url: str) -> bool:
        """Returns whether a URL is taken."""
        rule = self.decide(url)
        return rule is not None and rule.accept


def _is_on(url: str, site: str) -> bool:
    match = _HOST.match(url)
    try:
        name = match[1] if match else host(url)
    except BadUrl:
        return False
    return site in (name, registered_domain(name))


def _read_rules(text: str, name: str) -> Iterator[FilterRule]:
    site: str | None = None
    # Not splitlines(): it also cuts at characters that a pattern may hold.
    for number, line in enumerate(re.split(r"\r\n|\r|\n", text.removeprefix("\ufeff")), start=1):
        match line[:1]:
            case "" | " " | "#":
                continue
            case ">":
                site = line[1:].strip().lower() or None
            case "<":
                site = None
            case "+" | "-":
                yield FilterRule(line[0] == "+", _pattern(line, name, number), site, number)
            case _:
                raise ValueError(
                    f"{name}:{number}: a rule must begin with +, -, >, < or #, got {line!r}"
                )


def _pattern(line: str, name: str, number: int) -> Pattern:
    try:
        return compile_pattern(line[1:])
    except ValueError as error:
        raise ValueError(
            f"{name}:{number}: a rule must be a regular expression, got {line!r}: {error}"
        ) from error
