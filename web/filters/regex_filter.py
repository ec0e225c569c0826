"""URL filters of patterns: rule files (regex, automaton), ``--include``, ``--exclude``; the validator."""

import dataclasses
import functools
import itertools
import re
from collections.abc import Callable, Iterable, Iterator

import polars as pl

from ..base.columns import falses, put
from ..base.wording import value_error
from ..patterns.patterns import Pattern, TimeLimit, compile_pattern, is_column_pattern, pattern_of
from ..rule_files.rule_files import host_name, lines_of
from ..urls.domains import registered_domain
from ..urls.row_keys import BadUrl
from ..urls.row_keys import host as parsed_host
from ..urls.url_parts import host_of_url, parts_of
from .verdicts import (
    EXCLUDED,
    FILTERED,
    NOT_INCLUDED,
    ColumnState,
    UrlFilter,
    UrlRule,
    Verdict,
    Verdicts,
    verdicts,
)

# Hosts in any other form need a real parser of URLs.
_PLAIN_HOST = r"^[a-z0-9._:\[\]-]*$"
# Largest number of rules, all + or all -, that one search combines.
_TOGETHER = 50


@dataclasses.dataclass(frozen=True, slots=True)
class FilterRule(UrlRule):
    """A rule that may be limited to a site.

    Attributes:
        site: Host or registered domain that the rule is limited to; None for all.
    """

    site: str | None = None

    def __str__(self) -> str:
        limit = f" (only on {self.site})" if self.site else ""
        return f"{'+' if self.accept else '-'}{self.pattern.text}{limit}"


class RuleList(UrlFilter):
    """Rules in order: the first one whose pattern is found anywhere in a URL decides.

    A pattern that runs out of time on a URL rejects it.

    Args:
        rules: The rules.
        name: Name of their file or option in messages.
        otherwise: Whether a URL is accepted in which no pattern is found.
        reason: Why URLs are refused, in counts.

    Attributes:
        rules: In order.
        name: Their name in messages.
        reason: As given.
    """

    def __init__(
        self,
        rules: Iterable[FilterRule],
        name: str,
        otherwise: bool = False,
        reason: str = FILTERED,
    ) -> None:
        self.name, self.reason = name, reason
        self.rules = tuple(rules)
        self._otherwise = otherwise
        self._by_line = {rule.line: rule for rule in self.rules}

    def rule(self, line: int, url: str = "") -> str:
        """Returns the rule at a line."""
        if line:
            return str(self._by_line[line])
        return "no rule refuses it" if self._otherwise else "no rule accepts it"

    def decide(self, url: str) -> Verdict:
        """Returns the verdict of the first rule that is found in a URL, faster than in a column."""
        limit = TimeLimit()
        host = host_of_url(url)
        if host is None or not re.match(_PLAIN_HOST, host):
            host = _parsed_host(url)
        for rule in self.rules:
            if rule.site is None or (host and rule.site in (host, registered_domain(host))):
                try:
                    if limit.run(rule.pattern.python.search, url):
                        return Verdict(rule.accept, rule.line)
                except TimeoutError:
                    return Verdict(False, rule.line, slow=True)
        return Verdict(self._otherwise)

    def decide_column(self, urls: pl.Series) -> Verdicts:
        """Returns the verdict of the first rule that is found in each URL; nulls are refused."""
        state = ColumnState(urls.is_not_null())
        sites = _Sites(urls)
        for group in self._groups:
            if not state.undecided.any():
                break
            among = state.undecided
            if len(group) > 1:
                among = among & urls.str.contains(_join_patterns(group)).fill_null(False)
            for rule in group if among.any() else ():
                state.apply(rule, urls, among & sites.mask(rule.site) if rule.site else among)
        accept = state.accept | state.undecided if self._otherwise else state.accept
        return Verdicts(accept, state.line, state.slow)

    @functools.cached_property
    def _groups(self) -> list[list[FilterRule]]:
        """The rules in order; each group has consecutive rules that one search can combine."""
        groups: list[list[FilterRule]] = []
        for _, run in itertools.groupby(self.rules, lambda rule: (_is_joinable(rule), rule.accept)):
            rules = list(run)
            size = _TOGETHER if _is_joinable(rules[0]) else 1
            for at in range(0, len(rules), size):
                group = rules[at : at + size]
                whole = len(group) > 1 and is_column_pattern(_join_patterns(group))
                groups += [group] if whole else [[rule] for rule in group]
        return groups


class RegexFilter(RuleList):
    """Rules of a file in the format of Nutch's regex-urlfilter.txt.

    ``+PATTERN`` or ``-PATTERN`` per line. The first rule whose pattern is found
    anywhere in the URL decides; if none is found, the URL is rejected.
    Lines that begin with ``#`` or a space, and empty lines, are ignored;
    ``> SITE`` limits the rules below it, up to ``<``, to a host or registered
    domain, which may be written in Unicode. A pattern that runs out
    of time on a URL rejects it.

    Args:
        text: The file.
        name: Its name in messages.
        compile: Compiles the text of a pattern.
        kind: Name of the kind of pattern.

    Raises:
        ValueError: A line is invalid, or its pattern does not compile; the message
            has the file, the line number and the rule.

    >>> shop = RegexFilter("-[?]add=\\n+^https?://shop[.]example[.]com/", "shop.txt")
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
        super().__init__(_read_rules(text, name, compile, kind), name)


class _Sites:
    """Host and registered domain of each URL of a column, found when the first rule needs them."""

    def __init__(self, urls: pl.Series) -> None:
        self._urls = urls

    def mask(self, site: str) -> pl.Series:
        """Returns which URLs are on a host or below a registered domain."""
        if site not in self._present:
            return falses(len(self._urls))
        hosts, domains = self._sites
        return ((hosts == site) | (domains == site)).fill_null(False)

    @functools.cached_property
    def _present(self) -> set[str | None]:
        """Every host and registered domain of the column."""
        return {name for names in self._sites for name in names.unique()}

    @functools.cached_property
    def _sites(self) -> tuple[pl.Series, pl.Series]:
        hosts = parts_of(self._urls).get_column("host")
        odd = (~hosts.str.contains(_PLAIN_HOST)).fill_null(True).arg_true()
        parsed = [_parsed_host(url) for url in self._urls.gather(odd)]
        hosts = put(hosts, odd, pl.Series(parsed, dtype=pl.String))
        domains = [name and registered_domain(name) for name in hosts]
        return hosts, pl.Series(domains, dtype=pl.String)


def _parsed_host(url: str | None) -> str | None:
    try:
        return None if url is None else parsed_host(url)
    except BadUrl:
        return None


def _is_joinable(rule: FilterRule) -> bool:
    return rule.site is None and rule.pattern.exact and rule.pattern.column is not None


def _join_patterns(rules: list[FilterRule]) -> str:
    return "|".join(f"(?:{rule.pattern.column})" for rule in rules)


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
                    wanted = "a section must be for a host or a registered domain, as > foo.com"
                    raise value_error(f"{name}:{number}: {wanted}", line)
            case "<":
                site = None
            case "+" | "-":
                expected = f"{name}:{number}: a rule must be a {kind}"
                pattern = pattern_of(expected, line[1:], compile, line)
                yield FilterRule(number, pattern, line[0] == "+", site)
            case _:
                raise value_error(f"{name}:{number}: a rule must begin with +, -, >, < or #", line)


def include_filter(patterns: Iterable[str]) -> RuleList:
    """Returns the filter that accepts only URLs in which one of the patterns is found.

    Raises:
        ValueError: A pattern does not compile.

    >>> docs = include_filter(["/docs/", "/blog/"])
    >>> docs.decide("http://foo.com/blog/"), docs.decide("http://foo.com/")
    (Verdict(accept=True, line=2, slow=False), Verdict(accept=False, line=0, slow=False))
    """
    flag = "--include"
    return RuleList(_inline_rules(flag, patterns, accept=True), flag, reason=NOT_INCLUDED)


def exclude_filter(patterns: Iterable[str]) -> RuleList:
    """Returns the filter that refuses URLs in which one of the patterns is found.

    Raises:
        ValueError: A pattern does not compile.

    >>> exclude_filter(["/login"]).decide("http://foo.com/login?next=/")
    Verdict(accept=False, line=1, slow=False)
    """
    flag = "--exclude"
    return RuleList(
        _inline_rules(flag, patterns, accept=False), flag, otherwise=True, reason=EXCLUDED
    )


def _inline_rules(flag: str, patterns: Iterable[str], accept: bool) -> list[FilterRule]:
    expected = f"{flag} must be a regular expression that is found in URLs"
    numbered = enumerate(patterns, start=1)
    return [FilterRule(number, pattern_of(expected, text), accept) for number, text in numbered]


_OCTET = "(?:25[0-5]|2[0-4][0-9]|[01]?[0-9]?[0-9])"
_LABEL = "[A-Za-z0-9-]+"


class Validator(UrlFilter):
    r"""Accepts URLs of visible ASCII with a scheme, a public host and a path of usual characters.

    The scheme consists of letters. The host is an IPv4 address, or has at least two labels of
    letters, digits and ``-``, the last of which begins with a letter. The port has at most
    five digits. A path must have more names than ``..``; as in Nutch ``...`` counts as two
    of these, and ``///`` as two pairs of slashes.

    Args:
        max_tld: Longest last label of a host, in characters, at least 2; -1: no limit.

    >>> [Validator().decide(f"http://{host}/").accept for host in ("foo.com", "localhost")]
    [True, False]
    """

    name = "validator"

    def __init__(self, max_tld: int = -1) -> None:
        most = "" if max_tld < 0 else max(1, max_tld - 1)
        tld = f"[A-Za-z][A-Za-z0-9-]{{1,{most}}}"
        host = rf"(?:{_OCTET}(?:\.{_OCTET}){{3}}|(?:{_LABEL}\.)+{tld})"
        path = r"(?:/[A-Za-z0-9_:@&?=+,.!/~*'%$;()-]*)?"
        self._pattern = (
            rf"^[A-Za-z]+://{host}(?::[0-9]{{1,5}})?({path})"
            r"(?:\?[!-\"$-~]*)?(?:#[!-~]*)?$"
        )

    def rule(self, line: int, url: str = "") -> str:
        """Returns what the filter does."""
        return "accepts URLs of a plain, public form"

    def decide_column(self, urls: pl.Series) -> Verdicts:
        """Returns which URLs are of that form; nulls are refused."""
        accept = urls.str.contains(self._pattern).fill_null(False)
        up = accept & urls.str.contains("..", literal=True).fill_null(False)
        if up.any():
            inside = [_stays_inside(path) for path in urls.filter(up).str.extract(self._pattern)]
            accept = put(accept, up.arg_true(), pl.Series(inside, dtype=pl.Boolean))
        return verdicts(accept)


def _stays_inside(path: str) -> bool:
    up = _count("..", path)
    return not up or path.count("/") - _count("//", path) - 1 > up


def _count(token: str, path: str) -> int:
    """Returns how often a token occurs; overlaps count."""
    return sum(path.startswith(token, at) for at in range(len(path)))
