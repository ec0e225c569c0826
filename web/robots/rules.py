"""Reads the lines of a robots.txt for one agent (RFC 9309 2.2).

One regular expression reads the whole text, and each line that it finds takes a few steps. So the
time grows only linearly with the length of the text.
"""

import itertools
import math
import re
from collections.abc import Iterator
from typing import NamedTuple

# A field and its value; the colon may be missing.
_LINE = re.compile(
    r"^[^\S\n]*+(user[-_ \u2010-\u2015]?agents?|allow|dis{1,2}al{1,2}ow|diasllow|disallaw"
    r"|site-?maps?|crawl[-_ ]?delay|content-usage|request[- ]rate|visit[- ]time)"
    r"(?:[^\S\n]*+(:)|(?=[\s#])|\Z)([^#\n]*+)",
    re.IGNORECASE | re.MULTILINE,
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
_ALL = "*"
_NUMBER = re.compile(
    r"\+?([0-9]+(?:[.,][0-9]*)?|[.,][0-9]+)\s*\(?(ms|milli[a-z]*|[a-z]*)\)?[.;,]*", re.IGNORECASE
)
# Seconds in a unit, by its first letter.
_UNITS = {"": 1.0, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86_400.0}
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
    """A group of lines for the agents in the User-agent lines before them.

    Attributes:
        names: Those of its names that are the agent's, and ``*``.
        lines: Lines of the group; empty without such a name.
    """

    names: set[str]
    lines: list[_Line]


def read_robots_rules(text: str, agents: tuple[str, ...]) -> RobotsReading:
    """Returns the part of a robots.txt for one agent.

    All groups with one of its names apply together (RFC 9309 2.2.1). If there are none, the groups
    for all agents apply. See ``names_of_agents``.

    Args:
        text: The robots.txt.
        agents: Product tokens.

    >>> robots = "User-agent: Bot/2.0 (us) # we\\nDisallow: /a\\nUser-agent: *\\nDisallow: /"
    >>> [rule.pattern for rule in read_robots_rules(robots, ("bot",)).rules]
    ['/a']
    """
    own = {agent.lower() for agent in agents}
    groups: list[_Group] = []
    sitemaps: list[str] = []
    of_agents = False
    for line in _lines(text):
        kind, value, _ = line
        if kind == _SITEMAP:
            sitemaps.append(value)
        elif kind == _AGENT:
            if not of_agents:
                groups.append(_Group(set(), []))
            of_agents = True
            groups[-1].names.update(names_of_agents(value) & {*own, _ALL})
        else:
            of_agents = False
            if value and groups and groups[-1].names:
                groups[-1].lines.append(line)
    if not any(own & group.names for group in groups):
        own = {_ALL}
    lines = [line for group in groups if own & group.names for line in group.lines]
    of_paths = (line for line in lines if line[0] in (_ALLOW, _DISALLOW))
    rules = [RobotsRule(kind == _ALLOW, value, at) for kind, value, at in of_paths]
    usages = (_usage_rule(value) for kind, value, _ in lines if kind == _USAGE)
    first_usages = tuple(itertools.islice(usages, MAX_USAGES))
    return RobotsReading(rules, *_delays(lines), sitemaps, first_usages)


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
    """Splits a robots.txt into lines, for line numbers (RFC 9309 2.2: CR, LF or both)."""
    return _with_newlines(text).split("\n")


def number_of_lines(text: str) -> int:
    """Returns how many lines with a known field a robots.txt has."""
    return sum(1 for _ in _lines(text))


def _with_newlines(text: str) -> str:
    return text.replace("\r\n", "\n").replace("\r", "\n")


def _lines(text: str) -> Iterator[_Line]:
    """Yields the lines with a known field; other lines are ignored (RFC 9309 2.2.4)."""
    text = _with_newlines(text)
    number, counted = 1, 0
    for found in _LINE.finditer(text):
        field, colon, value = found.groups()
        kind = _KINDS[field[:3].lower()]
        if not colon and _has_other_field(value):
            continue
        begins = found.start()
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
    ``bot2`` and ``360spider``. Commas separate several names. Asterisks beside a token do not count.

    >>> sorted(names_of_agents("MyBot/1.0 (what, and why; http://bot.example/)"))
    ['mybot']
    >>> sorted(names_of_agents("*, Other Images, bot2*")), names_of_agents("* (all robots)")
    (['*', 'bot2', 'other'], {'*'})
    """
    matches = map(_NAME.match, _COMMENT.sub(" ", value).split(","))
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
