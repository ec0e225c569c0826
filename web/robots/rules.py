"""Reads the lines of a robots.txt for one agent (RFC 9309 2.2).

One regular expression reads the whole text, and each line that it finds takes a few steps. So the
time grows only linearly with the length of the text.
"""

import itertools
import math
import re
from collections.abc import Iterator
from typing import NamedTuple

_FIELD = (
    r"user[-_ \u2010-\u2015]?agents?|(?:allow|dis{1,2}al{1,2}ow|diasllow|disallaw)(?:ed|s)?"
    r"|site-?maps?|crawl[-_ ]?delay|content-usage|request[- ]rate|visit[- ]time"
)
_COLON = "[:\uff1a\ufe55\u2236\ua789]"  # also as East Asian keyboards write it
# A field and its value. The colon may be missing, or be ";" or "=" before white space.
_LINE = re.compile(
    rf"^[^\S\n]*+({_FIELD})"
    rf"(?:[^\S\n]*+({_COLON})|([;=])(?=[^\S\n])|(?=[\s#])|\Z)([^#\n]*+)",
    re.IGNORECASE | re.MULTILINE,
)
# Other ends of lines, Unicode's and those of old printers. They count where a field comes next.
_OTHER_END = re.compile("[\v\f\x1c-\x1e\x85\u2028\u2029]")
_BEFORE_FIELD = re.compile(
    rf"(?<![^\S\n])[^\S\n]++(?=(?:{_FIELD})[^\S\n]*+{_COLON})", re.IGNORECASE
)
_AGENT, _ALLOW, _DISALLOW, _SITEMAP, _DELAY, _USAGE, _OTHER = range(7)
# By the first three letters.
_KINDS = {
    "use": _AGENT,
    "all": _ALLOW,
    "dis": _DISALLOW,
    "dia": _DISALLOW,
    "sit": _SITEMAP,
    "cra": _DELAY,
    "con": _USAGE,
    "req": _OTHER,
    "vis": _OTHER,
}
# A product token (RFC 9309 2.2.1), here with digits, or "*"; what stands before and behind it is
# ignored: marks such as quotes, a version, a comment.
_COMMENT = re.compile(r"\([^()]*+\)?")
_NAME = re.compile(r"[^\w*-]*+(?:\**+([A-Za-z0-9_-]+)|\*)")
_BETWEEN_NAMES = re.compile("[,;]")
_ALL = "*"
_URL = re.compile(r"https?://([^/?:]+)(?::[0-9]*)?", re.IGNORECASE)
_NUMBER = re.compile(
    r"\+?([0-9]+(?:[.,][0-9]*)?|[.,][0-9]+)\s*\(?(ms|milli[a-z]*|[a-z]*)\)?[.;,]*", re.IGNORECASE
)
# Seconds in a unit, by its first letter.
_UNITS = {"": 1.0, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86_400.0}
_OF_PATHS = (_ALLOW, _DISALLOW)
MAX_USAGES = 100


class RobotsRule(NamedTuple):
    """A line that allows or denies paths.

    Attributes:
        allow: Whether it allows.
        pattern: The pattern as in the file.
        line: Number of its line, from 1.
    """

    allow: bool
    pattern: str
    line: int


class UsageRule(NamedTuple):
    """A Content-Usage line (IETF aipref): what content of some paths may be used for.

    Attributes:
        pattern: The paths; ``/`` if the line names none.
        usage: The preferences, as in the line.
    """

    pattern: str
    usage: str


class RobotsReading(NamedTuple):
    """The part of a robots.txt for one agent.

    Attributes:
        rules: The rules in the order of the file.
        crawl_delay: Crawl delay in s, or None.
        odd_delay: The last crawl delay, if none of them is a time.
        sitemaps: Its sitemaps, which are for all agents.
        usages: The first hundred Content-Usage lines.
    """

    rules: list[RobotsRule]
    crawl_delay: float | None
    odd_delay: str | None
    sitemaps: list[str]
    usages: tuple[UsageRule, ...]


_Line = tuple[int, str, int]  # kind, value, number


class _Group(NamedTuple):
    """Lines for the agents in the User-agent lines before them.

    Attributes:
        names: Those of its names that are the agent's, and ``*``.
        lines: The lines; empty without such a name.
    """

    names: set[str]
    lines: list[_Line]


class _Groups:
    """The groups of a robots.txt for one agent.

    A group ends only where a User-agent line follows a line that allows or denies: no other line
    ends it (RFC 9309 2.2.4), as for Google and Nutch. The other lines, such as a crawl delay, are for
    the agents right above them, not for those that are named later.

    Args:
        names: The names of the agent.
    """

    def __init__(self, names: set[str]) -> None:
        self._own, self._named = names, {*names, _ALL}
        self._groups: list[_Group] = []
        self._above = set[str]()  # names in the User-agent lines right above
        self._others: list[tuple[set[str], _Line]] = []
        self._is_above, self._has_ended = False, True

    def add(self, line: _Line) -> None:
        """Adds a line that is no sitemap."""
        kind, value, _ = line
        if kind == _AGENT:
            self._add_names(names_of_agents(value) & self._named)
            return
        self._is_above = False
        if kind not in _OF_PATHS:
            if value and self._above:
                self._others.append((self._above, line))
            return
        self._has_ended = True
        if value and self._groups and self._groups[-1].names:
            self._groups[-1].lines.append(line)

    def _add_names(self, names: set[str]) -> None:
        if self._has_ended:
            self._groups.append(_Group(set(), []))
        if names:
            self._groups[-1].names.update(names)
        self._above = self._above | names if self._is_above else names
        self._is_above, self._has_ended = True, False

    def lines(self) -> tuple[list[_Line], list[_Line]]:
        """Returns the lines that apply: those that allow or deny, and the others."""
        names = self._own
        if not any(names & group.names for group in self._groups):
            names = {_ALL}
        of_paths = [line for group in self._groups if names & group.names for line in group.lines]
        return of_paths, [line for above, line in self._others if names & above]


def read_robots_rules(text: str, agents: tuple[str, ...], host: str = "") -> RobotsReading:
    """Returns the part of a robots.txt for one agent.

    All groups with one of its names apply together (RFC 9309 2.2.1). If there are none, the groups
    for all agents apply. See ``names_of_agents``. A path that is denied may be a URL of the
    host.

    Args:
        text: The robots.txt.
        agents: Product tokens.
        host: Its host; empty if unknown.

    >>> robots = "User-agent: Bot/2.0 (us) # we\\nDisallow: /a\\nUser-agent: *\\nDisallow: /"
    >>> [rule.pattern for rule in read_robots_rules(robots, ("bot",)).rules]
    ['/a']
    """
    groups = _Groups({agent.lower() for agent in agents})
    sitemaps: list[str] = []
    for line in _lines(text):
        if line[0] == _SITEMAP:
            sitemaps.append(line[1])
        else:
            groups.add(line)
    of_paths, others = groups.lines()
    rules = [
        RobotsRule(True, value, at)
        if kind == _ALLOW
        else RobotsRule(False, _own_path(value, host) if value[0] in "hH" else value, at)
        for kind, value, at in of_paths
    ]
    usages = (_usage_rule(value) for kind, value, _ in others if kind == _USAGE)
    first_usages = tuple(itertools.islice(usages, MAX_USAGES))
    return RobotsReading(rules, *_delays(others), sitemaps, first_usages)


def _own_path(pattern: str, host: str) -> str:
    """Returns the path of a pattern that is a URL of the host; else the pattern.

    >>> _own_path("http://a.example/x*", "a.example"), _own_path("http://b.example/", "a.example")
    ('/x*', 'http://b.example/')
    """
    match = _URL.match(pattern) if host else None
    if match is None or match[1].lower() != host:
        return pattern
    return f"/{pattern[match.end() :].removeprefix('/')}"


def _usage_rule(value: str) -> UsageRule:
    """Returns the rule of a line; its paths are optional, and come first.

    >>> _usage_rule("/a train-ai=n"), _usage_rule("train-ai=n")
    (UsageRule(pattern='/a', usage='train-ai=n'), UsageRule(pattern='/', usage='train-ai=n'))
    """
    pattern, *usage = value.split(maxsplit=1)
    if pattern.startswith(("/", "*")) and "=" not in pattern:
        return UsageRule(pattern, "".join(usage))
    return UsageRule("/", value)


def split_lines(text: str) -> list[str]:
    """Splits a robots.txt into lines, for line numbers.

    They end with CR, LF or both (RFC 9309 2.2), and at other separators of lines before a field.
    """
    return _unify_newlines(text).split("\n")


def number_of_lines(text: str) -> int:
    """Returns how many lines with a known field a robots.txt has."""
    return sum(1 for _ in _lines(text))


def _unify_newlines(text: str) -> str:
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    if not _OTHER_END.search(text):
        return text
    return _BEFORE_FIELD.sub(lambda space: "\n" if _OTHER_END.search(space[0]) else space[0], text)


def _lines(text: str) -> Iterator[_Line]:
    """Yields the lines with a known field; other lines are ignored (RFC 9309 2.2.4)."""
    text = _unify_newlines(text)
    number, counted = 1, 0
    for match in _LINE.finditer(text):
        field, colon, mark, value = match.groups()
        kind = _KINDS[field[:3].lower()]
        if not (colon or mark) and _has_other_field(value):
            continue
        begins = match.start()
        number += text.count("\n", counted, begins)
        counted = begins
        yield kind, value.strip(), number


def _has_other_field(value: str) -> bool:
    """Returns whether the text after a field has a colon after a word, as another field has.

    >>> _has_other_field("of this site: /a"), _has_other_field("http://a.example/")
    (True, False)
    """
    _, colon, rest = value.rstrip().partition(":")
    return bool(colon) and (not rest or rest[0].isspace())


def names_of_agents(value: str) -> set[str]:
    """Returns the names in a User-agent line: product tokens in lower case, and ``*`` for all.

    A token ends before the first character that is no letter of ASCII, digit, "-" or "_". Google
    and Nutch end it before a digit, too; here digits belong to it, since agents have names such as
    ``bot2`` and ``360spider``. Commas and semicolons separate several names. Asterisks beside a token do not count.

    >>> sorted(names_of_agents("MyBot/1.0 (what, and why; http://bot.example/)"))
    ['mybot']
    >>> sorted(names_of_agents("*, Other Images, bot2*")), names_of_agents("* (all robots)")
    (['*', 'bot2', 'other'], {'*'})
    """
    value = _COMMENT.sub(" ", value) if "(" in value else value
    names = _BETWEEN_NAMES.split(value) if "," in value or ";" in value else (value,)
    matches = map(_NAME.match, names)
    return {(match[1] or _ALL).lower() for match in matches if match}


def crawl_delay_of(value: str) -> float | None:
    """Returns a crawl delay in s; None if the value is no time.

    A comma is a decimal point. Seconds is the usual unit.

    >>> [crawl_delay_of(value) for value in ("2.5", "0,5", "10s", "2 minutes", "500 ms", "1_0")]
    [2.5, 0.5, 10.0, 120.0, 0.5, None]
    """
    match = _NUMBER.fullmatch(value)
    if match is None:
        return None
    number, unit = float(match[1].replace(",", ".")), match[2].lower()
    seconds = 0.001 if unit[:2] in ("ms", "mi") and unit[:3] != "min" else _UNITS.get(unit[:1])
    return number * seconds if seconds and math.isfinite(number) else None


def _delays(lines: list[_Line]) -> tuple[float | None, str | None]:
    """Returns the last crawl delay that is a time, or else the last that is none."""
    values = [value for kind, value, _ in lines if kind == _DELAY]
    delays = [delay for delay in map(crawl_delay_of, values) if delay is not None]
    if delays:
        return delays[-1], None
    return None, values[-1] if values else None
