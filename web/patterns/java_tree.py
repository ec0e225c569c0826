"""The tree of a regular expression of Java."""

import dataclasses

from .chars import Chars


@dataclasses.dataclass(frozen=True, slots=True)
class Mark:
    """A position, a line end or a grapheme; ``kind`` names it."""

    kind: str


@dataclasses.dataclass(frozen=True, slots=True)
class Concat:
    """A sequence of parts."""

    parts: tuple["JavaNode", ...]


@dataclasses.dataclass(frozen=True, slots=True)
class Choice:
    """Alternatives; the first one that matches is used."""

    parts: tuple["JavaNode", ...]


@dataclasses.dataclass(frozen=True, slots=True)
class Group:
    """A group that captures its match under a number, from 1."""

    part: "JavaNode"
    number: int


@dataclasses.dataclass(frozen=True, slots=True)
class Atomic:
    """An atomic group: after a match, the matcher does not backtrack into it."""

    part: "JavaNode"


@dataclasses.dataclass(frozen=True, slots=True)
class Repeat:
    """A part ``least`` to ``most`` times (None: any); ``how``: "", "?": lazy, "+": possessive."""

    part: "JavaNode"
    least: int
    most: int | None
    how: str


@dataclasses.dataclass(frozen=True, slots=True)
class Reference:
    """A reference to the match of a group."""

    number: int
    any_case: bool


@dataclasses.dataclass(frozen=True, slots=True)
class Lookaround:
    """A lookahead or lookbehind, positive or negative."""

    part: "JavaNode"
    behind: bool
    negative: bool


JavaNode = Chars | Mark | Concat | Choice | Group | Repeat | Reference | Lookaround | Atomic


@dataclasses.dataclass(frozen=True)
class Tree:
    """A parsed pattern, how many groups it has, and the numbers of named groups."""

    root: JavaNode
    groups: int
    names: dict[str, int]


def children(node: JavaNode) -> tuple[JavaNode, ...]:
    """Returns the nodes directly below a node."""
    match node:
        case Concat(parts) | Choice(parts):
            return parts
        case Group(part) | Repeat(part) | Atomic(part) | Lookaround(part):
            return (part,)
    return ()


def nodes_of(node: JavaNode) -> list[JavaNode]:
    """Returns a node and all below it."""
    return [node, *(below for child in children(node) for below in nodes_of(child))]
