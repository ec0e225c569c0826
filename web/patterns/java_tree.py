"""What a regular expression of Java says, as a tree."""

import dataclasses

from .chars import Chars


@dataclasses.dataclass(frozen=True, slots=True)
class Mark:
    """A place, or what Java has an escape for; ``kind`` names it."""

    kind: str


@dataclasses.dataclass(frozen=True, slots=True)
class Row:
    """One after the other."""

    parts: tuple["Node", ...]


@dataclasses.dataclass(frozen=True, slots=True)
class Either:
    """The first that fits."""

    parts: tuple["Node", ...]


@dataclasses.dataclass(frozen=True, slots=True)
class Group:
    """What is kept under a number, from 1."""

    part: "Node"
    number: int


@dataclasses.dataclass(frozen=True, slots=True)
class Atomic:
    """What is not tried in another way once it was found."""

    part: "Node"


@dataclasses.dataclass(frozen=True, slots=True)
class Repeat:
    """``least`` to ``most`` times (None: any); ``how`` is "", "?" (few) or "+" (gives none back)."""

    part: "Node"
    least: int
    most: int | None
    how: str


@dataclasses.dataclass(frozen=True, slots=True)
class Back:
    """What a group kept, again."""

    number: int
    any_case: bool


@dataclasses.dataclass(frozen=True, slots=True)
class Look:
    """What must (not) follow, or stand before."""

    part: "Node"
    behind: bool
    negative: bool


Node = Chars | Mark | Row | Either | Group | Repeat | Back | Look | Atomic


@dataclasses.dataclass(frozen=True)
class PatternTree:
    """A pattern that was read, and the numbers of its groups that have names."""

    root: Node
    groups: int
    names: dict[str, int]


def children(node: Node) -> tuple[Node, ...]:
    """Returns the nodes directly below a node."""
    match node:
        case Row(parts) | Either(parts):
            return parts
        case Group(part) | Repeat(part) | Atomic(part) | Look(part):
            return (part,)
    return ()


def nodes_of(node: Node) -> list[Node]:
    """Returns a node and all below it."""
    return [node, *(below for child in children(node) for below in nodes_of(child))]
