"""Which line of a robots.txt decides about a URL."""

import re
from typing import NamedTuple

from .robots import RobotsRecord, RobotsRules

_RULE = re.compile(r"\s*(?:dis)?allow\s*:?\s*([^#]*)(?:#.*)?", re.IGNORECASE)
_DISALLOW = re.compile(r"\s*disallow", re.IGNORECASE)
_NO_RULE = "Disallow:"  # means nothing, and keeps groups apart


class Line(NamedTuple):
    """A line of a robots.txt, by its number from 1."""

    number: int
    text: str


def deciding_line(text: str, url: str, agents: tuple[str, ...]) -> Line | None:
    """Returns the line that allows or denies a URL; None where none says anything of it.

    It is the longest that matches: without it, and the shorter ones, the answer
    would be another.

    Args:
        text: The robots.txt.
        url: The URL.
        agents: Product tokens of the agent, as ``RobotsRules`` takes them.

    >>> robots = "User-agent: *\\nDisallow: /x\\nAllow: /x/y"
    >>> deciding_line(robots, "http://a/x/z", ("bot",))
    Line(number=2, text='Disallow: /x')
    >>> deciding_line(robots, "http://a/x/y", ("bot",))
    Line(number=3, text='Allow: /x/y')
    """
    lines = text.splitlines()
    verdict = _allowed(lines, url, agents)
    matching = [
        (len(found[1].strip()), -at)
        for at, line in enumerate(lines)
        if (found := _RULE.fullmatch(line))
        and bool(_DISALLOW.match(line)) != verdict
        and not _allowed(["User-agent: *", f"Disallow: {found[1]}"], url, agents)
    ]
    left = list(lines)
    for _, minus_at in sorted(matching):  # of equal ones the first decides
        at = -minus_at
        left[at] = _NO_RULE
        if _allowed(left, url, agents) != verdict:
            return Line(at + 1, lines[at].strip())
    return None


def _allowed(lines: list[str], url: str, agents: tuple[str, ...]) -> bool:
    return RobotsRules(RobotsRecord(200, "\n".join(lines), 0), agents).allowed(url)
