"""URL filters of lists: prefixes and suffixes of URLs; hosts, domains and public suffixes.

They are Nutch's prefix-, suffix-, domain-, domaindenylist- and fast-urlfilter.txt. The last one has
rules for each host and domain.
"""

import dataclasses
import functools
from typing import NamedTuple

import polars as pl

from ..base.columns import falses, text_frame, zeros
from ..base.wording import value_error
from ..patterns.patterns import compile_pattern, pattern_of
from ..rule_files.rule_files import NameLines, entries, host_name, line_at, lines_of, without_longer
from ..urls.domains import names_above, suffix_and_domain
from ..urls.url_parts import host_of_url, parts_of, parts_of_url
from .verdicts import ColumnState, UrlFilter, UrlRule, Verdicts, verdicts


class PrefixFilter(UrlFilter):
    """Accepts URLs that begin with one of the prefixes of a file, which has one per line.

    Empty lines, and lines that begin with ``#`` or a space, are ignored. A file without a
    prefix accepts no URL.

    >>> PrefixFilter("http://\\nftp://", "p").decide("ftp://foo.com/")
    Verdict(accept=True, line=2, slow=False)
    """

    def __init__(self, text: str, name: str) -> None:
        self.name, self._text = name, text
        numbered = enumerate(lines_of(text), start=1)
        self._names = NameLines(
            without_longer((line, n) for n, line in numbered if line and line[0] not in " #")
        )

    def rule(self, line: int, url: str = "") -> str:
        """Returns the prefix at a line."""
        return line_at(self._text, line) if line else "no prefix accepts it"

    def decide_column(self, urls: pl.Series) -> Verdicts:
        """Returns the verdict on each URL; nulls are refused."""
        lines = self._names.prefix_lines(urls)
        return verdicts(lines > 0, lines)


class SuffixFilter(UrlFilter):
    """Accepts or refuses URLs that end with one of the suffixes of a file, which has one per line.

    A line that begins with ``+`` (refuse URLs with a suffix) or ``-`` (accept only those)
    sets the mode; the last one counts. ``I`` after it ignores case, ``P`` compares the path
    instead of the whole URL. Without such a line the mode is ``-``.

    >>> pictures = SuffixFilter("+PI\\n.gif\\n", "s")
    >>> pictures.decide("http://foo.com/a.GIF?x=1")
    Verdict(accept=False, line=2, slow=False)
    """

    def __init__(self, text: str, name: str) -> None:
        self.name, self._text = name, text
        self._refuse = self._ignore_case = self._path = False
        suffixes: list[tuple[str, int]] = []
        for number, raw in enumerate(lines_of(text), start=1):
            line = raw.strip()
            if line[:1] in ("+", "-"):
                if line.strip("+-PI "):
                    wanted = "a line that begins with + or - may have the flags P and I alone"
                    raise value_error(f"{name}:{number}: {wanted}", line)
                self._refuse = line[0] == "+"
                self._path |= "P" in line
                self._ignore_case |= "I" in line
            elif line and line[0] != "#":
                suffixes.append((line, number))
        if self._ignore_case:
            suffixes = [(suffix.lower(), number) for suffix, number in suffixes]
        self._names = NameLines(without_longer((suffix[::-1], n) for suffix, n in suffixes))

    def rule(self, line: int, url: str = "") -> str:
        """Returns the suffix at a line."""
        default = "accepts what has no suffix of it" if self._refuse else "no suffix accepts it"
        return line_at(self._text, line) if line else default

    def decide_column(self, urls: pl.Series) -> Verdicts:
        """Returns the verdict on each URL; nulls are refused."""
        texts = urls.str.to_lowercase() if self._ignore_case else urls
        if self._path:
            path = parts_of(texts).get_column("path")
            texts = path.zip_with(path.is_not_null(), texts)
        lines = self._names.prefix_lines(texts.str.reverse())
        return verdicts(((lines > 0) != self._refuse) & urls.is_not_null(), lines)


class DomainFilter(UrlFilter):
    """Accepts or refuses URLs whose host, registered domain or suffix is in a file.

    One entry per line: a host (``www.foo.com``), a registered domain (``foo.com``), a
    public suffix (``co.uk``) or a top-level domain (``uk``). If several entries match, the
    verdict has the line of the widest one. Names may be written in Unicode; URLs have them in
    punycode. A file without entries accepts all URLs (NUTCH-2189). Text that is not a URL, or
    has no host, is refused in both modes.

    Args:
        text: The file.
        name: Its name in messages.
        deny: Whether URLs in the list are refused, instead of accepted.

    >>> DomainFilter("net\\napache.org", "d").decide("http://lucene.apache.org/")
    Verdict(accept=True, line=2, slow=False)
    """

    def __init__(self, text: str, name: str, deny: bool = False) -> None:
        self.name, self._text, self._deny = name, text, deny
        self._names = NameLines((_read_entry(line, name, n), n) for n, line in entries(text))

    def rule(self, line: int, url: str = "") -> str:
        """Returns the entry at a line; for 0, what happens to a URL without an entry."""
        if line:
            return line_at(self._text, line)
        if not len(self._names):
            return "has no entries, and accepts all"
        if url and not host_of_url(url):
            return "refuses text that is not a url with a host"
        return "accepts all other hosts" if self._deny else "no entry accepts it"

    def decide_column(self, urls: pl.Series) -> Verdicts:
        """Returns the verdict on each URL; nulls are refused."""
        if not len(self._names):
            return verdicts(urls.is_not_null())
        hosts = parts_of(urls).select("host")
        each = hosts.filter(pl.col("host") != "").unique()
        # Few hosts are in or below a listed name; only they need their public suffix.
        below = self._is_below(each.get_column("host"))
        each = pl.concat([each.filter(below), each.filter(~below)])
        listed = map(_names_of, each.get_column("host").head(int(below.sum())))
        names = text_frame(listed, "suffix", "domain", "whole", "top")
        entry_lines = names.select(
            self._names.lines(names.get_column(name)).alias(name) for name in names.columns
        )
        first = pl.coalesce(pl.when(pl.col(name) > 0).then(name) for name in names.columns)
        first_lines = entry_lines.select(first.fill_null(0)).to_series()
        each = each.with_columns(line=first_lines.extend(zeros(len(each) - len(entry_lines))))
        lines = hosts.join(each, on="host", how="left", maintain_order="left").get_column("line")
        has_host = lines.is_not_null()
        lines = lines.fill_null(0)
        return verdicts(((lines > 0) != self._deny) & has_host, lines)

    def _is_below(self, hosts: pl.Series) -> pl.Series:
        """Returns which hosts are in the list, or are below a name in it."""
        is_listed = falses(len(hosts))
        name = hosts.str.strip_suffix(".")
        while not name.is_null().all():
            is_listed |= self._names.lines(name) > 0
            name = name.str.extract(r"^[^.]*\.(.*)$", 1)
        return is_listed


@functools.lru_cache(maxsize=1 << 17)
def _names_of(host: str) -> tuple[str | None, str, str, str]:
    """Returns the entries that match a host: public suffix, registered domain, host, last label.

    >>> _names_of("www.bbc.co.uk")
    ('co.uk', 'bbc.co.uk', 'www.bbc.co.uk', 'uk')
    """
    host = host.removesuffix(".")
    return (*suffix_and_domain(host), host, host.rpartition(".")[2])


def _read_entry(line: str, name: str, number: int) -> str:
    entry = host_name(line)
    if entry is None:
        wanted = "an entry must be a host, a domain or a suffix, as foo.com"
        raise value_error(f"{name}:{number}: {wanted}", line)
    return entry


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
    for all URLs. ``#`` begins a comment. Names may be written in Unicode. Text
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
