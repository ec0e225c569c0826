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
    r"^[^\S\n]*+(user[- ]?agent|allow|dis{1,2}al{1,2}ow|diasllow|disallaw|site-?map|sitemaps"
    r"|crawl[- ]delay|content-usage|request[- ]rate|visit[- ]time)(?:[^\S\n]*+(:)|(?=[\s#])|\Z)([^#\n]*+)",
    re.IGNORECASE | re.MULTILINE,
)
_AGENT, _ALLOW, _DISALLOW, _SITEMAP, _DELAY, _USAGE, _OTHER = range(7)
_KINDS = {
    **dict.fromkeys(("user-agent", "user agent", "useragent"), _AGENT),
    **dict.fromkeys(("sitemap", "site-map", "sitemaps"), _SITEMAP),
    **dict.fromkeys(("crawl-delay", "crawl delay"), _DELAY),
    **dict.fromkeys(("request-rate", "request rate", "visit-time", "visit time"), _OTHER),
    "allow": _ALLOW,
    "content-usage": _USAGE,
    **dict.fromkeys(("disallow", "dissallow", "dissalow", "disalow"), _DISALLOW),
    **dict.fromkeys(("diasllow", "disallaw"), _DISALLOW),
}  # fmt: skip
MAX_USAGES = 100
_FOR_ALL, _OWN = 0, 1 << 20


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
        sitemaps: Its sitemaps, which are for all agents.
        usages: The first hundred Content-Usage lines.
    """

    rules: list[RobotsRule]
    crawl_delay: float | None
    sitemaps: list[str]
    usages: tuple[UsageRule, ...] = ()


_Line = tuple[int, str, int]  # kind, value, number


class _Group(NamedTuple):
    """A group of lines for the agents in the User-agent lines before them.

    Attributes:
        ranks: Ranks of the match between its names and the agent.
        lines: Lines of the group; empty if no name matches.
    """

    ranks: set[int]
    lines: list[_Line]


def read_robots_rules(text: str, agents: tuple[str, ...]) -> RobotsReading:
    """Returns the part of a robots.txt for one agent.

    All groups with one of its names apply together (RFC 9309 2.2.1). If there are none, the groups
    apply that have the longest prefix of the first name. Otherwise the groups for all agents apply.

    Args:
        text: The robots.txt.
        agents: Product tokens.

    >>> robots = "User-agent: Bot/2.0 # us\\nDisallow: /a\\nUser-agent: *\\nDisallow: /"
    >>> [rule.pattern for rule in read_robots_rules(robots, ("bot",)).rules]
    ['/a']
    """
    names = tuple(agent.lower() for agent in agents)
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
            groups[-1].ranks.update(_ranks(value.lower(), names))
        else:
            of_agents = False
            if value and groups and groups[-1].ranks:
                groups[-1].lines.append(line)
    best = max((rank for group in groups for rank in group.ranks), default=_FOR_ALL)
    lines = [line for group in groups if best in group.ranks for line in group.lines]
    of_paths = (line for line in lines if line[0] in (_ALLOW, _DISALLOW))
    rules = [RobotsRule(kind == _ALLOW, value, at) for kind, value, at in of_paths]
    usages = (_usage_rule(value) for kind, value, _ in lines if kind == _USAGE)
    return RobotsReading(
        rules, _crawl_delay(lines), sitemaps, tuple(itertools.islice(usages, MAX_USAGES))
    )


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


def _with_newlines(text: str) -> str:
    return text.replace("\r\n", "\n").replace("\r", "\n")


def _lines(text: str) -> Iterator[_Line]:
    """Yields the lines with a known field; other lines are ignored (RFC 9309 2.2.4)."""
    text = _with_newlines(text)
    number, counted = 1, 0
    for found in _LINE.finditer(text):
        field, colon, value = found.groups()
        kind = _KINDS.get(field.lower())
        if kind is None or (not colon and _has_other_field(value)):
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


def _ranks(name: str, agents: tuple[str, ...]) -> Iterator[int]:
    """Yields ranks of the match between a name in lower case and the agent's names."""
    if name == "*":
        yield _FOR_ALL
        return
    token, _, version = name.partition("/")
    if token in agents and len(version.split()) < 2:
        yield _OWN
    for spelling in (name, name.replace("*", "")):
        if spelling in agents:
            yield _OWN
        elif spelling and agents[0].startswith(spelling):
            yield len(spelling)


def _crawl_delay(lines: list[_Line]) -> float | None:
    """Returns the last valid delay."""
    for kind, value, _ in reversed(lines):
        if kind == _DELAY:
            try:
                delay = float(value)
            except ValueError:
                continue
            if math.isfinite(delay) and delay >= 0:
                return delay
    return None
