"""Finds the line of a robots.txt that decides about a URL."""

from collections.abc import Sequence
from typing import NamedTuple

from ..urls.url_parts import host_of_url
from .match import TooCostly
from .robots import RobotsRecord, RobotsRules
from .rules import read_robots_rules, split_lines


class Line(NamedTuple):
    """A line of a robots.txt, by its number from 1."""

    number: int
    text: str


def deciding_line(text: str, url: str, agents: tuple[str, ...]) -> Line | None:
    """Returns the line that allows or denies a URL; None if no line matches.

    The longest matching line decides; of equal length, one that allows; of equal ones, the first.
    Also None if the search takes too many steps.

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
    rules = RobotsRules(RobotsRecord(200, text, 0), agents, host=host_of_url(url) or "")
    return line_of(rules, url, rule_lines(text, agents))


def line_of(rules: RobotsRules, url: str, lines: Sequence[Line]) -> Line | None:
    """Returns the line that decides about a URL, as ``deciding_line`` does.

    Args:
        rules: The rules of the robots.txt.
        url: The URL.
        lines: The lines of these rules, see ``rule_lines``.
    """
    try:
        number = rules.decide(url).rule
    except TooCostly:
        return None
    return None if number is None else lines[number]


def rule_lines(text: str, agents: tuple[str, ...]) -> list[Line]:
    """Returns the line of each rule that applies to an agent, as ``Decision.rule`` counts them.

    >>> rule_lines("User-agent: *\\nDisallow: /x\\nAllow: /x/y", ("bot",))[1]
    Line(number=3, text='Allow: /x/y')
    """
    lines = split_lines(text)
    numbers = [rule.line for rule in read_robots_rules(text, agents).rules]
    return [Line(number, lines[number - 1].strip()) for number in numbers]
