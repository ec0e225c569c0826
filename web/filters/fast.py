"""The filter urlfilter-fast: rules looked up by host and domain, as in fast-urlfilter.txt."""

import dataclasses

import polars as pl

from ..base.columns import falses, put, zeros
from ..base.quoting import quoted
from ..patterns.patterns import Patience, Pattern, compile_pattern, is_column_pattern
from ..rule_files.rule_files import line_at, lines_of
from ..rule_files.rule_hosts import host_name
from ..urls.url_parts import parts_of, parts_of_url
from .verdicts import Verdict, Verdicts

_ALL = (".*", ".?")
_ALL_HOSTS = "."


@dataclasses.dataclass(frozen=True)
class FastLimits:
    """Longest URL, path and query that are taken; -1 for any."""

    url: int = -1
    path: int = -1
    query: int = -1


@dataclasses.dataclass(frozen=True, slots=True)
class FastRule:
    """A rule that refuses URLs.

    Attributes:
        line: Line number in the file, from 1.
        pattern: The pattern; None for a rule that refuses all.
        query: Whether it is looked for in path and query, instead of the path.
    """

    line: int
    pattern: Pattern | None = None
    query: bool = False


class FastFilter:
    """Takes URLs but those that a rule for their host or domain refuses.

    ``Host NAME`` or ``Domain NAME`` begins a block; below it are ``DenyPath REGEX``
    and ``DenyPathQuery REGEX``, looked for anywhere in the path, or in path and
    query. ``.*`` refuses all. Rules of the host come first, then those of its name
    as a domain, of its parents, the longest first, then those of ``Domain .``, for all
    URLs. From ``#`` on a line is a comment (nutch.md 3.5). Names may be written in
    Unicode. Text that is not a URL is refused.

    Args:
        text: The file.
        name: Its name in messages.
        limits: Lengths.

    Raises:
        ValueError: A line cannot be read; one line with the file and the number.

    >>> rules = FastFilter("Domain foo.com\\n DenyPath /private/", "fast.txt")
    >>> rules.decide("http://www.foo.com/private/x")
    Verdict(accept=False, line=2, slow=False)
    """

    def __init__(self, text: str, name: str, limits: FastLimits | None = None) -> None:
        self.name, self._text, self._limits = name, text, limits or FastLimits()
        # A million blocks that refuse all are a million numbers.
        self._hosts: dict[str, list[FastRule] | int] = {}
        self._domains: dict[str, list[FastRule] | int] = {}
        self._read(text)

    def _read(self, text: str) -> None:
        block: tuple[dict[str, list[FastRule] | int], str] | None = None
        for number, raw in enumerate(lines_of(text), start=1):
            words = raw.partition("#")[0].split()
            match words:
                case []:
                    continue
                case ["Host", site]:
                    block = self._hosts, self._site(site, number, raw)
                case ["Domain", site]:
                    block = self._domains, _ALL_HOSTS
                    if site != _ALL_HOSTS:
                        block = self._domains, self._site(site, number, raw)
                case ["DenyPath" | "DenyPathQuery" as kind, pattern] if block:
                    self._add(*block, _rule(kind, pattern, self.name, number))
                case ["DenyPath" | "DenyPathQuery", _]:
                    raise ValueError(
                        f"{self.name}:{number}: a rule must stand below Host or Domain, got "
                        f"{quoted(raw.strip())}"
                    )
                case _:
                    raise ValueError(
                        f"{self.name}:{number}: a line must be Host NAME, Domain NAME, DenyPath "
                        f"REGEX or DenyPathQuery REGEX, got {quoted(raw.strip())}"
                    )

    def _site(self, site: str, number: int, line: str) -> str:
        name = host_name(site)
        if name is None:
            raise ValueError(
                f"{self.name}:{number}: a block must be for a host or a domain, as foo.com, or be "
                f"Domain {_ALL_HOSTS}, got {quoted(line.strip())}"
            )
        return name

    def _add(self, sites: dict[str, list[FastRule] | int], site: str, rule: FastRule) -> None:
        known = sites.get(site)
        if isinstance(known, int):
            return  # what refuses all comes before it
        if known is None and rule.pattern is None:
            sites[site] = rule.line
        elif known is None:
            sites[site] = [rule]
        else:
            known.append(rule)

    def rule(self, line: int, url: str = "") -> str:
        """Returns the rule at a line; for 0, what became of a URL without one."""
        if line:
            return line_at(self._text, line)
        parts = parts_of_url(url)
        if url and parts is None:
            return "refuses what is no url"
        limit = self._exceeded(url, parts) if parts else None
        return limit or "takes what no rule refuses, and is not too long"

    def _exceeded(self, url: str, parts: tuple[str, str, str | None]) -> str | None:
        """Returns which limit a URL is too long for, if it is."""
        most, (_, path, query) = self._limits, parts
        for name, text, limit in (
            ("url", url, most.url), ("path", path, most.path), ("query", query or "", most.query)
        ):  # fmt: skip
            if 0 <= limit < len(text):
                return f"refuses what is longer than fast_{name}_max_length, {limit} characters"
        return None

    def rules_of(self, host: str) -> tuple[FastRule, ...]:
        """Returns the rules that hold for a host, in order, but for those of all hosts."""
        found = _as_rules(self._hosts.get(host)) + _as_rules(self._domains.get(host))
        at = host.find(".")
        while at >= 0:
            found += _as_rules(self._domains.get(host[at + 1 :] or " "))
            at = host.find(".", at + 1)
        return found

    def decide(self, url: str) -> Verdict:
        """Returns whether a URL is taken."""
        parts = parts_of_url(url)
        if parts is None:
            return Verdict(False)
        host, path, query = parts
        whole = path if query is None else f"{path}?{query}"
        if self._exceeded(url, parts):
            return Verdict(False)
        patience = Patience()
        for rule in (*self.rules_of(host), *_as_rules(self._domains.get(_ALL_HOSTS))):
            try:
                if rule.pattern is None or patience.found(
                    rule.pattern, whole if rule.query else path
                ):
                    return Verdict(False, rule.line)
            except TimeoutError:
                return Verdict(False, rule.line, slow=True)
        return Verdict(True)

    def decide_column(self, urls: pl.Series) -> Verdicts:
        """Returns what ``decide`` says of each URL; nulls are not taken."""
        parts = parts_of(urls).with_columns(url=urls).with_row_index("row")
        most = self._limits
        fits = [pl.col("host").is_not_null()]
        for name, limit in (("url", most.url), ("path", most.path), ("query", most.query)):
            if limit >= 0:
                fits.append(pl.col(name).fill_null("").str.len_chars() <= limit)
        taken = parts.select(pl.all_horizontal(fits).alias("fits")).to_series()
        state = _Fast(parts, taken)
        each = parts.filter(taken).get_column("host").unique()
        special: dict[tuple[FastRule, ...], list[str]] = {}
        for host in each:
            rules = self.rules_of(host)
            if rules:
                special.setdefault(rules, []).append(host)
        for rules, hosts in special.items():
            for rule in rules:
                state.apply(rule, hosts)
        for rule in _as_rules(self._domains.get(_ALL_HOSTS)):
            state.apply(rule, None)
        return Verdicts(state.accept, state.line, state.slow)


class _Fast:
    """The state of a column of URLs while rules are applied."""

    def __init__(self, parts: pl.DataFrame, taken: pl.Series) -> None:
        whole = pl.concat_str("path", ("?" + pl.col("query")).fill_null(""))
        self._parts = parts.with_columns(whole=whole)
        self._rows: dict[int, pl.Series] = {}
        self._patience = Patience()
        self.accept = taken
        self.slow = falses(len(taken))
        self.line = zeros(len(taken))

    def apply(self, rule: FastRule, hosts: list[str] | None) -> None:
        among = self.accept
        if hosts is not None:
            if id(hosts) not in self._rows:
                self._rows[id(hosts)] = self._parts.get_column("host").is_in(hosts).fill_null(False)
            among = among & self._rows[id(hosts)]
        rows = among.arg_true()
        if not len(rows):
            return
        hits = rows
        if rule.pattern is not None:
            texts = self._parts.get_column("whole" if rule.query else "path").gather(rows)
            found, slow = self._search(rule.pattern, texts)
            if slow is not None:
                self.slow = put(self.slow, rows.filter(slow), True)
            hits = rows.filter(found)
        self.accept = put(self.accept, hits, False)
        self.line = put(self.line, hits, rule.line)

    def _search(self, pattern: Pattern, texts: pl.Series) -> tuple[pl.Series, pl.Series | None]:
        if pattern.exact and pattern.column and is_column_pattern(pattern.column):
            return texts.str.contains(pattern.column), None
        found: list[bool | None] = []
        for text in texts:
            try:
                found.append(self._patience.found(pattern, text))
            except TimeoutError:
                found.append(None)
        result = pl.Series(found, dtype=pl.Boolean)
        return result.fill_null(True), result.is_null() if result.null_count() else None


def _as_rules(known: list[FastRule] | int | None) -> tuple[FastRule, ...]:
    if known is None:
        return ()
    return (FastRule(known),) if isinstance(known, int) else tuple(known)


def _rule(kind: str, text: str, name: str, number: int) -> FastRule:
    if text in _ALL:
        return FastRule(number)
    try:
        return FastRule(number, compile_pattern(text), kind == "DenyPathQuery")
    except ValueError as error:
        raise ValueError(
            f"{name}:{number}: a rule must be a regular expression, got {quoted(text)}: {error}"
        ) from error
