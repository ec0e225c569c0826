"""The filter urlfilter-fast: rules looked up by host and domain, as in fast-urlfilter.txt."""

import dataclasses
from typing import NamedTuple

import polars as pl

from ..base.wording import value_error
from ..patterns.patterns import compile_pattern, pattern_of
from ..rule_files.rule_files import host_name, line_at, lines_of
from ..urls.domains import names_above
from ..urls.url_parts import parts_of, parts_of_url
from .verdicts import ColumnState, UrlFilter, UrlRule, Verdicts

# Patterns that match every path, and the pattern that replaces them.
_ALL = (".*", ".?")
_EVERYTHING = compile_pattern("")
_ALL_HOSTS = "."


class FastLimits(NamedTuple):
    """Longest URL, path and query that are accepted; -1: no limit."""

    url: int = -1
    path: int = -1
    query: int = -1


@dataclasses.dataclass(frozen=True, slots=True)
class FastRule(UrlRule):
    """A rule that refuses URLs.

    Attributes:
        query: Whether the pattern is searched in path and query, instead of only the path.
    """

    query: bool = False


# The rules of hosts or domains. A block that refuses all URLs is stored as its line number only,
# because there may be a million such blocks.
_Sites = dict[str, list[FastRule] | int]


class FastFilter(UrlFilter):
    """Accepts URLs unless a rule for their host or domain refuses them.

    ``Host NAME`` or ``Domain NAME`` begins a block. The lines below it, ``DenyPath REGEX``
    and ``DenyPathQuery REGEX``, refuse URLs in whose path, or path and query, the pattern is
    found. ``.*`` refuses all. Rules of the host come first, then those of its name as a
    domain, then those of its parent domains, the longest first, then those of ``Domain .``,
    for all URLs. ``#`` begins a comment (nutch.md 3.5). Names may be written in Unicode. Text
    that is not a URL is refused.

    Args:
        text: The file.
        name: Its name in messages.
        limits: Longest URL and parts.

    Raises:
        ValueError: A line is invalid; the message has the file and the line number.

    >>> rules = FastFilter("Domain foo.com\\n DenyPath /private/", "fast.txt")
    >>> rules.decide("http://www.foo.com/private/x")
    Verdict(accept=False, line=2, slow=False)
    """

    def __init__(self, text: str, name: str, limits: FastLimits | None = None) -> None:
        self.name, self._text, self._limits = name, text, limits or FastLimits()
        self._hosts: _Sites = {}
        self._domains: _Sites = {}
        self._read(text)

    def _read(self, text: str) -> None:
        block: tuple[_Sites, str] | None = None
        for number, raw in enumerate(lines_of(text), start=1):
            words = raw.partition("#")[0].split()
            match words:
                case []:
                    continue
                case ["Domain", "."]:
                    block = self._domains, _ALL_HOSTS
                case ["Host" | "Domain" as kind, site]:
                    sites = self._hosts if kind == "Host" else self._domains
                    block = sites, self._site(site, number)
                case ["DenyPath" | "DenyPathQuery" as kind, pattern] if block:
                    self._add(*block, _rule(kind, pattern, self.name, number))
                case ["DenyPath" | "DenyPathQuery", _]:
                    raise self._refusal("a rule must stand below Host or Domain", number)
                case _:
                    rules = "DenyPath REGEX or DenyPathQuery REGEX"
                    raise self._refusal(f"a line must be Host NAME, Domain NAME, {rules}", number)

    def _site(self, site: str, number: int) -> str:
        name = host_name(site)
        if name is None:
            wanted = "a block must be for a host or a domain, as foo.com, or be"
            raise self._refusal(f"{wanted} Domain {_ALL_HOSTS}", number)
        return name

    def _refusal(self, expected: str, number: int) -> ValueError:
        return value_error(f"{self.name}:{number}: {expected}", line_at(self._text, number))

    def _add(self, sites: _Sites, site: str, rule: FastRule) -> None:
        site_rules = sites.get(site)
        if isinstance(site_rules, int):
            return  # the rule before it refuses all URLs
        if site_rules is None and rule.pattern is _EVERYTHING:
            sites[site] = rule.line
        elif site_rules is None:
            sites[site] = [rule]
        else:
            site_rules.append(rule)

    def rule(self, line: int, url: str = "") -> str:
        """Returns the rule at a line; for 0, what happens to a URL without a rule."""
        if line:
            return line_at(self._text, line)
        parts = parts_of_url(url)
        if url and parts is None:
            return "refuses text that is not a url"
        limit = self._exceeded_limit(url, parts) if parts else None
        return limit or "accepts what no rule refuses, and is not too long"

    def _exceeded_limit(self, url: str, parts: tuple[str, str, str | None]) -> str | None:
        """Returns the limit that a URL exceeds, if any."""
        texts = (url, parts[1], parts[2] or "")
        for (name, limit), text in zip(self._limits._asdict().items(), texts, strict=True):
            if 0 <= limit < len(text):
                return f"refuses urls longer than fast_{name}_max_length, {limit} characters"
        return None

    def decide_column(self, urls: pl.Series) -> Verdicts:
        """Returns which URLs no rule refuses; nulls are refused."""
        parts = parts_of(urls).with_columns(url=urls)
        limits = [(name, most) for name, most in self._limits._asdict().items() if most >= 0]
        fits = [pl.col("host").is_not_null()]
        fits += [pl.col(name).fill_null("").str.len_chars() <= most for name, most in limits]
        fitting = parts.select(pl.all_horizontal(fits).alias("fits")).to_series()
        state = ColumnState(fitting)
        hosts, path = parts.get_column("host"), parts.get_column("path")
        whole = path + ("?" + parts.get_column("query")).fill_null("")
        sharing: dict[tuple[FastRule, ...], list[str]] = {}
        for host in hosts.filter(fitting).unique():
            sharing.setdefault(self._rules_of(host), []).append(host)
        for rules, names in sharing.items():
            among = hosts.is_in(names).fill_null(False) if rules else fitting
            for rule in rules:
                state.apply(rule, whole if rule.query else path, among)
        for rule in _as_rules(self._domains.get(_ALL_HOSTS)):
            state.apply(rule, whole if rule.query else path, fitting)
        return Verdicts(state.undecided, state.line, state.slow)

    def _rules_of(self, host: str) -> tuple[FastRule, ...]:
        """Returns the rules for a host in order, without those for all hosts."""
        domains = (self._domains.get(name or " ") for name in names_above(host))
        blocks = [self._hosts.get(host), *domains]
        return tuple(rule for block in blocks for rule in _as_rules(block))


def _as_rules(block: list[FastRule] | int | None) -> tuple[FastRule, ...]:
    if block is None:
        return ()
    return (FastRule(block, _EVERYTHING),) if isinstance(block, int) else tuple(block)


def _rule(kind: str, text: str, name: str, number: int) -> FastRule:
    if text in _ALL:
        return FastRule(number, _EVERYTHING)
    pattern = pattern_of(f"{name}:{number}: a rule must be a regular expression", text)
    return FastRule(number, pattern, query=kind == "DenyPathQuery")
