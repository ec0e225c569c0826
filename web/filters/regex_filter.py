"""URL filters of regular expressions (regex, automaton), as in Nutch's regex-urlfilter.txt."""

import dataclasses
import functools
import itertools
import re
from collections.abc import Callable, Iterator

import polars as pl

from ..base.columns import falses, put, zeros
from ..base.quoting import quoted
from ..patterns.patterns import Patience, Pattern, compile_pattern, is_column_pattern
from ..rule_files.rule_files import lines_of
from ..rule_files.rule_hosts import host_name
from ..urls.domains import registered_domain
from ..urls.row_keys import BadUrl, host
from .verdicts import Verdict, Verdicts

# The host of a URL in normal form; others are parsed.
_HOST = re.compile(
    r"[a-z][a-z0-9+.-]*://"
    r"(\[[0-9a-f:.]+\]|[^\x00-\x20/?#:@%\[\]\\A-Z\x7f-\U0010ffff]*)(?::[0-9]*)?(?=[/?#]|$)"
)
# Most rules of one sign that one search looks for.
_TOGETHER = 50


@dataclasses.dataclass(frozen=True)
class FilterRule:
    """One line of a filter file.

    Attributes:
        accept: Whether URLs in which the pattern is found are taken.
        pattern: The pattern.
        site: Host or registered domain that the rule is limited to; None for all.
        line: Line number in the file, from 1.
    """

    accept: bool
    pattern: Pattern
    site: str | None
    line: int

    def __str__(self) -> str:
        limit = f" (only on {self.site})" if self.site else ""
        return f"{'+' if self.accept else '-'}{self.pattern.text}{limit}"


class RegexFilter:
    """Rules of a file in the format of Nutch's regex-urlfilter.txt.

    ``+PATTERN`` or ``-PATTERN`` a line. The first rule whose pattern is found
    anywhere in the URL decides; where none is found, the URL is rejected.
    Lines that begin with ``#`` or a space, and empty lines, mean nothing;
    ``> SITE`` limits the rules below it, up to ``<``, to a host or registered
    domain (nutch.md 3.5), which may be written in Unicode. A pattern that takes too long over a URL rejects it.

    Args:
        text: The file.
        name: Its name in messages.
        compile: Compiles the text of a pattern.
        kind: Name of the kind of pattern.

    Raises:
        ValueError: A line is invalid, or its pattern does not compile;
            one line with the file, the line number and the rule.

    Attributes:
        rules: In the order of the file.
        name: Its name in messages.

    >>> shop = RegexFilter("-[?]add=\\n+^https?://shop[.]example[.]com/", "shop.txt")
    >>> shop.accepts("http://shop.example.com/?add=1"), shop.accepts("http://foo.com/")
    (False, False)
    >>> shop.decide("http://shop.example.com/")
    Verdict(accept=True, line=2, slow=False)
    >>> shop.rule(2)
    '+^https?://shop[.]example[.]com/'
    """

    def __init__(
        self,
        text: str,
        name: str,
        compile: Callable[[str], Pattern] = compile_pattern,
        kind: str = "regular expression",
    ) -> None:
        self.name = name
        self.rules = tuple(_read_rules(text, name, compile, kind))
        self._by_line = {rule.line: rule for rule in self.rules}

    def rule(self, line: int, url: str = "") -> str:
        """Returns the rule at a line."""
        return str(self._by_line[line]) if line else "no rule takes it"

    def accepts(self, url: str) -> bool:
        """Returns whether a URL is taken."""
        return self.decide(url).accept

    def decide(self, url: str) -> Verdict:
        """Returns what the first rule that is found says; where none is, the URL is rejected."""
        patience = Patience()
        for rule in self.rules:
            if rule.site is not None and not _is_on(url, rule.site):
                continue
            try:
                if patience.found(rule.pattern, url):
                    return Verdict(rule.accept, rule.line)
            except TimeoutError:
                return Verdict(False, rule.line, slow=True)
        return Verdict(False)

    def decide_column(self, urls: pl.Series) -> Verdicts:
        """Returns what ``decide`` says of each URL; nulls are not taken."""
        state = _State(urls)
        for group in self._groups:
            if not state.undecided.any():
                break
            among = state.undecided
            if len(group) > 1:
                among = among & urls.str.contains(_together(group)).fill_null(False)
                if not among.any():
                    continue
            for rule in group:
                state.apply(rule, among & state.undecided)
        return Verdicts(state.accept, state.line, state.slow)

    @functools.cached_property
    def _groups(self) -> list[list[FilterRule]]:
        """The rules in order; those in a row that one search can look for are together."""
        groups: list[list[FilterRule]] = []
        for _, run in itertools.groupby(self.rules, lambda rule: (_joins(rule), rule.accept)):
            rules = list(run)
            size = _TOGETHER if _joins(rules[0]) else 1
            for at in range(0, len(rules), size):
                group = rules[at : at + size]
                whole = len(group) > 1 and is_column_pattern(_together(group))
                groups += [group] if whole else [[rule] for rule in group]
        return groups


class _State:
    """The state of a column of URLs while rules are applied."""

    def __init__(self, urls: pl.Series) -> None:
        self.urls = urls
        self.undecided = urls.is_not_null()
        self.accept = falses(len(urls))
        self.slow = self.accept
        self.line = zeros(len(urls))
        self._patience = Patience()

    def apply(self, rule: FilterRule, among: pl.Series) -> None:
        if rule.site is not None:
            if rule.site not in self._present:
                return
            among = among & self._is_on(rule.site)
        hits, slow = self._hits(rule.pattern, among)
        if slow is not None:
            self.slow |= slow
            hits |= slow
        if rule.accept:
            self.accept |= hits if slow is None else hits & ~slow
        if hits.any():
            self.line = self.line.set(hits, rule.line)
            self.undecided &= ~hits

    def _hits(self, pattern: Pattern, among: pl.Series) -> tuple[pl.Series, pl.Series | None]:
        """Returns where a pattern is found, and where it ran out of time."""
        if pattern.column is not None and is_column_pattern(pattern.column):
            among = among & self.urls.str.contains(pattern.column).fill_null(False)
            if pattern.exact or not among.any():
                return among, None
        found: list[bool | None] = []
        for url in self.urls.filter(among):
            try:
                found.append(self._patience.found(pattern, url))
            except TimeoutError:
                found.append(None)
        at, result = among.arg_true(), pl.Series(found, dtype=pl.Boolean)
        nowhere = falses(len(among))
        slow = None
        if result.null_count():
            slow = put(nowhere, at.filter(result.is_null()), True)
        return put(nowhere, at.filter(result.fill_null(False)), True), slow

    def _is_on(self, site: str) -> pl.Series:
        hosts, domains = self._sites
        return ((hosts == site) | (domains == site)).fill_null(False)

    @functools.cached_property
    def _present(self) -> set[str | None]:
        """Every host and registered domain that there is."""
        return {name for names in self._sites for name in names.unique()}

    @functools.cached_property
    def _sites(self) -> tuple[pl.Series, pl.Series]:
        """Host and registered domain of each URL; null where it has none."""
        hosts = pl.Series([_host_of(url) for url in self.urls], dtype=pl.String)
        domains = pl.Series(
            [None if name is None else registered_domain(name) for name in hosts], dtype=pl.String
        )
        return hosts, domains


def _joins(rule: FilterRule) -> bool:
    return rule.site is None and rule.pattern.exact and rule.pattern.column is not None


def _together(rules: list[FilterRule]) -> str:
    return "|".join(f"(?:{rule.pattern.column})" for rule in rules)


def _host_of(url: str | None) -> str | None:
    match = _HOST.match(url) if url is not None else None
    if match:
        return match[1]
    try:
        return None if url is None else host(url)
    except BadUrl:
        return None


def _is_on(url: str, site: str) -> bool:
    name = _host_of(url)
    return name is not None and site in (name, registered_domain(name))


def _read_rules(
    text: str, name: str, compile: Callable[[str], Pattern], kind: str
) -> Iterator[FilterRule]:
    site: str | None = None
    for number, line in enumerate(lines_of(text), start=1):
        match line[:1]:
            case "" | " " | "#":
                continue
            case ">":
                site = host_name(line[1:].strip())
                if site is None:
                    raise ValueError(
                        f"{name}:{number}: a section must be for a host or a registered domain, "
                        f"as > foo.com, got {quoted(line)}"
                    )
            case "<":
                site = None
            case "+" | "-":
                try:
                    pattern = compile(line[1:])
                except ValueError as error:
                    raise ValueError(
                        f"{name}:{number}: a rule must be a {kind}, got {quoted(line)}: {error}"
                    ) from error
                yield FilterRule(line[0] == "+", pattern, site, number)
            case _:
                raise ValueError(
                    f"{name}:{number}: a rule must begin with +, -, >, < or #, got {quoted(line)}"
                )
